"""Times: numbers in a unit, or dates, which are seconds since 1970 in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.checks import as_real, finite, missing_values, on_cpu
from nfsgeo.data.conventions import TIME_ZONE, Doubles
from nfsgeo.errors import UserError

__all__ = ["EPOCH", "MONTHS", "as_times", "check_no_dates", "clock", "counted", "dates"]
__all__ += ["filled", "later", "same_steps", "spacing_text", "span_text", "step_text"]
__all__ += ["time_text", "time_texts", "time_variable", "unit_of_times"]

EPOCH = "seconds since 1970-01-01"  # unit of times that were dates
MONTHS = "months"  # unit of the steps of dates a month or a year apart
DAY = 86400.0
STEPS = {"day": DAY, "hour": 3600.0, "minute": 60.0, "second": 1.0}
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
# Numbers that count days or seconds up to a date: bounds, and arguments of pandas that
# make dates of them.
COUNTS = {
    "day": (2e4, 1e5, "{}, unit='D', origin='1899-12-30'"),  # of a spreadsheet
    "MATLAB datenum": (6.9e5, 7.7e5, "{} - 719529, unit='D'"),
    "Unix time in s": (1e8, 4e9, "{}, unit='s'"),
    "Unix time in ms": (1e11, 4e12, "{}, unit='ms'"),
    "Unix time in us": (1e14, 4e15, "{}, unit='us'"),
    "Unix time in ns": (1e17, 4e18, "{}, unit='ns'"),
}


def as_times(values: Any, what: str) -> Doubles:
    """Times as float64; dates become seconds since 1970-01-01, time spans seconds.

    Raises:
        UserError: A time is not given, or is neither number nor date.
    """
    array = np.ma.filled(np.ma.asanyarray(on_cpu(values)))
    if array.dtype.kind in "mM":
        if missing := int(np.isnat(array).sum()):
            raise missing_values(what, missing, array.size)
        return array.astype(f"{array.dtype.kind}8[us]").astype(np.int64) / 1e6
    first = array.flat[0] if array.dtype == object and array.size else None
    if array.dtype.kind in "US" or isinstance(first, str):
        todo = 'convert them: numpy.array(times, "datetime64[us]")'
        raise UserError(f"{what} as text", "numbers or dates of datetime64", todo)
    if isinstance(first, pandas.Period):
        todo = "convert them: pandas.PeriodIndex(times).to_timestamp() for where each "
        todo += 'begins, to_timestamp(how="end") for where it ends'
        raise UserError(f"{what} as periods such as {first}", "dates", todo)
    if isinstance(first, date):  # of Python or pandas, in any time zone
        zoned = {getattr(d, "tzinfo", None) is not None for d in array.flat if d == d}
        if len(zoned) > 1:
            todo = 'convert them: times.tz_localize("UTC") in pandas'
            raise UserError(f"{what}, some with a time zone", "all or none", todo)
        naive = pandas.to_datetime(array.ravel(), utc=True).tz_localize(None)
        return as_times(naive.to_numpy(), what)
    return finite(as_real(values, what).astype(np.float64), what)


def time_variable(times: Any, what: str, unit: str | None = "") -> Variable:
    """The coordinate of the time steps, with its unit where that is known.

    Raises:
        UserError: As :func:`as_times` and :func:`check_no_dates`.
    """
    numbers, unit = np.atleast_1d(as_times(times, what)), unit_of_times(times) or unit
    if unit != EPOCH:
        check_no_dates(numbers, what)
    if numbers.ndim != 1:
        given = f"{what} with shape {numbers.shape}"
        raise UserError(given, "one axis, that of the time steps", "flatten them")
    attrs = {"axis": "T"} | ({"units": unit} if unit else {})
    attrs |= {TIME_ZONE: "UTC"} if _zoned(times) else {}
    return Variable("time", numbers, attrs)


def _zoned(times: Any) -> bool:
    """Return whether times are dates of Python or pandas that have a time zone."""
    array = np.asarray(on_cpu(times))
    first = array.flat[0] if array.dtype == object and array.size else None
    return getattr(first, "tzinfo", None) is not None


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


def check_no_dates(times: Doubles, what: str) -> None:
    """Raise a UserError if numbers may be dates without hyphens, such as 260131.

    They may be if all of them are dates of one form since 1800, and have eight digits
    or more, unequal steps, or steps of one.
    """
    days = np.unique(np.floor(times))  # as NCL writes 2026-01-31 18:00, 20260131.75
    texts = [f"{int(day):06d}" for day in days if day >= 10101]  # 1 January 2001
    steps = np.diff(days)
    chance = len(texts) < 2 or (np.ptp(steps) == 0 and steps[0] != 1)
    if not len(texts) == len(days) > 0 or len(texts[0]) != len(texts[-1]):
        return
    for form in FORMS.get(len(texts[0]), ()):
        parsed = pandas.to_datetime(texts, format=form, errors="coerce")  # or NaT
        between = 1800 <= parsed[0].year <= parsed[-1].year < 2200
        if parsed.hasnans or not between or (len(texts[0]) < 8 and chance):
            continue
        given = f"{what} with {texts[0]}, a number or the date {parsed[0]:%Y-%m-%d}"
        expected = "dates such as 2026-01-31, or times that are none"
        call = f"[f'{{int(t):0{len(texts[0])}d}}' for t in times], format={form!r}"
        todo = f"give them as dates, as by pandas.to_datetime({call})"
        if (times != np.floor(times)).any():
            todo += " + pandas.to_timedelta(numpy.mod(times, 1), unit='D')"
        raise UserError(given, expected, todo)


def counted(times: Doubles, name: str) -> tuple[str, str]:
    """Return what numbers may count until a date, and a call that makes them dates.

    Args:
        times: Numbers.
        name: Their name in the call.

    Returns:
        ``"Unix time in s"`` and a call of pandas; empty texts for other numbers.
    """
    for kind, (least, most, arguments) in COUNTS.items():
        if least < times.min() <= times.max() < most:
            return kind, f"pandas.to_datetime({arguments.format(name)})"
    return "", ""


def clock(times: Doubles, unit: str) -> tuple[Doubles, str]:
    """Times on a scale on which regular ones have equal steps, and its unit.

    Dates at one place of their months, as far from the beginning, from the end or from
    the middle, are numbers of months since 1970; other times are as they are.
    """
    calendar = _calendar(times) if unit == EPOCH else None
    return (times, unit) if calendar is None else (calendar[0].astype(float), MONTHS)


def later(steps: Doubles, times: Doubles, unit: str) -> Doubles:
    """Times ``steps`` after the last one, in the ``unit`` of :func:`clock`."""
    calendar = _calendar(times) if unit == MONTHS else None
    if calendar is None:
        return times[-1] + steps
    months, share, offset = calendar
    return _within(months[-1] + np.round(steps).astype(int), share) + offset


def same_steps(steps: Any, others: Any) -> NDArray[np.bool_]:
    """Return a mask of the steps in time that equal others but for rounding."""
    return np.isclose(steps, others, rtol=1e-3, atol=0)


def filled(times: Doubles) -> tuple[Doubles, NDArray[np.int64]]:
    """Add the dates that a regular series lacks, and return the indices of ``times``.

    A series is regular if at least half of its steps are equal, the others whole
    multiples of these, and if it lacks fewer dates than it has.
    """
    at, unit = clock(times, EPOCH)
    steps = np.diff(at)
    usual = np.median(steps) if len(steps) else 1.0
    number = np.cumsum([0, *np.round(steps / usual)]).astype(np.int64)
    regular = same_steps(steps, usual * np.diff(number)).all()
    if not regular or number[-1] >= 2 * len(times):
        return times, np.arange(len(times))
    whole = later(usual * np.arange(-number[-1], 1.0), times, unit)
    whole[number] = times
    return whole, number


def _calendar(times: Doubles) -> tuple[NDArray[Any], float, float] | None:
    """Months of dates that all lie at one place in their months, else None.

    The place is a fraction of the month and an offset from there in seconds.
    """
    months = dates(times, EPOCH).astype("M8[M]")
    apart = len(np.unique(months)) == len(months)
    last_day = times[0] >= _within(months[:1], 1)[0] - DAY
    for share in (1.0, 0.0, 0.5) if last_day else (0.0, 1.0, 0.5):
        offsets = times - _within(months, share)
        if apart and np.ptp(offsets) < 0.5:
            return months, share, float(offsets[0])
    return None


def _within(months: NDArray[Any], share: float) -> Doubles:
    begin, end = ((months + k).astype("M8[s]").astype(float) for k in (0, 1))
    return begin + share * (end - begin)


def step_text(step: float, unit: str = "") -> str:
    """A step in time with its unit: ``1 month``, ``6 hours``, ``0.25 h``."""
    if unit == EPOCH:
        unit = next((u for u, span in STEPS.items() if step % span == 0), "second")
        step /= STEPS[unit]
    elif unit == MONTHS:
        unit, step = ("year", step / 12) if step % 12 == 0 else ("month", step)
    else:
        return f"{step:g} {unit}".rstrip()
    return f"{step:g} {unit}{'s' * bool(step != 1)}"


def spacing_text(times: Doubles, unit: str = "") -> str:
    """Return the spacing of times: ``1 month``, ``1 day to 3 days``, empty for one."""
    at, unit = clock(times, unit)
    steps = np.diff(at)
    ends = [steps.min(), steps.max()] if len(steps) else []
    shown = ends[:1] if len(steps) and same_steps(*ends) else ends
    return " to ".join(step_text(step, unit) for step in shown)


def time_text(time: float, unit: str = "") -> str:
    """A time with its unit, ``t = 2.75 h``, or a date in UTC."""
    return time_texts([time], unit)[0]


def span_text(first: float, last: float, unit: str = "", step: float = np.inf) -> str:
    """Two times as :func:`time_text`: ``t = 2 h to 5 h``.

    They have as many digits as tell them apart, and a thousandth of a ``step``.
    """
    texts = time_texts([first, last], unit, 1e-3 * step)
    return " to ".join([texts[0], texts[1].removeprefix("t = ")])


def time_texts(
    times: Iterable[float], unit: str = "", precision: float = np.inf
) -> list[str]:
    """Times as :func:`time_text`, with as many digits as tell them apart.

    Args:
        times: The times.
        unit: Their unit.
        precision: The largest error of numbers by rounding.
    """
    times, behind = list(times), f" {unit}" * bool(unit)
    if unit == EPOCH:
        written = [str(np.datetime64(round(1e6 * time), "us")) for time in times]
        lengths = LENGTHS[any(time % DAY for time in times) :]
        tries = [[date[:num].replace("T", " ") for date in written] for num in lengths]
    else:
        digits = [
            num
            for num in DIGITS
            if all(abs(float(f"{time:.{num}g}") - time) <= precision for time in times)
        ]
        several = digits or DIGITS[-1:]
        tries = [[f"t = {time:.{num}g}{behind}" for time in times] for num in several]
    apart = (texts for texts in tries if len({*texts}) == len({*times}))
    return next(apart, tries[-1])
