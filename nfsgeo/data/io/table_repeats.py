"""Columns that tell apart rows of a table which are at one point and time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.conventions import Indices, bare_name, role_of
from nfsgeo.data.io.frames import values_of
from nfsgeo.data.io.table_codes import codes_of
from nfsgeo.data.io.table_layouts import CLOCKS, ZONE, calendar, since_midnight
from nfsgeo.data.io.table_questions import (
    COPIES,
    QUANTITIES,
    SAMPLES,
    values_of_quantities,
)
from nfsgeo.data.io.table_texts import is_clock, is_date, is_unread
from nfsgeo.data.io.table_times import DST, FIRST, WHEN, forecast_columns

__all__ = ["rows_apart"]

LEVELS = re.compile(
    "(sensor_?|pressure_?|sample_?|model_?|water_?)?(depth|level|lev|plev|height|layer|"
    "altitude|alt|elevation|elev|sigma|isobaric.*|z([ _-].*|lev.*|coord.*|[0-9]*))"
)
LEADS = re.compile("(forecast_?)?(lead|step|hour|fhour|lead_?time|lead_?hours?)")


def rows_apart(
    path: Path,
    frame: pandas.DataFrame,
    cells: Indices,
    roles: Mapping[str, str],
    at: pandas.Series,
) -> tuple[list[str], list[str]]:
    """Find columns that tell rows apart which are at one point and time of a sample.

    Args:
        path: The file.
        frame: Columns without a role.
        cells: The number of the sample, time and point of each row.
        roles: The column of each role.
        at: The date of each row in seconds, NaN if times are no dates.

    Returns:
        The columns, and what to say they are, in one of several ways; empty if none do.

    Raises:
        UserError: None do, and there are numbers that are not read, which might.
    """
    dates = {n: frame[n] for n in frame if is_date(frame[n])}
    if "time" in roles and at.notna().all():
        dates[roles["time"]] = at.astype("datetime64[s]")
    if len(dates) > 1 and (say := forecast_columns(path, frame, dates)):
        return [part.partition("=")[2] for part in say.split(",")[:2]], [say]
    days = bool((at % 86400 == 0).all())
    several = int(np.bincount(cells).max())
    unread = [name for name in frame if is_unread(frame[name])]
    told = [name for name in frame if name not in unread]
    answers = {
        name: _answer(path, frame, name, roles, several, days=days) for name in told
    }
    names, said, now = list[str](), dict[str, str](), cells
    num = len(pandas.unique(cells))
    for name in sorted(answers, key=lambda name: answers[name]):
        _, say, *others = answers[name]
        role = say.partition("=")[0]
        joins = role == "time" and role in said and is_clock(frame[name])
        if joins:
            say = f"{said[role]}+{name}"
        elif role == "time" and role in said:  # as of the beginning of a forecast
            role, say = "sample", f"sample={name}"
        finer, more = codes_of(now, frame[name].fillna(""))
        if not say or more == num or (role in said and not joins):
            continue
        names, said[role], now, num = [*names, name], say, finer, more
        if num == len(now):
            others = others if names == [name] else []
            return names, [",".join(said.values()), *others]
    for name in unread:
        values_of(path, frame[name])
    return [], []


def _answer(
    path: Path,
    frame: pandas.DataFrame,
    name: str,
    roles: Mapping[str, str],
    several: int,
    *,
    days: bool,
) -> tuple[Any, ...]:
    """The rank of a column among those that may tell ``several`` rows apart, the lowest
    first, and what to say that it is, in one or two ways; empty if it tells none apart.

    Numbers of an unknown name that vary as a field does are none that tell rows apart.
    Times have as many equal steps as there are rows at a point, and samples are whole
    numbers in as many rows each.
    """
    column, bare, time = frame[name], bare_name(name), roles.get("time", "")
    zone, lead = ZONE.fullmatch(bare), LEADS.fullmatch(bare)
    when = WHEN.fullmatch(bare) or role_of(name) == "time" or is_date(column)
    copies = SAMPLES.fullmatch(bare) or COPIES.fullmatch(bare)
    quantity = values_of_quantities(frame, name)[0] or QUANTITIES.fullmatch(bare)
    part, both = next(iter(calendar([name])), ""), {*calendar([time, name])}
    clock = part not in ("", "year", "month") or is_clock(column)
    if clock := days and (clock or CLOCKS.fullmatch(bare) is not None):
        clock = since_midnight(path, column, part).notna().all()
    joins = time and (clock or (len(both) == 2 and "year" in both))
    numeric = [n for n in frame if frame[n].dtype.kind in "biuf" or is_unread(frame[n])]
    counts, maybe = column.value_counts(), [f"sample={name}"]
    if name in numeric:
        even = column.dtype.kind in "iu" and int(np.ptp(counts)) == 0
        regular = not time and len(counts) == several and _equispaced(counts.index)
        maybe = maybe * even + [f"time={name}"] * regular
    few = len(counts) <= 2 * several and [name] != numeric  # the field
    axis = next((axis for axis in "xyz" if axis not in roles), "")
    answers = (
        (DST.fullmatch(bare) or (zone and not time), 9, ""),
        (zone, 0, f"time={time}+{name}"),
        (lead and not time, -1, f"time={name}"),
        (when and not time, 4 if FIRST.fullmatch(bare) else 0, f"time={name}"),
        (quantity, 1, f"quantity={name}"),
        (copies, 2, f"sample={name}"),
        (joins, 3, f"time={time}+{name}"),
        (is_clock(column), 3, f"time={name}"),
        (time and lead and "sample" not in roles, 3, f"sample={time},time={name}"),
        (when, 4, f"sample={name}"),
        (axis and name in numeric and LEVELS.fullmatch(bare), 5, f"{axis}={name}"),
        (few and maybe, 6, *maybe),
    )
    return next(((rank, *says) for fits, rank, *says in answers if fits), (9, ""))


def _equispaced(values: pandas.Index) -> bool:
    """Return whether numbers in any order have equal steps."""
    ordered = np.sort(values.to_numpy(float))
    return bool(np.ptp(np.diff(ordered)) <= 1e-6 * np.ptp(ordered))
