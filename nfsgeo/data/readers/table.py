"""Point clouds in tables: ``.csv`` and ``.parquet``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.extras import require
from nfsgeo.data.fields import Doubles, FieldFile, Indices
from nfsgeo.data.numbers import (
    EPOCH,
    as_real,
    as_times,
    finite,
    missing_values,
    not_infinite,
)
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
from nfsgeo.data.static_names import bare, changing, is_static, no_field
from nfsgeo.errors import UserError

__all__ = ["TABLE", "header", "scattered"]

NAME = "tables of points (.csv, .parquet)"
LONGEST = 2**16  # letters of a line with names
COMMENTS = 100  # lines of comments ahead of it
SPACES = " "  # any white space separates columns
COLUMNS = "columns x[, y[, z]], optionally sample and t, and one for each component"
# Dates that look like numbers, by their digits.
DATES = {6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")


def _is_table(path: Path) -> bool:
    """A Parquet file, or text whose first line has several names or numbers."""
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith(b"PAR1"):
        return True
    names, separator, above = _header(path)
    text = b"\0" not in head and not head.lstrip().startswith((b"<", b"{"))
    several = text and len(names) > 1
    if not several or separator != SPACES:
        return several
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = next(_lines(path, separator, above), [])
    return len(cells) == len(names) and any(map(_is_number, cells))


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

    Raises:
        UserError: Also when a coordinate, a time or a coefficient is missing, a point
            has a time step twice, points move, samples differ in their times, or a
            name, the times or a column that never changes can be read in two ways.
    """
    cells = _columns(path)
    kinds, told = kinds_of(path, list(cells), columns or {})
    roles = roles_of(path, list(cells), told)
    table = {
        name: _values(path, name, column, any_text=name == roles.get("sample"))
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


def _header(path: Path) -> tuple[list[str], str, int]:
    """Names of the columns, what separates them, and the number of lines up to them.

    They are in the first line, or in the first one after comments, if that has names.
    """
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = [stream.readline(LONGEST)]
        while lines[-1].lstrip().startswith("#") and len(lines) < COMMENTS:
            lines.append(stream.readline(LONGEST))
    names, separator = header(lines[-1])
    named = len(names) > 1 and not any(map(_is_number, names))
    above = len(lines) if named else 1
    return (*header(lines[above - 1]), above)


def header(line: str) -> tuple[list[str], str]:
    """Names of the columns in the first line of a table, and what separates them."""
    line = line.strip().lstrip("#")
    separator = max(",;\t", key=line.count)
    if separator not in line:
        return line.split(), SPACES
    cells = next(csv.reader([line], delimiter=separator), [])
    return [name.strip() for name in cells], separator


def _lines(path: Path, separator: str, above: int) -> Iterator[list[str]]:
    """Cells of each line below the names, without comments and empty lines."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        for _ in range(above):
            stream.readline()
        rows: Iterable[list[str]] = (
            map(str.split, stream)
            if separator == SPACES
            else csv.reader(stream, delimiter=separator)
        )
        yield from (row for row in rows if row and not row[0].startswith("#"))


def _columns(path: Path) -> dict[str, Any]:
    """The columns by name: arrays, and text as a sequence of cells."""
    with path.open("rb") as stream:
        parquet = stream.read(4) == b"PAR1"
    if parquet:
        return _parquet(path)
    names, separator, above = _header(path)
    if all(map(_is_number, names)):
        raise UserError(
            f"{path} with the numbers {', '.join(names)} in its first line",
            "names of the columns there, such as x, y, t",
            "add a line with a name for each column",
        )
    lines = list(_lines(path, separator, above))
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
        name: [cell.strip() for cell in cells]
        for name, cells in zip(names, columns, strict=True)
    }


def _values(path: Path, name: str, cells: Any, *, any_text: bool) -> NDArray[Any]:
    """A column as numbers or dates, NaN or NaT where a cell is empty.

    With ``any_text``, other text is numbered in the order in which it comes.
    """
    if isinstance(cells, np.ndarray):
        return cells
    try:
        return np.array([_number(cell) for cell in cells])
    except ValueError:
        pass
    missing = sum(map(_absent, cells))
    wrong = [cell for cell in cells if not _is_number(cell)]
    try:
        if len(wrong) + missing < len(cells):  # some are numbers
            raise ValueError
        if missing:  # of a column of dates
            raise missing_values(f"{path}: column {name}", missing, len(cells))
        return _dates(path, name, cells)
    except UserError:
        raise
    except ValueError:
        if any_text and not missing:
            numbers = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
            return np.array([numbers[cell] for cell in cells])
        raise UserError(
            f"{path} with {wrong[0]!r} in column {name}",
            "numbers with a decimal point, or dates such as 2026-01-31T12:00",
            f"convert the column, or say --columns ignore={name}, or sample={name} if "
            "it tells samples apart",
        ) from None


def _dates(path: Path, name: str, cells: list[str]) -> NDArray[np.datetime64]:
    """Dates of ISO 8601 in UTC, which those without an offset are taken to be in."""
    given = [None if _absent(cell) else datetime.fromisoformat(cell) for cell in cells]
    if len({date.tzinfo is None for date in given if date is not None}) > 1:
        raise UserError(
            f"{path} with dates with and without an offset from UTC in column {name}",
            "dates of one kind",
            "write the offset of each, such as 2026-01-31T12:00Z",
        )
    utc = [
        date if date is None or date.tzinfo is None else date.astimezone(UTC)
        for date in given
    ]
    naive = [date and date.replace(tzinfo=None) for date in utc]
    return np.array(naive, "datetime64[us]")


def _absent(cell: str) -> bool:
    return cell.lower() in ABSENT


def _number(cell: str) -> float:
    if "_" in cell:  # which Python's numbers may have
        raise ValueError(cell)
    return np.nan if _absent(cell) else float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> dict[str, NDArray[Any]]:
    require("pyarrow", f"{path}, a Parquet file")
    from pyarrow import parquet

    table = parquet.read_table(path, partitioning=None)
    # Row numbers that pandas kept as an index without a name.
    told = (table.schema.pandas_metadata or {}).get("index_columns", [])
    numbers = [name for name in told if str(name).startswith("__index_level_")]
    table = table.drop_columns(numbers)
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_numpy()
        if values.dtype == object and all(
            isinstance(value, str) or value is None for value in values
        ):
            values = [value or "" for value in values]
        found[name] = values
    return found


TABLE = Reader(NAME, _is_table, _table, f"{NAME}: {COLUMNS}", ("columns",))
