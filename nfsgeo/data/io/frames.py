"""The columns of a table by name, as numbers, dates or text."""

from __future__ import annotations

import csv
import io
import re
import shlex
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import check_distinct
from nfsgeo.data.conventions import STATIONS, bare_name, role_of
from nfsgeo.data.io.format import FileProbe, left_out
from nfsgeo.data.io.json_tables import json_table
from nfsgeo.data.io.packed_files import (
    BROKEN,
    CUT_OFF,
    EMPTY,
    MESHES,
    blocks,
    foreign,
    opened,
    packing,
    whole_text,
)
from nfsgeo.data.io.table_heads import (
    ABSENT,
    FALSE,
    SPACES,
    TRUE,
    Head,
    cells_of,
    first_lines,
    is_number,
)
from nfsgeo.data.io.table_marks import without_marks
from nfsgeo.data.io.table_texts import GROUPED, ISO, NAMED_ZONE, OFFSET, advice, with_z
from nfsgeo.errors import UserError, option, require

__all__ = ["NoNumbers", "frame_of", "is_table", "values_of"]

MISSING = [*ABSENT, *map(str.upper, ABSENT), *map(str.title, ABSENT), "NaN", "NaT"]
WIDEST, LONGEST = 50_000, 1000  # columns of a table, characters of a name
LINE = 2**24  # bytes of a row
INDEX = re.compile(r"(Unnamed: 0)?")  # the name that pandas gives to numbers of rows
COLUMNAR = {
    b"PAR1": partial(pandas.read_parquet, engine="pyarrow", partitioning=None),
    b"ARROW1": pandas.read_feather,
    b"ORC": pandas.read_orc,
}
MINUS = re.compile("(?<![^eE])−(?=[.\\d])")


class NoNumbers(UserError):
    """A column that holds text alone."""


def is_table(probe: FileProbe) -> bool:
    """Return whether it is Parquet, or text with several cells in its first line; or a
    file of other programs, of which a message tells how to read it.
    """
    if _columnar(probe) or foreign(probe.path):
        return True
    head = first_lines(probe.path)
    if head.separator == "json" or head.preamble:
        return True
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = cells_of(head.row, head.separator)
    fits = len(cells) == len(head.names) and any(map(is_number, cells))
    return len(head.names) > 1 and (head.separator != SPACES or fits)


def frame_of(
    path: Path, dtype: Any = None, missing: Sequence[str] = ()
) -> pandas.DataFrame:
    """The columns of a table: numbers, text, or of the types that Parquet has.

    Units in a row of their own are ``attrs["units"]``, by name.

    Args:
        path: The file.
        dtype: The type of all columns; None for what they hold.
        missing: Cells that mark missing values, besides the usual ones.

    Raises:
        UserError: The file is no table of named columns in UTF-8 or UTF-16.
    """
    if read_columns := _columnar(FileProbe(path)):
        require("pyarrow", f"{path}, a Parquet file")
        frame = read_columns(path)
        if isinstance(frame.index, pandas.DatetimeIndex | pandas.PeriodIndex):
            frame.index.name = frame.index.name or "time"
        frame = frame.reset_index(drop=not any(frame.index.names))
        frame = frame.rename(columns=str)
    elif other := foreign(path):
        what, todo = other
        todo = todo.format(str(path), shlex.quote(str(path)))
        expected = "a whole file of data"  # of any format
        if what not in (EMPTY, CUT_OFF):
            bare = other in MESHES.values()
            expected = "values at its points" if bare else "a table of text"
        raise UserError(f"{path}, {what}", expected, todo)
    else:
        frame = _parsed(path, dtype, missing)
    frame = without_marks(_without_index(path, frame), missing)
    _check_names(path, list(frame))
    return frame if dtype is None else frame.astype(dtype)


def _parsed(path: Path, dtype: Any, missing: Sequence[str]) -> pandas.DataFrame:
    """A table of text, or of JSON."""
    try:
        head = first_lines(path)
        if head.separator == "json":
            return json_table(path, head.encoding)
        _check_head(path, head)
        names = [name or f"Unnamed: {k}" * (k > 0) for k, name in enumerate(head.names)]
        check_distinct(path, names)
        frame = _rows(path, head, names, dtype, missing)
    except UnicodeDecodeError as error:
        if "16" in first_lines(path).encoding:
            given, todo = f"{path}, a damaged text in UTF-16", "copy it again, as bytes"
            raise UserError(given, "text", todo) from None
        given = f"{path} with the byte {error.object[error.start]:#x} ({error.reason})"
        todo = f"iconv -f ISO-8859-1 -t UTF-8 {shlex.quote(str(path))} > NAME.csv"
        todo = _by_pandas(path, encoding="ISO-8859-1") if packing(path) else todo
        expected = "text in the encoding UTF-8"
        raise UserError(given, expected, f"convert it, as in {todo}") from None
    except BROKEN:
        given = f"{path}, {CUT_OFF}"
        raise UserError(given, "a table of text", "copy it again") from None
    # Separators at the ends of lines make empty columns, and lines of them empty rows.
    unnamed = [new for new, old in zip(names, head.names, strict=True) if not old]
    frame = frame.drop(columns=[n for n in unnamed if frame[n].isna().all()])
    frame = frame.rename(columns=dict.fromkeys(unnamed, ""))
    frame = frame.dropna(how="all", ignore_index=True)
    frame.attrs["units"] = head.units
    if head.units and {*head.units.values()} - {""} == {"1"}:
        left_out(path, ["the row of 1 under the names, which seem to be units"])
    return frame


def _check_head(path: Path, head: Head) -> None:
    """Raise a UserError if the first line does not hold the names of the columns."""
    names = head.names
    if len(names) > WIDEST or max(map(len, names), default=0) > LONGEST:
        given = f"{path} with {len(names):,} columns, or a name without end"
        expected = f"at most {WIDEST:,}, with names of {LONGEST:,} characters"
        raise UserError(given, expected, "write a row for each point and time")
    if lines := head.preamble:
        given = f"{path} with {lines} lines before the names of the columns"
        todo = f"remove them: tail -n +{lines + 1} {shlex.quote(str(path))} > NAME.csv"
        if head.above > lines + 1 or packing(path) or "16" in head.encoding:
            skipped = [n for n in range(head.above) if n != lines]
            todo = f"leave them out, {_by_pandas(path, skiprows=skipped)}"
        raise UserError(given, "the names in the first line", todo)
    if all(name and is_number(name) for name in names):
        given = f"{path} with the numbers {', '.join(names)} in its first line"
        expected = "names of the columns there, such as x, y, t"
        raise UserError(given, expected, "add a line with a name for each column")
    if head.units and len({*names}) < len(names):
        given = f"{path} with names of columns in two lines"
        todo = f"join them: table = {_by_pandas(path, header=[0, 1], to='')}; "
        todo += "table.columns = ['_'.join(name) for name in table.columns]"
        raise UserError(given, "names in one line", todo)


def _rows(
    path: Path, head: Head, names: list[str], dtype: Any, missing: Sequence[str]
) -> pandas.DataFrame:
    """The rows of a table of text as pandas reads them, each with a cell a name."""
    # Names of stations may begin with zeros, if they are numbers.
    row = zip(names, cells_of(head.row, head.separator), strict=False)
    text = [n for n, c in row if bare_name(n) in STATIONS and is_number(c)]
    read = partial(
        pandas.read_csv,
        sep=head.separator,
        header=None,
        names=names,
        index_col=False,
        skiprows=head.above,
        encoding=head.encoding,
        dtype=dtype or dict.fromkeys([*text, *head.zeros], str),
        na_values=[*MISSING, *missing],
        keep_default_na=False,
        compression=None,
        true_values=TRUE,
        false_values=FALSE,
    )
    with warnings.catch_warnings(), _source(path, head, tell=True) as source:
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        warnings.simplefilter("error", pandas.errors.DtypeWarning)
        try:
            frame = read(source)
        except pandas.errors.DtypeWarning:  # 007 is text in one part, 7 in another
            source.seek(0)
            frame = read(source, low_memory=False)
        except (pandas.errors.ParserError, pandas.errors.ParserWarning):
            _check_cells(path, head)
            raise
    if dtype is None:
        frame = frame.apply(_with_minus)
    if frame[names[-1]].isna().any():  # perhaps filled by pandas
        _check_cells(path, head)
    return frame


def _with_minus(column: pandas.Series) -> pandas.Series:
    """A column of numbers if it is text that has the sign U+2212 for minus in them."""
    if column.dtype.kind in "biufmM" or not any("−" in str(cell) for cell in column):
        return column
    with suppress(ValueError, TypeError):
        return pandas.to_numeric(column.str.replace(MINUS, "-", regex=True))
    return column


def values_of(
    path: Path, column: pandas.Series, *, names: bool = False, gaps: bool = True
) -> NDArray[Any]:
    """A column as numbers or dates in UTC, NaN where a cell is empty.

    Args:
        path: The file, for messages.
        column: The column.
        names: Whether other text is numbered in the order in which it comes.
        gaps: Whether values may be missing.

    Raises:
        NoNumbers: There is other text alone, and ``names`` is false.
        UserError: There is other text in some cells, and ``names`` is false.
    """
    if isinstance(column.dtype, pandas.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind in "biufmM":
        return column.to_numpy()
    text = ("string", "categorical", "empty", "mixed", "mixed-integer")
    if pandas.api.types.infer_dtype(column) not in text:
        return column.to_numpy()
    codes, unique = pandas.factorize(column)
    every = (*unique, "")  # the last for code -1
    cells = np.array([with_z(str(cell).strip()) for cell in every], object)
    absent = np.array([cell.lower() in ABSENT for cell in cells])
    wrong = np.array([not is_number(cell) for cell in cells])
    if not wrong.any():
        return np.where(absent, "nan", cells).astype(np.float64)[codes]
    texts = np.where(absent | ~wrong, "NaT", cells)
    dates = pandas.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    fine = np.asarray(dates.notna())
    zoned = np.array([OFFSET.search(cell[-40:]) is not None for cell in cells])
    if (fine | absent).all() and len({*zoned[fine]}) < 2:
        return cast(NDArray[Any], dates.tz_localize(None).to_numpy()[codes])
    if names:
        return np.where(absent, np.nan, pandas.factorize(cells)[0])[codes]
    expected, odd = "numbers with a decimal point", wrong
    numbers = ~wrong & ~absent
    if NAMED_ZONE.fullmatch(cells[wrong][0]):
        expected, odd = ISO, wrong & ~fine
    elif fine.sum() > numbers.sum() and fine.sum() >= (wrong & ~fine).sum():
        expected, odd = ISO, ~fine & ~absent
        odd = odd if odd.any() else fine & (zoned != zoned[fine][0])
    row = int(np.flatnonzero(odd[codes])[0])
    cell, name = cells[codes[row]], str(column.name)
    given = f"{path} with {cell!r} in column {name}, row {row + 1} under the names"
    mark = next(iter(re.findall(r"\d([\s'’])\d", cell)), ",")
    ways = {"thousands": ","}, {"decimal": ","}, {"thousands": mark}
    by_pandas = (_by_pandas(path, **how) for how in ways)
    todo = advice(name, cell, cells[odd], *by_pandas)
    if not gaps:
        num = int(odd[codes].sum())
        remove = f"remove the row{f', and {num - 1} others such' * (num > 1)}"
        if cell == name:
            remove += ", which repeats the names"
        todo = f"{todo}, or {remove}" if todo == "correct it" else todo
        expected = ISO if "pandas.to_datetime" in todo else expected
        raise UserError(given, expected, todo)
    ignored = option("columns", f"ignore={name}")
    if (wrong | absent).all() and not fine.any():
        raise NoNumbers(given, f"{expected}, or {ISO}", f"{todo}, or say {ignored}")
    if not re.search(r"[\d,]", cell):
        say = option("columns", f"missing={cell}")
        todo = f"say {say} if it marks missing values, or {todo}"
    raise UserError(given, expected, f"{todo}, or leave out the column, {ignored}")


def _by_pandas(path: Path, *, to: str = "NAME.csv", **how: Any) -> str:
    """The call of pandas that reads a table, and writes one that is read here."""
    head = first_lines(path)
    if not head.names and "skiprows" not in how:
        return "a program that knows its format, with numbers in the column"
    if head.above > 1 and not {"header", "skiprows"} & how.keys():
        units = dict(head.units)
        names = [f"{n} [{units[n]}]" if units.get(n) else n for n in head.names]
        how |= {"skiprows": head.above, "names": names}
    if "decimal" in how and head.separator not in (",", SPACES):
        grouped = GROUPED.search(whole_text(path, head.encoding))
        how |= {"thousands": grouped[1]} if grouped else {}  # also of other columns
    how = {"sep": head.separator, "compression": packing(path)} | how
    how.setdefault("encoding", head.encoding)
    usual = {"sep": ",", "compression": "", "encoding": "utf-8-sig"}
    arguments = "".join(f", {k}={v!r}" for k, v in how.items() if usual.get(k) != v)
    written = f".to_csv({to!r}, index=False)" if to else ""
    return f"pandas.read_csv({str(path)!r}{arguments}){written}"


def _check_cells(path: Path, head: Head) -> None:
    """Raise a UserError if a row has not one cell for each name."""
    with _source(path, head) as source:
        lines, cells = islice(source, head.above, None), None
        if head.separator != SPACES:
            cells = csv.reader(lines, delimiter=head.separator)
        for number, row in enumerate(cells or map(str.split, lines), 1):
            if not any(row) or len(row) == (num := len(head.names)):
                continue
            if re.search("[\r\n]", "".join(row)):
                given = f"{path} with a quote that opens in row {number} under the "
                given += "names and does not close there"
                raise UserError(given, "text between quotes", "remove the quote")
            given = f"{path} with {len(row)} cells in row {number} under the names"
            todo = "repair or remove the row"
            if cells is None:
                todo += ", or in pandas, where columns have a width instead of "
                todo += f"separators, read_fwf({str(path)!r}).to_csv('NAME.csv')"
            raise UserError(given, f"{num}, one for each name", todo)


def _check_names(path: Path, names: list[str]) -> None:
    """Raise a UserError if a column has no name, or the name of another one."""
    if "" in names:
        todo = "leave row numbers out, index=False in pandas, or name it, index_label="
        raise UserError(f"{path} with a column without a name", "names of all", todo)
    check_distinct(path, names)


def _without_index(path: Path, frame: pandas.DataFrame) -> pandas.DataFrame:
    """Without numbers of rows, which pandas and R write without a name, or as times if
    they are dates.
    """
    while frame.columns.is_unique and INDEX.fullmatch(name := str([*frame, "?"][0])):
        try:
            values = values_of(path, frame[name])
        except UserError:
            return frame
        if values.dtype.kind == "M" and "time" not in frame:
            return frame.rename(columns={name: "time"})
        if values.dtype.kind not in "iuf" or np.any(values != np.floor(values)):
            return frame
        blocks = ((np.diff(values) == 1) | (values[1:] == values[0])).all()
        if not (blocks or len(np.unique(values)) == len(values)):
            return frame
        if values[0] not in (0, 1) and "time" not in map(role_of, frame):
            return frame  # perhaps the times
        left_out(path, ["the numbers of the rows"])
        frame = frame.drop(columns=name)
    return frame


def _columnar(probe: FileProbe) -> Any:
    """Return the reader of a columnar file such as Parquet, None of other files."""
    return next((COLUMNAR[m] for m in COLUMNAR if probe.head.startswith(m)), None)


def _source(path: Path, head: Head, *, tell: bool = False) -> TextIO:
    """The text of a file, without lines of comments among the rows."""
    above, marks, rest = 0, 0, 0
    for block in blocks(path):
        marks += block.count(b"#")
        rest = 0 if b"\n" in block or b"\r" in block else rest + len(block)
        if rest > LINE:
            raise ValueError(f"a line of more than {LINE:,} bytes")
    with opened(path) as stream:
        for _ in range(0 if head.encoding.startswith("utf-16") else head.above):
            above += stream.readline().count(b"#")
    if marks == above:
        return io.TextIOWrapper(opened(path), head.encoding, newline="")
    text = whole_text(path, head.encoding)
    ends = islice(re.finditer("\r\n?|\n", text), head.above)
    end = max((match.end() for match in ends), default=0)
    rows, num = re.subn(r"(?m)^[ \t]*#.*", "", text[end:])
    if num and tell:
        left_out(path, [f"{num} lines under the names that begin with #"])
    return io.StringIO(text[:end] + rows)
