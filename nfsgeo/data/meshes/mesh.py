"""Sampled meshes: the points at which samples are observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch

from nfsgeo.data.conventions import Doubles, Floats, Indices
from nfsgeo.data.streams import Stream, philox, shuffled
from nfsgeo.geometry import Domain, quadrature_weights

__all__ = ["Mesh", "MeshesInTurn", "SubsetsInTurn"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points at which a sample is observed.

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

    def __call__(self, sample: int) -> Mesh:
        return self  # of every sample

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
class MeshesInTurn:
    """Point sets that samples cycle through, one further in every turn.

    Attributes:
        meshes: The point sets.
    """

    meshes: tuple[Mesh, ...]

    @property
    def period(self) -> int:
        """Number of meshes."""
        return len(self.meshes)

    def __call__(self, sample: int, turn: int = 0) -> Mesh:
        """The mesh of a sample."""
        return self.meshes[self.number(sample, turn)]

    def number(self, sample: int, turn: int = 0) -> int:
        """Number of the mesh of a sample."""
        return (sample + turn) % len(self.meshes)


@dataclass(frozen=True)
class SubsetsInTurn:
    """All points of the mesh of a sample, and a random subset in every other turn.

    The fraction of the points in a subset is uniformly distributed. A network that is
    trained on them depends less on the density of a mesh.

    Attributes:
        whole: The mesh of a sample.
        numbers: Number of the mesh of each sample ``[S]``.
        fraction: Smallest fraction of the points in a subset.
        seed: Seed of the draws.
        period: Number of turns after which points are the same.
    """

    whole: Callable[[int], Mesh]
    numbers: Indices
    fraction: float
    seed: int

    # All points, and one subset: more of them need more memory for graphs.
    period: ClassVar[int] = 2

    def __call__(self, sample: int, turn: int = 0) -> Mesh:
        """The points of a sample in a turn."""
        mesh, number = self.whole(sample), self.number(sample, turn)
        if not number:
            return mesh
        rng = philox(self.seed, Stream.SUBSETS, int(self.numbers[sample]), number)
        fraction = self.fraction + (1 - self.fraction) * rng.random()
        num = max(1, round(fraction * len(mesh)))
        chosen = np.sort(shuffled(len(mesh), rng)[:num])
        index = None if mesh.index is None else mesh.index[chosen]
        return Mesh(mesh.pos[chosen], index)

    def number(self, sample: int, turn: int = 0) -> int:
        """Number of the points of a sample: 0 for all of them, 1 for the subset."""
        return (sample + turn) % self.period
