"""Sampled meshes: the points at which samples are observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.spatial import cKDTree

from nfsgeo.data.conventions import Doubles, Floats, Indices
from nfsgeo.data.streams import Stream, philox
from nfsgeo.geometry import Domain, quadrature_weights

__all__ = ["Mesh", "MeshBySample", "MeshesInTurn", "Observation", "SubsetsInTurn"]


class Observation(ABC):
    """The points at which samples are observed, which may change with the epoch."""

    @property
    def period(self) -> int:
        """Number of epochs after which points are the same."""
        return 1

    @abstractmethod
    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        """The points of a sample."""

    @abstractmethod
    def number(self, sample: int, epoch: int = 0) -> int:
        """A number that only equal points of samples share."""


@dataclass(frozen=True, eq=False)
class Mesh(Observation):
    """Points at which a sample is observed, or all samples.

    Attributes:
        pos: Coordinates, float64 ``[n, d]``.
        index: Flat numbers among the file's points; None when the points lie between
            them and values come from trigonometric interpolation.
        grid_shape: Shape when the points are a regular grid in row-major order.
        queries: Unobserved query points, see :func:`nfsgeo.data.meshes.with_queries`.
    """

    pos: Doubles
    index: Indices | None
    grid_shape: tuple[int, ...] | None = None
    queries: Mesh | None = None
    _volumes: dict[Domain, Floats] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.pos)

    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        return self

    def number(self, sample: int, epoch: int = 0) -> int:
        return 0

    def joined(self, other: Mesh) -> Mesh:
        """The points of this mesh and after them those of the ``other``."""
        pos = np.concatenate([self.pos, other.pos])
        if self.index is None or other.index is None:
            return Mesh(pos, None)
        return Mesh(pos, np.concatenate([self.index, other.index]))

    def with_queries_joined(self) -> Mesh:
        """The observed points and after them the query points, as one mesh."""
        return self if self.queries is None else self.joined(self.queries)

    def volumes(self, domain: Domain) -> Floats:
        """Voronoi volumes in the domain, of mean 1: ``[n]``, computed once."""
        if domain not in self._volumes:
            # Wherever the box lies: numbers far from 0 have no digits left.
            pos = domain.wrap(torch.from_numpy(self.pos))
            pos = domain.normalise(pos, torch.float64)
            weights = quadrature_weights(pos, domain.normalised)
            self._volumes[domain] = (weights * len(self)).float().numpy()
        return self._volumes[domain]


@dataclass(frozen=True)
class MeshBySample(Observation):
    """Points of its own for each sample.

    Attributes:
        draw: Called with the number of the sample.
    """

    draw: Callable[[int], Mesh]

    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        return self.draw(sample)

    def number(self, sample: int, epoch: int = 0) -> int:
        return sample


@dataclass(frozen=True)
class MeshesInTurn(Observation):
    """Point sets that samples cycle through, one further in every epoch.

    Attributes:
        meshes: The point sets.
    """

    meshes: tuple[Mesh, ...]

    @property
    def period(self) -> int:
        return len(self.meshes)

    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        return self.meshes[self.number(sample, epoch)]

    def number(self, sample: int, epoch: int = 0) -> int:
        return (sample + epoch) % len(self.meshes)


@dataclass(frozen=True)
class SubsetsInTurn(Observation):
    """All points of the mesh of a sample, and a subset of them in every other epoch.

    The fraction of the points in a subset is uniformly distributed. A subset is graded
    as the whole mesh, see :func:`spread_subset`. A network that is trained on subsets
    depends less on the density of a mesh.

    Attributes:
        whole: The mesh of a sample.
        numbers: Number of the mesh of each sample ``[S]``.
        fraction: Smallest fraction of the points in a subset.
        seed: Seed of the draws.
    """

    whole: Callable[[int], Mesh]
    numbers: Indices
    fraction: float
    seed: int

    @property
    def period(self) -> int:
        return 2  # all points and one subset: more of them need memory for graphs

    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        mesh, subset = self.whole(sample), (sample + epoch) % self.period
        if not subset:
            return mesh
        rng = philox(self.seed, Stream.SUBSETS, int(self.numbers[sample]), subset)
        fraction = self.fraction + (1 - self.fraction) * rng.random()
        num = max(1, round(fraction * len(mesh)))
        chosen = spread_subset(mesh.pos, num, rng)
        index = None if mesh.index is None else mesh.index[chosen]
        return Mesh(mesh.pos[chosen], index)

    def number(self, sample: int, epoch: int = 0) -> int:
        return self.period * int(self.numbers[sample]) + (sample + epoch) % self.period


def spread_subset(pos: Doubles, num: int, rng: np.random.Generator) -> Indices:
    """Draw points that are graded as all points are, a coarser mesh.

    In the order of the leaves of a k-d tree, consecutive points are near each other, at
    any density. One point of each group of them is drawn, or left out. Groups differ in
    size by one point, and the probabilities of their points accordingly.

    Args:
        pos: All points ``[n, d]``.
        num: Number of points to draw, at most ``n``.
        rng: Generator of random numbers.

    Returns:
        Their numbers ``[num]`` in ascending order.
    """
    few = min(num, len(pos) - num)
    ends = np.arange(few + 1) * len(pos) // max(few, 1)
    place = ends[:-1] + (rng.random(few) * np.diff(ends)).astype(np.int64)
    chosen = np.zeros(len(pos), dtype=bool)
    chosen[cKDTree(pos, leafsize=1).indices[place]] = True
    result: Indices = np.flatnonzero(chosen if few == num else ~chosen)
    return result
