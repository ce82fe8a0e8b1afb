"""The sample, time step and point of each row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.checks import as_real, finite
from nfsgeo.data.conventions import (
    SPACE,
    STATIONS,
    Doubles,
    Indices,
    bare_name,
)
from nfsgeo.data.io import table_questions as questions
from nfsgeo.data.io.frames import values_of
from nfsgeo.data.io.near_points import NEAR, rounded
from nfsgeo.data.io.table_codes import codes_of, numbered
from nfsgeo.data.io.table_heads import is_number
from nfsgeo.data.io.table_marks import check_marks
from nfsgeo.data.io.table_texts import is_date, is_unread
from nfsgeo.data.times import as_times, counted, unit_of_times
from nfsgeo.errors import UserError, option

__all__ = ["Places", "Steps"]


@dataclass(frozen=True)
class Steps:
    """The sample and the time step of each row.

    Attributes:
        sample: Number of the sample of each row ``[rows]``.
        num_samples: Number of samples.
        time: Number of the time step of each row ``[rows]``.
        times: Distinct times in ascending order ``[T]``.
        unit: Their unit, empty if none is known.
    """

    sample: Indices
    num_samples: int
    time: Indices
    times: Doubles
    unit: str

    @classmethod
    def of(cls, path: Path, frame: pandas.DataFrame, roles: Mapping[str, str]) -> Steps:
        """Number the samples and times of the rows of a table."""
        sample, samples, _ = _codes(path, frame, roles, "sample")
        return cls(sample, len(samples), *_codes(path, frame, roles, "time"))

    @cached_property
    def together(self) -> Indices:
        """Number of the sample and time step of each row ``[rows]``."""
        if self.num_samples == 1:
            return self.time
        return self.sample * np.int64(len(self.times)) + self.time

    def check_complete(self, path: Path) -> None:
        """Raise a UserError if a sample lacks times of others."""
        seen = np.bincount(self.together)
        if not seen.all() or len(seen) < self.num_samples * len(self.times):
            todo = "convert samples with other times by themselves, or give the times "
            todo += "since the beginning of each sample"
            raise UserError(f"{path}", "every sample at the same times", todo)


def _codes(
    path: Path, frame: pandas.DataFrame, roles: Mapping[str, str], role: str
) -> tuple[Indices, Doubles, str]:
    """Number the rows by their samples or times; with these, and the unit of times."""
    if role not in roles:
        return np.zeros(len(frame), np.int64), np.zeros(1), ""
    column = frame[roles[role]]
    numbers = column.dtype.kind in "biuf"
    codes, distinct = numbered(column) if numbers else pandas.factorize(column)
    some = column if codes.min() < 0 else pandas.Series(distinct, name=column.name)
    try:
        key, unit = _key(path, some, role)
    except UserError:
        _key(path, column, role)  # names the row among all
        raise
    values, order = np.unique(key, return_inverse=True)
    return order if some is column else order[codes], values, unit


def _key(path: Path, column: pandas.Series, role: str) -> tuple[Doubles, str]:
    """Samples, times or coordinates, and the unit if they are times."""
    what, unit = f"{path}: column {column.name}", ""
    values = values_of(path, column, names=role == "sample", gaps=False)
    if role == "time":
        unit, values = unit_of_times(values), as_times(values, what)
        dated = bare_name(str(column.name)) in ("date", "datetime", "timestamp")
        if dated and not unit:
            kind, call = counted(values, f"table[{column.name!r}]")
            years = 1800 <= values.min() <= values.max() < 2200
            todo = f"write dates: {call}, or give the column another name"
            if years:
                todo = "write dates with hyphens, or give the column another name"
            if years or kind:
                given = f"{what} with {values.min():.12g}, a number or a "
                given += kind or "year"
                raise UserError(given, "dates such as 2026-01-31", todo)
    elif role == "sample" and values.dtype.kind == "M":
        values = as_times(values, what)
    return finite(as_real(values, what), what) + 0.0, unit  # which makes -0 to 0


@dataclass(frozen=True)
class Places:
    """The points of all samples, and the point of each row.

    Attributes:
        points: Coordinates ``[n, d]``.
        point: Number of the point of each row ``[rows]``.
        column: Column of the names of the points; empty if there is none.
        names: Their names ``[n]``, if they have any.
    """

    points: Doubles
    point: Indices
    column: str = ""
    names: NDArray[np.str_] | None = None

    @classmethod
    def of(
        cls,
        path: Path,
        frame: pandas.DataFrame,
        roles: Mapping[str, str],
        kinds: Mapping[str, str],
        steps: Steps,
        station: str,
        marks: Sequence[str],
    ) -> Places:
        """Number the points of the rows, by coordinates or by the names of stations.

        Args:
            path: The file.
            frame: The table.
            roles: Columns of coordinates, times and samples.
            kinds: What users say of other columns.
            steps: The sample and time step of each row.
            station: The column that names stations, if users say it.
            marks: Marks of missing values; one of them that is empty says that all
                numbers are values.

        Raises:
            UserError: Coordinates have marks of missing values, points move, or names
                do not fit the points.
        """
        axes = [axis for axis in SPACE if axis in roles]
        space = [_key(path, frame[roles[axis]], axis)[0] for axis in axes]
        point, row = _representatives(*codes_of(*space))
        for axis, along in () if "" in marks else zip(axes, space, strict=True):
            check_marks(path, roles[axis], along[row], marks, along)
        if sample := roles.get("sample", ""):
            unlike = [name for name in roles.values() if name != sample]
            unlike += [name for name in kinds if kinds[name] == "ignore"]
            questions.check_sample(path, frame.drop(columns=unlike), sample, point)
        frame = frame.drop(columns=[*roles.values()])
        free = [name for name in frame if name not in kinds]
        named = [station] if station else [n for n in free if bare_name(n) in STATIONS]
        coded = {name: numbered(frame[name]) for name in named[:1]}
        for codes, names in coded.values():
            point, row = _stations_apart(codes, len(names), steps, point, row)
        places = cls(np.stack([values[row] for values in space], axis=1), point)
        for name in [station] if station else free:
            sure, codes_and_names = name in named, coded.get(name)
            found = places._named(path, frame[name], steps, codes_and_names, sure=sure)
            if found is not None:
                return found
        if station:
            given = f"{path} with {frame[station].nunique()} names in column {station}"
            expected = f"a name for each of {len(row)} points"
            raise UserError(given, expected, f"correct them, or say ignore={station}")
        return places

    def _named(
        self,
        path: Path,
        column: pandas.Series,
        steps: Steps,
        coded: tuple[Indices, Any] | None,
        *,
        sure: bool,
    ) -> Places | None:
        """Return the points in the order of the names in a column, if it names them.

        Args:
            path: The file.
            column: The column.
            steps: The sample and time step of each row.
            coded: Number of the name of each row, and the names, if they are known.
            sure: Whether the name of the column tells that it names points.

        Raises:
            UserError: It names what has one place at a time, but several.
        """
        num, numbers = len(self.points), column.dtype.kind in "biufmM"
        if not sure:
            if column.dtype.kind == "f" and (column.head(1000) % 1 > 0).any():
                return None
            # The first rows often suffice to tell that there are more names than
            # points.
            if numbers and column.head(2 * num + 2).nunique() >= num:
                return None
        codes, names = coded or numbered(column)
        pairs = pandas.unique(codes * np.int64(num) + self.point)
        if len(pairs) == len(names) == num and codes.min() >= 0:
            texts = np.array([str(cell).strip() for cell in names])
            sure = sure or isinstance(column.dtype, pandas.CategoricalDtype)
            numbers |= any(map(is_number, texts)) or is_date(column)
            numbers |= is_unread(column)
            if sure or not numbers:
                order = pairs[np.argsort(pairs // num)] % num
                point = np.argsort(order)[self.point]
                return Places(self.points[order], point, str(column.name), texts)
        elif len(names) < num and len(pairs) > len(names):
            _check_moves(path, column, codes, steps, self)
        return None


def _stations_apart(
    codes: Indices, num: int, steps: Steps, point: Indices, row: Indices
) -> tuple[Indices, Indices]:
    """Tell stations of several names at one place apart, if there are any.

    Args:
        codes: Number of the name of the station of each row.
        num: Number of names.
        steps: The sample and time step of each row.
        point: Number of the place of each row.
        row: A row at each place.

    Returns:
        Number of the point of each row, and a row of each point.
    """
    apart, several = codes_of(point, codes)
    if several != num or several <= len(row) or codes.min() < 0:
        return point, row
    if codes_of(steps.together, point)[1] == len(point):  # at different times
        return point, row
    return _representatives(apart, several)


def _representatives(codes: Indices, num: int) -> tuple[Indices, Indices]:
    """The codes of rows, and a row that has each of them."""
    row = np.empty(num, np.int64)
    row[codes] = np.arange(len(codes))
    return codes, row


def _check_moves(
    path: Path, column: pandas.Series, codes: Indices, steps: Steps, places: Places
) -> None:
    """Raise a UserError if a column names what has one place at a time, but several."""
    points, point = places.points, places.point
    table = pandas.DataFrame({"name": codes, "sample": steps.sample, "point": point})
    several = table.drop_duplicates().duplicated(["name", "sample"])
    if several.any() and codes_of(codes, steps.together)[1] == len(codes):
        first = table.groupby(["name", "sample"])["point"].transform("first")
        apart = abs(points[point] - points[first]).max()
        if apart <= NEAR * np.ptp(points, axis=0).max():
            moved = table["point"] != first
            raise rounded(path, points, np.column_stack([first, point])[moved])
        name, row = column.name, several.idxmax()
        todo = "interpolate the fields to such points, or say "
        todo += f"{option('columns', f'ignore={name}')}, if it tells no points apart"
        if bare_name(str(name)) in STATIONS:
            todo = "give each name one place, in pandas the median of coordinates by "
            todo += f"table.groupby({name!r}).transform('median'), or interpolate the "
            todo += "fields of moving instruments to points"
        given = f"{path} with {name} {column.iloc[row]} at two places"
        raise UserError(given, "points that stay where they are", todo)
