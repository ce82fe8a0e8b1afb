"""Tables: a row for each point, time step and sample, or a column for each station.

Rows come in any order. A value is NaN where its cell is empty or its row not there.
Points stay where they are, in the order of the names of stations, or else of their
coordinates. All samples have the same times; dates that a regular series lacks, such as
a day without any row, are time steps without values. See
:mod:`nfsgeo.data.io.roles` for what names tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.conventions import (
    SPACE,
    Doubles,
    Indices,
    bare_name,
    field_name,
    listed,
    role_of,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import Format
from nfsgeo.data.io.frames import (
    STATIONS,
    frame_of,
    is_number,
    is_table,
    values_of,
)
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.roles import Columns, chosen, mark_longitude, roles_of
from nfsgeo.data.times import EPOCH, as_times, filled, time_texts, unit_of_times
from nfsgeo.errors import UserError

EXPECTED = "columns x[, y[, z]], optionally sample and t, and one for each component"
ROWS = ("time", "point")
SPARSE = 100  # times as many points and time steps as rows: points that move


def _read(path: Path, columns: Columns | None = None) -> Fields:
    """Fields of a table, see :func:`nfsgeo.data.open` for ``columns``."""
    frame, columns = frame_of(path), columns or {}
    if "points" in columns:
        frame, columns = _by_station(path, frame, columns)
    kinds, user_roles = chosen(path, list(frame), columns)
    roles = roles_of(path, [n for n in frame if n not in kinds], user_roles)
    frame = frame.drop(columns=[name for name in kinds if kinds[name] == "ignore"])
    if frame.empty:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    key, unit = _keys(path, frame, roles)
    key["sample"], samples = pandas.factorize(key["sample"], sort=True)
    key["time"], times = pandas.factorize(key["time"], sort=True)
    points, point, stations = _points(path, frame, key, kinds)
    # Places are the points of one sample after those of the other.
    place = key["sample"] * np.int64(len(points)) + point
    place, places = pandas.factorize(place, sort=True)
    starts = np.searchsorted(places, np.arange(len(samples)) * len(points))
    ragged, places = len(places) < len(samples) * len(points), places % len(points)
    _check_rows(path, key, place, points[places], times, unit)
    times, steps = filled(times) if unit == EPOCH else (times, np.arange(len(times)))
    converted = {}
    for name in frame:
        what = f"{path}: column {name}"
        values = as_real(values_of(path, frame[name]), what, gaps=True)
        dtype = np.result_type(not_infinite(values, what), np.float32)
        converted[name] = values.astype(dtype, copy=False)
    levels = [np.arange(len(times)), np.arange(len(places))]
    index = pandas.MultiIndex(levels, [steps[key["time"]], place], names=ROWS)
    table = pandas.DataFrame(converted, index, copy=False).to_xarray()
    table = table.reindex(time=levels[0])
    dims: tuple[str, ...] = ROWS
    shape: tuple[int, ...] = len(times), len(places)
    if not ragged and len(samples) > 1:
        dims, shape = ("time", "sample", "point"), (len(times), len(samples), -1)
    variables = dict[str, Any]()
    for name, values in table.data_vars.items():
        field, field_unit = field_name(str(name))
        about = {"components": [field]} | ({"units": field_unit} if field_unit else {})
        variables[str(name)] = dims, values.values.reshape(shape), about
    where = np.split(points[places], starts[1:]) if ragged else points
    coordinates = {
        "points": (("point", "axis"), where),
        "time": ("time", times if "time" in roles else None, {"units": unit}),
        "station": ("point", None if stations is None else stations[places]),
    }
    return mark_longitude(to_fields(path, variables, coordinates), roles["x"])


def _keys(
    path: Path, frame: pandas.DataFrame, roles: Mapping[str, str]
) -> tuple[dict[str, NDArray[Any]], str]:
    """Sample, time and coordinates of each row, taken out of a table, and the unit of
    the times.
    """
    key, unit = dict.fromkeys(("sample", "time"), np.zeros(len(frame))), ""
    for role in sorted(roles):
        what = f"{path}: column {roles[role]}"
        values = values_of(path, frame.pop(roles[role]), names=role == "sample")
        if role == "time":
            unit, values = unit_of_times(values), as_times(values, what)
            years = not unit and values.min() >= 1800 and values.max() < 2200
            if years and bare_name(roles[role]) in ("date", "datetime"):
                given = f"{what} with {values.min():g}, a number or a year"
                todo = "write dates with hyphens, or give the column another name"
                raise UserError(given, "dates such as 2026-01-31", todo)
        key[role] = finite(as_real(values, what), what) + 0.0  # which makes -0 to 0
    return key, unit


def _points(
    path: Path,
    frame: pandas.DataFrame,
    key: Mapping[str, NDArray[Any]],
    kinds: Mapping[str, str],
) -> tuple[Doubles, Indices, NDArray[np.str_] | None]:
    """The points of all samples, the point of each row, and the names of the points,
    whose column is taken out of the table.
    """
    space = [axis for axis in SPACE if axis in key]
    where = pandas.DataFrame({axis: key[axis] for axis in space}, copy=False)
    when = {role: key[role] for role in ("sample", "time")}
    free = [name for name in frame if name not in kinds]
    named = [name for name in free if bare_name(name) in STATIONS]
    # Stations of several names at one place.
    if named and where.assign(**when).duplicated().any():
        apart = where.assign(name=frame[named[0]])
        if (names := apart.drop_duplicates()["name"]).is_unique and names.notna().all():
            where = apart
    point = where.groupby(list(where)).ngroup().to_numpy()
    for name in free:
        # The first rows often suffice to tell that there are more names than points.
        parts = frame[name].head(2 * point.max() + 2), frame[name]
        if name not in named and any(part.nunique() > point.max() for part in parts):
            continue
        row = pandas.DataFrame({"name": frame[name], **when})
        places = row.assign(point=point).drop_duplicates(["name", "sample", "point"])
        several = places.duplicated(["name", "sample"])
        if several.any() and not row.duplicated().any():  # a row of each at a time
            given = (
                f"{path} with {name} {places['name'][several].iloc[0]} at two places"
            )
            todo = "interpolate the fields to such points, or say --columns "
            todo += f"ignore={name}, or field={name}, if it tells no points apart"
            raise UserError(given, "points that stay where they are", todo)
    points = np.empty((point.max() + 1, len(space)))
    points[point] = where[space].to_numpy()
    for name in free:
        stations, order = _names(frame[name], point, len(points))
        if stations is not None:
            del frame[name]
            return points[order], np.argsort(order)[point], stations
    return points, point, None


def _check_rows(
    path: Path, key: Any, place: Any, points: Any, times: Any, unit: str
) -> None:
    """Raise a UserError if points move, a row is there twice, or a time step lacks."""
    sample, time = key["sample"], key["time"]
    cell = time * np.int64(len(points)) + place
    alone = len(times) > 1 and np.bincount(place).max() < 2
    if alone or len(points) * len(times) > SPARSE * len(cell) + 1e7:
        rows = f"{len(cell) / len(points):.3g} of {len(times)} times"
        todo = "interpolate the fields to such points, at common times"
        given = f"{path} with {len(points)} points at {rows}"
        raise UserError(given, "points that stay where they are", todo)
    rows_of_cell = np.bincount(cell)
    if (num := rows_of_cell.max()) > 1:
        step, where = divmod(int(rows_of_cell.argmax()), len(points))
        raise UserError(
            f"{path} with {num} rows for the point "
            f"{points[where].tolist()} at {time_texts(times, unit)[step]}",
            "one row for each point and time step of a sample",
            "leave the others out, or name the columns of time and sample, as in "
            f"nfsgeo convert {path} --out NAME.nc --columns time=COLUMN,sample=COLUMN",
        )
    seen = np.bincount(sample * np.int64(len(times)) + time)
    if not seen.all() or len(seen) < (sample.max() + 1) * len(times):
        todo = "convert samples with other times by themselves"
        raise UserError(f"{path}", "every sample at the same times", todo)


def _names(
    column: pandas.Series, point: Indices, num: int
) -> tuple[NDArray[np.str_] | None, Indices]:
    """Names of points, sorted, if a column tells points apart, and the point of each.

    Numbers are names only in a column of ``STATIONS``.
    """
    header = isinstance(column.dtype, pandas.CategoricalDtype)  # of a table of stations
    sure = header or bare_name(str(column.name)) in STATIONS
    if sure or pandas.api.types.infer_dtype(column) == "string":
        codes, unique = pandas.factorize(column, sort=True)
        names = np.array([str(name).strip() for name in unique])
        pairs = pandas.DataFrame({"name": codes, "point": point}).drop_duplicates()
        if (
            len(pairs) == len(names) == num
            and pairs["name"].min() >= 0
            and (sure or not any(map(is_number, names)))
        ):
            return names, pairs.sort_values("name")["point"].to_numpy()
    return None, point


def _by_station(
    path: Path, frame: pandas.DataFrame, columns: Columns
) -> tuple[pandas.DataFrame, Columns]:
    """Join a table with the coordinates in another one, ``points``.

    The table has a column of the names of stations, or else a column for each station,
    and a row for each time. Then all columns but time, sample and ignored ones are
    stations, and ``field`` is the name of the values in them.

    Returns:
        The table with a row for each station and time, and the roles of its columns.
    """
    others = {role: name for role, name in columns.items() if role != "points"}
    source = Path(str(columns["points"]))
    ignored = [*np.ravel(others.get("ignore", []))]
    for name in (n for n in frame if bare_name(n) in STATIONS):
        if name not in ignored:
            frame[name] = [str(cell).strip() for cell in frame[name]]
            places = _positions(source, sorted({*frame[name]}))
            joined = frame.join(places, on=name)
            return joined, {**others, **dict(zip("xyz", places, strict=False))}
    for role in others.keys() - {"time", "sample", "ignore", "field"}:
        expected = "one of time, sample, ignore and field: other columns are stations"
        raise UserError(f"{role}= beside points=", expected, f"leave out {role}=")
    called = str(np.ravel(others.pop("field", path.stem))[0])
    _, roles = chosen(path, list(frame), others)
    left = [name for name in frame if name not in (*ignored, *roles.values())]
    for role in {"time", "sample"} - roles.keys():
        roles[role] = next((n for n in left if role_of(n) == role), "")
    stations = [name for name in left if name not in roles.values()]
    if not stations:
        todo = "leave out points=, or correct time= and ignore="
        raise UserError(f"{path} with columns {listed(left)}", "stations", todo)
    places = _positions(source, stations)
    field = called if called not in (*frame, *places) else "field"
    ids, sample = [name for name in roles.values() if name], roles["sample"]
    table = {n: values_of(path, frame[n], names=n == sample) for n in [*ids, *stations]}
    long = pandas.DataFrame(table).melt(ids, stations, "station", field)
    long = long.join(places, on="station")
    long["station"] = pandas.Categorical(long["station"], stations)
    space = dict(zip("xyz", places, strict=False))
    return long, {**roles, **space, "field": field}


def _positions(path: Path, stations: list[str]) -> pandas.DataFrame:
    """Coordinates, x first, by the names of stations."""
    if not path.is_file():
        expected = "a table with the name and the coordinates of each station"
        raise UserError(f"points={path}", expected, "check the name")
    places, table = point_table(path)
    table = table.apply(lambda column: column.str.strip())
    lacking = {name: sorted({*stations} - {*table[name]}) for name in table}
    num = table.isin(stations).sum()
    fits = [name for name in table if not lacking[name] and num[name] == len(stations)]
    if len(fits) != 1:
        best = min(lacking, key=lambda name: len(lacking[name]), default="")
        twice = table[best][table[best].duplicated()] if best else ()
        odd = listed(lacking.get(best) or [*twice] or stations)
        raise UserError(
            f"{path} with columns {listed([*places, *table])}, not once with {odd}",
            "each station once, by the name of its column, in one of them",
            "add or remove rows or columns, or tell by time=, sample= or ignore= which "
            "column is no station",
        )
    return places.set_axis(table[fits[0]], axis=0)


def point_table(path: Path) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Read a table with a row for each point.

    Returns:
        Coordinates, x first, and the other columns as text.

    Raises:
        UserError: It has not one column for each of x, y and z, in this order.
    """
    table = frame_of(path, str)
    axes = [[n for n in table if role_of(n) == axis] for axis in "xyz"]
    dim = sum(map(bool, axes))
    if not dim or [len(names) for names in axes] != [1] * dim + [0] * (3 - dim):
        given = f"{path} with columns {listed(list(table))}"
        wanted = "coordinates x[, y[, z]] in one column each"
        raise UserError(given, wanted, "rename or remove columns")
    space = [name for names in axes for name in names]
    places = {name: values_of(path, table[name]) for name in space}
    return pandas.DataFrame(places), table.drop(columns=space)


CSV = Format(
    "tables of points (.csv, .csv.gz, .parquet)",
    is_table,
    _read,
    EXPECTED,
    columns="roles",
)
