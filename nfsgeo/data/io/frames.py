"""The columns of a table by name, as numbers, dates or text."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import shlex
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import check_distinct
from nfsgeo.data.conventions import STATIONS, bare_name, role_of
from nfsgeo.data.io.format import FileProbe, left_out
from nfsgeo.data.io.table_marks import without_marks
from nfsgeo.errors import UserError, require

__all__ = ["SPACES", "NoNumbers", "first_lines", "frame_of", "is_number", "is_table"]
__all__ += ["values_of"]

LONGEST, COMMENTS = 2**20, 100  # bytes up to the first row, lines of comments above
SPACES, WIDE = r"\s+", r"\s{2,}"  # what separates columns, and names with spaces
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")
MISSING = [*ABSENT, *map(str.upper, ABSENT), *map(str.title, ABSENT), "NaN", "NaT"]
OFFSET = re.compile(r"(?i)(z|:\d.*[+-]\d\d(:?\d\d)?)$")  # of a time from UTC
ISO = "dates such as 2026-01-31T12:00, all or none of them with an offset such as Z"
INDEX = re.compile(r"(Unnamed: 0)?")  # the name that pandas gives to numbers of rows
TEXTS = (".csv", ".txt", ".tsv", ".dat")
JSONS = (".json", ".jsonl", ".ndjson", ".geojson")
ASIDE = re.compile(r"(?i)__MACOSX/|(.*/)?(\.|readme|licen[cs]e)")  # in archives
PACKED: dict[bytes, tuple[Any, str]] = {
    b"\x1f\x8b": (gzip.open, "gzip"),
    b"BZh": (bz2.open, "bz2"),
    b"\xfd7zXZ\0": (lzma.open, "xz"),
    b"PK\3\4": (None, "zip"),
}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)
COLUMNAR = {
    b"PAR1": partial(pandas.read_parquet, engine="pyarrow", partitioning=None),
    b"ARROW1": pandas.read_feather,
    b"ORC": pandas.read_orc,
}
EXCEL = (
    "a workbook of a spreadsheet program",
    (
        "save it as CSV there, or with pandas and openpyxl: "
        "pandas.read_excel({0!r}).to_csv('NAME.csv', index=False)"
    ),
)
CFX_POST = (
    "a table of CFX-Post in sections",
    "write the lines of its section [Data] alone: "
    "awk '/^\\[/ {{p = /^\\[Data/; next}} p && NF' {1} > NAME.csv",
)
FOREIGN = {  # how other files begin, what they are, and how they can be read
    b"\xd0\xcf\x11\xe0": EXCEL,
    b"\x28\xb5\x2f\xfd": ("a file compressed by zstd", "unpack it: zstd -d {1}"),
    b"\x04\x22\x4d\x18": ("a file compressed by lz4", "unpack it: lz4 -d {1}"),
    b"\x5d\0\0": (
        "a file compressed by lzma",
        "unpack it: xz -d -F lzma -c {1} > NAME",
    ),
    b"7z\xbc\xaf\x27\x1c": ("an archive of 7-Zip", "unpack it: 7z x {1}"),
    b"[Name]": CFX_POST,
    b"[Data]": CFX_POST,
    b"SQLite format 3": ("a data base", "write a table, by pandas.read_sql and to_csv"),
    b"<!DOCTYPE": ("a web page", "download the file that the page is about"),
    b"<html": ("a web page", "download the file that the page is about"),
}
HINTS = {  # todo for cells of a kind
    r"(?s).*\n.*": "remove the quote that opens in this row",
    r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?": "are these thousands? Write it by {1}; if "
    "they are decimal commas, decimal=',' in place of thousands=','",
    r"[+-]?(0|[1-9]\d*),\d+": "decimal commas: write it by {2}",
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}.*": "write it by pandas.to_datetime(table"
    "[{0!r}], dayfirst=True), or dayfirst=False where the month is first",
    r".*T?24:00(:00)?Z?": "24:00 is 00:00 of the day after: write it so",
}


class NoNumbers(UserError):
    """A column that holds text alone."""


class Head(NamedTuple):
    """The first lines of a table: names of its columns, their separator, the number of
    lines above the rows, the encoding, the first row, units by name, and whether a row
    has numbers that begin with zeros, by name.
    """

    names: list[str]
    separator: str
    above: int
    encoding: str
    row: str = ""
    units: Any = ()
    zeros: Sequence[str] = ()
    preamble: int = 0  # lines above the names that are no comments


def is_table(probe: FileProbe) -> bool:
    """Return whether it is Parquet, or text with several cells in its first line; or a
    file of other programs, of which a message tells how to read it.
    """
    if _columnar(probe) or _foreign(probe.path):
        return True
    head = first_lines(probe.path)
    if head.separator == "json" or head.preamble:
        return True
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = _cells(head.row, head.separator)
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
        if isinstance(frame.index, pandas.DatetimeIndex):
            frame.index.name = frame.index.name or "time"
        frame = frame.reset_index(drop=not any(frame.index.names))
        frame = frame.rename(columns=str)
    elif other := _foreign(path):
        what, todo = other
        todo = todo.format(str(path), shlex.quote(str(path)))
        raise UserError(f"{path}, {what}", "a table of text", todo)
    else:
        frame = _parsed(path, dtype, missing)
    frame = without_marks(_without_index(path, frame), missing)
    _check_names(path, list(frame))
    return frame if dtype is None else frame.astype(dtype)


def _parsed(path: Path, dtype: Any, missing: Sequence[str]) -> pandas.DataFrame:
    """A table of text, or of JSON."""
    try:
        head = first_lines(path)
        names = head.names
        if head.separator == "json":
            return _of_json(path, head.encoding)
        if lines := head.preamble:
            given = f"{path} with {lines} lines before the names of the columns"
            todo = f"remove them: tail -n +{lines + 1} {shlex.quote(str(path))} > "
            todo = f"{todo}NAME.csv"
            if head.above > lines + 1 or _packing(path) or "16" in head.encoding:
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
        names = [name or f"Unnamed: {k}" * (k > 0) for k, name in enumerate(names)]
        check_distinct(path, names)
        # Names of stations may begin with zeros, if they are numbers.
        row = zip(names, _cells(head.row, head.separator), strict=False)
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
        if frame[names[-1]].isna().any():  # perhaps filled by pandas
            _check_cells(path, head)
        # Separators at the ends of lines, and rows of separators alone.
        unnamed = [new for new, old in zip(names, head.names, strict=True) if not old]
        frame = frame.drop(columns=[n for n in unnamed if frame[n].isna().all()])
        if frame.iloc[:, :1].isna().to_numpy().any():
            frame = frame.dropna(how="all").reset_index(drop=True)
        if {*unnamed[unnamed[:1] == [""] :]} & {*frame}:
            frame = frame.rename(columns=dict.fromkeys(unnamed, ""))
        frame.attrs["units"] = head.units
        return frame
    except UnicodeDecodeError as error:
        given = f"{path} with the byte {error.object[error.start]:#x} ({error.reason})"
        if "16" in first_lines(path).encoding:
            todo = "copy it again, as bytes"
            raise UserError(f"{path}, a damaged text in UTF-16", "text", todo) from None
        todo = f"iconv -f ISO-8859-1 -t UTF-8 {shlex.quote(str(path))} > NAME.csv"
        if _packing(path):
            todo = _by_pandas(path, encoding="ISO-8859-1")
        expected = "text in the encoding UTF-8"
        raise UserError(given, expected, f"convert it, as in {todo}") from None
    except BROKEN:
        given = f"{path}, a compressed file that is cut off or damaged"
        raise UserError(given, "a table of text", "copy it again") from None


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
    cells = np.array([*map(str.strip, map(str, unique)), ""], object)  # for code -1
    cells = np.array([re.sub(r"(:\d\d) (UTC|GMT)$", r"\1Z", c) for c in cells], object)
    absent = np.array([cell.lower() in ABSENT for cell in cells])
    wrong = np.array([not is_number(cell) for cell in cells])
    if not wrong.any():
        return np.where(absent, "nan", cells).astype(np.float64)[codes]
    texts = np.where(absent | ~wrong, "NaT", cells)
    dates = pandas.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    fine = np.asarray(dates.notna())
    zoned = np.array([OFFSET.search(cell) is not None for cell in cells])
    if (fine | absent).all() and len({*zoned[fine]}) < 2:
        return cast(NDArray[Any], dates.tz_localize(None).to_numpy()[codes])
    if names:
        return np.where(absent, np.nan, pandas.factorize(cells)[0])[codes]
    expected, odd = "numbers with a decimal point", wrong
    numbers = ~wrong & ~absent
    if fine.sum() > numbers.sum() and fine.sum() >= (wrong & ~fine).sum():
        expected, odd = ISO, ~fine & ~absent
        odd = odd if odd.any() else fine & (zoned != zoned[fine][0])
    row = int(np.flatnonzero(odd[codes])[0])
    cell, name = cells[codes[row]], str(column.name)
    given = f"{path} with {cell!r} in column {name}, row {row + 1} under the names"
    forms = (todo for form, todo in HINTS.items() if re.fullmatch(form, cell))
    by_pandas = (_by_pandas(path, **{how: ","}) for how in ("thousands", "decimal"))
    todo = next(forms, "correct it").format(name, *by_pandas)
    if not gaps:
        num = int(odd[codes].sum())
        remove = f"remove the row{f', and {num - 1} others such' * (num > 1)}"
        if cell == name:
            remove += ", which repeats the names"
        todo = f"{todo}, or {remove}" if todo == "correct it" else todo
        raise UserError(given, expected, todo)
    ignored = shlex.quote(f"ignore={name}")
    if (wrong | absent).all() and not fine.any():
        todo += f", or say --columns {ignored}"
        raise NoNumbers(given, f"{expected}, or {ISO}", todo)
    if not re.search(r"[\d,]", cell):
        say = shlex.quote(f"missing={cell}")
        todo = f"say --columns {say} if it marks missing values, or {todo}"
    raise UserError(given, expected, f"{todo}, or leave out the column, {ignored}")


def _packing(path: Path) -> str:
    """How a file is compressed, in the words of pandas; empty if it is not."""
    head = FileProbe(path).head
    return next((PACKED[start][1] for start in PACKED if head.startswith(start)), "")


def _by_pandas(path: Path, *, to: str = "NAME.csv", **how: Any) -> str:
    """The call of pandas that reads a table, and writes one that is read here."""
    head = first_lines(path)
    if not head.names and "skiprows" not in how:
        return "a program that knows its format, with numbers in the column"
    if head.above > 1 and not {"header", "skiprows"} & how.keys():
        how |= {"skiprows": head.above, "names": head.names}
    how = {"sep": head.separator, "compression": _packing(path)} | how
    how.setdefault("encoding", head.encoding)
    usual = {"sep": ",", "compression": "", "encoding": "utf-8-sig"}
    told = "".join(f", {k}={v!r}" for k, v in how.items() if usual.get(k) != v)
    written = f".to_csv({to!r}, index=False)" if to else ""
    return f"pandas.read_csv({str(path)!r}{told}){written}"


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, or nothing."""
    with suppress(ValueError):  # Python's numbers may have underscores
        return "_" not in cell and (cell.lower() in ABSENT or float(cell) is not None)
    return False


def _cells(line: str, separator: str) -> list[str]:
    """Cells of a line."""
    if separator in (SPACES, WIDE):
        return re.split(separator, line.strip())
    cells = next(csv.reader([line.strip("\r\n")], delimiter=separator), [])
    return [cell.strip() for cell in cells]


def _header(line: str) -> tuple[list[str], str]:
    """Names of the columns in the first line of a table, and what separates them."""
    line = line.strip(" \r\n").lstrip("#%")
    separator = max(",;\t", key=line.count)
    separator = separator if separator in line else SPACES
    return _cells(line, separator), separator


def first_lines(path: Path) -> Head:
    """Look at the first lines of a table."""
    with _opened(path) as stream:
        raw = stream.read(LONGEST)
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if wide else "utf-8-sig"
    for k, name in enumerate(("utf-16-be", "utf-16-le")):  # text of Latin letters
        if not any(raw[k:64:2]) and all(raw[1 - k : 64 : 2]) and len(raw) > 1:
            encoding = name
    text = raw.decode(encoding, "replace")
    if "\0" in text[:512] or text.lstrip()[:1] == "<":
        return Head([], ",", 0, encoding)
    if text.lstrip()[:1] in ("{", "["):
        return Head([], "json", 0, encoding)
    lines = re.split("\r\n?|\n", text, maxsplit=2 * COMMENTS)
    plain = [n for n, line in enumerate(lines) if line.lstrip()[:1] not in ("", *"#%")]
    start = plain[0] if plain and plain[0] < COMMENTS else 0
    names, separator = _header(lines[start])
    rows = [lines[n] for n in plain if n > start]
    bad = len(names) < 2 or any(map(is_number, filter(None, names)))
    fits = [n for n in range(start) if _fits(lines[n], lines[start])] if bad else []
    if fits:  # the last, or that of names above one of units
        above = fits[-2] if fits[-2:-1] == [fits[-1] - 1] else fits[-1]
        names, separator = _named(lines[above], lines[start])
        units = _cells(lines[fits[-1]].lstrip("#% "), separator)
        named = dict(zip(names, units, strict=False)) if above < fits[-1] else {}
        return Head(names, separator, start, encoding, lines[start], named)
    cells = _cells(rows[0], separator) if rows else names
    if separator != SPACES and len(cells) == len(names) + 1 and not cells[-1]:
        names, cells = [*names, ""], names  # separators at the ends of rows
    elif bad or len(cells) != len(names):
        fit = [n for n, row in zip(plain, rows, strict=False) if _fits(lines[n], row)]
        for n in fit:
            titles, separator = _header(lines[n])
            if any(map(is_number, filter(None, titles))):
                continue
            # Lines of as many cells are names, and below these perhaps units.
            top = plain.index(n)
            while top > 1:
                others, other = _header(lines[plain[top - 1]])
                if (len(others), other) != (len(titles), separator):
                    break
                top -= 1
            return Head([], separator, n + 1, encoding, preamble=plain[top])
        names, separator = _header(lines[start])
    if bad:
        names, separator = _header(lines[0])
        return Head(names, separator, 1, encoding, rows[0] if rows else "")
    above, named = start + 1, {}
    if len(rows) > 1 and (units := _units(names, separator, *rows[:2])):
        above, named = plain[1] + 1, dict(zip(names, units, strict=True))
        rows = rows[1:]
    table = [_cells(row, separator) for row in rows[:COMMENTS]]
    table = [row for row in table if len(row) == len(names)]
    zeros = [re.fullmatch(r"0\d+", cell) for row in table for cell in row]
    marked = {names[k % len(names)] for k, cell in enumerate(zeros) if cell}
    first = rows[0] if rows else ""
    return Head(names, separator, above, encoding, first, named, sorted(marked))


def _named(line: str, row: str) -> tuple[list[str], str]:
    """Names in a line above a row, which may have spaces where two separate them."""
    names, separator = _header(line)
    if separator == SPACES and len(names) != len(_cells(row, SPACES)):
        names = _cells(line.lstrip("#% "), WIDE)
    return names, separator


def _fits(line: str, row: str) -> bool:
    """Whether a line has a name for each cell of a row, in which there are numbers."""
    names, separator = _named(line, row)
    cells = _cells(row, separator)
    numbers = any(map(is_number, filter(None, cells)))
    return numbers and 1 < len(names) == len(cells)


def _units(names: list[str], separator: str, line: str, row: str) -> list[str]:
    """Units of the columns, if a line has those of the numbers and dates of a row; or
    empty ones, if it has the formats of its cells, as in RDB files.
    """
    units, cells = _cells(line, separator), _cells(row, separator)
    if not len(units) == len(cells) == len(names):
        return []
    if all(re.fullmatch(r"\d+[sdn]", unit) for unit in units):
        return [""] * len(units)
    dated = re.compile(r"\d{4}-\d\d")
    data = [dated.match(cell) or is_number(cell) for cell in cells]
    of = [unit for unit, fine in zip(units, data, strict=True) if unit and fine]
    words = [unit for unit in of if unit in ("-", "--") or not is_number(unit)]
    plain = all(unit in ("1", "1e-3", "1E-3") for unit in of if unit not in words)
    none = not any(dated.match(unit) for unit in units)
    some = any(not is_number(unit) for unit in words)
    return units if some and 2 * len(words) > len(of) and plain and none else []


def _check_cells(path: Path, head: Head) -> None:
    """Raise a UserError if a row has not one cell for each name."""
    with _source(path, head) as source:
        whole: Any = source
        if not isinstance(source, io.StringIO):
            whole = io.TextIOWrapper(source, head.encoding)
        lines, cells = islice(whole, head.above, None), None
        if head.separator != SPACES:
            cells = csv.reader(lines, delimiter=head.separator)
        for number, row in enumerate(cells or map(str.split, lines), 1):
            if any("\n" in cell for cell in row) and len(row) != len(head.names):
                given = f"{path} with a quote that opens in row {number} under the "
                given += "names and does not close there"
                raise UserError(given, "text between quotes", "remove the quote")
            if any(row) and len(row) != (num := len(head.names)):
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
    while INDEX.fullmatch(name := str(next(iter(frame), "?"))):
        try:
            values = values_of(path, frame[name])
        except UserError:
            return frame
        if values.dtype.kind == "M" and "time" not in frame:
            return frame.rename(columns={name: "time"})
        if values.dtype.kind not in "iuf" or np.any(values != np.floor(values)):
            return frame
        steps = np.diff(values)
        blocks = ((steps == 1) | (values[1:] == values[0])).all()
        if not (blocks or len(np.unique(values)) == len(values)):
            return frame
        if values[0] not in (0, 1) and "time" not in map(role_of, frame):
            return frame  # perhaps the times
        left_out(path, ["the numbers of the rows"])
        frame = frame.drop(columns=name)
    return frame


def _of_json(path: Path, encoding: str) -> pandas.DataFrame:
    """A table of JSON: a list of rows, columns by name, a row a line, or points of
    GeoJSON.
    """
    text = path_text(path, encoding)
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict) and isinstance(content.get("features"), list):
        for number, feature in enumerate(content["features"], 1):
            if (feature.get("geometry") or {}).get("type") != "Point":
                given = f"{path} with feature {number}, which is no point"
                raise UserError(given, "points", "remove it, or give its centre")
        axes = [f["geometry"]["coordinates"] for f in content["features"]]
        places = [dict(zip(("lon", "lat", "z"), at, strict=False)) for at in axes]
        about = [feature["properties"] or {} for feature in content["features"]]
        content = [a | p for a, p in zip(about, places, strict=True)]
    rows = content.values() if isinstance(content, dict) else content
    if rows and all(isinstance(row, (list, dict)) for row in rows):
        by_row = isinstance(content, dict) and all(map(str.isdigit, content))
        with suppress(ValueError, TypeError):  # lists that differ in length
            content = [*content.values()] if by_row else content
            frame = pandas.DataFrame(content).rename(columns=str)
            nested = frame.map(lambda cell: isinstance(cell, (list, dict)))
            if not nested.to_numpy().any():
                return frame
    expected = "JSON of a list of rows, [{'time': ..., 'x': ..., 'u': ...}, ...]"
    todo = "write a table of the part that is one, as by pandas.json_normalize(content"
    todo += "['PART']).to_csv('NAME.csv', index=False)"
    raise UserError(f"{path}, JSON that is no table", expected, todo)


def path_text(path: Path, encoding: str) -> str:
    """The whole text of a file, unpacked."""
    with _opened(path) as stream:
        return stream.read().decode(encoding)


def _columnar(probe: FileProbe) -> Any:
    """What reads a file of columns, such as Parquet, if it is one."""
    return next((COLUMNAR[m] for m in COLUMNAR if probe.head.startswith(m)), None)


def _foreign(path: Path) -> tuple[str, str] | None:
    """What a file is that is no table, and what makes a table of it."""
    if not path.is_file():
        return None
    try:
        members = _members(path)
        with _opened(path) as stream:
            head = stream.read(LONGEST)
    except BROKEN:
        return "a compressed file that is cut off or damaged", "copy it again"
    if {"xl/workbook.xml", "content.xml"} & {*members}:
        return EXCEL
    if len(members) > 1 and all(name.lower().endswith(TEXTS) for name in members):
        what = f"an archive of {len(members)} tables"
        return what, "unpack it, and name the files: unzip {1}"
    if head[257:262] == b"ustar":
        return "an archive of files", "unpack it: tar -xf {1}"
    if not head.strip():
        return "an empty file", "write it again"
    return next((FOREIGN[m] for m in FOREIGN if head.lstrip().startswith(m)), None)


def _members(path: Path) -> list[str]:
    """The files in a zip archive, without those about it."""
    if not FileProbe(path).head.startswith(b"PK\3\4"):
        return []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    return [name for name in names if not ASIDE.match(name)] or names


def _opened(path: Path) -> BinaryIO:
    """Open a file for its bytes, unpacked if gzip, bz2, xz or zip has packed it."""
    head = FileProbe(path).head
    members = _members(path)
    if len(members) == 1 and Path(members[0].lower()).suffix in (*TEXTS, *JSONS, ""):
        return cast(BinaryIO, zipfile.ZipFile(path).open(members[0]))
    for start, (unpacked, _) in PACKED.items():
        if unpacked and head.startswith(start):
            return cast(BinaryIO, unpacked(path))
    return path.open("rb")


def _source(path: Path, head: Head, *, tell: bool = False) -> BinaryIO | io.StringIO:
    """The file, or its text without lines of comments among the rows."""
    with _opened(path) as stream:
        for _ in range(0 if head.encoding.startswith("utf-16") else head.above):
            stream.readline()
        if not any(b"#" in block for block in iter(lambda: stream.read(2**20), b"")):
            return _opened(path)
    text = path_text(path, head.encoding)
    ends = islice(re.finditer("\r\n?|\n", text), head.above)
    end = max((found.end() for found in ends), default=0)
    rows, num = re.subn(r"(?m)^[ \t]*#.*", "", text[end:])
    if num and tell:
        left_out(path, [f"{num} lines under the names that begin with #"])
    return io.StringIO(text[:end] + rows)
