"""Text in the cells of tables: dates with a zone, and hints for other text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas
from numpy.typing import NDArray

from nfsgeo.data.io.table_heads import is_number
from nfsgeo.errors import UserError, option

__all__ = [
    "GROUPED",
    "ISO",
    "NAMED_ZONE",
    "OFFSET",
    "add_century",
    "advice",
    "has_zone",
]
__all__ += ["is_clock", "is_date", "is_unread", "with_z"]

OFFSET = re.compile(r"(?i)(z|:\d.*[+-]\d\d(:?\d\d)?)$")  # of a time from UTC
NAMED_ZONE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d.*\d ?[A-Za-z]{2,5}")  # such as CET
ISO = "dates such as 2026-01-31T12:00, all or none of them with an offset such as Z"
# In the name of a column: CET, UTC+2, +01:00, local time, Europe/Berlin.
ZONE = re.compile(
    "[A-Z]{2,4}T(?<!GMT)|(UTC|GMT)? *[+−-] *\\d{1,2}(:?\\d\\d)?|MES?Z|"
    "[Ll]ocal([ _-].*)?|[A-Z][a-z]+/[A-Z]\\w+"
)
CLOCKS = ("", *(f"{s}{c}" for s in " T" for c in ("%H:%M", "%H:%M:%S", "%I:%M %p")))
MONTH = "(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)"
MONTH += r"(\.|r?uary|ch|il|ust|t?ember|ober)?"
DATE = re.compile(  # in any order of its parts, or a number such as 20260131
    r"\d{4}([-/.])\d\d?\1\d\d?(?!\d)|\d\d?([-/.])\d\d?\2(\d{4}|\d\d)(?!\d)|"
    r"(18|19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?![\d.])|"
    rf"\d\d?[-/. ]+[^\W\d_]{{3,10}}[-/. ,]+(18|19|20|21)\d\d|"
    rf"(?i:\d\d?[-/. ]+{MONTH}[-/. ]*\d\d|{MONTH}[-. ]+\d\d?\W)"
)
CLOCK = re.compile(r"\d?\d:[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?$")
# Numbers that are not read, such as those with decimal commas.
NUMBER = re.compile(r"[-+−]?[.,]?\d[\d.,'’\s]*([eEdD][-+]?\d+)?\s*%?$")
# Numbers with decimal commas, or of two thousands, and what marks thousands in them.
GROUPED = re.compile(r"(?<![\d.])\d{1,3}([.'’\xa0\u202f ])\d{3}(?:,\d|\1\d{3}(?!\d))")
FEW = 1000  # cells, which tell what those of a column are
HINTS = {  # todo for cells of a kind
    r"(?s).*\n.*": "remove the quote that opens in this row",
    r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?": "are these thousands? Write it by {1}; if "
    "they are decimal commas, decimal=',' in place of thousands=','",
    r"[+-]?\d[\d.\s'’]*,\d+|[+-]?\d{1,3}(\.\d{3}){2,}": "decimal commas: write it by "
    "{2}",
    r"[+-]?\d{1,3}([\s'’]\d{3})+(\.\d*)?": "thousands: write it by {3}",
    r"\d{1,2}[./-]\d{1,2}[./-]\d{4}.*": "write it by pandas.to_datetime(table"
    "[{0!r}], dayfirst=True), or dayfirst=False where the month is first",
    r"\d{1,2}([./-])\d{1,2}\1\d\d(\D.*)?": "write it by pandas.to_datetime(table"
    "[{0!r}], format={4})",
    rf"(?i)(.*[^a-z])?{MONTH}[^a-z](.*\D)?\d\d.*": "write it by "
    "pandas.to_datetime(table[{0!r}])",
    r"\d\d?\W+[^\W\d_]{3,10}\W+\d{4}.*": "write it such as 2026-01-31",
    r"\d{4}-\d\d-\d\d_\d\d:.*": "write it by pandas.to_datetime(table[{0!r}].str"
    ".replace('_', 'T'))",
    r"\d{4}-\d\d-\d\d.*:\d\d,\d+": "write it by pandas.to_datetime(table[{0!r}].str"
    ".replace(',', '.'))",
    r"\d{10}Z": "write it by pandas.to_datetime(table[{0!r}], format='%Y%m%d%HZ')",
    r"\d{12}Z": "write it by pandas.to_datetime(table[{0!r}], format='%Y%m%d%H%MZ')",
    r"\d{4}-?W\d\d": "write it by pandas.to_datetime(table[{0!r}].str.replace('-', '') "
    "+ '-1', format='%GW%V-%u')",
    r"\d{4}-?Q[1-4]": "write it by pandas.PeriodIndex(table[{0!r}], freq='Q')"
    ".to_timestamp()",
    r"[+-]?\d+ days?.*": "write it by pandas.to_timedelta(table[{0!r}])"
    ".dt.total_seconds()",
    r"\d?\d:[0-5]\d(:.*)?": "name the column of the date too, "
    f"{option('columns', 'time=DATE+{0}')}, or write numbers, such as hours",
    r"(?i)[+-]?\d*\.?\d*d[+-]?\d+": "write exponents with e: table[{0!r}].str.lower()"
    ".str.replace('d', 'e')",
    r"[+-]?\d+(\.\d+)?( ?°.*| ?[NSEWO])": "write degrees as numbers with decimals, "
    "those of S and W with a minus",
    NAMED_ZONE.pattern: "write the offset of the zone from UTC, such as +01:00, or Z",
    r".*T?24:00(:00)?Z?": "24:00 is 00:00 of the day after: write it so",
}


def add_century(name: str, years: NDArray[Any]) -> str:
    """The advice for a column of years, some of which have two digits."""
    column, late = f"table[{name!r}]", years[years < 1000] >= 70  # as Python's %y
    century = "1900" if late.all() else "2000"
    if late.any() and not late.all():
        century = f"numpy.where({column} < 70, 2000, 1900)"
    if (years >= 1000).any():
        century = f"numpy.where({column} < 1000, {century}, 0)"
    return f"add the century, as by {column} += {century} in pandas"


def advice(name: str, cell: str, cells: Iterable[str], *by_pandas: str) -> str:
    """Return advice on the text in a cell of a column.

    Args:
        name: The column.
        cell: The text.
        cells: All such texts of the column.
        by_pandas: Calls of pandas that read thousands with commas, decimal commas, and
            thousands with other marks.
    """
    forms = (todo for form, todo in HINTS.items() if re.fullmatch(form, cell))
    formats = _formats(cell, cells)
    return next(forms, "correct it").format(name, *by_pandas, formats)


def _formats(cell: str, cells: Iterable[str]) -> str:
    """The formats of dates with years of two digits such as a cell that fit others."""
    if not (between := re.match(r"\d+([./-])", cell)):
        return ""
    orders = ("%d{0}%m{0}%y", "%m{0}%d{0}%y", "%y{0}%m{0}%d")
    dates = pandas.Series([cell, *(c for c in cells if re.match(r"\d+[./-]", c))])
    fits = list[str]()
    for clock, order in product(CLOCKS, orders):
        form = order.format(between[1]) + clock
        if pandas.to_datetime(dates, format=form, errors="coerce").notna().all():
            fits.append(repr(form))
    return " or ".join(fits) or "..., and write all of them alike"


def is_date(column: pandas.Series) -> bool:
    """Return whether a column begins with dates, in any form."""
    return _has(column, DATE)


def is_clock(column: pandas.Series) -> bool:
    """Return whether a column begins with clocks such as 13:00."""
    return _has(column, CLOCK)


def is_unread(column: pandas.Series) -> bool:
    """Return whether a column is text that begins with numbers which are not read."""
    if column.dtype.kind in "biufmM" or is_date(column):
        return False
    return _has(column, NUMBER) and not all(map(is_number, column.dropna().map(str)))


def _has(column: pandas.Series, form: re.Pattern[str]) -> bool:
    cells = column.head(FEW).dropna().astype(str).str.strip()
    return bool(len(cells) and 2 * cells.map(form.match).notna().sum() > len(cells))


def with_z(cell: str) -> str:
    """A cell with Z for UTC or GMT behind a time, or behind a date, at midnight."""
    cell = re.sub(r"(:\d\d(?:\.\d+)?) ?(UTC|GMT)$", r"\1Z", cell)
    return re.sub(r"^(\d{4}-\d\d-\d\d) ?(Z|UTC|GMT)$", r"\1T00:00Z", cell)


def has_zone(path: Path, column: pandas.Series, units: Mapping[str, str]) -> bool:
    """Return whether the dates of a column, its name or unit, tell their time zone.

    Args:
        path: The file, for messages.
        column: The column of the times.
        units: Units in a row of their own, by name.

    Raises:
        UserError: Its name or unit tells a zone other than UTC, which the dates do not.
    """
    if isinstance(column.dtype, pandas.DatetimeTZDtype):
        return True
    first = str(next(iter(column), "")).strip()
    if not re.match(r"\d{4}-\d", first) or OFFSET.search(with_z(first)[-40:]):
        return bool(re.match(r"\d{4}-\d", first))
    inside = re.fullmatch(r".*\S\s*[\[(](.*)[\])]", str(column.name))
    zone = inside[1].strip() if inside else units.get(str(column.name), "")
    if ZONE.fullmatch(zone):
        given = f"{path} with {column.name} of dates in {zone} without an offset"
        todo = "write the offset behind each, such as 2026-01-31T12:00+01:00, or "
        todo += f"convert them to UTC and write UTC in place of {zone}"
        raise UserError(given, "dates in UTC, or with their offset from it", todo)
    return zone.upper() in ("UTC", "GMT", "Z")
