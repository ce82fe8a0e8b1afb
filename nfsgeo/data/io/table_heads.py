"""The first lines of a table: comments, names, units, and what separates cells."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nfsgeo.data.conventions import SPACE
from nfsgeo.data.io.packed_files import BEGINNING, opened

__all__ = ["ABSENT", "FALSE", "SPACES", "TRUE", "Head", "cells_of", "first_lines"]
__all__ += ["is_number"]

COMMENTS = 100  # lines of comments above the names, at most
SPACES, WIDE = r"\s+", r"\s{2,}"  # what separates columns, and names with spaces
LENGTH_UNIT = re.compile(r"(?m)^% *Length unit *[:,]\s*(\S+)")  # of COMSOL
ABSENT = ("", "na", "n/a", "null", "none", "nan", "nat", "-", "--")

TRUE, FALSE = (  # in other languages than English; NO is nitric oxide
    [
        f(w)
        for w in words.split()
        for f in (str.lower, str.title, str.upper)
        if f(w) != "NO"
    ]
    for words in (
        "yes wahr ja vrai oui vero verdadero verdadeiro waar prawda sant sì sí",
        "no falsch nein faux non falso onwaar fałsz falskt nee não",
    )
)


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


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, or nothing."""
    with suppress(ValueError):  # Python's numbers may have underscores
        return "_" not in cell and (cell.lower() in ABSENT or float(cell) is not None)
    return False


def cells_of(line: str, separator: str) -> list[str]:
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
    return cells_of(line, separator), separator


def first_lines(path: Path) -> Head:
    """Look at the first lines of a table."""
    with opened(path) as stream:
        raw = stream.read(BEGINNING)
    encoding = _encoding(raw)
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
    numbers = any(map(is_number, filter(None, names)))
    bad = len(names) < 2 or (numbers and not _sensors(names, separator, rows))
    if bad and (head := _in_comments(lines[:start], lines[start])):
        return head._replace(encoding=encoding)
    cells = cells_of(rows[0], separator) if rows else names
    if separator != SPACES and len(cells) == len(names) + 1 and not cells[-1]:
        names = [*names, ""]  # separators at the ends of rows
    elif (bad or len(cells) != len(names)) and (head := _below(lines, plain, rows)):
        return head._replace(encoding=encoding)
    if bad:
        names, separator = _header(lines[0])
        return Head(names, separator, 1, encoding, rows[0] if rows else "")
    above, named = start + 1, {}
    if len(rows) > 1 and (units := _units(names, separator, *rows[:2])):
        above, named = plain[1] + 1, dict(zip(names, units, strict=True))
        rows = rows[1:]
    table = [cells_of(row, separator) for row in rows[:COMMENTS]]
    pairs = [zip(names, row, strict=True) for row in table if len(row) == len(names)]
    zeros = {name for row in pairs for name, cell in row if re.fullmatch(r"0\d+", cell)}
    first = rows[0] if rows else ""
    return Head(names, separator, above, encoding, first, named, sorted(zeros))


def _encoding(raw: bytes) -> str:
    """The encoding of a text that begins with some bytes."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for k, name in enumerate(("utf-16-be", "utf-16-le")):  # text of Latin letters
        if not any(raw[k:64:2]) and all(raw[1 - k : 64 : 2]) and len(raw) > 1:
            return name
    return "utf-8-sig"


def _in_comments(lines: list[str], row: str) -> Head | None:
    """The head of a table whose names are in a comment above a row, if one has them."""
    fits = [n for n, line in enumerate(lines) if _fits(line, row)]
    if not fits:
        return None
    # The last line that fits has the names, or has units below them.
    above = fits[-1] - (fits[-1] - 1 in fits)
    names, separator = _named(lines[above], row)
    units = _bare(cells_of(lines[fits[-1]].lstrip("#% "), separator))
    named = dict(zip(names, units, strict=False)) if above < fits[-1] else {}
    if length := LENGTH_UNIT.search("\n".join(lines[:above])):
        named |= dict.fromkeys((n for n in names if n.lower() in SPACE), length[1])
    return Head(names, separator, len(lines), "", row, named)


def _below(lines: list[str], plain: list[int], rows: list[str]) -> Head | None:
    """The head of a table whose names are below other lines, if some fit their row."""
    for n, row in zip(plain, rows, strict=False):
        names, separator = _header(lines[n])
        numbers = any(map(is_number, filter(None, names)))
        if numbers or not _fits(lines[n], row):
            continue
        # Lines of as many cells are names, and below these perhaps units.
        top = plain.index(n)
        while top > 1:
            others, other = _header(lines[plain[top - 1]])
            if (len(others), other) != (len(names), separator):
                break
            top -= 1
        return Head([], separator, n + 1, "", preamble=plain[top])
    return None


def _sensors(names: list[str], separator: str, rows: list[str]) -> bool:
    """Return whether names are numbers of sensors above rows that begin with a date."""
    whole = all(name.isdecimal() for name in names[1:]) and len({*names}) == len(names)
    first = cells_of(rows[0], separator)[0] if rows else ""
    dated = [re.match(r"\d{4}-\d\d", cell) is not None for cell in (names[0], first)]
    return whole and not is_number(names[0] or "time") and dated == [False, True]


def _named(line: str, row: str) -> tuple[list[str], str]:
    """Names in a line above a row, which may have spaces where two separate them."""
    names, separator = _header(line)
    if separator == SPACES and len(names) != len(cells_of(row, SPACES)):
        names = cells_of(line.lstrip("#% "), WIDE)
    return names, separator


def _fits(line: str, row: str) -> bool:
    """Return whether a line has a name for each cell of a row that has numbers.

    One of a label and what it says, ``% Length unit: mm``, has none.
    """
    if re.match(r"\s*[#%]\s*\w[\w ]*:\s", line):
        return False
    names, separator = _named(line, row)
    cells = cells_of(row, separator)
    numbers = any(map(is_number, filter(None, cells)))
    return numbers and 1 < len(names) == len(cells)


def _units(names: list[str], separator: str, line: str, row: str) -> list[str]:
    """Units of the columns, if a line has those of the numbers and dates of a row; or
    empty ones, if it has the formats of its cells, as in RDB files.
    """
    units, cells = _bare(cells_of(line, separator)), cells_of(row, separator)
    if not len(units) == len(cells) == len(names):
        return []
    if all(re.fullmatch(r"\d+[sdn]", unit) for unit in units):
        return [""] * len(units)
    dated = re.compile(r"\d+[-./]\d+[-./]\d|\d?\d:\d\d|\d{4}-\d\d")
    number = re.compile(r"[-+−]?[\d.,'’\s]*\d([eE][-+−]?\d+)?")
    data = [dated.match(c) or number.fullmatch(c) or is_number(c) for c in cells]
    data_units = [unit for unit, fine in zip(units, data, strict=True) if unit and fine]
    words = [unit for unit in data_units if not number.fullmatch(unit)]
    words = [unit for unit in words if unit in ("-", "--") or not is_number(unit)]
    plain = {*data_units} - {*words} <= {"1", "1e-3", "1E-3"}
    none = not any(dated.match(unit) for unit in units)
    some = any(not is_number(unit) for unit in words)
    if some and 2 * len(words) > len(data_units) and plain and none:
        return units
    # Without units: dashes alone, or ones above numbers with fractions or dates.
    alike = len({*data_units}) == 1 < len(data_units) == sum(map(bool, units)) and plain
    other = sum(not re.fullmatch(r"[+-]?\d+", cell) for cell in cells)
    return units if alike and (words or 2 * other >= len(cells)) else []


def _bare(units: list[str]) -> list[str]:
    """Units without the brackets around them."""
    return [
        re.sub(r"^\[(.*)\]$|^\((.*)\)$|^<(.*)>$", r"\1\2\3", u).strip() for u in units
    ]
