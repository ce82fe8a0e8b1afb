"""Arrays over times and points, made of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from nfsgeo.data.conventions import Doubles, Floats, Indices
from nfsgeo.data.io.table_codes import codes_of
from nfsgeo.data.io.table_repeats import rows_apart
from nfsgeo.data.io.table_rows import Places, Steps
from nfsgeo.data.times import EPOCH, filled, time_texts
from nfsgeo.errors import UserError, option

__all__ = ["Cells"]

SPARSE = 100  # times as many points and time steps as rows: points that move


@dataclass(frozen=True)
class Cells:
    """The cell of each row in arrays over times and the points of all samples.

    Attributes:
        steps: The sample and time step of each row.
        place: Number of the point of each row among those of all samples ``[rows]``.
        points: Coordinates of the points of all samples, in their order ``[n, d]``.
        station: Number of the name of each of these points ``[n]``.
        starts: First point of each sample ``[S]``.
        ragged: Whether samples have points of their own.
    """

    steps: Steps
    place: Indices
    points: Doubles
    station: Indices
    starts: Indices
    ragged: bool

    @classmethod
    def of(cls, steps: Steps, places: Places) -> Cells:
        """Put the points of each sample after those of the one before."""
        place, num, samples = places.point, len(places.points), steps.num_samples
        used = np.arange(num)
        if samples > 1:
            place = steps.sample * np.int64(num) + place
            place, used = pandas.factorize(place, sort=True)
        starts = np.searchsorted(used, np.arange(samples) * num)
        ragged, station = len(used) < samples * num, used % num
        points = places.points if samples == 1 else places.points[station]
        return cls(steps, place, points, station, starts, ragged)

    @cached_property
    def cell(self) -> Indices:
        """Number of the cell of each row ``[rows]``."""
        if len(self.steps.times) == 1:
            return self.place
        return self.steps.time * len(self.points) + self.place

    @cached_property
    def regular(self) -> tuple[Doubles, Indices]:
        """Times with those that a regular series of dates lacks, and cells in these."""
        times, time = self.steps.times, self.steps.time
        if self.steps.unit != EPOCH:
            return times, self.cell
        times, steps = filled(times)
        if steps[-1] < len(steps):
            return times, self.cell
        return times, steps[time] * len(self.points) + self.place

    def check_unique(
        self,
        path: Path,
        others: pandas.DataFrame,
        roles: Mapping[str, str],
        quantity: Indices | None,
    ) -> None:
        """Raise a UserError if points move, or rows are there twice.

        Args:
            path: The file.
            others: The columns that have no role.
            roles: Columns of coordinates, times and samples.
            quantity: Number of the quantity of each row, if rows are for several.
        """
        points, times, cell = self.points, self.steps.times, self.cell
        alone = len(times) > 1 and len(cell) <= len(points)
        alone = alone and np.bincount(cell % len(points)).max() < 2
        if alone or len(points) * len(times) > SPARSE * len(cell) + 1e7:
            rows = f"{len(cell) / len(points):.3g} of {len(times)} times"
            todo = "interpolate the fields to such points, at common times"
            given = f"{path} with {len(points)} points at {rows}"
            raise UserError(given, "points that stay where they are", todo)
        code = cell if quantity is None else cell * (quantity.max() + 2) + quantity + 1
        rows_of_code = np.bincount(code)
        if (num := rows_of_code.max()) == 1:
            return
        dated = self.steps.unit == EPOCH
        first = int(cell[np.argmax(code == rows_of_code.argmax())])
        step, where = divmod(first, len(points))
        at = pandas.Series(times[cell // len(points)] if dated else np.nan)
        names, say = rows_apart(path, others, codes_of(code)[0], roles, at)
        given = f"{path} with {num} rows for the point {points[where].tolist()} at "
        given += time_texts(times, self.steps.unit)[step]
        todo = "leave the others out, as in pandas by table.drop_duplicates("
        todo += f"{[*roles.values()]})"
        if names:
            given += f", told apart by {' and '.join(names)}"
            todo = f"say it: {option('columns', *say)}"
        raise UserError(given, "one row for each point and time step of a sample", todo)

    def arranged(
        self, column: Floats, quantity: Indices | None
    ) -> tuple[tuple[str, ...], Floats] | None:
        """Put the values of rows where they belong, NaN where there is no row.

        Args:
            column: A value for each row ``[rows]``.
            quantity: Number of the quantity of each row, if rows are for several.

        Returns:
            Names of the axes, and the array; None if rows of one cell differ.
        """
        times, cell = self.regular
        if quantity is not None:
            seen = np.flatnonzero(~np.isnan(column))
            cell, column = cell[seen], column[seen]
        table = np.full(len(times) * len(self.points), np.nan, column.dtype)
        table[cell] = column
        if quantity is not None and (table[cell] != column).any():
            return None
        if self.ragged or self.steps.num_samples == 1:
            return ("time", "point"), table.reshape(len(times), -1)
        shape = len(times), self.steps.num_samples, -1
        return ("time", "sample", "point"), table.reshape(shape)

    def coordinates(self, places: Places, *, timed: bool) -> dict[str, Any]:
        """Return points, times and names of stations, as arrays with named axes.

        Args:
            places: The points of the table.
            timed: Whether the table has times.
        """
        names, points = places.names, places.points
        each = np.split(self.points, self.starts[1:]) if self.ragged else points
        times = self.regular[0] if timed else None
        return {
            "points": (("point", "axis"), each),
            "time": ("time", times, {"units": self.steps.unit}),
            "station": ("point", None if names is None else names[self.station]),
        }
