"""Tables of other layouts, as one with a row for each point, time step and sample.

They have names of quantities in a column, dates and clocks in several columns, or time
zones. See :mod:`nfsgeo.data.io.table_wide` for columns of stations or times.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.checks import check_distinct
from nfsgeo.data.conventions import (
    Indices,
    bare_name,
    listed,
    role_of,
)
from nfsgeo.data.io.frames import values_of
from nfsgeo.data.io.roles import ask, chosen
from nfsgeo.data.io.table_texts import OFFSET, add_century, is_date
from nfsgeo.errors import UserError

__all__ = ["CLOCKS", "calendar", "digits_of_clocks", "joined", "since_midnight"]
__all__ += ["with_quantities", "with_zone"]

logger = logging.getLogger(__name__)

CALENDAR = {
    "year": ("year", "yr", "yyyy", "yy"),
    "month": ("month", "mon", "mnth", "mo", "mm"),
    "day": ("day", "dy", "dd"),
    "hour": ("hour", "hr", "hh"),
    "minute": ("minute", "min", "mn", "mm"),
    "second": ("second", "sec", "ss"),
}
DAY_OF_YEAR = ("doy", "yday", "jday", "julian_day", "dayofyear", "day_of_year")
VALUES = ("value", "val", "values", "reading", "result", "measurement", "data_value")
UNITS = ("unit", "units", "uom", "unit_name")
ZONE = re.compile(
    "(.*_)?(tz|tzone|time_?zone|zone|(utc|gmt)_?offset)(_?(cd|code|id|name|abbr))?"
)
HOURS = {  # from UTC
    **dict.fromkeys(("utc", "gmt", "z", "wet"), 0),
    **{"cet": 1, "west": 1, "cest": 2, "eet": 2, "eest": 3, "adt": -3, "ast": -4},
    **{"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7},
    **{"pst": -8, "akdt": -8, "akst": -9, "hst": -10},
}
CLOCK = r"\d?\d:[0-5]\d(:[0-5]\d(\.\d+)?)?"
CLOCKS = re.compile(  # names
    "((utc|gmt|local|obs)[ _]?)?(time|clock|hour|hr|hh|hhmm|hhmmss|zeit|uhrzeit|heure|"
    "hora)([ _](utc|gmt|local|lst))?"
)
HALVES = ("%I:%M %p", "%I:%M:%S %p")  # of days


def joined(
    path: Path, frame: pandas.DataFrame, answers: Mapping[str, Any]
) -> pandas.DataFrame:
    """Join the columns of ``time=A+B`` or ``sample=A+B`` to one of this name.

    Raises:
        UserError: Cells make no date.
    """
    for role in ("time", "sample"):
        whole = str(answers.get(role, ""))
        names = [name.strip() for name in whole.split("+")]
        if whole in frame or len(names) < 2:
            continue
        chosen(path, list(frame), {"ignore": names})  # are there, and once
        if role == "time":
            values = _dates(path, frame, names)
        else:
            values = frame.groupby(names, sort=True).ngroup().rename(whole)
        frame = frame.drop(columns=names).assign(**{whole: values})
    return frame


def with_zone(
    path: Path, frame: pandas.DataFrame, answers: Mapping[str, Any]
) -> pandas.DataFrame:
    """Take dates to UTC where another column has their zones, and say so."""
    said = [str(name) for names in answers.values() for name in np.ravel(names)]
    zones = [n for n in frame if ZONE.fullmatch(bare_name(n)) and n not in said]
    times = [str(answers["time"])] if answers.get("time") else []
    times = times or [n for n in frame if role_of(n) == "time" and n not in said]
    if len(zones) != 1 or len(times) != 1 or times[0] not in frame:
        return frame
    time, zone = frame[times[0]], frame[zones[0]]
    first, hours = str(next(iter(time), "")), _hours_from_utc(zone)
    if zone.dtype.kind in "iuf" and (
        zone.nunique() < 2 or not re.search("offset|tz|time", str(zone.name).lower())
    ):
        return frame  # a constant, or the number of something else
    dated = re.match(r"\d{4}-\d\d?-\d\d?", first) and not OFFSET.search(first)
    if not dated or hours is None:
        return frame
    seconds = dict(zip(zone, hours.dt.total_seconds(), strict=True))
    offsets = [f"{name} is UTC{seconds[name] / 3600:+g}" for name in seconds]
    text = "%s: times in %s are local, as %s tells, and read as UTC: %s"
    logger.warning(text, path, time.name, zone.name, ", ".join(offsets))
    local = pandas.Series(values_of(path, time), frame.index)
    universal = (local - hours).dt.tz_localize("UTC")
    return frame.drop(columns=zone.name).assign(**{time.name: universal})


def _hours_from_utc(zones: pandas.Series) -> Any:
    """Offsets from UTC, of names such as EST, ``+01:00`` or hours; None if unknown."""
    codes, unique = pandas.factorize(zones)
    hours = list[float]()
    for cell in (str(cell).strip().lower() for cell in unique):
        signed = re.fullmatch(r"(?:utc|gmt)?([+-])(\d\d?):?(\d\d)?", cell)
        if signed:
            sign, whole, minutes = signed.groups()
            hours.append(float(f"{sign}1") * (int(whole) + int(minutes or 0) / 60))
        elif re.fullmatch(r"\d\d?(\.\d+)?|-\d\d?\.\d+", cell):
            hours.append(float(cell))
        else:
            hours.append(HOURS.get(cell, np.nan))
    if not hours or codes.min() < 0 or not max(map(abs, hours)) <= 14:
        return None
    spans = pandas.to_timedelta(np.array(hours)[codes], unit="h")
    return pandas.Series(spans, zones.index)


def calendar(names: Sequence[str]) -> dict[str, str]:
    """The columns of years, months, days, hours, minutes and seconds by their names."""
    parts = dict[str, str]()
    for name in names:
        bare = re.sub(r"[ _.](utc|gmt|local|lst)$", "", name.strip("#% ").lower())
        fits = (u for u, words in CALENDAR.items() if bare in words and u not in parts)
        if unit := next(fits, ""):
            parts[unit] = name
    if "year" not in parts and parts.get("month", "").strip("#% ").lower() == "mm":
        parts["minute"] = parts.pop("month")
    return parts


def _dates(path: Path, frame: pandas.DataFrame, names: Sequence[str]) -> pandas.Series:
    names = [*names]
    zones = [name for name in names[1:] if ZONE.fullmatch(bare_name(name))]
    if zones and (hours := _hours_from_utc(frame[zones[0]])) is not None:
        names.remove(zones[0])
        date = pandas.Series(values_of(path, frame[names[0]]), frame.index)
        at = _dates(path, frame, names) if names[1:] else date
        return (at - hours).dt.tz_localize("UTC")
    units = {name: unit for unit, name in calendar(names).items()}
    first = [n for n in names if units.get(n) in ("year", "month", "day")]
    expected = "a date, and a clock such as 13:00, or numbers in columns of hours"
    todo = "correct the row"
    if "year" in units.values():
        parts = {units[n]: values_of(path, frame[n]) for n in first}
        if (parts["year"] < 1000).any():
            expected = "years of four digits"
            todo = add_century(calendar(names)["year"], parts["year"])
            parts["year"] = np.where(parts["year"] < 1000, np.nan, parts["year"])
        whole = pandas.DataFrame({"month": 1, "day": 1} | parts)
        at = pandas.to_datetime(whole, errors="coerce")
    else:
        first = names[:1]
        at = pandas.Series(values_of(path, frame[names[0]]))
        if at.dtype.kind != "M":
            given = f"{path} with numbers in column {names[0]}"
            todo = f"write it by pandas.to_datetime(table[{names[0]!r}], "
            todo += "format='%Y%m%d'), or name year, month and day"
            raise UserError(given, "dates such as 2026-01-31", todo)
        at = at.where(at == at.dt.normalize())  # of which it is not the time as well
    for name in (name for name in names if name not in first):
        if "year" in units.values() and bare_name(name) in DAY_OF_YEAR:
            day = pandas.Series(values_of(path, frame[name]))
            span = pandas.to_timedelta(day.where(day.between(1, 366)) - 1, unit="D")
            at = at + span
            continue
        unit, digits = units.get(name, ""), digits_of_clocks(frame[name])
        at = at + since_midnight(path, frame[name], unit).to_numpy()
        if digits > 2 or (digits and not unit):
            text = "%s: numbers in column %s are read as clocks, %s"
            logger.warning(text, path, name, "hhmmss"[:digits])
        if not digits and frame[name].astype(str).str.fullmatch(r"\d+").all():
            todo = f"rename {name} to time if these are clocks such as 0930, or {todo}"
        if not unit and frame[name].dtype.kind == "f":
            todo = "add fractions of days in pandas, table[DATE] + "
            todo += "pandas.to_timedelta(table[FRACTION], unit='D')"
    if at.isna().any():
        row = int(at.isna().to_numpy().argmax())
        given = f"{path} with {[*map(str, frame[[*names]].iloc[row])]} in columns "
        given += f"{', '.join(names)}, row {row + 1} under the names"
        raise UserError(given, expected, todo)
    return at


def since_midnight(path: Path, column: pandas.Series, unit: str) -> pandas.Series:
    """Times of day, of numbers of hours, minutes or seconds, or of clocks; NaT where a
    cell is not surely one.

    Args:
        path: The file, for messages.
        column: The column.
        unit: The unit of its numbers as its name tells it, empty if it tells none.
    """
    text = column.astype(str).str.strip().str.upper()
    text = text.str.replace(r"\s*([AP])\.?M\.?$", r" \1M", regex=True)
    if digits := digits_of_clocks(column):
        text = text.str.zfill(digits).str.ljust(4, "0")
        text = text.str.replace(r"(\d\d)(?=\d)", r"\1:", regex=True)
    elif unit and not text.str.contains(":").any():
        values = pandas.Series(values_of(path, column))
        most = {"hour": 24, "minute": 59}.get(unit, 60)
        return pandas.to_timedelta(values.where(values.between(0, most)), unit=unit)
    halves = [pandas.to_datetime(text, format=f, errors="coerce") for f in HALVES]
    half = halves[0].fillna(halves[1])
    if half.notna().any():
        return half - half.dt.normalize()
    whole = text.where(text.str.count(":") > 1, text + ":00")
    span = pandas.to_timedelta(whole.where(text.str.fullmatch(CLOCK)), errors="coerce")
    return span.where(span <= pandas.Timedelta(days=1))


def digits_of_clocks(column: pandas.Series) -> int:
    """Return the number of digits of clocks such as 0930, 930 or 093000, 2 of whole
    hours up to 24; 0 if a column has others, or no name of a time.
    """
    text = column.astype(str).str.strip()
    if not CLOCKS.fullmatch(bare_name(str(column.name))):
        return 0
    if not text.str.fullmatch(r"\d{1,6}").all():
        return 0
    digits = 2 * int((text.str.len().max() + 1) // 2)
    clocks = text.str.zfill(digits).str.fullmatch(r"([01]\d|2[0-4])([0-5]\d){0,2}")
    return digits if clocks.all() else 0


def with_quantities(
    path: Path, frame: pandas.DataFrame, quantity: str, roles: Sequence[str]
) -> tuple[pandas.DataFrame, Indices]:
    """Give each quantity, whose names are in a column, a column of its values.

    Args:
        path: The file, for messages.
        frame: The table; ``attrs["units"]`` become those in its column of units.
        quantity: The column of names, and perhaps that of values, ``NAME:VALUES``.
        roles: Other columns of which it is known what they are.

    Returns:
        The table with as many rows, and the number of the quantity of each.

    Raises:
        UserError: It is not clear which column holds the values, or one quantity has
            several units.
    """
    name, value = quantity, ""
    if quantity not in frame:
        name, _, value = quantity.partition(":")
    chosen(path, list(frame), {"field": [n for n in (name, value) if n]})
    if is_date(frame[name]):
        given, todo = f"quantity={name} of {path}, dates", f"say time={name}"
        raise UserError(given, "names of quantities", todo)
    others = [n for n in frame if n not in (name, *roles) and not role_of(n)]
    numbers = [n for n in others if frame[n].dtype.kind in "iuf"]
    fits = [n for n in others if bare_name(n) in VALUES] or numbers
    if not value and len(fits) != 1:
        which = f"each of which may hold the values of {name}"
        say = f"quantity={name}:{fits[0] if fits else 'COLUMN'}"
        raise ask(path, fits or others, which, "which does", say)
    value = value or fits[0]
    codes, unique = pandas.factorize(frame[name], sort=True)
    unit = next((n for n in others if bare_name(n) in UNITS), "")
    columns, units = dict[str, Any](), dict[str, str]()
    values = pandas.Series(values_of(path, frame[value]), frame.index)
    kinds, unit_names = pandas.factorize(frame[unit]) if unit else (codes, ())
    for code, label in enumerate(unique):
        title = str(label).strip()
        columns[title] = values.where(codes == code)
        unit_codes = pandas.unique(kinds[codes == code]) if unit else ()
        several = [unit_names[k] for k in unit_codes if k >= 0]
        if len(several) > 1:
            given = f"{path} with {title} in {listed([*map(str, several)])}"
            raise UserError(given, "one unit for each quantity", "convert the values")
        units[title] = "".join(map(str, several)).strip()
    frame = frame.drop(columns=[n for n in (name, value, unit) if n])
    check_distinct(path, [*frame, *columns])
    frame = pandas.concat([frame, pandas.DataFrame(columns)], axis=1)
    frame.attrs["units"] = units
    return frame, codes
