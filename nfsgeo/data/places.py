"""Where the samples of a data set are: their points, meshes and domain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.domains import domain_of
from nfsgeo.data.layout import STATION, Doubles, Indices, Layout, reading
from nfsgeo.data.lazy import part
from nfsgeo.geometry import Domain

__all__ = ["Places"]

HALVES = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}


@dataclass(frozen=True, eq=False, repr=False)
class Places(Layout):
    """The points of samples, on a grid or anywhere, and the domain that holds them.

    Arguments and errors are those of :class:`~nfsgeo.data.layout.Layout`.
    """

    @cached_property
    def domain(self) -> Domain:
        """The box that holds the points; drawn around them where the file has none."""
        if (known := domain_of(self.dataset)) is not None:
            return known
        lower, upper = self.extent
        if self.axes is None or (lower == upper).any():
            return Domain.bounding(self.extent)
        return Domain(tuple(lower), tuple(upper), (False,) * len(lower))

    @property
    def domain_is_known(self) -> bool:
        """Whether the file gives the domain; else it is drawn around the points."""
        return domain_of(self.dataset) is not None

    @cached_property
    def extent(self) -> Doubles:
        """The lowest and the highest coordinates of all points ``[2, d]``."""
        ends = np.array([(each.min(0), each.max(0)) for each in self._meshes()])
        return np.stack([ends[:, 0].min(0), ends[:, 1].max(0)])

    @cached_property
    def sample_mesh(self) -> Indices:
        """Number of the mesh of each sample; equal numbers mean equal points."""
        if not self._own_meshes:
            return np.zeros(self.num_samples, np.int64)
        known: dict[bytes, int] = {}
        digests = (hashlib.blake2b(each.tobytes()).digest() for each in self._meshes())
        return np.array([known.setdefault(d, len(known)) for d in digests], np.int64)

    def mesh_id(self, sample: int) -> int:
        """Number of the mesh of a sample; equal numbers mean equal points."""
        return int(self.sample_mesh[sample])

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        if self.axes is not None:
            grids = np.meshgrid(*self.axes, indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=-1)
        points, there = self._points(sample)
        return points if there is None else points[there]

    def stations(self, sample: int = 0) -> list[str]:
        """Names of the points of a sample, in their order; none if there are none."""
        if STATION not in self.dataset.coords or self.axes is not None:
            return []
        names, (_, there) = self.dataset[STATION].values, self._points(sample)
        if self._ends is not None:
            names = names[slice(*map(int, self._ends[sample : sample + 2]))]
        return [str(name) for name in (names if there is None else names[there])]

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        if self.shape is not None:
            return prod(self.shape)
        if self._ends is not None:
            return int(self._ends[sample + 1] - self._ends[sample])
        return len(self.coordinates(sample))

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        found = {}
        for name in self._named("cells"):
            kind, variable = name.removeprefix("cells_"), self.dataset[name].variable
            if (sizes := self.dataset.get(f"row_size_{kind}")) is not None:
                ends = np.cumsum([0, *sizes.values])
                variable = variable[int(ends[sample]) : int(ends[sample + 1])]
            if len(variable):
                found[kind] = variable.values.astype(np.int64)
        return found

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        found = [
            nodes[:, corners]
            for kind, nodes in self.cells(sample).items()
            for corners in HALVES.get(kind.rstrip("0123456789"), ())
        ]
        return np.concatenate(found) if found else None

    @cached_property
    def _own_meshes(self) -> bool:
        """Whether each sample has coordinates of its own."""
        return "sample" in self.dataset[self.space[0]].dims or self._ends is not None

    @cached_property
    def _ends(self) -> Indices | None:
        """Where each sample begins and ends along ``obs``; None for other layouts."""
        if "row_size" not in self.dataset:
            return None
        return np.cumsum([0, *self.dataset["row_size"].values], dtype=np.int64)

    @cached_property
    def _cached_points(self) -> dict[int, tuple[Doubles, NDArray[np.bool_] | None]]:
        """Points of the last sample that was asked for, all samples' where shared."""
        return {}

    def _points(self, sample: int) -> tuple[Doubles, NDArray[np.bool_] | None]:
        """Points of a cloud, and which of them exist; None for all of them."""
        sample = sample if self._own_meshes else 0
        if sample not in self._cached_points:
            with reading(self.path, f"points of sample {sample} to be readable"):
                one = slice(0, 1)
                columns = [self._values(axis, sample, one)[0] for axis in self.space]
            points = np.stack(columns, axis=-1).astype(np.float64)
            there = np.asarray(np.isfinite(points).all(axis=1))
            if np.isinf(points).any() or not there.any():
                raise self._refused(f"points of sample {sample}", "finite coordinates")
            self._cached_points.clear()
            self._cached_points[sample] = points, None if there.all() else there
        return self._cached_points[sample]

    def _meshes(self) -> Iterator[Doubles]:
        """The points of every sample, once where samples share them."""
        if self.axes is not None:
            yield np.stack([[axis[0], axis[-1]] for axis in self.axes], axis=1)
            return
        for sample in range(self.num_samples if self._own_meshes else 1):
            yield self.coordinates(sample)

    def _values(self, name: str, sample: int, steps: slice) -> NDArray[Any]:
        """A variable of a sample, ``[T', *S]``, repeated where it does not vary."""
        sizes = {"sample": self.num_samples, "time": len(self.times)}
        sizes |= {dim: self.dataset.sizes[dim] for dim in self.places}
        sample = range(self.num_samples)[sample]
        key: list[int | slice] = [sample, steps, *[slice(None)] * len(self.places)]
        if self._ends is not None:
            key[2] = slice(*map(int, self._ends[sample : sample + 2]))
        return part(self.dataset[name].variable, sizes, tuple(key))
