"""Tables: a row for each point, time step and sample, or a column for each station.

Rows come in any order. A value is NaN where its cell is empty or its row not there.
Points stay where they are, in the order of the names of stations, or else of their
coordinates. All samples have the same times; dates that a regular series lacks, such as
a day without any row, are time steps without values. See
:mod:`nfsgeo.data.formats.columns` and ``kinds`` for what names tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build
from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.fields import Doubles, Fields, Indices
from nfsgeo.data.formats import columns as named
from nfsgeo.data.formats.cells import (
    SPACES,
    cells_of,
    first_lines,
    is_number,
    opened,
    values_of,
)
from nfsgeo.data.formats.columns import Columns
from nfsgeo.data.formats.format import Format, Look
from nfsgeo.data.formats.kinds import STILL, with_kinds
from nfsgeo.data.formats.stations import by_station
from nfsgeo.data.formats.table_writers import write_csv, write_parquet
from nfsgeo.data.times import EPOCH, as_times, check_no_dates, filled, unit_of_times
from nfsgeo.errors import UserError

EXPECTED = "columns x[, y[, z]], optionally sample and t, and one for each component"
APART = ("sample", "time")  # roles of what is no coordinate
SPARSE = 100  # times as many points and time steps as rows: points that move


def _is_table(look: Look) -> bool:
    """A Parquet file, or text whose first line has several names or numbers."""
    if look.head.startswith(b"PAR1"):
        return True
    names, separator, _, encoding, first = first_lines(look.path, "replace")
    with opened(look.path) as stream:
        head = stream.read(512)
    binary = encoding == "utf-8-sig" and b"\0" in head
    if binary or len(names) < 2 or head.lstrip()[:1] in (b"<", b"{"):
        return False
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = first.split() if separator == SPACES else names
    return cells is names or (len(cells) == len(names) and any(map(is_number, cells)))


def _read(path: Path, columns: Columns | None = None) -> Fields:
    """Fields of a table, see :func:`nfsgeo.data.open` for ``columns``."""
    cells, told = cells_of(path), columns or {}
    if "points" in told:
        cells, told = by_station(path, cells, told)
    kinds, given = named.kinds_of(path, list(cells), told)
    roles = named.roles_of(path, list(cells), given)
    num = len(cells[roles["x"]])
    if not num:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    keys: dict[str, Any] = {role: (np.zeros(num, int), [0.0]) for role in APART}
    unit = ""
    for role, name in roles.items():
        what = f"{path}: column {name}"
        values = values_of(path, name, cells.pop(name), names=role == "sample")
        if role == "time":
            unit, values = unit_of_times(values), as_times(values, what)
        keys[role] = _ranked(finite(as_real(values, what), what))
    (sample, samples), (time, times) = (keys.pop(role) for role in APART)
    if "time" in roles and not unit:
        _check_times(f"{path}: column {roles['time']}", roles["time"], times)
    point, there = keys.pop("x")
    points = there[:, None] + 0.0  # which makes -0 to 0
    for codes, axis in map(keys.pop, sorted(keys)):
        point, there = _ranked(point * np.int64(len(axis)) + codes)
        old, new = np.divmod(there, len(axis))
        points = np.column_stack([points[old], axis[new] + 0.0])
    stations = None
    for name, column in [*cells.items()]:
        if not kinds.get(name) and stations is None:
            stations, order = _names(name, column, point, len(points))
            if stations is not None:
                points, point = points[order], np.argsort(order)[point]
                del cells[name]
                continue
        if kinds.get(name) == "ignore":
            del cells[name]
        else:
            cells[name] = values_of(path, name, column)
    # Places are the points of one sample after those of the other.
    place, there = point, np.arange(len(points))
    if len(samples) > 1:
        place, there = _ranked(sample * np.int64(len(points)) + point)
    starts = np.searchsorted(there, np.arange(len(samples)) * len(points))
    own, there = len(there) < len(samples) * len(points), there % len(points)
    of = [f"of sample {each:g} " if "sample" in roles else "" for each in samples]
    at = time * np.int64(len(there)) + place
    _check_rows(path, at, points[there], times, starts, of)
    if unit == EPOCH:
        times, steps = filled(times)
        at = steps[time] * np.int64(len(there)) + place
    shape = (-1,) if own or len(samples) == 1 else (len(samples), len(points))
    axes, arrays = "t" + "np"[-len(shape) :], list[Array]()
    for name in list(cells):
        what = f"{path}: column {name}"
        values = not_infinite(as_real(cells.pop(name), what, gaps=True), what)
        dtype = np.result_type(values, np.float32)
        found = np.full(len(times) * len(there), np.nan, dtype)
        found[at] = values
        arrays.append(Array(found.reshape(len(times), *shape), axes, [name]))
    meshes = np.split(points[there], starts[1:]) if own else points
    when, units = times if "time" in roles else None, {"time": unit}
    if stations is not None and own:
        stations = stations[there]
    shared: dict[str, Any] = {"times": when, "units": units, "stations": stations}
    fields = build(path, arrays, points=meshes, **shared)
    told = {kind: [n for n in kinds if kinds[n] == kind] for kind in STILL}
    fields = with_kinds(fields, told, "column")
    dataset = fields.dataset
    if named.bare_name(roles["x"]) in named.LONGITUDE:
        dataset["x"].attrs["standard_name"] = "longitude"
    return Fields(dataset, path)


def _check_times(what: str, name: str, times: Doubles) -> None:
    """Asks whether numbers are dates: 260131 or, by the column's name, 2026.5."""
    todo = "write dates with hyphens, or count numbers from another origin"
    years = times[0] >= 1800 and times[-1] < 2200
    if years and named.bare_name(name) in ("date", "datetime"):
        given = f"{what} with {times[0]:g}, a number or a year"
        raise UserError(given, "dates such as 2026-01-31, or another name", todo)
    check_no_dates(times, what, todo)


def _ranked(values: NDArray[Any]) -> tuple[Indices, NDArray[Any]]:
    """The rank of each value among those that differ, and these in order."""
    return pandas.factorize(values, sort=True)


def _check_rows(
    path: Path, at: Indices, points: Doubles, times: Doubles, starts: Indices, of: Any
) -> None:
    """Makes sure that points stay, and have each time step of a sample once.

    ``at`` is the time step times the number of places, which are the ``points`` of one
    sample after the other, plus the place; samples begin at ``starts``.
    """
    num, size = len(points), len(points) * len(times)
    each = np.bincount(at % num, minlength=num)
    alone = len(times) > 1 and np.maximum.reduceat(each, starts).min() < 2
    if alone or size > SPARSE * len(at) + 1e7:
        given = f"{path} with {num} points at {len(at) / num:.3g} of {len(times)} times"
        todo = "interpolate the fields to such points, at common times"
        raise UserError(given, "points that stay where they are", todo)
    seen = np.zeros(size, bool)
    seen[at] = True
    if np.count_nonzero(seen) < len(at):
        first = at[np.argmax(pandas.Series(at).duplicated())]
        step, place = divmod(int(first), num)
        sample = np.searchsorted(starts, place, side="right") - 1
        untimed = "no column of the time and " * (len(times) == 1)
        raise UserError(
            f"{path} with {untimed}{np.sum(at == first)} rows for the point "
            f"{points[place].tolist()} {of[sample]}at t = {times[step]:g}",
            "one row for each point and time step of a sample",
            "leave the others out, or name the columns of time and sample, as in "
            f"nfsgeo convert {path} --out NAME.nc --columns time=COLUMN,sample=COLUMN",
        )
    some = np.logical_or.reduceat(seen.reshape(len(times), num), starts, axis=1)
    for step, sample in np.argwhere(~some):
        given = f"{path} without a row {of[sample]}at t = {times[step]:g}"
        todo = "convert samples with other times by themselves"
        raise UserError(given, "every sample at the same times", todo)


def _names(
    name: str, column: Any, point: Indices, num: int
) -> tuple[NDArray[np.str_] | None, Indices]:
    """The names of points in their order, where a column tells points apart, and which
    points these are. Numbers are names only in a column of :data:`STATIONS`.
    """
    header = isinstance(column.dtype, pandas.CategoricalDtype)  # of a table of stations
    sure, of = header or named.bare_name(name) in named.STATIONS, np.arange(num)
    if isinstance(column, np.ndarray) and not sure:
        return None, of
    codes, found = pandas.factorize(column, sort=True)
    names = np.array([str(each).strip() for each in found])
    if len(names) == num and (sure or not any(map(is_number, names))):
        of[codes] = point
        if codes.min() >= 0 and np.array_equal(of[codes], point):
            return names, of
    return None, of


CSV = Format(
    "tables of points (.csv, .csv.gz, .parquet)",
    _is_table,
    _read,
    EXPECTED,
    ("columns",),
    write=write_csv,
    endings=(".csv",),
)
PARQUET = Format(
    "tables of points (.parquet)",
    write=write_parquet,
    endings=(".parquet",),
    needs=("pyarrow",),
)
