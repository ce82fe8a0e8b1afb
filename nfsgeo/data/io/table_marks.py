"""Numbers and texts that mark missing values in tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.errors import UserError, option

__all__ = ["check_marks", "check_percentages", "without_marks"]

SURE = re.compile(r"9{3,}|3276[78]")  # digits of numbers that often are marks
LIKELY = re.compile(r"9{2,}|8{3,}|3276[78]")
PERCENT = r"\s*[+-]?[\d.,]+\s*%\s*"
LARGE = 1e15  # from which on numbers are marks, such as 1e20 and 9.96921e36
MOST, FEW = 3, 5  # marks in a column, and different values beside them


def without_marks(frame: pandas.DataFrame, marks: Sequence[str]) -> pandas.DataFrame:
    """Make cells missing that hold a mark; numbers are compared by value."""
    texts, numbers = [mark.strip() for mark in marks if mark.strip()], list[float]()
    for text in texts:
        with suppress(ValueError):
            numbers.append(float(text))
    if not texts:
        return frame
    changed = dict[str, pandas.Series]()
    for name, column in frame.items():
        kind = column.dtype.kind
        if kind in "mM":
            continue
        if kind in "iuf":
            alike = np.array(numbers)
            marked = column.isin(alike.astype(column.dtype) if kind == "f" else alike)
        else:
            marked = column.astype(str).str.strip().isin(texts)
            marked |= pandas.to_numeric(column, errors="coerce").isin(numbers)
        if marked.any():
            changed[str(name)] = column.mask(marked)
    return frame.assign(**changed)


def check_marks(
    path: Path,
    name: str,
    values: NDArray[Any],
    user_marks: Sequence[str] = (),
    rows: NDArray[Any] | None = None,
    *,
    of_table: bool = True,
) -> None:
    """Ask whether numbers far from all others, such as -9999, mark missing values.

    Args:
        path: The file, for messages.
        name: The column or field.
        values: Its numbers.
        user_marks: Marks that users have named.
        rows: Those of all rows, if ``values`` are the coordinates of each point once.
            Else a number that is there several times is a mark whatever its digits.
        of_table: Whether it is a column of a table. In other files the digits of a mark
            have to tell it.
    """
    distinct, counts = _outermost(values)
    steps, size = np.diff(distinct), len(distinct)
    for num in range(min(MOST, size - 1), 0, -1):
        for low in range(num + 1):
            end = size - num + low
            first, last = distinct[low], distinct[end - 1]
            span = last - first
            gap = steps[[low - 1] * (low > 0) + [end - 1] * (end < size)].min()
            ends = np.r_[0:low, end:size]
            marks = [*map(_text_of, distinct[ends])]
            bare = [mark.strip("-").replace(".", "") for mark in marks]
            sure = all(SURE.fullmatch(digits) or "e" in digits for digits in bare)
            wide = 1 if all(map(LIKELY.fullmatch, bare)) else 5
            often = of_table and rows is None and size - num >= FEW
            often &= counts[ends].min() > 1
            if not (
                (sure and gap > 10 * max(span, abs(first), abs(last), 1))
                or (often and gap > wide * span)
            ):
                continue
            num_rows = np.isin(values if rows is None else rows, distinct[ends]).sum()
            where = f"{num_rows} rows of column {name}"
            if not of_table:
                where = f"{num_rows} of {len(values)} values of {name}"
            given = f"{path} with {' and '.join(marks)} in {where}, "
            given += f"far from all others, from {first:g} to {last:g}"
            said = ",".join(f"missing={mark}" for mark in [*user_marks, *marks])
            values_too = ",".join(f"missing={mark}" for mark in [*user_marks, ""])
            todo = f"say {option('columns', said, values_too)} if that is a value"
            raise UserError(given, "to be told whether it marks missing values", todo)


def check_percentages(
    path: Path, frame: pandas.DataFrame, kinds: Mapping[str, str]
) -> None:
    """Raise a UserError if a column that users do not name has numbers with a sign %.

    Args:
        path: The file, for messages.
        frame: Columns without a role.
        kinds: What users say of columns.
    """
    for name in frame:
        if name in kinds or frame[name].dtype.kind in "biufmM":
            continue
        cells = frame[name].dropna().astype(str)
        if len(cells) and cells.str.fullmatch(PERCENT).all():
            given = f"{path} with percentages in column {name}, such as {cells.iloc[0]}"
            call = "" if "%" in str(name) else f", call it {name} [%]"
            raise UserError(given, "numbers", f"remove the sign %{call}")


def _text_of(number: np.floating[Any]) -> str:
    """Return the shortest text of a number, that of a large one as 1e+20."""
    if abs(number) < LARGE:
        return str(np.format_float_positional(number, trim="-"))
    return str(np.format_float_scientific(number, trim="-"))


def _outermost(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The lowest and the highest different numbers, more than may be marks and one of
    those between, and how often they are there; all if there are few.
    """
    ordered = np.sort(values)  # NaN come last
    low, high = [0], [len(ordered) - int(np.isnan(ordered).sum())]
    while len(low) < MOST + 2 and low[-1] < high[0]:
        low.append(int(np.searchsorted(ordered, ordered[low[-1]], "right")))
    while len(high) < MOST + 2 and high[-1] > 0:
        high.append(int(np.searchsorted(ordered, ordered[high[-1] - 1], "left")))
    bounds = np.unique([*low, *high])
    return ordered[bounds[:-1]], np.diff(bounds)
