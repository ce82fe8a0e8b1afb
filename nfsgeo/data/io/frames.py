"""The columns of a table by name, as numbers, dates or text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import check_distinct
from nfsgeo.data.conventions import bare_name
from nfsgeo.data.io.format import FileProbe
from nfsgeo.errors import UserError, require

__all__ = ["SPACES", "STATIONS", "first_lines", "frame_of", "is_number", "is_table"]
__all__ += ["values_of"]

LONGEST, COMMENTS = 2**20, 100  # bytes up to the first row, lines of comments above
SPACES = r"\s+"  # any white space separates columns
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")
MISSING = [*ABSENT, *map(str.upper, ABSENT), *map(str.title, ABSENT), "NaN", "NaT"]
OFFSET = re.compile(r"(?i)(z|:\d.*[+-]\d\d(:?\d\d)?)$")  # of a time from UTC
# Names of columns that tell points apart, though they are numbers.
STATIONS = ("station", "station_id", "site", "site_id", "sensor", "id", "name", "code")


def is_table(probe: FileProbe) -> bool:
    """Return whether it is Parquet, or text with several cells in its first line."""
    if probe.head.startswith(b"PAR1"):
        return True
    names, separator, *_, first = first_lines(probe.path)
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = first.split() if separator == SPACES else names
    fits = cells is names or (len(cells) == len(names) and any(map(is_number, cells)))
    return len(names) > 1 and fits


def frame_of(path: Path, dtype: Any = None) -> pandas.DataFrame:
    """The columns of a table: numbers, text, or of the types that Parquet has.

    Raises:
        UserError: The file is no table of named columns in UTF-8 or UTF-16.
    """
    if FileProbe(path).head.startswith(b"PAR1"):
        require("pyarrow", f"{path}, a Parquet file")
        frame = pandas.read_parquet(path, engine="pyarrow", partitioning=None)
        if isinstance(frame.index, pandas.DatetimeIndex):
            frame.index.name = frame.index.name or "time"
        frame = frame.reset_index(drop=not any(frame.index.names))
        _check_names(path, list(frame := frame.rename(columns=str)))
        return frame if dtype is None else frame.astype(dtype)
    try:
        names, separator, above, encoding, _ = first_lines(path)
        if all(name and is_number(name) for name in names):
            given = f"{path} with the numbers {', '.join(names)} in its first line"
            expected = "names of the columns there, such as x, y, t"
            raise UserError(given, expected, "add a line with a name for each column")
        _check_names(path, names)
        # Names of stations may begin with zeros.
        kept = {name: str for name in names if bare_name(name) in STATIONS}
        read = partial(
            pandas.read_csv,
            sep=separator,
            header=None,
            names=names,
            index_col=False,
            skiprows=above,
            encoding=encoding,
            dtype=dtype or kept,
            na_values=MISSING,
            keep_default_na=False,
        )
        with warnings.catch_warnings(), _source(path, encoding) as source:
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            warnings.simplefilter("error", pandas.errors.DtypeWarning)
            try:
                frame = read(source)
            except pandas.errors.DtypeWarning:  # 007 is text in one part, 7 in another
                source.seek(0)
                frame = read(source, low_memory=False)
        if frame[names[-1]].isna().any():  # perhaps filled by pandas
            _check_cells(path)
        return frame
    except UnicodeDecodeError as error:
        given = f"{path} with the byte {error.object[error.start]:#x} ({error.reason})"
        todo = f"convert it, as in iconv -f ISO-8859-1 -t UTF-8 {path} > NAME.csv"
        raise UserError(given, "text in the encoding UTF-8", todo) from None


def values_of(
    path: Path, column: pandas.Series, *, names: bool = False
) -> NDArray[Any]:
    """A column as numbers or dates in UTC, NaN where a cell is empty.

    Args:
        path: The file, for messages.
        column: The column.
        names: Whether other text is numbered in the order in which it comes.

    Raises:
        UserError: There is other text, and ``names`` is false.
    """
    if isinstance(column.dtype, pandas.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    text = ("string", "categorical", "empty")
    if pandas.api.types.infer_dtype(column) not in text:
        return column.to_numpy()
    codes, unique = pandas.factorize(column)
    cells = np.array([*map(str.strip, map(str, unique)), ""], object)  # for code -1
    absent = np.array([cell.lower() in ABSENT for cell in cells])
    wrong = np.array([not is_number(cell) for cell in cells])
    if not wrong.any():
        return np.where(absent, "nan", cells).astype(np.float64)[codes]
    if np.all(wrong | absent):  # no numbers
        with suppress(ValueError):
            texts = np.where(absent, "NaT", cells)
            dates = pandas.to_datetime(texts, format="ISO8601", utc=True)
            if len({OFFSET.search(cell) is None for cell in cells[wrong]}) < 2:
                return dates.tz_localize(None).to_numpy()[codes]
    if not names:
        raise UserError(
            f"{path} with {cells[wrong][0]!r} in column {column.name}",
            "numbers with a decimal point, or dates such as 2026-01-31T12:00, all or "
            "none of them with an offset such as Z",
            f"convert the column, or say --columns ignore={column.name}, or "
            f"sample={column.name} if it tells samples apart",
        )
    return np.where(absent, np.nan, pandas.factorize(cells)[0])[codes]


def _header(line: str) -> tuple[list[str], str]:
    """Names of the columns in the first line of a table, and what separates them."""
    line = line.strip().lstrip("#")
    separator = max(",;\t", key=line.count)
    if separator not in line:
        return line.split(), SPACES
    cells = next(csv.reader([line], delimiter=separator), [])
    return [name.strip() for name in cells], separator


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, or nothing."""
    with suppress(ValueError):  # Python's numbers may have underscores
        return "_" not in cell and (cell.lower() in ABSENT or float(cell) is not None)
    return False


def first_lines(path: Path) -> tuple[list[str], str, int, str, str]:
    """Look at the first lines of a table.

    Returns:
        Names of the columns, their separator, the number of lines up to the names, the
        encoding, and the first row.
    """
    with _opened(path) as stream:
        head = stream.read(LONGEST)
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode(encoding := "utf-16" if wide else "utf-8-sig", "replace")
    if "\0" in text[:512] or text.lstrip()[:1] in ("<", "{"):
        return [], ",", 0, encoding, ""
    lines = re.split("\r\n?|\n", text, maxsplit=2 * COMMENTS)
    above = enumerate(lines[:COMMENTS])
    number = next((n for n, line in above if line.lstrip()[:1] != "#"), 0)
    names, separator = _header(lines[number])
    if len(names) < 2 or any(map(is_number, names)):  # those of a comment
        names, separator, number = *_header(lines[0]), 0
    rows = (line for line in lines[number + 1 :] if line.strip() and line[0] != "#")
    return names, separator, number + 1, encoding, next(rows, "")


def _check_cells(path: Path) -> None:
    """Raise a UserError if a row has not one cell for each name."""
    names, separator, above, encoding, _ = first_lines(path)
    with _source(path, encoding) as source:
        whole: Any = source
        if not isinstance(source, io.StringIO):
            whole = io.TextIOWrapper(source, encoding)
        lines, cells = islice(whole, above, None), None
        if separator != SPACES:
            cells = csv.reader(lines, delimiter=separator)
        for number, row in enumerate(cells or map(str.split, lines), 1):
            if any(row) and len(row) != len(names):
                given = f"{path} with {len(row)} cells in row {number} under the names"
                expected = f"{len(names)}, one for each name"
                raise UserError(given, expected, "repair the row")


def _check_names(path: Path, names: list[str]) -> None:
    """Raise a UserError if a column has no name, or the name of another one."""
    if "" in names:
        todo = "leave row numbers out, index=False in pandas, or name it, index_label="
        raise UserError(f"{path} with a column without a name", "names of all", todo)
    check_distinct(path, names)


def _opened(path: Path) -> BinaryIO:
    """Open a file for its bytes, unpacked if gzip has packed it."""
    packed = FileProbe(path).head.startswith(b"\x1f\x8b")
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")


def _source(path: Path, encoding: str) -> BinaryIO | io.StringIO:
    """The file, or its text without lines of comments."""
    with _opened(path) as stream:
        if not any(b"#" in block for block in iter(lambda: stream.read(2**20), b"")):
            return _opened(path)
        stream.seek(0)
        text = stream.read().decode(encoding)
    return io.StringIO(re.sub(r"(?m)^[ \t]*#.*", "", text))
