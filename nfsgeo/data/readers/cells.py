"""Cells of tables, text or Parquet, as numbers, dates and text."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.extras import require
from nfsgeo.data.numbers import missing_values
from nfsgeo.data.readers.columns import roles_of
from nfsgeo.errors import UserError

__all__ = ["header", "is_table", "read_cells", "values_of"]

LONGEST = 2**16  # letters of a line with names
COMMENTS = 100  # lines of comments ahead of it
SPACES = " "  # any white space separates columns
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")


def is_table(path: Path) -> bool:
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


def read_cells(path: Path) -> dict[str, Any]:
    """The columns by name: arrays, and text as a sequence of cells."""
    with path.open("rb") as stream:
        parquet = stream.read(4) == b"PAR1"
    if parquet:
        return _parquet(path)
    names, separator, above = _header(path)
    if all(name and _is_number(name) for name in names):
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


def values_of(path: Path, name: str, cells: Any, *, any_text: bool) -> NDArray[Any]:
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
