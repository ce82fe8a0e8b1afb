"""Arrays of numbers as users and files give them: nothing in them is dropped unseen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError

__all__ = ["as_real", "as_times", "finite", "missing_values", "not_infinite"]

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
    masked = _num_masked(values)
    array = np.asarray(_with_nan(values) if masked and gaps else values)
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
    masked = _num_masked(values)
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        masked += int(np.isnat(array).sum())
        if masked:
            raise missing_values(what, masked, array.size)
        return array.astype(f"{array.dtype.kind}8[us]").astype(np.int64) / 1e6
    return finite(as_real(values, what).astype(np.float64), what)


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
