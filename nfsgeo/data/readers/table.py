"""Point clouds in tables: ``.csv`` and ``.parquet``."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile, Indices
from nfsgeo.data.numbers import (
    as_real,
    as_times,
    finite,
    missing_values,
    not_infinite,
)
from nfsgeo.data.readers.clouds import CloudFile, is_static
from nfsgeo.data.readers.columns import roles_of
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError

__all__ = ["TABLE", "table_with"]

NAME = "tables of points (.csv, .parquet)"
COLUMNS = "columns x[, y[, z]], optionally sample and t, and one for each component"
DATE = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?)(?:Z|\+00:00)?"
)
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")


def _is_table(path: Path) -> bool:
    """A Parquet file, or text whose first line names several columns."""
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith(b"PAR1"):
        return True
    names, _ = _header(path)
    text = b"\0" not in head and not head.lstrip().startswith((b"<", b"{"))
    return text and len(names) > 1 and not all(map(_is_number, names))


def _table(path: Path, columns: Mapping[str, str] | None = None) -> FieldFile:
    """One row for each point, time step and sample, in any order.

    Columns ``x``, ``y``, ``z`` are coordinates (or ``lon`` and ``lat``), ``t`` or
    ``time`` the time, ``sample`` tells the samples apart, see
    :mod:`nfsgeo.data.readers.columns`; columns ``a`` or ``a_...`` are the
    coefficient, all others are components. Dates become seconds since 1970. A sample
    has the same points at every time, and every sample the same times; points are
    sorted by their coordinates. A value is missing where its cell is empty, and at the
    time steps that a point has no row for.

    Args:
        path: The table.
        columns: Columns by what they are, ``sample``, ``time``, ``x``, ``y`` or
            ``z``, where their names do not tell; an empty name where none is.

    Raises:
        UserError: Also when a coordinate, a time or a coefficient is missing, a point
            has a time step twice, points move, samples differ in their times, or a name
            can be read in two ways.
    """
    table = _columns(path)
    roles = roles_of(path, list(table), columns)
    found = {role: table.pop(name) for role, name in roles.items()}
    num = len(found["x"])
    if not num:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    for role, name in roles.items():
        checked = as_times if role == "time" else as_real
        what = f"{path}: column {name}"
        found[role] = finite(checked(found[role], what), what)
    for name, values in table.items():
        what = f"{path}: column {name}"
        checked = finite if is_static(name) else not_infinite
        checked(as_real(values, what), what)
    names = [name for name in table if not is_static(name)]
    static = [name for name in table if is_static(name)]
    if not names:
        raise UserError(f"{path} with no field", "a column of values", "add one")
    zeros = np.zeros(num)
    sample, time = found.get("sample", zeros), found.get("time", zeros)
    space = [role for role in "xyz" if role in found]
    # Adding zero turns -0 into 0.
    points = np.stack([found[role] for role in space], axis=1) + 0.0
    order = np.lexsort((*points.T[::-1], time, sample))
    points, time, sample = points[order], time[order], sample[order]
    fields = {
        kind: np.stack([table[n] for n in group], axis=1)[order]
        for kind, group in {"u": names, "a": static}.items()
        if group
    }
    times = np.unique(time)
    cuts = np.flatnonzero(np.diff(sample)) + 1
    meshes, u, a = [], [], []
    for rows in np.split(np.arange(num), cuts):
        of = f"of sample {sample[rows[0]]:g} " if "sample" in roles else ""
        mesh, at = _mesh(path, points[rows], time[rows], times, of)
        meshes.append(mesh)
        values = np.full((len(mesh), len(times), len(names)), np.nan)
        values[at] = fields["u"][rows]
        u.append(values)
        if static:
            coefficient = np.empty((len(mesh), len(static)))
            coefficient[at[0]] = fields["a"][rows]
            if not (coefficient[at[0]] == fields["a"][rows]).all():
                raise ValueError("a coefficient that changes in time")
            a.append(coefficient)
    return CloudFile(
        path,
        meshes=meshes,
        u=u,
        a=a,
        times=times,
        component_names=names,
        static_names=static,
    )


def _mesh(
    path: Path, points: Doubles, time: Doubles, times: Doubles, of: str
) -> tuple[Doubles, tuple[Indices, Indices]]:
    """The points of a sample, sorted, none of which has a time step twice.

    Args:
        path: The table, for messages.
        points: Coordinates in each row, ``[rows, d]``.
        time: Time in each row, ``[rows]``.
        times: Times of all samples.
        of: Which sample, for messages.

    Returns:
        The points, and which point and which time step each row is of.
    """
    mesh, number = np.unique(points, axis=0, return_inverse=True)
    number, step = number.reshape(-1), np.searchsorted(times, time)
    count = np.zeros((len(mesh), len(times)), np.int64)
    np.add.at(count, (number, step), 1)
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
    return mesh, (number, step)


def _header(path: Path) -> tuple[list[str], str]:
    """Names of the columns, and what separates them."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        line = stream.readline(2**16).strip().lstrip("#")
    separator = max(",;\t", key=line.count)
    cells = next(csv.reader([line], delimiter=separator), [])
    return [name.strip() for name in cells], separator


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as stream:
        parquet = stream.read(4) == b"PAR1"
    if parquet:
        return _parquet(path)
    names, separator = _header(path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = [row for row in csv.reader(stream, delimiter=separator) if row][1:]
    lines = [row for row in lines if not row[0].startswith("#")]
    odd = next((n for n, row in enumerate(lines) if len(row) != len(names)), None)
    if odd is not None:
        raise UserError(
            f"{path} with {len(lines[odd])} cells in row {odd + 1} under the names",
            f"{len(names)}, one for each name",
            "repair the row",
        )
    if len(set(names)) < len(names):
        roles_of(path, names)  # says which
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    return {
        name: _values(path, name, [cell.strip() for cell in cells])
        for name, cells in zip(names, columns, strict=True)
    }


def _values(path: Path, name: str, cells: list[str]) -> NDArray[Any]:
    """A column of text as numbers, or as dates."""
    present = [cell if cell.lower() not in ABSENT else "nan" for cell in cells]
    try:
        return np.array(present, dtype=np.float64)
    except ValueError:
        pass
    missing = sum(cell.lower() in ABSENT for cell in cells)
    if missing:  # of a column of dates
        raise missing_values(f"{path}: column {name}", missing, len(cells))
    try:
        found = [DATE.fullmatch(cell) for cell in cells]
        dates = [match[1] if match else "no date" for match in found]
        return np.array(dates, "datetime64[us]")
    except ValueError:
        wrong = next(cell for cell in cells if not _is_number(cell))
        raise UserError(
            f"{path} with {wrong!r} in column {name}",
            "numbers with a decimal point, or dates such as 2026-01-31T12:00",
            "convert the column or leave it out",
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> dict[str, NDArray[Any]]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(
            f"{path}, a Parquet file", "pyarrow", "pip install 'nfsgeo[formats]'"
        ) from error
    table = parquet.read_table(path, partitioning=None)
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        found[name] = column.to_numpy()  # NaN or NaT for nulls
    return found


def table_with(columns: Mapping[str, str]) -> Reader:
    """The reader of tables whose columns are not what their names tell.

    Args:
        columns: Columns by what they are, ``sample``, ``time``, ``x``, ``y`` or ``z``;
            an empty name where none is.
    """
    return replace(TABLE, load=partial(_table, columns=dict(columns)))


TABLE = Reader(NAME, _is_table, _table, f"{NAME}: {COLUMNS}")
