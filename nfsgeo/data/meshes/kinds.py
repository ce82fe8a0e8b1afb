"""The meshes that a run can be observed with, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes.mesh import Mesh
from nfsgeo.data.meshes.on_grids import jittered, off_grid, sub_grid
from nfsgeo.data.meshes.subsets import clustered, every_point, random_subset

__all__ = ["MESH_KINDS", "MeshKind", "MeshOfFile", "per_sample"]


@dataclass(frozen=True)
class MeshOfFile:
    """All points of each sample, of a file whose samples share some meshes."""

    file: Fields

    def __call__(self, sample: int) -> Mesh:
        return every_point(self.file, sample=sample)


def per_sample(
    sampler: Callable[..., Mesh], file: Fields, num_points: int, seed: int
) -> Callable[[int], Mesh]:
    """A mesh of its own for every sample.

    Args:
        sampler, file, num_points, seed: One of the samplers, and what it takes.
    """
    return partial(sampler, file, num_points, seed)


@dataclass(frozen=True)
class MeshKind:
    """A way to choose the points at which samples are observed.

    Attributes:
        sampler: Called with a file, a size, a seed and the number of a sample.
        help: What the points are, one line.
        size: What the size is: the number of ``"points"``, or of points along each axis
            of a ``"grid"``; None where it is not used.
        drawn: Whether the points are random, others for each seed.
        even: Whether their density is the same everywhere.
    """

    sampler: Callable[..., Mesh]
    help: str
    size: Literal["points", "grid"] | None = "points"
    drawn: bool = True
    even: bool = True


# By the name in the configuration, ``data.mesh``, and on the command line.
MESH_KINDS: dict[str, MeshKind] = {
    "random-subset": MeshKind(random_subset, "points of the file, drawn uniformly"),
    "grid": MeshKind(sub_grid, "a coarser grid", "grid", drawn=False),
    "all": MeshKind(
        every_point, "all points of the file", None, drawn=False, even=False
    ),
    "off-grid": MeshKind(off_grid, "uniform, between the points of a periodic grid"),
    "clustered": MeshKind(clustered, "tenfold as dense at one place", even=False),
    "jittered": MeshKind(jittered, "a coarser grid, its points moved", "grid"),
}
