"""Questions about the columns of tables, which offer what the rows support."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas

from nfsgeo.data.conventions import STATIONS, Indices, bare_name, is_static, listed
from nfsgeo.data.io.near_points import mixed, one_box
from nfsgeo.data.io.roles import ask, ask_kind
from nfsgeo.data.io.table_codes import codes_of
from nfsgeo.data.io.table_heads import is_number
from nfsgeo.data.io.table_layouts import UNITS, ZONE, calendar
from nfsgeo.data.io.table_texts import is_clock, is_date, is_unread
from nfsgeo.data.io.table_times import WHEN
from nfsgeo.errors import UserError, option

if TYPE_CHECKING:
    from nfsgeo.data.io.table_rows import Places, Steps

__all__ = ["check_numbers", "check_quantities", "check_sample", "check_simulations"]
__all__ += ["values_of_quantities"]

NUMBER = r"s?([ _-]?(id|ids|no|nr|num|number|numbers|index|idx|name|code|cd))?"
SAMPLES = re.compile(
    "(case|run|sim|simulation|member|ensemble|ensemble_member|realization|realisation|"
    "trajectory|traj|experiment|exp|episode|scenario|seed|geometry|design|config|"
    f"configuration|sample|batch|replicate|draw|rollout){NUMBER}"
)
# Names of columns that number computations or measurements repeated at one place.
COPIES = re.compile(
    "(model|gcm|rcm|esm|specimen|treatment|subject|patient|animal|trial|test|setup|"
    f"solver|method|scheme|version|variant|rcp|ssp|pathway){NUMBER}"
)
QUANTITIES = re.compile(
    "(parameter|param|variable|var|pollutant|indicator|quantity|quantities|species|"
    "element|data_?type|metric|measure|measurand|analyte|observed_?property|substance|"
    f"characteristic|attribute|feature|signal|channel|gas|component|property){NUMBER}"
)
ROWS = re.compile(
    "unnamed: .*|index|idx|row|record|fid|oid|"
    "((vtk)?(global|original))?[ _]?(node|cell|point|element|vertex|object|row|record|"
    f"elem)({NUMBER}|s)"
)
VALUE = re.compile(
    "_*(mean_?|avg_?|obs_?|data_?|sample_?|measured_?|result_?)?(val|values?|valor|"
    "valore|valeurs?|wert|messwert|waarde|readings?|results?|measurements?|data|obs|"
    "observations?|concentrations?|conc|amount|quantity|v|y_?value)_*"
)
STATION_LIKE = re.compile(
    f"(station|stn|site|gau?ge|sensor|basin|wmo|buoy|platform|location|catchment|well)"
    f"s?{NUMBER}"
)
MANY = 1000  # more names than there are quantities
FEW = 20  # rows, in which numbers may rise or be the same by chance


def values_of_quantities(frame: pandas.DataFrame, name: str) -> tuple[str, bool]:
    """Return the column of the values of what another one names, empty if there is
    none, and whether both have names that tell so.
    """
    column, bare = frame[name], bare_name(name)
    if ZONE.fullmatch(bare) or any(f(column) for f in (is_date, is_clock, is_unread)):
        return "", False
    sure, text = QUANTITIES.fullmatch(bare), column.dtype.kind not in "biufmM"
    if not sure and (SAMPLES.fullmatch(bare) or COPIES.fullmatch(bare)):
        return "", False
    others = [n for n in frame if n != name and frame[n].dtype.kind in "iuf"]
    called = [n for n in others if VALUE.fullmatch(bare_name(n))]
    values = called if len(called) == 1 else others
    if len(values) != 1 or bare in UNITS or not (text or (sure and called)):
        return "", False
    if not sure:
        names = column.dropna().unique()[: MANY + 1]
        numbers = any(map(is_number, map(str, names)))
        if len(names) > MANY or WHEN.fullmatch(bare) or numbers:
            return "", False
    return values[0], bool(sure)


def check_quantities(
    path: Path,
    frame: pandas.DataFrame,
    kinds: Mapping[str, str],
    time: Indices,
    at: str,
) -> None:
    """Ask about a column that may name quantities, whose values are in a single other.

    Args:
        path: The file.
        frame: Columns without a role.
        kinds: What users say of columns.
        time: The time step of each row.
        at: The column that names the points, empty if there is none.

    Raises:
        UserError: There is one. Users may say what it is, but those that surely name
            quantities are not ignored, since their values would be one field.
    """
    texts = [n for n in frame if frame[n].dtype.kind not in "biufmM"]
    for name in frame:
        values, sure = values_of_quantities(frame, name)
        if not values or frame[name].nunique() < 2:
            continue
        called = VALUE.fullmatch(bare_name(values))
        same_time = codes_of(time, frame[name])[1] == time.max() + 1 > 1
        if not sure and (same_time or name in kinds or "field" in kinds.values()):
            continue
        bare = bare_name(name)
        is_station = bare in STATIONS or STATION_LIKE.fullmatch(bare)
        if not sure and (at == name and (is_station or not called)):
            continue
        if not sure and not called and len(texts) > 1:
            continue  # asked about together
        some = listed([str(cell) for cell in frame[name].dropna().unique()])
        which = f"which may name quantities ({some}), whose values are in {values}"
        say = [f"quantity={name}"]
        if at == name:
            say = [*say, f"station={name}"] if sure else [f"station={name}", *say]
        elif not sure:
            say = [*say, f"ignore={name}"] if called else [f"ignore={name}", *say]
        raise ask(path, [name], which, "what it is", *say)


def check_sample(
    path: Path, frame: pandas.DataFrame, name: str, point: Indices
) -> None:
    """Raise a UserError if what is said to be the sample names quantities.

    Text that has values at the same points is the name of a sample only if the column
    has a name that tells so.
    """
    if not name or not values_of_quantities(frame, name)[0]:
        return
    groups, num = frame[name].nunique(), codes_of(point)[1]
    disjoint = codes_of(frame[name], point)[1] == num >= 2 * groups
    if QUANTITIES.fullmatch(bare_name(name)) or not disjoint:
        some = listed([str(cell) for cell in frame[name].unique()])
        given = f"sample={name} of {path}, which seems to name quantities ({some})"
        todo = f"say {option('columns', f'quantity={name}')}, or call the column sample"
        raise UserError(given, "a column that tells samples apart", todo)


def check_simulations(
    path: Path,
    frame: pandas.DataFrame,
    steps: Steps,
    places: Places,
    kinds: Mapping[str, str],
    role: str,
    *,
    measured: bool,
) -> None:
    """Ask about a column that numbers simulations, each at points of its own.

    Its name tells so, or its groups of rows are at points among those of the others, as
    meshes of one domain are, and follow each other at each time or are alike in size.
    Columns of stations that are ``measured`` are not taken for such by their places,
    since attributes of stations look the same.

    Raises:
        UserError: There is one; whatever else a user says it is.
    """
    time, point, points = steps.time, places.point, places.points
    if steps.sample.any():  # those in one sample
        first = steps.sample == 0
        frame, time = frame[first], time[first]
        point, used = pandas.factorize(point[first], sort=True)
        points = points[used]
    num_times, num = int(time.max()) + 1, len(points)
    for name in sorted(frame, key=lambda n: not SAMPLES.fullmatch(bare_name(n))):
        surely = named = bool(SAMPLES.fullmatch(bare_name(name)))
        many = not named and frame[name].head(1000).nunique() > 500
        many |= is_date(frame[name])
        quantity = QUANTITIES.fullmatch(bare_name(name))
        if is_static(name) or quantity or many or (measured and not named):
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
            runs = np.diff(codes[order] * np.int64(num_times) + time[order]) != 0
            apart = 1 + np.count_nonzero(runs) == groups * num_times
            alike = np.ptp(sizes) == 0
            words = frame[name].dtype.kind not in "biuf"
            surely = apart or (alike and not words)
            # Classes of points look like these, so what users say of them holds.
            if not surely and (name in kinds or 2 * sizes.min() < sizes.max()):
                continue
            if sizes.min() < 2 or not (surely or alike or one_box(points, group)):
                continue
            if not mixed(points, group):
                continue
        given = f"{path} with {name}, whose {groups} groups of rows are each at points "
        given += "of their own"
        if kind := kinds.get(name):
            given = f"{kind}={name} of {given}"
        say = f"sample={role}+{name}" if role else f"sample={name}"
        kind = "static" if frame[name].dtype.kind in "biuf" else "ignore"
        other = option("columns", f"{kind}={name}")
        todo = f"say it: {option('columns', say)}, or "
        todo += "remove the column" if surely else other
        todo += " if the points of all of them are one mesh"
        raise UserError(given, "to be told that they are samples", todo)


def check_numbers(
    path: Path,
    frame: pandas.DataFrame,
    names: Sequence[str],
    steps: Steps,
    places: Places,
) -> list[str]:
    """Find columns of numbers that are no quantities, and ask about others.

    Args:
        path: The file.
        frame: The columns.
        names: Those of numbers that may be fields.
        steps: The sample and time step of each row.
        places: The point of each row.

    Returns:
        Columns that are one number throughout, or number rows or times.

    Raises:
        UserError: One may name the points, has one value for each sample, or repeats
            a part of the time in a table too small to tell a count from a field.
    """
    no_fields, odd = list[str](), dict[str, list[str]]()
    sample, time, point = steps.sample, steps.time, places.point
    num, num_times = len(frame), len(steps.times)
    for name in names:
        bare, values, part = bare_name(name), frame[name], bool(calendar([name]))
        if values.dtype.kind not in "biuf":
            values = pandas.to_numeric(values, errors="coerce")
        stations, rows = STATION_LIKE.fullmatch(bare), ROWS.fullmatch(bare)
        whole = (stations or rows) and (values % 1 == 0).all()
        if whole and stations:
            points = codes_of(point)[1]
            if codes_of(point, values)[1] == points == values.nunique() > 1:
                odd.setdefault("station", []).append(name)
                continue
        if sample.any() and num_times == 1 and values.nunique() > 1:
            if codes_of(sample, values)[1] == sample.max() + 1:
                odd.setdefault("static", []).append(name)
        elif _is_counter(values, time, num, num_times, part) or (
            whole and codes_of(sample, time, values)[1] == num
        ):
            no_fields.append(name)
        elif num < FEW and part and codes_of(time, values)[1] == num_times > 1:
            odd.setdefault("time", []).append(name)
    if alike := odd.get("time", []):
        say = ",".join(f"ignore={n}" for n in alike), f"field={alike[0]}"
        raise ask(path, alike, "which repeats the time", "what it is", *say)
    if alike := odd.get("station", [])[:1]:
        say = f"station={alike[0]}", f"ignore={alike[0]}"
        what = "whether it names them"
        raise ask(path, alike, "which numbers the points", what, *say)
    if alike := odd.get("static", []):
        raise ask_kind(path, alike, "with one value for each sample")
    fields = (frame[name] for name in names if name not in no_fields)
    return no_fields if any(field.notna().any() for field in fields) else []


def _is_counter(
    values: pandas.Series, time: Indices, num: int, steps: int, part_of_time: bool
) -> bool:
    """Return whether a column is constant, or numbers the rows or the time steps.

    Whole numbers of each time step that fall are a count only where the name says that
    they are a ``part_of_time``, such as hours; else they may be known ahead.
    """
    if num < FEW or values.hasnans:
        return False
    integers, array = values.dtype.kind in "iu", values.to_numpy()
    low, high = array.min(), array.max()
    if low == high:  # a field may well be zero for a while
        return bool(steps > 1 and low != 0)
    step_values = np.empty(steps, array.dtype)
    step_values[time] = array
    if 1 < steps < num and (step_values[time] == array).all():
        least = 0 if not integers else -np.inf if part_of_time else -0.5
        return bool((np.diff(step_values) > least).all())
    if not integers or not values.is_unique:
        return False
    return bool(values.is_monotonic_increasing or (low in (0, 1) and high - low < num))
