"""Where samples, time steps and points lie in a data set of xarray, after CF.

=============  =========================================================================
in the data    meaning
=============  =========================================================================
samples, time  dimensions ``sample`` and ``time`` with the coordinate ``time``
grid           dimensions ``x``, ``y``, ``z`` with coordinates of these names
points         dimension ``point`` and coordinates ``x(point)``, or ``x(sample, point)``
               where each sample has points of its own; names ``station(point)``
ragged         a mesh for each sample: dimension ``obs``, ``row_size(sample)`` points of
               each sample, one after the other, ``x(obs)`` (CF 1.11, section 9.3.3)
graph          ``edges(edge, end)``, source and target, and ``edge_weight(edge)``;
               ``row_size_edge(sample)`` where each sample has its own
domain         attributes ``lower``, ``upper`` and ``periodic`` of each coordinate, see
               :mod:`nfsgeo.data.domains`
=============  =========================================================================

A variable that does not vary along a dimension lacks it. NaN marks a missing value, or
as a coordinate a point that does not exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import xarray
from numpy.typing import NDArray

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import (
    EDGE_ROWS,
    EDGE_WEIGHT,
    EDGES,
    FIELD,
    KNOWN,
    SPACE,
    STATIC,
    STATION,
    Doubles,
    Floats,
    Indices,
)
from nfsgeo.data.domains import domain_of
from nfsgeo.data.lazy import part
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["Layout"]

# Corners of the triangles that a cell of each kind consists of.
TRIANGLES = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Points and cells of samples, and values of variables at the points.

    Args:
        dataset: Laid out as :mod:`nfsgeo.data.layout` says.
        path: The file that it comes from, for messages.
    """

    dataset: xarray.Dataset
    path: Path

    @property
    def num_samples(self) -> int:
        """Number of samples ``N``."""
        return int(self.dataset.sizes.get("sample", 1))

    @cached_property
    def times(self) -> Doubles:
        """Time of each time step, float64 ``[T]``; 0, 1, 2, ... if it is not known."""
        if "time" in self.dataset.variables:
            return np.atleast_1d(self.dataset["time"].values.astype(np.float64))
        return np.arange(float(self.dataset.sizes.get("time", 1)))

    @cached_property
    def space(self) -> tuple[str, ...]:
        """Names of the axes of the domain, ``("x", "y")`` in the plane."""
        return tuple(axis for axis in SPACE if axis in self.dataset.variables)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Dimensions of space: those of a grid, ``("point",)`` or ``("obs",)``."""
        dims = self.dataset[self.space[0]].dims
        if dims == (self.space[0],):
            return self.space
        return tuple(str(dim) for dim in dims if dim != "sample")

    @cached_property
    def axes(self) -> tuple[Doubles, ...] | None:
        """Coordinates of each axis of the grid, float64; None for point clouds."""
        if self.places != self.space:
            return None
        return tuple(self.dataset[a].values.astype(np.float64) for a in self.space)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Points along each axis of the grid, None for point clouds."""
        return None if self.axes is None else tuple(map(len, self.axes))

    @cached_property
    def own_meshes(self) -> bool:
        """Return whether each sample has coordinates of its own."""
        return self._varies(self.space[0])

    @cached_property
    def sample_mesh(self) -> Indices:
        """Number of the mesh of each sample; equal numbers mean equal points."""
        if not self.own_meshes:
            return np.zeros(self.num_samples, np.int64)
        return _numbered(hashlib.blake2b(points.tobytes()) for points in self.meshes())

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        if self.axes is not None:
            grids = np.meshgrid(*self.axes, indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=-1)
        points, exists = self._points(sample)
        return points if exists is None else points[exists]

    def existing(self, sample: int) -> NDArray[np.bool_] | None:
        """Mask of the points of a cloud that exist; None where all of them do."""
        return None if self.axes is not None else self._points(sample)[1]

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        if self.shape is not None:
            return prod(self.shape)
        return len(self.coordinates(sample))

    def rows(self, sample: int) -> slice | None:
        """Return the slice of a sample along ``obs``; None in other layouts."""
        if self._ends is None:
            return None
        return slice(int(self._ends[sample]), int(self._ends[sample + 1]))

    def entries_of(self, samples: Indices) -> dict[Any, Indices]:
        """Numbers along each dimension of what belongs to some samples."""
        entries: dict[Any, Indices] = {"sample": samples}
        for variable in self.dataset.variables.values():
            if along := variable.attrs.get("sample_dimension"):
                ends = np.cumsum([0, *variable.values])
                ranges = [np.arange(ends[i], ends[i + 1]) for i in samples]
                entries[along] = np.concatenate(ranges)
        return entries

    def meshes(self) -> Iterator[Doubles]:
        """Points of each sample, once where they are shared; of a grid its ends."""
        if self.axes is not None:
            yield np.stack([[axis[0], axis[-1]] for axis in self.axes], axis=1)
            return
        for sample in range(self.num_samples if self.own_meshes else 1):
            yield self.coordinates(sample)

    @cached_property
    def domain(self) -> Domain:
        """The box that holds the points; drawn around them where the file has none."""
        if (domain := domain_of(self.dataset)) is not None:
            return domain
        lower, upper = self.extent
        if self.axes is None or (lower == upper).any():
            return Domain.bounding(self.extent)
        return Domain(tuple(lower), tuple(upper), (False,) * len(lower))

    @property
    def domain_is_known(self) -> bool:
        """Return whether the file gives the domain, which else encloses the points."""
        return domain_of(self.dataset) is not None

    @cached_property
    def extent(self) -> Doubles:
        """The lowest and the highest coordinates of all points ``[2, d]``."""
        ends = [[(x.min(), x.max()) for x in points.T] for points in self.meshes()]
        low, high = np.moveaxis(np.array(ends, np.float64), 2, 0)
        return np.stack([low.min(0), high.max(0)])

    def stations(self, sample: int = 0) -> list[str]:
        """Names of the points of a sample, in their order; none if there are none."""
        if STATION not in self.dataset.coords or self.axes is not None:
            return []
        names = self.dataset[STATION].values[self.rows(sample) or slice(None)]
        exists = self.existing(sample)
        return [str(name) for name in (names if exists is None else names[exists])]

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        cells = {}
        for name in self.names_of("cells"):
            kind, variable = name.removeprefix("cells_"), self.dataset[name].variable
            variable = variable[self._sample_rows(f"row_size_{kind}", sample)]
            if len(variable):
                cells[kind] = variable.values.astype(np.int64)
        return cells

    @property
    def has_graph(self) -> bool:
        """Return whether there are edges between points, such as roads."""
        return EDGES in self.names_of("edges")

    def graph(self, sample: int = 0) -> tuple[Indices, Doubles | None]:
        """Edges between a sample's points, and the weights that they may have.

        Returns:
            Sources and targets ``[2, E]``, and weights ``[E]``, None for 1.
        """
        rows = self._sample_rows(EDGE_ROWS, sample)
        edges = self.dataset[EDGES].variable[rows].values.astype(np.int64)
        if EDGE_WEIGHT not in self.names_of("edges"):
            return np.ascontiguousarray(edges.T), None
        weights = self.dataset[EDGE_WEIGHT].variable[rows].values
        return np.ascontiguousarray(edges.T), weights.astype(np.float64)

    def _sample_rows(self, name: str, sample: int) -> slice:
        """Return the rows of a sample; all of them if samples share them."""
        if name not in self.dataset:
            return slice(None)
        ends = np.cumsum([0, *self.dataset[name].values])
        return slice(int(ends[sample]), int(ends[sample + 1]))

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        triangles = [
            nodes[:, corners]
            for kind, nodes in self.cells(sample).items()
            for corners in TRIANGLES.get(kind.rstrip("0123456789"), ())
        ]
        return np.concatenate(triangles) if triangles else None

    def same_geometry(self, category: str | None) -> Indices:
        """Number of the mesh of each sample with its cells, its graph and a category
        of its points; equal numbers mean that all of these are equal.
        """
        varies = category is not None and self._varies(category)
        varies |= (graphs_vary := EDGE_ROWS in self.dataset)
        for name in self.names_of("cells"):
            varies |= name.replace("cells", "row_size", 1) in self.dataset.variables
        if not varies:
            return self.sample_mesh
        digests = []
        for sample, mesh in enumerate(self.sample_mesh):
            digest = hashlib.blake2b(int(mesh).to_bytes(8, "little"))
            for kind, nodes in self.cells(sample).items():
                digest.update(f"{kind} {len(nodes)}".encode() + nodes.tobytes())
            for array in self.graph(sample) if graphs_vary else ():
                digest.update(b"" if array is None else array.tobytes())
            if category is not None:
                digest.update(self.read_values([category], sample).tobytes())
            digests.append(digest)
        return _numbered(digests)

    @cached_property
    def units(self) -> dict[str, str]:
        """Units of fields, inputs, axes and ``time`` by name, as far as they are told.

        Degrees on a sphere; fields without dimension, of unit ``"1"``, are left out.
        """
        roles = FIELD, KNOWN, STATIC
        names = [name for role in roles for name in self.names_of(role)]
        variables, units = self.dataset.variables, {}
        for name in (*names, "time", *self.space):
            unit = variables[name].attrs.get("units", "") if name in variables else ""
            if name in self.space and self.dataset.attrs.get("sphere"):
                unit = "°"
            if isinstance(unit, str) and unit not in ("", "1"):
                units[name] = unit
        return units

    @property
    def time_unit(self) -> str:
        """Unit of the times, ``""`` where the file tells none."""
        return self.units.get("time", "")

    def names_of(self, role: str) -> list[str]:
        """Names of the variables of a role."""
        variables, names = self.dataset.variables, self.dataset.data_vars
        return [str(n) for n in names if variables[n].attrs.get("role") == role]

    def read_values(
        self,
        names: Sequence[str],
        sample: int,
        steps: slice = slice(0, 1),
        points: Indices | None = None,
    ) -> Floats:
        """Variables of a sample at its points, ``[n, T', len(names)]``.

        Args:
            names: Names of the variables, repeated along dimensions that they lack.
            sample: Number of the sample.
            steps: Time steps, as numpy slices; by default the first one.
            points: Numbers of the points; None for all of them.

        Returns:
            float64 where a variable has digits that float32 cannot hold, else float32.

        Raises:
            UserError: The sample or a point does not exist, or the file is damaged.
        """
        with reading(self.path, f"sample {sample} to be readable"):
            num = self.num_points(sample) if points is None else len(points)
            index: Any = slice(None) if points is None else points
            if (exists := self.existing(sample)) is not None:
                index = np.flatnonzero(exists)[index]
            selected = range(len(self.times))[steps]
            result = np.empty((num, len(selected), len(names)), self._precision(names))
            at_once = max(self._steps_at_once(names, len(selected)), 1)
            for start in range(0, len(selected), at_once):
                some = selected[start : start + at_once]
                stop = some.stop if some.stop >= 0 else None
                part = slice(some.start, stop, some.step)
                for c, name in enumerate(names):
                    values = self._read(name, sample, part).reshape(len(some), -1)
                    placed = self.places[0] in self.dataset[name].dims
                    absent: Any = [] if exists is None else ~exists * placed
                    if np.isfinite(values[:, absent]).any():
                        given = f"values of {name} at points without coordinates"
                        todo = f"make them NaN there, or leave {name} out"
                        raise self._refused(given, "NaN where there is no point", todo)
                    result[:, start : start + at_once, c] = values[:, index].T
        return result

    def _steps_at_once(self, names: Sequence[str], steps: int) -> int:
        """Time steps to read of all variables before the next, fewer of many files."""
        sizes = (self.dataset[n].encoding.get("preferred_chunks", {}) for n in names)
        return min((size.get("time", steps) for size in sizes), default=steps)

    def _precision(self, names: Sequence[str]) -> np.dtype[Any]:
        types = (self.dataset[name].dtype for name in names)
        return np.result_type(np.float32, *types)

    @cached_property
    def _ends(self) -> Indices | None:
        """Where the points of each sample begin along ``obs``, and the end."""
        if "row_size" not in self.dataset:
            return None
        return np.cumsum([0, *self.dataset["row_size"].values], dtype=np.int64)

    @cached_property
    def _cached_points(self) -> dict[int, tuple[Doubles, NDArray[np.bool_] | None]]:
        """Points of the sample that was asked for last."""
        return {}

    def _points(self, sample: int) -> tuple[Doubles, NDArray[np.bool_] | None]:
        """Points of a cloud, and which of them exist; None for all of them."""
        sample = sample if self.own_meshes else 0
        if sample not in self._cached_points:
            with reading(self.path, f"points of sample {sample} to be readable"):
                columns = [self._read(axis, sample)[0] for axis in self.space]
            points = np.stack(columns, axis=-1).astype(np.float64)
            finite, exists = np.isfinite(points), None
            if not finite.all():
                exists = np.asarray(finite.all(axis=1))
                if np.isinf(points).any() or not exists.any():
                    expected = "finite coordinates"
                    raise self._refused(f"points of sample {sample}", expected)
            self._cached_points.clear()
            self._cached_points[sample] = points, exists
        return self._cached_points[sample]

    def _read(self, name: str, sample: int, steps: slice = slice(0, 1)) -> NDArray[Any]:
        """A variable of a sample, ``[T', *S]``, repeated where it does not vary."""
        sizes = {"sample": self.num_samples, "time": len(self.times)}
        sizes |= {dim: self.dataset.sizes[dim] for dim in self.places}
        sample = range(self.num_samples)[sample]
        key: list[int | slice] = [sample, steps, *[slice(None)] * len(self.places)]
        if (rows := self.rows(sample)) is not None:
            key[2] = rows
        return part(self.dataset[name].variable, sizes, tuple(key))

    def _varies(self, name: str) -> bool:
        """Return whether a variable differs from sample to sample."""
        return bool({"sample", "obs"}.intersection(self.dataset[name].dims))

    def _refused(
        self, given: str, expected: str, todo: str = "repair the data"
    ) -> UserError:
        return UserError(f"{self.path} with {given}", expected, todo)


def _numbered(digests: Iterable[Any]) -> Indices:
    """Number digests from 0 in their order; equal ones have the same number."""
    texts = np.array([digest.hexdigest() for digest in digests])
    return pandas.factorize(texts)[0].astype(np.int64)
