"""Arranges the values of a data set on a grid or at points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from xarray import DataArray, Dataset, Variable

from nfsgeo.data.conventions import SPACE
from nfsgeo.data.io.array_files import units_of
from nfsgeo.data.io.cf_roles import (
    LARGE,
    Roles,
    Sizes,
    closed,
    is_longitude,
    located,
    rising,
    still,
    without_repeats,
)
from nfsgeo.data.io.format import left_out
from nfsgeo.data.io.roles import unwrapped
from nfsgeo.data.lazy import Key, deferred, flattened

__all__ = ["Places"]


@dataclass(frozen=True)
class Places:
    """The coordinates of a data set, and the dimensions of its values.

    Attributes:
        path: The file, for messages.
        sample: Dimension of the samples, if any.
        time: Dimension of the time steps, if any.
        ahead: Lengths of these dimensions.
        space: Coordinates by axis, ``x`` first.
        hidden: Which of the points, one after the other, have lost their coordinates.
    """

    path: Path
    sample: str | None
    time: str | None
    ahead: Sizes
    space: Mapping[str, DataArray]
    hidden: Any

    @classmethod
    def of(
        cls,
        path: Path,
        dataset: Dataset,
        roles: Roles,
        sample: str | None,
        time: str | None,
    ) -> Self:
        """Find the places of a data set whose coordinates are known by their role."""
        ahead = {d: dataset.sizes[d] for d in (sample, time) if d is not None}
        space = {a: still(path, dataset[roles[a]], time) for a in SPACE if a in roles}
        space = {a: located(path, values) for a, values in space.items()}
        return cls(path, sample, time, ahead, *without_repeats(path, space))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Lengths of the dimensions of the coordinates."""
        return {str(d): n for at in self.space.values() for d, n in at.sizes.items()}

    @cached_property
    def dims(self) -> dict[str, int]:
        """Lengths of the dimensions of space."""
        return {dim: num for dim, num in self.sizes.items() if dim != self.sample}

    @cached_property
    def is_grid(self) -> bool:
        """Return whether each axis has a dimension of its own."""
        first, num = self.space["x"], len(self.space)
        if not len(self.dims) == num == sum(at.ndim for at in self.space.values()):
            return False
        return num > 1 or first.name == first.dims[0]

    @cached_property
    def absent(self) -> NDArray[Any]:
        """Return which points have no coordinates.

        The array is empty for a grid, and if samples have points of their own.
        """
        if self.is_grid or self.sample in self.sizes:
            return np.zeros(0, bool)
        unknown = [np.isnan(self._flat(at).values) for at in self.space.values()]
        return np.logical_or.reduce(unknown)

    def ascending(
        self, data: Mapping[str, DataArray]
    ) -> tuple[Self, dict[str, DataArray]]:
        """Return a grid, and fields on it, with ascending coordinates.

        A meridian that the fields have at both ends is left out at one of them.
        """
        space, first = dict(self.space), self.space["x"]
        index: dict[Any, Any] = {}
        if is_longitude(first):
            space["x"] = unwrapped(self.path, first)
            index = closed(self.path, first, [*data.values()]) or {}
        space["x"] = space["x"].isel(index)
        order = {at.dims[0]: rising(self.path, at) for at in space.values()}

        def sorted_along(values: DataArray) -> DataArray:
            return values.isel(order, missing_dims="ignore")

        space = {axis: sorted_along(at) for axis, at in space.items()}
        data = {
            name: sorted_along(values.isel(index, missing_dims="ignore"))
            for name, values in data.items()
        }
        return replace(self, space=space), data

    def tell_absent(self) -> None:
        """Tell in a line how many points have no coordinates, if any."""
        if (num := self.absent.sum()) > 0:
            what = f"{num} of {self.absent.size} points, without coordinates"
            left_out(self.path, [what])

    def variable(self, values: DataArray) -> tuple[list[str], Variable]:
        """Return values at the points or on the grid, and the names of their axes."""
        labels = {str(self.sample): "sample", str(self.time): "time", "point": "point"}
        if self.is_grid:
            labels |= dict(zip(self.dims, SPACE, strict=False))
        along, variable = self.dims.keys() & {*values.dims}, values.variable
        if not self.is_grid and (along or not self.dims):
            variable = self._flat(values)
            everywhere = len(along) == len(self.dims)
            if everywhere and self.absent.any() and variable.dtype.kind == "f":
                hidden = np.broadcast_to(self.hidden, self.absent.shape)
                read = partial(_at_existing, variable, self.absent, hidden)
                variable = deferred(variable.dims, variable.shape, variable.dtype, read)
        return [labels[str(dim)] for dim in variable.dims], variable

    def coordinates(self) -> dict[str, Any]:
        """Return coordinates by axis, with names of their dimensions and units."""
        units = {axis: units_of(at) for axis, at in self.space.items()}
        if self.is_grid:
            return {a: (a, at.values, units[a]) for a, at in self.space.items()}
        along = ["sample", "point"][self.sample not in self.sizes :]
        return {
            axis: (along, self._flat(at, self.sizes), units[axis])
            for axis, at in self.space.items()
        }

    def _flat(self, values: DataArray, dims: Any = None) -> Variable:
        """Values one point after the other, also repeated along others of the ``dims``
        of samples and time.
        """
        dims = values.dims if dims is None else dims
        ahead = {dim: num for dim, num in self.ahead.items() if dim in dims}
        return flattened(values.variable, ahead, self.dims, "point")


def _at_existing(values: Variable, absent: Any, hidden: Any, key: Key) -> NDArray[Any]:
    """Values at points, without fill values at those without coordinates, and without
    any at those that were ``hidden``.
    """
    here = values[key].values
    bad = absent[key[-1]] & ((np.abs(here) >= LARGE) | hidden[key[-1]])
    return np.where(bad, np.float32(np.nan), here)
