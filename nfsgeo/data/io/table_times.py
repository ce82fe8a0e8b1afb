"""Columns that tell times: one, parts of one, or several to choose from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas

from nfsgeo.data.conventions import bare_name, role_of
from nfsgeo.data.io.frames import values_of
from nfsgeo.data.io.roles import ask
from nfsgeo.data.io.table_layouts import DAY_OF_YEAR, calendar, digits_of_clocks
from nfsgeo.data.io.table_texts import is_clock, is_date
from nfsgeo.errors import UserError, option

__all__ = ["DST", "FIRST", "WHEN", "check_times", "forecast_columns"]

FIRST = re.compile(".*(init|issue|ref|run|cycle|analysis|base).*")  # of a forecast
UTC = re.compile(".*(utc|gmt|zulu).*")
TWO_TIMES = re.compile(
    FIRST.pattern + "|" + UTC.pattern + "|.*(valid|local|target|forecast|issue).*"
)
DST = re.compile("(is_?)?(dst|daylight.*|summer_?time)")
WHEN = re.compile(
    ".*(time|date|step|frame|iter|year|month|week|quarter|season|day|hour|lead).*"
)


def check_times(path: Path, frame: pandas.DataFrame, roles: Mapping[str, str]) -> None:
    """Ask for the time where it is in several columns, of which the first row tells."""
    if "time" in roles or frame.empty:
        return
    parts, first = calendar([*frame]), {n: str(frame[n].iloc[0]).strip() for n in frame}
    named = [n for n in frame if role_of(n) == "time"]
    dates = [n for n in frame if is_date(frame[n])]
    days = [n for n in dates if ":" not in first[n]]
    clocks = [n for n in frame if is_clock(frame[n])]
    hours = [parts[unit] for unit in ("hour", "minute", "second") if unit in parts]
    hours = hours if "hour" in parts and parts.get("day") not in days else []
    if len(days) == 1 and not (clocks or hours):  # as numbers, several of a day
        clocks = [n for n in frame if n not in dates and digits_of_clocks(frame[n])]
        clocks = [n for n in clocks if _several(frame, days[0], n)]
    day_of_year = [n for n in frame if bare_name(n) in DAY_OF_YEAR]
    say, answer = list[str](), ""
    if len(days) == 1 and len(dates) == 1 and (len(clocks) == 1 or hours):
        say = [*days, *(clocks or hours)]
    elif {"year", "month"} <= parts.keys() and not named:
        say = [*parts.values()]
    elif "year" in parts and "month" not in parts and day_of_year and not named:
        say = [parts["year"], day_of_year[0], *hours]
    elif len(dates) > 1 and (
        len(named) != 1 or any(TWO_TIMES.fullmatch(bare_name(n)) for n in dates)
    ):
        raise _which_time(path, frame, [*dict.fromkeys([*dates, *named])])
    elif len(named) > 1 and dates:
        day, other = dates[0], next(n for n in named if n not in dates)
        say, answer = [day, other], f"time={day},ignore={other}"
        if _several(frame, day, other):
            again = len(frame[[day, other]].drop_duplicates()) > frame[other].nunique()
            answer = f"{'sample' if again else 'ignore'}={day},time={other}"
    if say:
        which, what = "each with a part of the time", "how they make one"
        raise ask(path, say, which, what, answer or f"time={'+'.join(say)}")


def _several(frame: pandas.DataFrame, day: str, other: str) -> bool:
    """Return whether a day has several values in another column."""
    return len(frame[[day, other]].drop_duplicates()) > frame[day].nunique()


def _which_time(path: Path, frame: pandas.DataFrame, names: list[str]) -> UserError:
    """Return the error that asks which of several columns of dates is the time."""
    dates = [n for n in names if is_date(frame[n])]
    for name in dates:
        values_of(path, frame[name])  # asks about the order of days and months
    if say := forecast_columns(path, frame, {n: frame[n] for n in dates}):
        return ask(path, names, "each of which may be the time", "which is", say)
    utc = [n for n in dates if UTC.fullmatch(bare_name(n))]
    num = {n: frame[n].nunique() for n in dates}
    pairs = len(frame[dates].drop_duplicates())
    if pairs > max(num.values()) and not utc:
        begin, at = sorted(dates, key=lambda n: str(frame[n].min()))[:2]
        given = f"{path} with {begin} and {at}, of which each has several of the other"
        lead = f"(pandas.to_datetime(table[{at!r}]) - pandas.to_datetime(table["
        lead += f"{begin!r}])).dt.total_seconds()"
        todo = f"add it if these are forecasts, table['lead'] = {lead} in pandas, and "
        todo += f"say {option('columns', f'sample={begin},time=lead,ignore={at}')}"
        raise UserError(given, "a column of how far ahead the other one is", todo)
    answers = []
    # Local times have hours at the end of summer time twice.
    fits = utc if pairs > max(num.values()) else [n for n in dates if num[n] == pairs]
    local = {n for n in dates if "local" in n.lower() or "lst" in n.lower()}
    for name in sorted(fits, key=lambda n: (n not in utc, n in local)):
        ignored = (f"ignore={n}" for n in names if n != name)
        answers.append(",".join([f"time={name}", *ignored]))
    which = "each of which may be the time"
    return ask(path, names, which, "which is", *answers)


def forecast_columns(
    path: Path, frame: pandas.DataFrame, dates: Mapping[str, pandas.Series]
) -> str:
    """Find the columns of forecasts, and return what to say they are.

    These are when a forecast begins, for which time it is, and how far ahead that is.

    Args:
        path: The file, for messages.
        frame: Columns without a role.
        dates: Columns of dates by name.

    Returns:
        Roles as for ``--columns``, empty where no numbers are proportional to the time
        between two columns of dates.
    """
    try:
        read = {n: values_of(path, column) for n, column in dates.items()}
        at = {n: pandas.Series(v.astype("datetime64[s]")) for n, v in read.items()}
    except UserError:
        return ""
    first, *others = sorted(at, key=lambda name: at[name].astype("int64").mean())
    for valid in others:
        ahead = np.asarray((at[valid] - at[first]).dt.total_seconds())
        for name in frame:
            if frame[name].dtype.kind not in "iuf" or not ahead.any():
                continue
            lead = frame[name].to_numpy()
            scale = ahead[ahead.argmax()] / (lead[ahead.argmax()] or np.nan)
            if np.ptp(lead) > 0 and np.allclose(ahead, scale * lead):
                left = [f"ignore={n}" for n in dates if n != first]
                return ",".join([f"sample={first}", f"time={name}", *left])
    return ""
