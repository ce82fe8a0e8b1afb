"""Arrays of numbers as users and files give them: nothing in them is dropped unseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = [
    "EPOCH",
    "as_real",
    "as_times",
    "check_distinct",
    "dated",
    "check_num_names",
    "finite",
    "missing_values",
    "not_infinite",
    "unit_of_times",
    "with_gaps",
]

EPOCH = "seconds since 1970-01-01"  # unit of times that were dates
FILLS = ("_FillValue", "missing_value")
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
    values = _on_cpu(values)
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


def as_times(values: Any, what: str) -> NDArray[np.float64]:
    """Times as float64; dates become seconds since 1970-01-01, time spans seconds.

    Args:
        values: Numbers, ``datetime64`` or ``timedelta64``.
        what: What they are, for messages.

    Raises:
        UserError: A time is missing, or they are neither numbers nor dates.
    """
    values = _on_cpu(values)
    masked = _num_masked(values)
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        masked += int(np.isnat(array).sum())
        if masked:
            raise missing_values(what, masked, array.size)
        return array.astype(f"{array.dtype.kind}8[us]").astype(np.int64) / 1e6
    return finite(as_real(values, what).astype(np.float64), what)


def _on_cpu(values: Any) -> Any:
    """A tensor without gradient in the memory of the CPU, of a type that numpy has."""
    if not isinstance(values, Tensor):
        return values
    here = values.detach().cpu()
    return here.float() if here.dtype == torch.bfloat16 else here


def dated(provenance: Mapping[str, Any] | None, times: Any) -> dict[str, Any]:
    """The provenance, with the unit that :func:`as_times` gives to dates and spans.

    Args:
        provenance: How the data were made.
        times: As they were given.
    """
    told = dict(provenance or {})
    if unit := unit_of_times(times):
        told["units"] = {**told.get("units", {}), "time": unit}
    return told


def unit_of_times(times: Any) -> str:
    """The unit that :func:`as_times` gives to dates and time spans, "" for numbers."""
    return {"M": EPOCH, "m": "s"}.get(np.asarray(_on_cpu(times)).dtype.kind, "")


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
    bad = int(np.isinf(values).sum())
    if bad:
        raise UserError(
            f"{what} with {bad} of {values.size} values infinite",
            "finite values that float32 can hold, and NaN where one is missing",
            "correct them",
        )
    return values


def with_gaps(values: Any, source: Any) -> NDArray[Any]:
    """Values of an HDF5 data set, NaN where its attributes mark them as missing.

    The attributes ``_FillValue`` and ``missing_value`` of the netCDF conventions.

    Args:
        values: What was read from it.
        source: The data set; nothing is missing in an array without attributes.
    """
    array, attrs = np.asarray(values), getattr(source, "attrs", {})
    for marks in (np.asarray(attrs[key]) for key in FILLS if key in attrs):
        if marks.dtype.kind not in "biuf":
            continue
        if array.dtype.kind == "f":  # 1e20 in double precision marks single 1e20 too
            with np.errstate(over="ignore"):
                marks = marks.astype(array.dtype)
        missing = np.isin(array, marks)
        if missing.any():
            array = np.where(missing, np.float32(np.nan), array)
    return array


def check_num_names(
    path: Any, what: str, names: Sequence[str], shape: Sequence[int], num: int
) -> None:
    """Makes sure that there is a name for each component.

    Args:
        path: The file, for messages.
        what: The array that they are of.
        names: Those that were given.
        shape: Of the array.
        num: Number of its components.

    Raises:
        UserError: There are more or fewer names.
    """
    if len(names) != num:
        raise UserError(
            f"{path} with {len(names)} name{'s' * (len(names) != 1)} "
            f"({', '.join(names)}) for {what} of shape {tuple(shape)}",
            f"{num} names, one for each of {num} components",
            f"give {num} names, or move the components to the last axis",
        )


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
