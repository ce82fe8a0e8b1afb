"""Times as the CF conventions have them, of other calendars, and as text."""

from __future__ import annotations

import logging
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import xarray
from numpy.typing import NDArray
from xarray import Dataset, Variable

from nfsgeo.data.conventions import counts_from_date
from nfsgeo.data.io.format import left_out
from nfsgeo.errors import UserError

__all__ = ["is_text", "times_of", "times_of_text"]

logger = logging.getLogger(__name__)

DAYS = "days since 1970-01-01"
NO_LEAP = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ALL_LEAP, DAYS_30 = [31, 29, *NO_LEAP[2:]], [30] * 12
MONTHS_OF = {"noleap": NO_LEAP, "365_day": NO_LEAP, "360_day": DAYS_30, "360": DAYS_30}
MONTHS_OF |= {"all_leap": ALL_LEAP, "366_day": ALL_LEAP}
SINCE = re.compile(r"(\w+) since (\d+)-(\d+)-(\d+)(?:[t ]+(\d+):?(\d*):?(\d*\.?\d*))?")
SECONDS = {"d": 86400, "h": 3600, "mi": 60, "s": 1}


def times_of(path: Path, variable: Variable) -> tuple[Any, dict[str, str]]:
    """Dates, or numbers where a coordinate tells no date, and their unit.

    Times of a calendar with other years are days since 1970 in it, of which a line
    tells, or, where months lie between them, dates of the same name.

    Returns:
        The times, None where dates are unclear, such as months, of which a line tells;
        and the attribute ``units`` of numbers.
    """
    values, about = np.atleast_1d(variable.values), dict(variable.attrs)
    if is_text(variable):
        name = next(iter(variable.dims), "time")
        given = f"{path} with times that are text, such as {str(values[0])!r}"
        todo = f"d = xarray.open_dataset({str(path)!r}).load(); d[{name!r}] = "
        todo += f"pandas.to_datetime(d[{name!r}].values, format='mixed'), with "
        todo += "dayfirst=True if the day is first; d.to_netcdf('NAME.nc')"
        raise UserError(given, "dates such as 2026-01-31, or numbers", todo)
    if values.dtype == object and hasattr(values.flat[0], "calendar"):
        import cftime  # which has made them

        about = {"units": DAYS, "calendar": values.flat[0].calendar}
        values = cftime.date2num(values, DAYS, about["calendar"])
    unit = str(about.get("units", ""))
    if values.dtype.kind not in "iuf" or not counts_from_date(unit):
        if unit.startswith("day as %Y%m%d") and values.dtype.kind in "iuf":  # of CDO
            day, share = np.divmod(np.asarray(values, float), 1)
            dates = pandas.to_datetime(day.astype(int).astype(str), format="%Y%m%d")
            return dates + pandas.to_timedelta(np.round(share * 86400), "s"), {}
        return values, {"units": unit} if unit else {}
    calendar = str(about.get("calendar", "standard")).lower()
    decoded: Any = None
    if calendar in MONTHS_OF:
        decoded = _calendar_times(values, unit.lower(), MONTHS_OF[calendar])
        if decoded is not None and decoded.dtype.kind == "f":
            text = "%s: times are days since 1970-01-01 in the calendar %s, no dates"
            logger.warning(text, path, calendar)
            return decoded, {"units": "days"}
    else:
        alone = Dataset({"when": ("time", values, about)})
        with suppress(ValueError, OverflowError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of years such as 1, without four digits
            decoded = xarray.decode_cf(alone, decode_timedelta=False)["when"].values
    if decoded is None or decoded.dtype == object:
        left_out(path, [f"times in {unit} ({calendar}), which tell no clear date"])
        return None, {}
    if decoded.dtype == np.dtype("M8[ns]"):  # fractions of a unit are not exact
        decoded = (decoded + np.timedelta64(500, "ns")).astype("M8[us]")
    return decoded, {}


def _calendar_times(values: NDArray[Any], unit: str, lengths: list[int]) -> Any:
    """Days since 1970 in years of months of these lengths, dates if months lie between
    them and these have unequal lengths, None where the unit has none.
    """
    match = SINCE.match(unit)
    step = next((s for u, s in SECONDS.items() if match and match[1].startswith(u)), 0)
    if not match or not step:
        return None
    year, month, day, *clock = (float(text or 0) for text in match.groups()[1:])
    begins = np.cumsum([0, *lengths])
    start = (year - 1970) * begins[-1] + begins[int(month) - 1] + day - 1
    days = start + np.dot(clock, [1 / 24, 1 / 1440, 1 / 86400]) + values * step / 86400
    if len(days) < 2 or np.diff(days).min() < 28 or len({*lengths}) == 1:
        return days
    years, within = np.divmod(days, begins[-1])
    number = np.searchsorted(begins, within, side="right") - 1
    months = (years * 12 + number).astype(int).astype("M8[M]")
    seconds = np.round((within - begins[number]) * 86400).astype(int)
    return months.astype("M8[us]") + seconds.astype("m8[s]")


def is_text(variable: Variable) -> bool:
    """Return whether the values of a variable are text."""
    kind = variable.dtype.kind
    first = np.ravel(variable.values)[:1] if kind == "O" else ()
    return kind in "SU" or any(isinstance(text, str | bytes) for text in first)


def times_of_text(dataset: Dataset, time: str) -> Any:
    """Dates that are text along time, as WRF and MPAS write them, None without any."""
    for variable in dataset.variables.values():
        if variable.dims == (time,) and variable.dtype.kind in "OSU":
            text = np.char.strip(np.asarray(variable.values).astype(str))
            with suppress(ValueError):
                return np.char.replace(text, "_", "T").astype("M8[us]")
    return None
