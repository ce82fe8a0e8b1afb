"""The order of files, as the numbers and dates in their names tell it.

Signs, decimals and exponents belong to a number, as in STAR-CCM+'s
``duct_9.500000e-01.csv``, and so does a unit of time behind it where units differ. The
name of a folder that is a number as a whole, such as OpenFOAM's ``0.15``, is that
number. Dates may begin with the day and have months by name. What can be read in
several ways, such as ``q_0.15`` and ``q_0.2`` with one number or two each, has to have
one order however it is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, pairwise, product
from pathlib import Path
from typing import Any

from nfsgeo.errors import UserError

__all__ = ["FileOrder", "as_listed", "have_numbers"]

# A sign behind a letter or a digit separates, as in run-10; behind a single letter, as
# in z-10, it may be a sign.
SIGN = r"(?:(?<![A-Za-z0-9.])[+-])?"
LETTER = r"(?<![A-Za-z])[A-Za-z]-\d"
SIGN_OF_LETTER = r"(?:(?<![A-Za-z0-9.])[+-]|(?<=[^A-Za-z][A-Za-z])-|(?<=^[A-Za-z])-)?"
WHOLE, DECIMAL = r"\d+", r"\d+(?:[.,p]\d+)?"
# Further notations, which count where some name has them.
THOUSANDS = r"\d{1,3}(?:,\d{3})+(?!\d)"
NOTATIONS = (
    r"\d+(?:[.,p]\d+)?[eE][m_]?\d+",  # with m or _ for a minus
    r"\d\.\d+[+-]\d{3}(?!\d)",  # of Fortran
    THOUSANDS,
)
# Nobody writes these for anything but one number.
SCIENTIFIC = (
    r"\d+\.?\d*[eEdD][+-]\d+|\d+\.\d+[eE]\d+"
    r"|(?<![A-Za-z0-9.])\d+[eE]\d+(?![A-Za-z0-9])"
)
UNITS = {"fs": 1e-15, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
UNITS |= {"sec": 1.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "d": 86400.0}
UNIT = rf"[ _]?(?P<unit>{'|'.join(UNITS)})(?![A-Za-z])"
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun"]
MONTHS += ["jul", "aug", "sep", "oct", "nov", "dec"]
MONTH = (
    r"(?:(?<!\d)(?:(?P<year>\d{4})|(?P<day>\d\d?))[-_. ]?)?(?<![A-Za-z])(?P<month>"
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![A-Za-z])"
    r"(?:[-_. ]?(?P<next>\d\d?)(?!\d))?(?:[-_., ]{0,2}(?P<last>\d{4})(?!\d))?"
)
# Dates by their numbers, and the orders of day, month and year that these may have.
DATES = {
    r"(?<!\d)(?P<one>\d\d?)[-._ /](?P<two>\d\d?)[-._ /](?P<end>\d{4})(?!\d)": "dmy mdy",
    r"(?<!\d)(?P<one>\d\d)(?P<two>\d\d)(?P<end>\d{4})(?=(?:\d{4}|\d{6})?(?!\d))": (
        "dmy mdy"
    ),
    r"(?<!\d)(?P<one>\d\d?)[-._ ](?P<two>\d\d?)[-._ ](?P<end>\d\d?)(?!\d)": (
        "ymd dmy mdy"
    ),
    r"(?<!\d)(?P<one>\d\d)(?P<two>\d\d)(?P<end>\d\d)(?!\d)": "ymd dmy mdy",
    r"(?<!\d)(?P<one>\d\d)(?P<two>)(?P<end>\d{4})(?!\d)": "mdy",
}
ISO = r"(?<!\d)(?:1[89]|2[01])\d\d([-._ ]?)\d\d?\1\d\d?"
YEARS = range(1800, 2200)
Names = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Reading:
    """One way to read the numbers in names: a pattern of its groups ``number``, with
    a ``unit`` perhaps, ``month``, and ``one``, ``two`` and ``end`` of dates.

    Args:
        pattern: The numbers.
        whole: Names of folders and files that are numbers as a whole.
        order: The order of day, month and year in dates.
        short_years: Whether two digits beside the name of a month are a year.
    """

    pattern: re.Pattern[str]
    whole: frozenset[str]
    order: str = "dmy"
    short_years: bool = False

    def key(self, part: str) -> tuple[Any, ...]:
        """Text and numbers in turn, beginning and ending with text."""
        if part in self.whole:
            return "", (float(part),), ""
        pieces: list[Any] = []
        end = 0
        for match in self.pattern.finditer(part):
            pieces += [part[end : match.start()], self._value(match.groupdict())]
            end = match.end()
        return (*pieces, part[end:])

    def _value(self, groups: dict[str, str | None]) -> tuple[float, ...]:
        if month := groups.get("month"):
            year = groups["year"] or groups["last"]
            day = groups["day"] or groups["next"]
            if groups["day"] and groups["next"]:
                year = groups["next"]
            elif day and not year and self.short_years:
                year, day = day, None
            return float(year or 0), MONTHS.index(month[:3].lower()), float(day or 0)
        if groups.get("end"):
            return _date(groups, self.order)
        number = str(groups["number"]).lower().replace("d", "e")
        if re.fullmatch(THOUSANDS, number) and THOUSANDS in self.pattern.pattern:
            number = number.replace(",", "")
        number = re.sub("e[m_]", "e-", re.sub("[,p]", ".", number))
        number = re.sub(r"(\d)([+-]\d{3})$", r"\1e\2", number)
        return (float(number) * UNITS[groups.get("unit") or "s"],)


class FileOrder:
    """Files in the order that the numbers in their names tell.

    Args:
        paths: The files.

    Attributes:
        paths: The files in their order.
        doubt: Two files of which either may come first, and why; None if there are no
            such.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.doubt: tuple[Path, Path, str] | None = None
        names, orders = _names(paths), []
        for reading in _readings(names):
            keys = [tuple(map(reading.key, name)) for name in names]
            for first in (_years(keys), [()] * len(keys)):
                ranked = [
                    (*key, str(p)) for *key, p in zip(first, keys, paths, strict=True)
                ]
                rank = sorted(range(len(keys)), key=ranked.__getitem__)
                orders.append([paths[i] for i in rank])
        self.paths = orders[-1] if paths else []
        for i, j in pairwise(rank if paths else []):
            if why := _doubt(keys[i], keys[j]):
                self.doubt = paths[i], paths[j], why
        for order in orders:
            for one, other in zip(order, self.paths, strict=True):
                if one != other and not self.doubt:
                    why = "the numbers in their names can be read in two ways"
                    self.doubt = one, other, why

    def check(self) -> None:
        """Raise a UserError if either of two files may come first."""
        if self.doubt is not None:
            one, other, why = self.doubt
            base = os.path.commonpath([one.parent, other.parent])
            names = [os.path.relpath(path, base or ".") for path in (one, other)]
            raise UserError(
                f"files {names[0]} and {names[1]}, of which either may come first: "
                f"{why}",
                "names that tell one order of the time steps",
                "number them with as many digits in each, as in step_0001",
            )


def have_numbers(paths: Sequence[Path]) -> bool:
    """Return whether all names, with those of folders that differ, have numbers."""
    return all(re.search(r"\d", "/".join(name)) for name in _names(paths))


def as_listed(paths: Sequence[Path]) -> bool:
    """Return whether files are in an order of a shell, which nobody has chosen.

    Shells sort by bytes, or as dictionaries do: without case, and without punctuation.
    """
    texts = [str(path) for path in paths]
    plain = [("".join(filter(str.isalnum, text)).lower(), text) for text in texts]
    orders: list[list[Any]] = [texts, [path.parts for path in paths], plain]
    orders.append([[text.lower() for text in path.parts] for path in paths])
    return any(order == sorted(order) for order in orders)


def _names(paths: Sequence[Path]) -> list[list[str]]:
    """The names of files and of folders that not all share, without endings."""
    base = os.path.commonpath([path.parent for path in paths]) if paths else ""
    names = [os.path.relpath(path, base).split(os.sep) for path in paths]
    for name, path in zip(names, paths, strict=True):
        if path.suffix[1:2].isalpha():  # unlike those of plot.0001 and t=1.5e-01
            name[-1] = name[-1].removesuffix(path.suffix)
    return names


def _readings(names: Names) -> Iterator[Reading]:
    """Every way to read the numbers in names, the likeliest last."""
    texts = ["/".join(name) for name in names]
    sure = any(re.search(SCIENTIFIC, text) for text in texts)
    decimals = [DECIMAL] if sure else [WHOLE, DECIMAL]  # written by a program
    for notation in NOTATIONS:
        if any(re.search(notation, text) for text in texts):
            decimals.append(f"{notation}|{DECIMAL}")
    units = {unit for text in texts for unit in re.findall(r"\d" + UNIT, text)}
    unit = f"(?:{UNIT})?" if len(units) > 1 else ""
    if unit:
        decimals = [DECIMAL]
    signs = [SIGN]
    if any(re.search(LETTER, text) for text in texts):
        signs.insert(0, SIGN_OF_LETTER)
    dates: list[tuple[str, str]] = [("", "dmy")]  # numbers alone
    iso = all(re.search(ISO, text) for text in texts)
    for pattern, possible in () if iso else DATES.items():
        if orders := [
            order for order in possible.split() if _fits(pattern, order, texts)
        ]:
            dates = [] if pattern == next(iter(DATES)) else dates
            dates += [(f"{pattern}|", order) for order in reversed(orders)]
            break
    months = all(re.search(MONTH, text, re.IGNORECASE) for text in texts)
    named = f"{MONTH}|" if months else ""
    depths = zip(*names, strict=False)
    whole = frozenset(part for column in depths for part in _numbers(column))
    short_years = (False, True) if months else (False,)
    ways = product(decimals, signs, dates, short_years)
    for decimal, sign, (date, order), short in ways:
        number = f"(?P<number>{sign}(?:{SCIENTIFIC}|{decimal})){unit}"
        numbers = re.compile(f"{named}{date}{number}", re.IGNORECASE)
        yield Reading(numbers, whole, order, short)


def _date(groups: Mapping[str, str | None], order: str) -> tuple[float, float, float]:
    """Return year, month and day of a date whose numbers are in an order."""
    texts = (groups["one"], groups["two"] or "1", groups["end"])
    parts = {name: float(text or 0) for name, text in zip(order, texts, strict=True)}
    year = parts["y"]
    if year < 100:
        year += 1900 if year >= 70 else 2000
    return year, parts["m"], parts["d"]


def _fits(pattern: str, order: str, texts: Sequence[str]) -> bool:
    """Return whether all texts have a date in an order of its numbers."""
    for text in texts:
        if (match := re.search(pattern, text)) is None:
            return False
        year, month, day = _date(match.groupdict(), order)
        if not (year in YEARS and 0 < month < 13 and 0 < day < 32):
            return False
    return True


def _years(keys: Sequence[Any]) -> list[tuple[float, ...]]:
    """Return the years and dates of each name, which may go before other numbers."""
    values = [[value for part in key for value in part[1::2]] for key in keys]
    columns = [*zip(*values, strict=False)]
    first = [all(value[0] in YEARS for value in column) for column in columns]
    return [(*chain.from_iterable(compress(row, first)),) for row in values]


def _numbers(column: Sequence[str]) -> Sequence[str]:
    """Names if all are numbers as a whole, and no versions such as 1.9 and 1.10."""
    number = re.compile(r"[+-]?\d+(?:\.(\d+))?(?:[eE][+-]?\d+)?")
    matches = [number.fullmatch(part) for part in column]
    digits = [match[1] or "" for match in matches if match]
    ends = any(part.endswith("0") for part in digits) and len({*map(len, digits)}) > 1
    plain = all(map(str.isdigit, column))  # perhaps dates
    return [] if ends or plain or None in matches else column


def _doubt(one: Sequence[tuple[Any, ...]], other: Sequence[tuple[Any, ...]]) -> str:
    """Return why either of two files may come first in a reading, "" if not."""
    if one == other:
        return "their names have the same numbers"
    texts = ["/".join("".join(part[::2]) for part in key) for key in (one, other)]
    if len(texts[0]) == len(texts[1]):
        odd = [a + b for a, b in zip(*texts, strict=True) if a != b]
        numbers = [[part[1::2] for part in key] for key in (one, other)]
        letters = len(odd) == 1 and odd[0].isalpha() and numbers[0] == numbers[1]
        if not odd or letters:  # step_a, step_b
            return ""
    return "their names differ in more than numbers"
