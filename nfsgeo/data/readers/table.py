"""Point clouds in tables: ``.csv`` and ``.parquet``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile, Indices
from nfsgeo.data.numbers import (
    EPOCH,
    as_real,
    as_times,
    finite,
    not_infinite,
)
from nfsgeo.data.readers.cells import is_table, read_cells, values_of
from nfsgeo.data.readers.clouds import HALF_CIRCLE, CloudFile
from nfsgeo.data.readers.columns import (
    LONGITUDE,
    Columns,
    ask_kind,
    bare_name,
    kinds_of,
    roles_of,
)
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.readers.stations import POINTS, by_station
from nfsgeo.data.static_names import bare, changing, is_static, no_field
from nfsgeo.errors import UserError

__all__ = ["TABLE", "scattered"]

NAME = "tables of points (.csv, .parquet)"
COLUMNS = "columns x[, y[, z]], optionally sample and t, and one for each component"
# Dates that look like numbers, by their digits.
DATES = {6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


def _table(path: Path, columns: Columns | None = None) -> FieldFile:
    """One row for each point, time step and sample, in any order.

    Columns ``x``, ``y``, ``z`` are coordinates (or ``lon`` and ``lat``), ``t`` or
    ``time`` the time, ``sample`` tells the samples apart, by numbers or text, see
    :mod:`nfsgeo.data.readers.columns`; a column ``a`` or ``a_NAME`` is a static input,
    all others are components. Dates become seconds since 1970, those with an offset in
    UTC. A sample has the same points at every time, and every sample the same times;
    points are sorted by their coordinates. A value is missing where its cell is empty,
    and at the time steps that a point has no row for.

    Args:
        path: The table.
        columns: Columns by what they are, ``sample``, ``time``, ``x``, ``y`` or
            ``z``, where their names do not tell; an empty name where none is. Others
            that are ``static`` inputs, a ``field`` or to ``ignore``, one or several.
            Where all others are those of stations, the table of their positions as
            ``points``, see :func:`nfsgeo.data.readers.stations.by_station`.

    Raises:
        UserError: Also when a coordinate, a time or a coefficient is missing, a point
            has a time step twice, points move, samples differ in their times, or a
            name, the times or a column that never changes can be read in two ways.
    """
    cells = read_cells(path)
    if POINTS in (columns or {}):
        cells, columns = by_station(path, cells, columns or {})
    kinds, told = kinds_of(path, list(cells), columns or {})
    roles = roles_of(path, list(cells), told)
    table = {
        name: values_of(path, name, column, any_text=name == roles.get("sample"))
        for name, column in cells.items()
        if kinds.get(name) != "ignore"
    }
    found = {role: table.pop(name) for role, name in roles.items()}
    num = len(found["x"])
    if not num:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    dates = found.get("time", np.empty(0)).dtype.kind == "M"
    for role, name in roles.items():
        checked = as_times if role == "time" else as_real
        what = f"{path}: column {name}"
        found[role] = finite(checked(found[role], what), what)
    if not dates and "time" in found and _are_days(found["time"]):
        raise UserError(
            f"{path} with {found['time'][0]:.0f} in column {roles['time']}, a number "
            "or a date",
            "dates such as 2026-01-31, or times that are no dates",
            "write dates with hyphens, or count numbers from another origin",
        )
    static = [n for n in table if kinds.get(n, "static" * is_static(n)) == "static"]
    names = [name for name in table if name not in static]
    for name, values in table.items():
        what, given = f"{path}: column {name}", name in static
        checked = finite if given else not_infinite
        table[name] = checked(as_real(values, what, gaps=not given), what)
    if not names:
        raise no_field(path, static)
    zeros = np.zeros(num)
    sample, time = found.get("sample", zeros), found.get("time", zeros)
    space = [role for role in "xyz" if role in found]
    # Adding zero turns -0 into 0.
    points = np.stack([found[role] for role in space], axis=1) + 0.0
    fields, coefficient = (
        np.stack([table[name] for name in group], axis=1)
        if group
        else np.empty((num, 0))
        for group in (names, static)
    )
    times = np.unique(time)
    meshes, u, a = [], [], []
    for each in np.unique(sample):
        rows = np.flatnonzero(sample == each)
        of = f"of sample {each:g} " if "sample" in roles else ""
        mesh, point = np.unique(points[rows], axis=0, return_inverse=True)
        at = point.reshape(-1), np.searchsorted(times, time[rows])
        _check_rows(path, mesh, times, at, of)
        meshes.append(mesh)
        u.append(scattered(fields[rows], at, (len(mesh), len(times))))
        if static:
            values = np.empty((len(mesh), len(static)))
            values[at[0]] = coefficient[rows]
            odd = (values[at[0]] != coefficient[rows]).any(axis=0)
            if odd.any():
                raise changing(path, static[odd.argmax()])
            a.append(values)
    still = [
        name
        for number, name in enumerate(names)
        if name not in kinds and _is_still([each[..., number] for each in u])
    ]
    if still:
        raise ask_kind(path, still)
    file = CloudFile(
        path,
        meshes=meshes,
        u=u,
        a=a,
        times=times,
        component_names=names,
        static_names=[name if name in kinds else bare(name) for name in static],
        provenance={"units": {"time": EPOCH}} if dates else None,
    )
    degrees = float(np.ptp(points[:, 0]))
    if degrees > HALF_CIRCLE and bare_name(roles["x"]) in LONGITUDE:
        file.longitude = degrees
    return file


def _are_days(times: Doubles) -> bool:
    """Whether numbers are all dates written without hyphens, such as 20260131."""
    if not np.all((times >= 1e5) & (times < 1e14) & (times % 1 == 0)):
        return False
    texts = [f"{time:.0f}" for time in np.unique(times)]
    form = DATES.get(len(texts[0]), "")
    try:
        years = [datetime.strptime(text, form).year for text in texts if form]
    except ValueError:
        return False
    return bool(years) and min(years) >= 1800 and max(years) < 2200


def _is_still(samples: list[Doubles]) -> bool:
    """Whether values ``[n, T]`` differ between points and nowhere in time."""
    if not any((np.isfinite(u).sum(axis=1) > 1).any() for u in samples):
        return False
    lowest, highest = ([f.reduce(u, 1) for u in samples] for f in (np.fmin, np.fmax))
    same = all(map(partial(np.array_equal, equal_nan=True), lowest, highest))
    return same and len(np.unique(np.concatenate(lowest))) > 1


def scattered(
    rows: NDArray[Any], at: tuple[Indices, Indices], shape: tuple[int, int]
) -> Doubles:
    """Rows at their points and time steps, ``[n, T, C]``, NaN where there is no row."""
    values = np.full((*shape, rows.shape[1]), np.nan)
    values[at] = rows
    return values


def _check_rows(
    path: Path, mesh: Doubles, times: Doubles, at: tuple[Indices, Indices], of: str
) -> None:
    """Makes sure that no point of a sample has a time step twice.

    Args:
        path: The table, for messages.
        mesh: The points of the sample, ``[n, d]``.
        times: Times of all samples.
        at: Point and time step of each row.
        of: Which sample, for messages.
    """
    count = np.zeros((len(mesh), len(times)), np.int64)
    np.add.at(count, at, 1)
    if count.max() > 1:
        point, twice = np.argwhere(count > 1)[0]
        raise UserError(
            f"{path} with {count[point, twice]} rows for the point "
            f"{mesh[point].tolist()} {of}at t = {times[twice]:g}",
            "one row for each point and time step of a sample",
            "leave the others out, or name the columns of time and sample, as in "
            f"nfsgeo convert {path} --out NAME.h5 --columns time=COLUMN,sample=COLUMN",
        )
    without = ~count.any(axis=0)
    if without.any():
        raise UserError(
            f"{path} without a row {of}at t = {times[without][0]:g}",
            "every sample at the same times",
            "convert samples with other times by themselves",
        )
    if len(times) > 1 and count.sum(axis=1).max() < 2:
        raise UserError(
            f"{path} with {len(mesh)} points {of}, each of them at one time alone",
            "points that stay where they are",
            "interpolate the fields to such points",
        )


TABLE = Reader(NAME, is_table, _table, f"{NAME}: {COLUMNS}", ("columns",))
