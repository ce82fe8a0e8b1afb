"""Tables: a row for each point, time step and sample, or a column for each station.

Rows come in any order. A value is NaN where its cell is empty or its row not there.
Points stay where they are, sorted by coordinates; every sample has the same times. See
:mod:`nfsgeo.data.formats.columns` and ``kinds`` for what names tell.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build
from nfsgeo.data.checks import as_real, finite, missing_values, not_infinite
from nfsgeo.data.fields import Doubles, Fields, Indices
from nfsgeo.data.formats import columns as named
from nfsgeo.data.formats.columns import Columns, listed
from nfsgeo.data.formats.format import Format, Look, require
from nfsgeo.data.formats.kinds import STILL, with_kinds
from nfsgeo.data.formats.table_writers import write_csv, write_parquet
from nfsgeo.data.times import as_times, check_no_dates, unit_of_times
from nfsgeo.errors import UserError

EXPECTED = "columns x[, y[, z]], optionally sample and t, and one for each component"
LONGEST, COMMENTS = 2**20, 100  # letters of a line with names, lines of comments above
SPACES = r"\s+"  # any white space separates columns
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")
MISSING = [*ABSENT, *map(str.upper, ABSENT), *map(str.title, ABSENT), "NaN", "NaT"]
OFFSET = re.compile(r"(?i)(z|:\d.*[+-]\d\d(:?\d\d)?)$")  # of a time from UTC
APART = ("sample", "time")  # roles of what is no coordinate
SPARSE = 100  # times as many points and time steps as rows: points that move


class _Text(NamedTuple):
    """What the first lines of a text tell, of which ``above`` end with the names."""

    names: list[str]
    separator: str
    above: int
    encoding: str
    first: str  # row


def _text(path: Path, errors: str = "strict") -> _Text:
    with path.open("rb") as stream:
        head, encoding = stream.read(512), "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    with path.open(encoding=encoding, errors=errors) as stream:
        lines = [stream.readline(LONGEST) for _ in range(COMMENTS)]
    number = next((n for n, line in enumerate(lines) if line.lstrip()[:1] != "#"), 0)
    names, separator = header(lines[number])
    if len(names) < 2 or any(map(_is_number, names)):  # those of a comment
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


def _is_table(look: Look) -> bool:
    """A Parquet file, or text whose first line has several names or numbers."""
    if look.head.startswith(b"PAR1"):
        return True
    names, separator, _, encoding, first = _text(look.path, "replace")
    binary = encoding == "utf-8-sig" and b"\0" in look.head
    if binary or len(names) < 2 or look.head.lstrip()[:1] in (b"<", b"{"):
        return False
    # Words in a line are no names unless there are as many numbers in the next one.
    cells = first.split() if separator == SPACES else names
    return cells is names or (len(cells) == len(names) and any(map(_is_number, cells)))


def _is_number(cell: str) -> bool:
    with suppress(ValueError):  # Python's numbers may have underscores
        return "_" not in cell and (cell.lower() in ABSENT or float(cell) is not None)
    return False


def _cells(path: Path, *, text: bool = False) -> dict[str, Any]:
    """The columns by name: arrays, and series of pandas where they are text."""
    with path.open("rb") as stream:
        if stream.read(4) == b"PAR1":
            require("pyarrow", f"{path}, a Parquet file")
            frame = pandas.read_parquet(path, engine="pyarrow", partitioning=None)
            frame = frame.reset_index() if any(frame.index.names) else frame
            named.check_roles(path, list(map(str, frame)), {})
            return {str(name): _array(frame.pop(name)) for name in list(frame)}
    about: Any = None
    try:
        names, separator, above, encoding, _ = about = _text(path)
        if all(name and _is_number(name) for name in names):
            given = f"{path} with the numbers {', '.join(names)} in its first line"
            expected = "names of the columns there, such as x, y, t"
            raise UserError(given, expected, "add a line with a name for each column")
        named.check_roles(path, names, {})
        options: dict[str, Any] = {"header": None, "names": names, "index_col": False}
        options |= {"sep": separator, "skiprows": above, "dtype": str if text else None}
        with warnings.catch_warnings():
            for kind in (pandas.errors.ParserWarning, pandas.errors.DtypeWarning):
                warnings.simplefilter("error", kind)
            options |= {"na_values": MISSING, "keep_default_na": False}
            frame = pandas.read_csv(_source(path, encoding), **options)
    except UnicodeDecodeError as error:
        given = f"{path} with the byte {error.object[error.start]:#x} ({error.reason})"
        todo = f"convert it, as in iconv -f ISO-8859-1 -t UTF-8 {path} > NAME.csv"
        raise UserError(given, "text in the encoding UTF-8", todo) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning):
        _check_lines(path, about)
        raise
    except pandas.errors.DtypeWarning:  # text, in which cells look like numbers
        return _cells(path, text=True)
    if frame[names[-1]].isna().any():
        _check_lines(path, about)
    return {name: _array(frame.pop(name)) for name in names}


def _source(path: Path, encoding: str) -> Path | io.StringIO:
    """The file, or a text without its comments or in place of another encoding."""
    with path.open("rb") as stream:
        blocks = iter(lambda: stream.read(2**20), b"")
        if encoding == "utf-8-sig" and not any(b"#" in block for block in blocks):
            return path
    return io.StringIO(re.sub(r"(?m)^[ \t]*#.*", "", path.read_text(encoding)))


def _check_lines(path: Path, about: _Text) -> None:
    """Makes sure that every row has a cell for each name."""
    text, apart = _source(path, about.encoding), about.separator
    with path.open(encoding="utf-8") if isinstance(text, Path) else text as stream:
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


def _values(path: Path, name: str, cells: Any, *, names: bool = False) -> NDArray[Any]:
    """A column as numbers or dates, NaN where a cell is empty.

    With ``names``, other text is numbered in the order in which it comes.
    """
    if isinstance(cells, np.ndarray):
        return cells
    codes, unique = pandas.factorize(cells)
    each = np.array([*map(str.strip, map(str, unique)), ""], object)  # for code -1
    absent = np.array([cell.lower() in ABSENT for cell in each])
    wrong = np.array([not _is_number(cell) for cell in each])
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


def _read(path: Path, columns: Columns | None = None) -> Fields:
    """Fields of a table, see :func:`nfsgeo.data.open` for ``columns``."""
    cells, told = _cells(path), columns or {}
    if "points" in told:
        cells, told = _by_station(path, cells, told)
    kinds, given = named.kinds_of(path, list(cells), told)
    roles = named.roles_of(path, list(cells), given)
    num = len(cells[roles["x"]])
    if not num:
        raise UserError(f"{path} without rows", "a row for each point", "add them")
    keys: dict[str, Any] = {role: (np.zeros(num, int), [0.0]) for role in APART}
    unit = ""
    for role, name in roles.items():
        what = f"{path}: column {name}"
        values = _values(path, name, cells.pop(name), names=role == "sample")
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
            stations = _names(column, point, len(points))
            if stations is not None:
                del cells[name]
                continue
        if kinds.get(name) == "ignore":
            del cells[name]
        else:
            cells[name] = _values(path, name, column)
    # Places are the points of one sample after those of the other.
    place, there = point, np.arange(len(points))
    if len(samples) > 1:
        place, there = _ranked(sample * np.int64(len(points)) + point)
    starts = np.searchsorted(there, np.arange(len(samples)) * len(points))
    own, there = len(there) < len(samples) * len(points), there % len(points)
    of = [f"of sample {each:g} " if "sample" in roles else "" for each in samples]
    at = time * np.int64(len(there)) + place
    _check_rows(path, at, points[there], times, starts, of)
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
    fields = build(path, arrays, points=meshes, times=when, units=units)
    told = {kind: [n for n in kinds if kinds[n] == kind] for kind in STILL}
    fields = with_kinds(fields, told, "column")
    dataset = fields.dataset
    if named.bare_name(roles["x"]) in named.LONGITUDE:
        dataset["x"].attrs["standard_name"] = "longitude"
    if stations is not None:
        stations = stations[there] if own else stations
        dataset = dataset.assign_coords(station=(dataset["x"].dims, stations))
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
        raise UserError(
            f"{path} with {np.sum(at == first)} rows for the point "
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


def _names(column: Any, point: Indices, num: int) -> NDArray[np.str_] | None:
    """The name of each point, where a column of text tells them apart."""
    if isinstance(column, np.ndarray):
        return None
    codes, found = pandas.factorize(column)
    names, of = np.array([str(name).strip() for name in found]), np.zeros(num, np.int64)
    header = isinstance(column.dtype, pandas.CategoricalDtype)  # of a table of stations
    numbers = not header and any(map(_is_number, names))
    if numbers or len(names) != num or codes.min() < 0:
        return None
    of[point] = codes
    return names[of] if np.array_equal(of[point], codes) else None


def _by_station(
    path: Path, cells: dict[str, Any], given: Columns
) -> tuple[dict[str, Any], Columns]:
    """A table of a column for each station, with a row for each and for each time.

    All columns are those of stations but time, sample and what is to be ignored.
    """
    for role in given.keys() - {"time", "sample", "ignore", "points"}:
        expected = "one of time, sample and ignore: all other columns are stations"
        raise UserError(f"{role}= beside points=", expected, f"leave out {role}=")
    others = {role: name for role, name in given.items() if role != "points"}
    ignored, told = named.kinds_of(path, list(cells), others)
    named.check_roles(path, list(cells), told)
    left = [name for name in cells if name not in (*ignored, *told.values())]
    for role in {"time", "sample"} - told.keys():
        told[role] = named.column_of(path, role, left) or ""
    stations = [name for name in left if name not in told.values()]
    if not stations:
        todo = "leave out points=, or correct time= and ignore="
        raise UserError(f"{path} with columns {listed(left)}", "stations", todo)
    places = _positions(Path(str(given["points"])), stations)
    columns = [_values(path, name, cells[name]) for name in stations]
    taken = (*told.values(), *places, "station")
    field = path.stem if path.stem not in taken else "field"
    steps, num = len(columns[0]), len(stations)
    table = {field: np.stack(columns, axis=1).reshape(-1)}
    table |= {name: np.tile(values, steps) for name, values in places.items()}
    for role in (role for role, name in told.items() if name):
        values = _values(path, told[role], cells[told[role]], names=role == "sample")
        table[told[role]] = np.repeat(values, num)
    codes = np.tile(np.arange(num), steps)
    table["station"] = pandas.Series(pandas.Categorical.from_codes(codes, stations))
    return table, {**told, **dict(zip("xyz", places, strict=False)), "field": field}


def _positions(path: Path, stations: list[str]) -> dict[str, Any]:
    """Each coordinate of the stations, by the name of its column, x first."""
    if not path.is_file():
        expected = "a table with the name and the coordinates of each station"
        raise UserError(f"points={path}", expected, "check the name")
    cells = _cells(path, text=True)
    found = [n for r in "xyz" for n in cells if named.bare_name(n) in named.ROLES[r]]
    named.roles_of(path, found)
    texts = {
        n: [str(cell).strip() for cell in cells[n]] for n in cells if n not in found
    }
    lacking = {name: sorted({*stations}.difference(texts[name])) for name in texts}
    best = min(lacking, key=lambda name: len(lacking[name]), default="")
    rows = pandas.Index(texts.get(best, []))
    twice = rows[rows.duplicated()].intersection(stations)
    if not best or lacking[best] or len(twice) or [*lacking.values()].count([]) > 1:
        odd = listed(lacking.get(best) or [*twice] or stations)
        raise UserError(
            f"{path} with columns {listed(list(cells))}, not once with {odd}",
            "each station once, by the name of its column, in one of them",
            "add or remove rows or columns, or say ignore=COLUMN for no station",
        )
    at = [rows.get_loc(name) for name in stations]
    return {name: _values(path, name, cells[name])[at] for name in found}


CSV = Format(
    "tables of points (.csv, .parquet)",
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
