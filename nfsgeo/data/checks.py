"""Checks of arrays from users and files, so that nothing is dropped in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["as_real", "check_distinct", "finite", "missing_values", "nearly_equal"]
__all__ += ["not_infinite", "on_cpu", "reading"]


def as_real(values: Any, what: str, *, gaps: bool = False) -> NDArray[Any]:
    """Values as an array of booleans, integers or floats, in their own type.

    With ``gaps``, masked values and None become NaN.

    Raises:
        UserError: Values are missing, complex, or no numbers at all.
    """
    values = on_cpu(values)
    try:
        if isinstance(values, (list, tuple)):
            values = np.ma.asanyarray(values)
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise UserError(f"{what} ({error})", "an array", "give equal rows") from None
    absent = np.ma.getmaskarray(values) if np.ma.is_masked(values) else np.False_
    if array.dtype == object:
        absent = absent | pandas.isna(array)
        with suppress(TypeError, ValueError):
            array = np.where(absent, np.nan, array).astype(np.float64)
    if array.dtype.kind not in "biuf":
        todo = "convert them to numbers"
        if array.dtype.kind == "c":
            todo = "give real and imaginary part as two components"
        raise UserError(f"{what} of type {array.dtype}", "real numbers", todo)
    if not absent.any():
        return array
    if not gaps:
        raise missing_values(what, int(absent.sum()), array.size)
    return np.where(absent, np.float32(np.nan), array)


def on_cpu(values: Any) -> Any:
    """A tensor without gradient in the memory of the CPU, of a type that numpy has."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    return values.float() if values.dtype == torch.bfloat16 else values


def finite(values: NDArray[Any], what: str, names: Sequence[str] = ()) -> NDArray[Any]:
    """Return the values; raise a UserError that counts those that are not finite.

    The ``names`` are those of the columns, if there are any.
    """
    if names:
        for column, name in enumerate(names):
            finite(values[..., column], f"{name} of {what}")
        return values
    if bad := int((~np.isfinite(values)).sum()):
        raise missing_values(what, bad, values.size)
    return values


def not_infinite(
    values: NDArray[Any], what: str, names: Sequence[str] = ()
) -> NDArray[Any]:
    """Return the values; raise a UserError that counts infinite ones, but not NaN.

    The ``names`` are those of the columns, if there are any.
    """
    if names:
        for column, name in enumerate(names):
            not_infinite(values[..., column], f"{name} of {what}")
        return values
    with np.errstate(over="ignore"):
        bad = int(np.isinf(values.astype(np.float32, copy=False)).sum())
    if bad:
        expected = "finite values that float32 can hold, and NaN where one is missing"
        given = f"{what} with {bad} of {values.size} values infinite"
        raise UserError(given, expected, "correct them")
    return values


def check_distinct(what: Any, names: Sequence[str]) -> None:
    """Raise a UserError if a name is there twice."""
    for name, times in Counter(names).items():
        if times > 1:
            given = f"{what} with the name {name!r} given {times} times"
            raise UserError(given, "names that differ", "rename one")


def missing_values(what: str, num: int, total: int) -> UserError:
    """Return the error about missing numbers where all are needed."""
    return UserError(
        f"{what} with {num} of {total} values missing or not finite",
        "a finite value everywhere: of fields that are predicted alone may values be "
        "missing",
        "give them, or leave out the points, time steps or samples they are of",
    )


@contextmanager
def reading(
    path: Path | str, what: str, todo: str = "check or replace it"
) -> Iterator[None]:
    """Turn any error that a parser raises inside the block into a UserError.

    Args:
        path: The file.
        what: Content that it should have.
        todo: Advice to the user.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0][:200] if lines else type(error).__name__
        raise UserError(f"{path} ({reason})", what, todo) from error


def nearly_equal(points: NDArray[np.float64], share: float = 1e-6) -> NDArray[np.int64]:
    """Find points that are closer than a share of the box, but not the same.

    Args:
        points: Coordinates ``[n, d]``, without duplicates.
        share: The largest distance along each axis, of the longest side of the box.

    Returns:
        Indices of the points of each pair ``[pairs, 2]``, sorted.
    """
    num, dim = points.shape
    reach = share * np.ptp(points, axis=0).max(initial=0.0) if num else 0.0
    if not reach:
        return np.empty((0, 2), np.int64)
    # Two such points share a cell of at least one of dim + 1 shifted grids.
    near, width = np.zeros(num, bool), 2 * (dim + 1) * reach
    low = points.min(axis=0)
    for shift in range(dim + 1):
        cells = np.floor((points - low) / width + shift / (dim + 1)).astype(np.int64)
        key = pandas.util.hash_array(cells[:, 0])
        for column in cells.T[1:]:
            key = key * np.uint64(1_000_003) ^ pandas.util.hash_array(column)
        near |= pandas.Series(key).duplicated(keep=False).to_numpy()
    at = np.flatnonzero(near)
    pairs = cKDTree(points[at]).query_pairs(reach, p=np.inf, output_type="ndarray")
    return np.unique(at[np.sort(pairs, axis=1)].reshape(-1, 2), axis=0)
