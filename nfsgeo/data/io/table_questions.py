"""Questions about the columns of tables, which offer what the rows support."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy.spatial import cKDTree

from nfsgeo.data.conventions import (
    KINDS,
    STATIONS,
    Doubles,
    Indices,
    bare_name,
    role_of,
)
from nfsgeo.data.io.roles import ask
from nfsgeo.data.io.table_layouts import UNITS, VALUES, calendar
from nfsgeo.errors import UserError

__all__ = ["check_numbers", "check_sample", "check_simulations"]
__all__ += ["check_times", "codes_of", "rows_apart"]

NUMBER = r"s?([ _-]?(id|ids|no|nr|num|number|numbers|index|idx|name|code|cd))?"
SAMPLES = re.compile(
    "(case|run|sim|simulation|member|ensemble|ensemble_member|realization|realisation|"
    "trajectory|traj|experiment|exp|episode|scenario|seed|geometry|design|config|"
    f"configuration|sample|batch|replicate|draw|rollout){NUMBER}"
)
QUANTITIES = re.compile(
    "(parameter|param|variable|var|pollutant|indicator|quantity|quantities|species|"
    "element|data_?type|metric|measure|measurand|analyte|observed_?property|substance|"
    f"characteristic|attribute|feature|signal|channel|gas|component|property){NUMBER}"
)
LEVELS = re.compile(
    "(sensor_?|pressure_?|sample_?|model_?|water_?)?(depth|level|lev|plev|height|layer|"
    "altitude|alt|elevation|elev|sigma|isobaric.*|z.*)"
)
ROWS = re.compile(
    "unnamed: .*|index|idx|row|record|fid|oid|"
    "((vtk)?(global|original))?[ _]?(node|cell|point|element|vertex|object|row|record|"
    f"elem)({NUMBER}|s)"
)
FIRST = re.compile(".*(init|issue|ref|run|cycle|analysis|base).*")  # of a forecast
LEADS = re.compile("(forecast_?)?(lead|step|hour|fhour|lead_?time|lead_?hours?)")
WHEN = re.compile(".*(time|date|step|frame|iter|year|month|day|hour|lead).*|t")
FEATURES = ("year", "month", "day", "hour", "weekday", "dayofweek", "dayofyear", "doy")
STATION_LIKE = re.compile(
    f"(station|stn|site|gau?ge|sensor|basin|wmo|buoy|platform|location|catchment|well)"
    f"s?{NUMBER}"
)
MANY = 1000  # more names than there are quantities
MIXED = 0.5  # as many neighbours of other groups as of points put together by chance


def codes_of(*columns: Any) -> tuple[Indices, int]:
    """Number rows by what is in columns, in the order of their values."""
    codes, num = np.zeros(1, np.int64), 1
    for column in columns:
        more, unique = pandas.factorize(column, sort=True)
        if num == 1:
            codes, num = more, len(unique)
        elif len(unique) > 1:
            # Both are numbered before they can exceed the range of integers.
            codes, both = pandas.factorize(codes * len(unique) + more, sort=True)
            num = len(both)
    return codes, num


def is_quantity(frame: pandas.DataFrame, name: str) -> bool:
    """Whether a column of text names quantities, whose values are in another one."""
    text, bare = frame[name].dtype.kind not in "biufmM", bare_name(name)
    if not text or SAMPLES.fullmatch(bare) or bare in (*STATIONS, *UNITS):
        return False
    if QUANTITIES.fullmatch(bare):
        return True
    if not 1 < frame[name].nunique() <= MANY or WHEN.fullmatch(bare):
        return False
    if unit := next((n for n in frame if bare_name(n) in UNITS), ""):
        return bool((frame.groupby(name)[unit].nunique() == 1).all())
    return any(bare_name(other) in VALUES for other in frame)


def check_sample(path: Path, frame: pandas.DataFrame, name: str) -> None:
    """Raise a UserError if what is said to be the sample names quantities."""
    if name and is_quantity(frame, name):
        some = [str(cell) for cell in frame[name].unique()[:3]]
        given = f"sample={name} of {path}, which names quantities ({', '.join(some)})"
        todo = f"say --columns quantity={name}, and each becomes a field"
        raise UserError(given, "a column that tells samples apart", todo)


def check_times(path: Path, names: Sequence[str], roles: Mapping[str, str]) -> None:
    """Ask for the time where it is in several columns."""
    parts = calendar(names)
    dated = [n for n in names if role_of(n) == "time"]
    say = [*parts.values()] if {"year", "month"} <= parts.keys() and not dated else []
    clocks = [n for n in dated if bare_name(n) in ("time", "times")]
    if len(dated) == 2 and len(clocks) == 1 and "t" not in map(bare_name, dated):
        say = [*(n for n in dated if n not in clocks), *clocks]
    if say and "time" not in roles:
        which, what = "each with a part of the time", "how they make one"
        raise ask(path, say, which, what, f"time={'+'.join(say)}")


def rows_apart(
    frame: pandas.DataFrame, cells: Indices, roles: Mapping[str, str]
) -> tuple[list[str], str]:
    """Find columns that tell rows apart which are at one point and time of a sample.

    Args:
        frame: Columns without a role.
        cells: The number of the sample, time and point of each row.
        roles: The column of each role.

    Returns:
        The columns, and what to say they are, empty if none do.
    """
    several = int(np.bincount(cells).max())
    free = [axis for axis in "xyz" if axis not in roles]

    def answer(name: str) -> tuple[int, str]:
        column, bare = frame[name], bare_name(name)
        numbers = column.dtype.kind in "biuf"
        clock = {unit for unit in calendar([name]) if unit not in ("year", "month")}
        if WHEN.fullmatch(bare) and "time" not in roles:
            return 0 if not FIRST.fullmatch(bare) else 4, f"time={name}"
        if is_quantity(frame, name) or QUANTITIES.fullmatch(bare):
            return 1, f"quantity={name}"
        if SAMPLES.fullmatch(bare):
            return 2, f"sample={name}"
        if "time" in roles and (clock or bare in ("time", "clock")):
            return 3, f"time={roles['time']}+{name}"
        if "time" in roles and "sample" not in roles and LEADS.fullmatch(bare):
            return 3, f"sample={roles['time']},time={name}"
        if WHEN.fullmatch(bare):
            return 4, f"sample={name}"
        if numbers and LEVELS.fullmatch(bare) and free:
            return 5, f"{free[0]}={name}"
        few = column.nunique() <= 2 * several
        whole = not numbers or bool((column % 1 == 0).all())
        return (6 if few and whole else 9), f"sample={name}"

    answers = {name: answer(name) for name in frame}
    names, said, now = list[str](), dict[str, str](), cells
    num = len(pandas.unique(cells))
    for name in sorted(answers, key=lambda name: answers[name]):
        rank, say = answers[name]
        role = say.partition("=")[0]
        if role == "time" and role in said:  # as of the beginning of a forecast
            role, say = "sample", f"sample={name}"
        finer, more = codes_of(now, frame[name].fillna(""))
        if rank > 6 or more == num or role in said:
            continue
        names, said[role], now, num = [*names, name], say, finer, more
        if num == len(now):
            return names, ",".join(said.values())
    return [], ""


def check_simulations(
    path: Path,
    frame: pandas.DataFrame,
    time: Indices,
    point: Indices,
    points: Doubles,
    kinds: Mapping[str, str],
) -> None:
    """Ask about a column that numbers simulations, each at points of its own.

    Its name tells so, or its groups of rows, which follow each other at each time, are
    at points among those of the others.

    Raises:
        UserError: There is one; whatever else a user says it is.
    """
    steps, num = int(time.max()) + 1, len(points)
    for name in sorted(frame, key=lambda n: not SAMPLES.fullmatch(bare_name(n))):
        named = bool(SAMPLES.fullmatch(bare_name(name)))
        if not named and frame[name].head(1000).nunique() > 500:
            continue
        codes, groups = codes_of(frame[name])
        if not 1 < groups <= num / 2 or codes.min() < 0:
            continue
        if len(pandas.unique(codes * np.int64(num) + point)) != num:
            continue  # has some of the points at several values
        group = np.empty(num, np.int64)
        group[point] = codes
        sizes = np.bincount(group)
        if not named:
            order = np.argsort(time, kind="stable")
            runs = np.diff(codes[order] * np.int64(steps) + time[order]) != 0
            alike = 1 + np.count_nonzero(runs) == groups * steps and sizes.min() > 1
            if not alike or not _mixed(points, group):
                continue
        given = f"{path} with {name}, whose {groups} groups of rows are each at points "
        given += "of their own"
        if kind := kinds.get(name):
            given = f"{kind}={name} of {given}"
        todo = (
            f"say it: nfsgeo convert {path} --out NAME.nc --columns sample={name}, or "
        )
        todo += "remove the column if the points of all of them are one mesh"
        raise UserError(given, "to be told that they are samples", todo)


def _mixed(points: Doubles, group: Indices) -> bool:
    """Whether points of several groups lie among each other."""
    some = np.random.default_rng(0).permutation(len(points))[:2000]
    _, near = cKDTree(points).query(points[some], 2)
    other = np.mean(group[near[:, 1]] != group[some])
    share = np.bincount(group) / len(group)
    return bool(other >= MIXED * (1 - np.sum(share**2)))


def check_numbers(
    path: Path, frame: pandas.DataFrame, time: Indices, sample: Indices, point: Indices
) -> None:
    """Ask about columns that number the rows or points, or repeat the time, or that, in
    one time step, have a value for each sample.
    """
    odd: dict[str, list[str]] = {"ignore": [], "static": [], "station": []}
    for name in (n for n in frame if frame[n].dtype.kind in "iuf"):
        bare, values = bare_name(name), frame[name]
        stations = STATION_LIKE.fullmatch(bare)
        if (ROWS.fullmatch(bare) or stations) and (values % 1 == 0).all():
            if stations and codes_of(values)[1] == codes_of(values, point)[1] > 1:
                odd["station"] += [name] * (codes_of(point)[1] == values.nunique())
            elif codes_of(sample, time, values)[1] == len(values):
                odd["ignore"] += [name]
        elif bare in FEATURES and time.any():
            odd["ignore"] += [name] * bool(codes_of(time, values)[1] == time.max() + 1)
        elif sample.any() and not time.any() and values.nunique() > 1:
            odd["static"] += [name] * bool(
                codes_of(sample, values)[1] == sample.max() + 1
            )
    if names := odd["station"][:1]:
        say = f"station={names[0]}, or ignore={names[0]}"
        raise ask(path, names, "which numbers the points", "whether it names them", say)
    if names := odd["ignore"]:
        say = ",".join(f"ignore={name}" for name in names)
        which = "which number rows or points, or repeat the time"
        raise ask(path, names, which, "that they are no fields", say)
    if names := odd["static"]:
        what = "whether that is a static input, a field to predict, or neither"
        say = ", or ".join(f"{kind}={names[0]}" for kind in KINDS)
        raise ask(path, names, "with one value for each sample", what, say)
