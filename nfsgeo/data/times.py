"""Times: numbers in a unit, or dates, which are seconds since 1970 in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.checks import as_real, finite, missing_values, on_cpu
from nfsgeo.errors import UserError

__all__ = [
    "EPOCH",
    "as_times",
    "check_no_dates",
    "dates",
    "span_text",
    "time_text",
    "time_texts",
    "time_variable",
    "unit_of_times",
]

EPOCH = "seconds since 1970-01-01"  # unit of times that were dates
# Letters of a date to days, minutes, seconds, ms, µs.
LENGTHS = (10, 16, 19, 23, 26)
DIGITS = range(4, 18)
# Dates that look like numbers, by their digits.
FORMS = {
    6: ("%Y%m", "%y%m%d"),
    7: ("%Y%j",),
    8: ("%Y%m%d",),
    10: ("%Y%m%d%H",),
    12: ("%Y%m%d%H%M",),
    14: ("%Y%m%d%H%M%S",),
}


def as_times(values: Any, what: str) -> NDArray[np.float64]:
    """Times as float64; dates become seconds since 1970-01-01, time spans seconds.

    Raises:
        UserError: A time is not given, has a time zone, or is neither number nor date.
    """
    array = np.ma.filled(np.ma.asanyarray(on_cpu(values)))
    masked = int(np.ma.count_masked(values)) if np.ma.isMaskedArray(values) else 0
    if array.dtype.kind in "mM":
        masked += int(np.isnat(array).sum())
        if masked:
            raise missing_values(what, masked, array.size)
        return array.astype(f"{array.dtype.kind}8[us]").astype(np.int64) / 1e6
    first = array.flat[0] if array.dtype == object and array.size else None
    if (zone := getattr(first, "tzinfo", None)) is not None:
        raise UserError(
            f"{what} with the time zone {zone}",
            "dates in UTC without a time zone",
            'convert them: times.tz_convert("UTC").tz_localize(None) in pandas',
        )
    if array.dtype.kind in "US" or isinstance(first, str):
        todo = 'convert them: numpy.array(times, "datetime64[us]")'
        raise UserError(f"{what} as text", "numbers or dates of datetime64", todo)
    if isinstance(first, datetime) or type(first).__name__ == "date":
        return as_times(array.astype("M8[us]"), what)
    return finite(as_real(values, what).astype(np.float64), what)


def time_variable(
    times: Any, what: str, unit: str | None = "", todo: str = "give them as dates"
) -> Variable:
    """The coordinate of the time steps, with its unit where that is known.

    Raises:
        UserError: As :func:`as_times`, or numbers may be dates.
    """
    found, unit = np.atleast_1d(as_times(times, what)), unit_of_times(times) or unit
    if unit != EPOCH:
        check_no_dates(found, what, todo)
    if found.ndim != 1:
        given = f"{what} with shape {found.shape}"
        raise UserError(given, "one axis, that of the time steps", "flatten them")
    return Variable("time", found, {"axis": "T"} | ({"units": unit} if unit else {}))


def unit_of_times(times: Any) -> str:
    """The unit that :func:`as_times` gives to dates and time spans, "" for numbers."""
    array = np.asarray(on_cpu(times))
    if array.dtype == object and array.size and hasattr(array.flat[0], "year"):
        return EPOCH
    return {"M": EPOCH, "m": "s"}.get(array.dtype.kind, "")


def dates(times: NDArray[np.float64], unit: str) -> NDArray[Any]:
    """Times as ``datetime64`` where they were dates, else as they are."""
    if unit != EPOCH:
        return times
    return np.round(times * 1e6).astype(np.int64).astype("M8[us]")


def check_no_dates(times: NDArray[Any], what: str, todo: str) -> None:
    """Asks whether numbers are dates without hyphens, such as 20260131 or 260131.

    They may be where all of them are dates in one form. With eight digits or more that
    is no chance. With fewer it may be, and numbers at equal steps stay numbers, unless
    they count on by one, as days and months do.

    Raises:
        UserError: They may be.
    """
    numbers = np.unique(np.asarray(times))
    if numbers.dtype.kind not in "iuf" or not len(numbers):
        return
    days = np.unique(np.floor(numbers))  # as NCL writes 2026-01-31 18:00, 20260131.75
    if not (days[0] >= 101 and days[-1] < 1e14):
        return
    texts = [f"{int(day):06d}" for day in days]  # which may have lost zeros in front
    if len(texts[0]) != len(texts[-1]):
        return
    for form in FORMS.get(len(texts[0]), ()):
        if form != "%Y%m%d" and np.any(numbers % 1):
            continue
        try:
            found = [datetime.strptime(f"{t}+0000", f"{form}%z") for t in texts]
        except ValueError:
            continue
        if "%Y" in form and not all(1800 <= date.year < 2200 for date in found):
            continue
        steps = np.diff(days)
        even = len(steps) > 1 and _is_even(steps)
        counted = even and steps[0] == 1 and days[-1] >= 1e5
        if days[-1] < 1e7 and (not len(steps) or (even and not counted)):
            continue
        dated = np.diff(np.sort([date.timestamp() for date in found]))
        if days[-1] < 1e4 and (len(steps) < 3 or not _is_even(dated)):
            continue  # days of 2000, without its zeros
        raise UserError(
            f"{what} with {texts[0]}, a number or the date {found[0]:%Y-%m-%d}",
            "dates such as 2026-01-31, or times that are no dates",
            todo,
        )


def _is_even(steps: NDArray[Any]) -> bool:
    """Whether steps are equal."""
    return bool(steps.max() <= steps.min() * (1 + 1e-9))


def time_text(time: float, unit: str = "") -> str:
    """A time with its unit, ``t = 2.75 h``, or a date in UTC."""
    return time_texts([time], unit)[0]


def span_text(first: float, last: float, unit: str = "") -> str:
    """Two times as :func:`time_text`: ``t = 2 h to 5 h``."""
    texts = time_texts([first, last], unit)
    return " to ".join([texts[0], texts[1].removeprefix("t = ")])


def time_texts(times: Iterable[float], unit: str = "") -> list[str]:
    """Times as :func:`time_text`, with as many digits as tell them apart."""
    times, texts = list(times), list[str]()
    behind = f" {unit}" * bool(unit)
    if unit == EPOCH:
        written = [str(np.datetime64(round(1e6 * time), "us")) for time in times]
    for digits in LENGTHS[1:] if unit == EPOCH else DIGITS:
        if unit == EPOCH:
            texts = [date[:digits].replace("T", " ") for date in written]
        else:
            texts = [f"t = {time:.{digits}g}{behind}" for time in times]
        if len(set(texts)) == len(set(times)):
            break
    return texts
