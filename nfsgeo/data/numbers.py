"""Arrays of numbers as users and files give them: nothing in them is dropped unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = [
    "as_real",
    "check_distinct",
    "finite",
    "missing_values",
    "not_infinite",
    "on_cpu",
]

ABSENT = ("NoneType", "NAType", "NaTType")  # of Python and of pandas


def as_real(values: Any, what: str, *, gaps: bool = False) -> NDArray[Any]:
    """Values as an array of booleans, integers or floats, in their own type.

    Args:
        values: Anything that numpy makes an array of.
        what: What they are, for messages.
        gaps: Whether values may be missing: masked ones and None become NaN.

    Raises:
        UserError: Values are missing, complex, or no numbers at all.
    """
    values = on_cpu(values)
    masked = _num_masked(values)
    try:
        array = np.asarray(_with_nan(values) if masked and gaps else values)
    except ValueError as error:  # rows of unequal length
        raise UserError(f"{what} ({error})", "an array", "give equal rows") from None
    if masked and not gaps:
        raise missing_values(what, masked, array.size)
    if array.dtype == object:
        absent = [type(value).__name__ in ABSENT for value in array.flat]
        if any(absent) and not gaps:
            raise missing_values(what, sum(absent), array.size)
        array = np.where(np.reshape(absent, array.shape), np.nan, array)
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise _no_numbers(what, array) from None
    if array.dtype.kind not in "biuf":
        raise _no_numbers(what, array)
    return array


def on_cpu(values: Any) -> Any:
    """A tensor without gradient in the memory of the CPU, of a type that numpy has."""
    if not isinstance(values, Tensor):
        return values
    here = values.detach().cpu()
    return here.float() if here.dtype == torch.bfloat16 else here


def finite(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The values, once all of them are finite.

    Raises:
        UserError: Some are not; says how many.
    """
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise missing_values(what, bad, values.size)
    return values


def not_infinite(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The values, once none of them is infinite; NaN marks missing ones.

    Raises:
        UserError: Some are; says how many.
    """
    with np.errstate(over="ignore"):
        bad = int(np.isinf(values.astype(np.float32, copy=False)).sum())
    if bad:
        raise UserError(
            f"{what} with {bad} of {values.size} values infinite",
            "finite values that float32 can hold, and NaN where one is missing",
            "correct them",
        )
    return values


def check_distinct(what: Any, names: Sequence[str]) -> None:
    """Makes sure that names differ.

    Args:
        what: What they are names in, for messages.
        names: Those that were given.

    Raises:
        UserError: One of them is there twice.
    """
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"{what} with the name {twice!r} given {names.count(twice)} times",
            "names that differ",
            "rename one",
        )


def missing_values(what: str, num: int, total: int) -> UserError:
    """What to say of numbers that are not given everywhere, and have to be."""
    return UserError(
        f"{what} with {num} of {total} values missing or not finite",
        "a finite value everywhere: of fields that are predicted alone may values be "
        "missing",
        "give them, or leave out the points, time steps or samples they are of",
    )


def _num_masked(values: Any) -> int:
    if isinstance(values, np.ma.MaskedArray):
        return int(np.ma.count_masked(values))
    if isinstance(values, (list, tuple)):
        return sum(map(_num_masked, values))
    return 0


def _with_nan(values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        kind = np.result_type(values.dtype, np.float32)
        return np.ma.filled(values.astype(kind), np.nan)
    if isinstance(values, (list, tuple)):
        return [_with_nan(value) for value in values]
    return values


def _no_numbers(what: str, array: NDArray[Any]) -> UserError:
    if array.dtype.kind == "c":
        todo = "give real and imaginary part as two components"
    else:
        todo = "convert them to numbers"
    return UserError(f"{what} of type {array.dtype}", "real numbers", todo)
