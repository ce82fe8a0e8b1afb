"""Tables: a row for each point, time step and sample, or a column for each station.

Rows come in any order. A value is NaN where its cell is empty or its row not there.
Points stay where they are, in the order of the names of stations, or else of their
coordinates. All samples have the same times; dates that a regular series lacks, such as
a day without any row, are time steps without values. See
:mod:`nfsgeo.data.io.roles` for what names tell, and
:mod:`nfsgeo.data.io.table_layouts` for tables of other layouts.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.conventions import (
    LONGITUDE,
    SPACE,
    STATION,
    STATIONS,
    Doubles,
    Floats,
    Indices,
    bare_name,
    field_name,
    is_static,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io import table_layouts as layouts
from nfsgeo.data.io import table_questions as questions
from nfsgeo.data.io.format import Format, left_out
from nfsgeo.data.io.frames import NoNumbers, frame_of, is_table, values_of
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.near_points import NEAR, rounded
from nfsgeo.data.io.roles import Columns, ask, chosen, mark_longitude, roles_of
from nfsgeo.data.io.table_codes import codes_of, numbered
from nfsgeo.data.io.table_heads import is_number
from nfsgeo.data.io.table_marks import check_marks
from nfsgeo.data.io.table_times import check_times
from nfsgeo.data.times import EPOCH, as_times, filled, time_texts, unit_of_times
from nfsgeo.errors import UserError

EXPECTED = "columns x[, y[, z]], optionally sample and t, and one for each component"
SPARSE = 100  # times as many points and time steps as rows: points that move


def _read(
    path: Path, columns: Columns | None = None, known: Sequence[str] = ()
) -> Fields:
    """Fields of a table, see :func:`nfsgeo.data.open` for the arguments."""
    marks = [str(mark) for mark in np.ravel((columns or {}).get("missing", []))]
    marked = "" in marks
    whole, answers, quantity = _arranged(path, dict(columns or {}))
    units = whole.attrs.get("units") or {}
    station = str(answers.pop(STATION, ""))
    kinds, user_roles = chosen(path, list(whole), answers)
    free = [name for name in whole if name not in kinds and name != station]
    check_times(path, whole[free], user_roles)
    roles = roles_of(path, free, user_roles)
    if whole.empty:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    sample, samples, _ = _codes(path, whole, roles, "sample")
    time, times, unit = _codes(path, whole, roles, "time")
    num_samples, axes = len(samples), [axis for axis in SPACE if axis in roles]
    space = [_key(path, whole[roles[axis]], axis)[0] for axis in axes]
    place, row = _representatives(*codes_of(*space))
    for axis, along in () if marked else zip(axes, space, strict=True):
        check_marks(path, roles[axis], along[row], marks, along)
    ignored = [n for n in kinds if kinds[n] == "ignore"]
    named_sample = roles.get("sample", "")
    if named_sample:
        unlike = [n for n in roles.values() if n != named_sample]
        about = whole.drop(columns=[*unlike, *ignored])
        questions.check_sample(path, about, named_sample, place)
    others = whole.drop(columns=[*roles.values()])
    frame = others.drop(columns=ignored)
    del whole
    when = sample * np.int64(len(times)) + time if num_samples > 1 else time
    points, point, name, stations = _points(
        path, frame, space, place, row, sample, when, kinds, station
    )
    del space
    columns_left = others
    frame, others = (table.drop(columns=name) for table in (frame, others))
    # Places are the points of one sample after those of the other.
    place, places = point, np.arange(len(points))
    if num_samples > 1:
        place = sample * np.int64(len(points)) + point
        place, places = pandas.factorize(place, sort=True)
    starts = np.searchsorted(places, np.arange(num_samples) * len(points))
    ragged, places = len(places) < num_samples * len(points), places % len(points)
    where = points if num_samples == 1 else points[places]
    cell = time * np.int64(len(places)) + place if len(times) > 1 else place
    _check_rows(path, others, roles, cell, quantity, where, times, unit)
    measured = (
        unit == EPOCH or stations is not None or bare_name(roles["x"]) in LONGITUDE
    )
    questions.check_simulations(
        path,
        others,
        sample,
        time,
        point,
        points,
        kinds,
        named_sample,
        measured=measured,
    )
    if not station:
        questions.check_quantities(path, columns_left, kinds, time, "".join(name))
    del columns_left, others
    seen = np.bincount(when)
    if not seen.all() or len(seen) < num_samples * len(times):
        todo = (
            "convert samples with other times by themselves, or give the times since "
        )
        todo += "the beginning of each sample"
        raise UserError(f"{path}", "every sample at the same times", todo)
    values = _values(path, frame, kinds)
    for field in () if marked else values:
        if "field" not in kinds.values() or field in kinds or is_static(field):
            check_marks(path, field, values[field], marks)
    if "field" not in kinds.values():
        said = {*kinds, *known}
        left = [name for name in values if not ({name, field_name(name)[0]} & said)]
        left = [name for name in left if not is_static(name)]
        counts = questions.check_numbers(path, frame, left, time, sample, point)
        if counts:
            values = {n: column for n, column in values.items() if n not in counts}
            reason = "one number throughout, or a count of rows or times: say static= "
            reason += "to keep one as an input, or field= of all fields"
            left_out(path, [*counts, reason])
    if unit == EPOCH:
        times, steps = filled(times)
        cell = steps[time] * len(places) + place if steps[-1] >= len(steps) else cell
    dims: tuple[str, ...] = ("time", "point")
    shape: tuple[int, ...] = len(times), len(places)
    if not ragged and num_samples > 1:
        dims, shape = ("time", "sample", "point"), (len(times), num_samples, -1)
    variables = dict[str, Any]()
    for field, column in values.items():
        cells = cell
        if quantity is not None:
            seen = np.flatnonzero(~np.isnan(column))
            cells, column = cell[seen], column[seen]
        table = np.full(len(times) * len(places), np.nan, column.dtype)
        table[cells] = column
        if quantity is not None and (table[cells] != column).any():
            left_out(path, [f"{field}, which differs between quantities"])
            continue
        short, field_unit = field_name(field)
        attrs: dict[str, Any] = {"components": [short]}
        if field_unit := field_unit or units.get(field, ""):
            attrs["units"] = field_unit
        variables[field] = dims, table.reshape(shape), attrs
    coordinates = {
        "points": (
            ("point", "axis"),
            np.split(where, starts[1:]) if ragged else points,
        ),
        "time": ("time", times if "time" in roles else None, {"units": unit}),
        "station": ("point", None if stations is None else stations[places]),
    }
    return mark_longitude(to_fields(path, variables, coordinates), roles["x"])


def _arranged(
    path: Path, answers: dict[str, Any]
) -> tuple[pandas.DataFrame, dict[str, Any], Indices | None]:
    """A table with a row for each point, time step and sample, what its columns are as
    users say, and the number of the quantity of each row if it has rows for several.
    """
    missing = [str(mark) for mark in np.ravel(answers.pop("missing", []))]
    quantity, kind = str(answers.pop("quantity", "")), None
    frame = layouts.with_rows_for_times(path, frame_of(path, missing=missing))
    frame = layouts.with_zone(path, layouts.joined(path, frame, answers), answers)
    if quantity:
        roles = [str(name) for names in answers.values() for name in np.ravel(names)]
        frame, kind = layouts.with_quantities(path, frame, quantity, roles)
    if "points" in answers:
        attrs = frame.attrs
        frame, answers = layouts.with_places(path, frame, answers)
        frame.attrs = attrs
    elif answers.get(STATION):
        chosen(path, list(frame), {"field": answers[STATION]})
    return frame, answers, kind


def _codes(
    path: Path, frame: pandas.DataFrame, roles: Mapping[str, str], role: str
) -> tuple[Indices, Doubles, str]:
    """Number the rows by their samples or times; with these, and the unit of times."""
    if role not in roles:
        return np.zeros(len(frame), np.int64), np.zeros(1), ""
    column = frame[roles[role]]
    numbers = column.dtype.kind in "biuf"
    codes, distinct = numbered(column) if numbers else pandas.factorize(column)
    some = column if codes.min() < 0 else pandas.Series(distinct, name=column.name)
    try:
        key, unit = _key(path, some, role)
    except UserError:
        _key(path, column, role)  # names the row among all
        raise
    values, order = np.unique(key, return_inverse=True)
    return order if some is column else order[codes], values, unit


def _key(path: Path, column: pandas.Series, role: str) -> tuple[Doubles, str]:
    """Samples, times or coordinates, and the unit if they are times."""
    what, unit = f"{path}: column {column.name}", ""
    values = values_of(path, column, names=role == "sample", gaps=False)
    if role == "time":
        unit, values = unit_of_times(values), as_times(values, what)
        low, high = (0, 0) if unit else (values.min(), values.max())
        years, serial = 1800 <= low <= high < 2200, 2e4 < low <= high < 1e5
        if (years or serial) and bare_name(str(column.name)) in ("date", "datetime"):
            given = f"{what} with {low:g}, a number or a {'year' if years else 'day'}"
            todo = "write dates with hyphens, or give the column another name"
            if serial:  # of a spreadsheet
                todo = f"write dates: pandas.to_datetime(table[{column.name!r}], "
                todo += "unit='D', origin='1899-12-30')"
            raise UserError(given, "dates such as 2026-01-31", todo)
    elif role == "sample" and values.dtype.kind == "M":
        values = as_times(values, what)
    return finite(as_real(values, what), what) + 0.0, unit  # which makes -0 to 0


def _points(
    path: Path,
    frame: pandas.DataFrame,
    space: Sequence[Doubles],
    point: Indices,
    row: Indices,
    sample: Indices,
    when: Indices,
    kinds: Mapping[str, str],
    station: str,
) -> tuple[Doubles, Indices, list[str], NDArray[np.str_] | None]:
    """The points of all samples, the point of each row, and the column of the names of
    the points and these, if there are any.
    """
    free = [name for name in frame if name not in kinds]
    named = [station] if station else [n for n in free if bare_name(n) in STATIONS]
    # Stations of several names at one place.
    numbers_of = {name: numbered(frame[name]) for name in named[:1]}
    for codes, names in numbers_of.values():
        apart, several = codes_of(point, codes)
        all_apart = several == len(names) and several > len(row) and codes.min() >= 0
        if all_apart and codes_of(when, point)[1] < len(point):
            point, row = _representatives(apart, several)
    points, num = np.stack([values[row] for values in space], axis=1), len(row)
    for name in [station] if station else free:
        column, numbers = frame[name], frame[name].dtype.kind in "biufmM"
        fractions = column.dtype.kind == "f" and (column.head(1000) % 1 > 0).any()
        if fractions and name not in named:
            continue
        # The first rows often suffice to tell that there are more names than points.
        if numbers and name not in named and column.head(2 * num + 2).nunique() >= num:
            continue
        codes, names = numbers_of.get(name) or numbered(column)
        sure = name in named or isinstance(column.dtype, pandas.CategoricalDtype)
        pairs = pandas.unique(codes * np.int64(num) + point)
        if len(pairs) == len(names) == num and codes.min() >= 0:
            texts = np.array([str(cell).strip() for cell in names])
            if sure or not (numbers or any(map(is_number, texts))):
                order = pairs[np.argsort(pairs // num)] % num
                return points[order], np.argsort(order)[point], [name], texts
        elif len(names) < num and len(pairs) > len(names):
            _check_moves(path, column, codes, when, point, points, sample)
    if station:
        given = f"{path} with {frame[station].nunique()} names in column {station}"
        expected = f"a name for each of {num} points"
        raise UserError(given, expected, f"correct them, or say ignore={station}")
    return points, point, [], None


def _representatives(codes: Indices, num: int) -> tuple[Indices, Indices]:
    """The codes of rows, and a row that has each of them."""
    row = np.empty(num, np.int64)
    row[codes] = np.arange(len(codes))
    return codes, row


def _check_moves(
    path: Path,
    column: pandas.Series,
    codes: Indices,
    when: Indices,
    point: Indices,
    points: Doubles,
    sample: Indices,
) -> None:
    """Raise a UserError if a column names what has one place at a time, but several."""
    places = pandas.DataFrame({"name": codes, "sample": sample, "point": point})
    several = places.drop_duplicates().duplicated(["name", "sample"])
    if several.any() and codes_of(codes, when)[1] == len(codes):
        first = places.groupby(["name", "sample"])["point"].transform("first")
        apart = abs(points[point] - points[first]).max()
        if apart <= NEAR * np.ptp(points, axis=0).max():
            moved = places["point"] != first
            raise rounded(path, points, np.column_stack([first, point])[moved])
        name, row = column.name, several.idxmax()
        todo = "interpolate the fields to such points, or say --columns ignore="
        todo += f"{name}, if it tells no points apart"
        given = f"{path} with {name} {column.iloc[row]} at two places"
        raise UserError(given, "points that stay where they are", todo)


def _check_rows(
    path: Path,
    others: pandas.DataFrame,
    roles: Mapping[str, str],
    cell: Indices,
    quantity: Indices | None,
    points: Doubles,
    times: Doubles,
    unit: str,
) -> None:
    """Raise a UserError if points move, or rows are there twice."""
    alone = len(times) > 1 and len(cell) <= len(points)
    alone = alone and np.bincount(cell % len(points)).max() < 2
    if alone or len(points) * len(times) > SPARSE * len(cell) + 1e7:
        rows = f"{len(cell) / len(points):.3g} of {len(times)} times"
        todo = "interpolate the fields to such points, at common times"
        given = f"{path} with {len(points)} points at {rows}"
        raise UserError(given, "points that stay where they are", todo)
    code = cell if quantity is None else cell * (quantity.max() + 2) + quantity + 1
    rows_of_code = np.bincount(code)
    if (num := rows_of_code.max()) > 1:
        step, where = divmod(
            int(cell[np.argmax(code == rows_of_code.argmax())]), len(points)
        )
        at = pandas.Series(times[cell // len(points)] if unit == EPOCH else np.nan)
        names, say = questions.rows_apart(others, codes_of(code)[0], roles, at)
        todo = "leave the others out, as in pandas by table.drop_duplicates("
        todo += f"{[*roles.values()]})"
        if names:
            file, answer = shlex.quote(str(path)), shlex.quote(say)
            todo = f"say it: nfsgeo convert {file} --out NAME.nc --columns {answer}"
        raise UserError(
            f"{path} with {num} rows for the point {points[where].tolist()} at "
            f"{time_texts(times, unit)[step]}"
            + f", told apart by {' and '.join(names)}"
            * bool(names),
            "one row for each point and time step of a sample",
            todo,
        )


def _values(
    path: Path, frame: pandas.DataFrame, kinds: Mapping[str, str]
) -> dict[str, Floats]:
    """The columns of numbers. Others are left out where users choose fields."""
    values, left = dict[str, Floats](), dict[str, UserError]()
    for name in frame:
        what = f"{path}: column {name}"
        try:
            numbers = values_of(path, frame[name])
            if numbers.dtype.kind in "mM":
                choices = [shlex.quote(f"{role}={name}") for role in ("ignore", "time")]
                todo = f"say --columns {', or '.join(choices)}"
                raise NoNumbers(f"{what} with dates", "numbers", todo)
            numbers = not_infinite(as_real(numbers, what, gaps=True), what)
        except UserError as error:
            if name in kinds:
                raise
            left[name] = error
            continue
        dtype = np.result_type(numbers, np.float32)
        values[name] = numbers.astype(dtype, copy=False)
    if left and "field" in kinds.values():
        left_out(path, [*left])
    elif left:
        texts = [n for n, error in left.items() if isinstance(error, NoNumbers)]
        if len(left) == 1 or len(texts) < len(left):
            raise next(left[n] for n in left if len(left) == 1 or n not in texts)
        say = ",".join(f"ignore={name}" for name in texts)
        say += ", or only what is to be predicted, field=NAME"
        raise ask(path, texts, "which are text or dates", "what they are", say)
    return values


CSV = Format(
    "tables of points (.csv, .csv.gz, .parquet)",
    is_table,
    _read,
    EXPECTED,
    columns="roles",
)
