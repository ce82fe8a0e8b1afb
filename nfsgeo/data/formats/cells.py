"""Cells of a table: its columns by name, as numbers, dates or text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import missing_values
from nfsgeo.data.formats import columns as named
from nfsgeo.data.formats.format import require
from nfsgeo.errors import UserError

__all__ = [
    "SPACES",
    "cells_of",
    "first_lines",
    "header",
    "is_number",
    "opened",
    "values_of",
]

LONGEST, COMMENTS = 2**20, 100  # letters of a line with names, lines of comments above
SPACES = r"\s+"  # any white space separates columns
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")
MISSING = [*ABSENT, *map(str.upper, ABSENT), *map(str.title, ABSENT), "NaN", "NaT"]
OFFSET = re.compile(r"(?i)(z|:\d.*[+-]\d\d(:?\d\d)?)$")  # of a time from UTC


class _Text(NamedTuple):
    """What the first lines of a text tell, of which ``above`` end with the names."""

    names: list[str]
    separator: str
    above: int
    encoding: str
    first: str  # row


def first_lines(path: Path, errors: str = "strict") -> _Text:
    """What the first lines of a text tell of its table."""
    with opened(path) as stream:
        head, encoding = stream.read(512), "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    with io.TextIOWrapper(opened(path), encoding, errors) as stream:
        lines = [stream.readline(LONGEST) for _ in range(COMMENTS)]
    number = next((n for n, line in enumerate(lines) if line.lstrip()[:1] != "#"), 0)
    names, separator = header(lines[number])
    if len(names) < 2 or any(map(is_number, names)):  # those of a comment
        names, separator, number = *header(lines[0]), 0
    rows = (line for line in lines[number + 1 :] if line.strip() and line[0] != "#")
    return _Text(names, separator, number + 1, encoding, next(rows, ""))


def header(line: str) -> tuple[list[str], str]:
    """Names of the columns in the first line of a table, and what separates them."""
    line = line.strip().lstrip("#")
    separator = max(",;\t", key=line.count)
    if separator not in line:
        return line.split(), SPACES
    cells = next(csv.reader([line], delimiter=separator), [])
    return [name.strip() for name in cells], separator


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, or nothing."""
    with suppress(ValueError):  # Python's numbers may have underscores
        return "_" not in cell and (cell.lower() in ABSENT or float(cell) is not None)
    return False


def cells_of(path: Path, *, text: bool = False) -> dict[str, Any]:
    """The columns of a table by name: arrays, and series of pandas where they are text.

    With ``text`` all are.

    Raises:
        UserError: The file is no table of named columns in UTF-8, or a row has another
            number of cells.
    """
    with opened(path) as stream:
        if stream.read(4) == b"PAR1":
            require("pyarrow", f"{path}, a Parquet file")
            frame = pandas.read_parquet(path, engine="pyarrow", partitioning=None)
            frame = frame.reset_index() if any(frame.index.names) else frame
            named.check_roles(path, list(map(str, frame)), {})
            return {str(name): _array(frame.pop(name)) for name in list(frame)}
    about: Any = None
    try:
        names, separator, above, encoding, _ = about = first_lines(path)
        if all(name and is_number(name) for name in names):
            given = f"{path} with the numbers {', '.join(names)} in its first line"
            expected = "names of the columns there, such as x, y, t"
            raise UserError(given, expected, "add a line with a name for each column")
        named.check_roles(path, names, {})
        options: dict[str, Any] = {"header": None, "names": names, "index_col": False}
        # Names of stations may begin with zeros.
        kept = {n: str for n in names if named.bare_name(n) in named.STATIONS}
        options |= {"sep": separator, "skiprows": above, "dtype": str if text else kept}
        with warnings.catch_warnings():
            for kind in (pandas.errors.ParserWarning, pandas.errors.DtypeWarning):
                warnings.simplefilter("error", kind)
            options |= {"na_values": MISSING, "keep_default_na": False}
            with _source(path, encoding) as source:
                frame = pandas.read_csv(source, **options)
    except UnicodeDecodeError as error:
        given = f"{path} with the byte {error.object[error.start]:#x} ({error.reason})"
        todo = f"convert it, as in iconv -f ISO-8859-1 -t UTF-8 {path} > NAME.csv"
        raise UserError(given, "text in the encoding UTF-8", todo) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning):
        _check_lines(path, about)
        raise
    except pandas.errors.DtypeWarning:  # text, in which cells look like numbers
        return cells_of(path, text=True)
    if frame[names[-1]].isna().any():
        _check_lines(path, about)
    return {name: _array(frame.pop(name)) for name in names}


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, those within where gzip has packed it."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")


def _source(path: Path, encoding: str) -> BinaryIO | io.StringIO:
    """The file, or a text without its comments or in place of another encoding."""
    with opened(path) as stream:
        blocks = iter(lambda: stream.read(2**20), b"")
        if encoding == "utf-8-sig" and not any(b"#" in block for block in blocks):
            return opened(path)
        stream.seek(0)
        text = stream.read().decode(encoding)
    return io.StringIO(re.sub(r"(?m)^[ \t]*#.*", "", text))


def _check_lines(path: Path, about: _Text) -> None:
    """Makes sure that every row has a cell for each name."""
    text, apart = _source(path, about.encoding), about.separator
    whole = text if isinstance(text, io.StringIO) else io.TextIOWrapper(text, "utf-8")
    with whole as stream:
        lines = islice(stream, about.above, None)
        cells = csv.reader(lines, delimiter=apart) if apart != SPACES else None
        rows = map(str.split, lines) if cells is None else cells
        for number, row in enumerate(filter(any, rows), 1):
            if len(row) != len(about.names):
                given = f"{path} with {len(row)} cells in row {number} under the names"
                expected = f"{len(about.names)}, one for each name"
                raise UserError(given, expected, "repair the row")


def _array(column: pandas.Series) -> Any:
    """A column as an array, or as it is where it holds text."""
    if isinstance(column.dtype, pandas.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind not in "biufmM":
        kind = pandas.api.types.infer_dtype(column)
        if kind in ("string", "categorical", "empty"):
            return column
    return column.to_numpy()


def values_of(
    path: Path, name: str, cells: Any, *, names: bool = False
) -> NDArray[Any]:
    """A column as numbers or dates, NaN where a cell is empty.

    With ``names``, other text is numbered in the order in which it comes.

    Raises:
        UserError: A cell is neither, or dates are of two kinds or lack some.
    """
    if isinstance(cells, np.ndarray):
        return cells
    codes, unique = pandas.factorize(cells)
    each = np.array([*map(str.strip, map(str, unique)), ""], object)  # for code -1
    absent = np.array([cell.lower() in ABSENT for cell in each])
    wrong = np.array([not is_number(cell) for cell in each])
    if not wrong.any():
        return np.where(absent, "nan", each).astype(np.float64)[codes]
    found, dates = pandas.factorize(each)[0] if names else None, each[wrong]
    if np.all(wrong | absent):  # no numbers
        try:
            if len({OFFSET.search(date) is None for date in dates}) > 1:
                raise UserError(
                    f"{path}: column {name} of dates with and without an offset",
                    "dates of one kind",
                    "write the offset of each, such as 2026-01-31T12:00Z",
                )
            utc = pandas.to_datetime(dates, format="ISO8601", utc=True)
            found = np.full(len(each), "NaT", "M8[us]")
            found[wrong] = utc.tz_localize(None).to_numpy()
        except UserError:
            raise
        except ValueError:
            pass
    if found is None:
        raise UserError(
            f"{path} with {each[wrong][0]!r} in column {name}",
            "numbers with a decimal point, or dates such as 2026-01-31T12:00",
            f"convert the column, or say --columns ignore={name}, or sample={name} if "
            "it tells samples apart",
        )
    if num := int(absent[codes].sum()):
        raise missing_values(f"{path}: column {name}", num, len(codes))
    return found[codes]
