"""Meshes of some points of a file, and the kinds of meshes by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from nfsgeo.data.conventions import Indices
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes.mesh import Mesh, Observation
from nfsgeo.data.meshes.on_grids import check_flat, jittered, off_grid, sub_grid
from nfsgeo.data.streams import Stream, philox, shuffled
from nfsgeo.errors import UserError, option

__all__ = ["MESH_KINDS", "MeshKind", "MeshOfFile", "clustered", "disjoint"]
__all__ += ["every_point", "nested", "points_there", "random_subset", "with_queries"]

# Highest over lowest density of clustered points.
RATIO = 10.0


def every_point(
    file: Fields, size: None = None, seed: int = 0, sample: int = 0
) -> Mesh:
    """All points of a sample, in the file's order; none of a grid's in obstacles.

    The arguments ``size`` and ``seed`` are not used.
    """
    pos, numbers = file.coordinates(sample), points_there(file, sample)
    if len(numbers) < len(pos):
        return Mesh(pos[numbers], numbers)
    return Mesh(pos, numbers, file.shape)


def points_there(file: Fields, sample: int) -> Indices:
    """Numbers of the points of a sample of a file; none of a grid's in obstacles."""
    sample %= file.num_samples  # more draws than samples are of a mesh that they share
    if file.domain.walls is None or file.shape is None:
        return np.arange(file.num_points(sample))
    pos = file.domain.wrap(torch.from_numpy(file.coordinates(sample)))
    return np.flatnonzero(file.domain.contains(pos).numpy())


def random_subset(file: Fields, num_points: int, seed: int, sample: int = 0) -> Mesh:
    """Points of the file drawn uniformly without replacement, as in the paper.

    On a sphere, points of a grid are drawn with a probability in proportion to the
    cosine of their latitude: uniformly on the sphere.

    Raises:
        UserError: The sample has fewer points.
    """
    numbers = points_there(file, sample)
    _check_enough(file, num_points, len(numbers))
    rng = philox(seed, Stream.RANDOM_SUBSET, sample)
    return _drawn(file, sample, numbers, num_points, rng)


def clustered(file: Fields, num_points: int, seed: int, sample: int = 0) -> Mesh:
    """Points of the file, ten times as dense around a random place as far from it.

    The density falls smoothly, by ten to the power of the mean over the axes of a
    raised cosine of the distance. Every point is drawn with a probability proportional
    to it, exactly (systematic sampling in a random order).

    Raises:
        UserError: The file has too few points for that density.
    """
    check_flat(file, "clustered")
    numbers = points_there(file, sample)
    pos = file.coordinates(sample % file.num_samples)[numbers]
    rng = philox(seed, Stream.CLUSTERED, sample)
    _check_enough(file, num_points, len(pos))
    lower, upper = np.array(file.domain.lower), np.array(file.domain.upper)
    periodic, length = np.array(file.domain.periodic), upper - lower
    peak = lower + length * rng.random(file.domain.dim)
    away = np.abs(pos - peak)
    away = np.where(periodic, np.minimum(away, length - away), away)
    farthest = np.where(periodic, length / 2, np.maximum(peak - lower, upper - peak))
    rise = 0.5 + 0.5 * np.cos(np.pi * away / farthest)
    density = RATIO ** rise.mean(axis=1)
    chance = density * (num_points / density.sum())
    if chance.max() > 1:
        most = int(density.sum() / density.max())
        raise UserError(
            f"{num_points} clustered points of {file.path}",
            f"at most {most} of its {len(pos)} points at a density ratio of {RATIO:g}",
            "ask for fewer points",
        )
    order = shuffled(len(pos), rng)
    ends = np.cumsum(chance[order])
    ends *= num_points / ends[-1]
    marks = np.arange(num_points) + rng.random()
    chosen = order[np.searchsorted(ends, marks, side="right")]
    return _subset(file, sample, numbers[chosen])


def nested(
    mesh: Mesh,
    file: Fields,
    num_points: int,
    seed: int,
    sample: int = 0,
    *,
    trained: Indices | None = None,
    fewer: Sequence[str] = (),
) -> Mesh:
    """The points of ``mesh``, and after them unseen ones: ``num_points`` in all.

    The unseen points are points of the file without those of numbers ``trained``, which
    training has seen. They lie between the points of the file where ``mesh`` does and
    ``trained`` is None. In the paper's test the larger mesh has 1.3 to 4 times as many
    points. Errors advise the settings ``fewer``, by which training sees fewer points.

    Raises:
        UserError: The file has too few points, or ``mesh`` already has more.
    """
    extra = num_points - len(mesh)
    if extra < 0:
        raise UserError(
            f"{num_points} points around a mesh of {len(mesh)}",
            "a larger mesh",
            "ask for more points",
        )
    which = file, extra, seed, sample
    if mesh.index is None and trained is None:
        return mesh.joined(off_grid(*which, Stream.NESTED))
    more = disjoint(mesh, *which, trained=trained, fewer=fewer, stream=Stream.NESTED)
    return mesh.joined(more)


def disjoint(
    mesh: Mesh,
    file: Fields,
    num_points: int,
    seed: int,
    sample: int = 0,
    *,
    trained: Indices | None = None,
    fewer: Sequence[str] = (),
    stream: Stream = Stream.DISJOINT,
) -> Mesh:
    """Points of the file neither in ``mesh`` nor ``trained``, as for :func:`nested`.

    The ``stream`` is the purpose of the draw.

    Raises:
        UserError: The file has too few other points.
    """
    numbers = points_there(file, sample)
    index = [part for part in (mesh.index, trained) if part is not None]
    taken = np.unique(np.concatenate([np.empty(0, np.int64), *index]))
    others = np.setdiff1d(numbers, taken)
    if num_points > len(others):
        seen = f"training has seen {len(taken)} of its {len(numbers)} points"
        if trained is not None and len(taken) > len(trained):
            seen = f"{len(taken)} of the {len(numbers)} points of sample {sample} are "
            seen += "observed, or were in training"
        kept = ", ".join([option("points", "N"), *fewer])
        keep = f"keep points from training: {kept}, or {option('data.hold_out', 0.2)} "
        keep += "where samples share their points"
        if not len(others):
            given = f"{file.path}, where {seen}"
            todo = f"evaluate on other meshes, {option('data', 'FILE')}, or {keep}"
            raise UserError(given, "points that training has not seen", todo)
        given = f"{num_points} points of {file.path} that training has not seen"
        expected = f"at most {len(others)}, for {seen}"
        raise UserError(given, expected, f"ask for fewer, or {keep}")
    return _drawn(file, sample, others, num_points, philox(seed, stream, sample))


def with_queries(
    mesh: Mesh, file: Fields, num_points: int, seed: int, sample: int = 0
) -> Mesh:
    """A ``mesh`` with ``num_points`` unobserved query points, or fewer in small files.

    They are points of the file outside the mesh, or lie between the points of the file
    where those of the mesh do.

    Args:
        mesh: Observed points.
        file: Fields whose points are drawn.
        num_points: Number of points.
        seed: Seed of the draw.
        sample: Number of the sample; each has another draw.
    """
    if mesh.index is None:
        queries = off_grid(file, num_points, seed, sample, Stream.QUERY_POINTS)
    else:
        left = len(points_there(file, sample)) - len(mesh)
        queries = disjoint(mesh, file, min(num_points, left), seed, sample)
    return replace(mesh, queries=queries)


def _drawn(
    file: Fields, sample: int, numbers: Indices, num: int, rng: np.random.Generator
) -> Mesh:
    """Return ``num`` of the points ``numbers`` of a sample, drawn at random."""
    weight = None
    if file.domain.curved and file.shape is not None:
        # A pole of a grid is many points at one place.
        latitude = np.deg2rad(file.coordinates()[numbers, 1])
        weight = np.cos(latitude).clip(min=1e-12)
    chosen = numbers[shuffled(len(numbers), rng, weight)[:num]]
    return _subset(file, sample, chosen)


def _subset(file: Fields, sample: int, chosen: Indices) -> Mesh:
    index = np.sort(chosen)
    return Mesh(file.coordinates(sample % file.num_samples)[index], index)


def _check_enough(file: Fields, requested: int, available: int) -> None:
    if not 0 < requested <= available:
        raise UserError(
            f"{requested} points of {file.path}",
            f"1 to {available} points, which is what it has",
            "ask for fewer points or use a finer file",
        )


@dataclass(frozen=True)
class MeshOfFile(Observation):
    """The points of each sample of a ``file``, all of them, which may differ."""

    file: Fields

    def __call__(self, sample: int, epoch: int = 0) -> Mesh:
        return every_point(self.file, sample=sample)

    def number(self, sample: int, epoch: int = 0) -> int:
        return int(self.file.sample_mesh[sample])


@dataclass(frozen=True)
class MeshKind:
    """A way to choose the points at which samples are observed.

    Attributes:
        sampler: Called with a file, a size, a seed and the number of a sample.
        size: Meaning of the size: the number of ``"points"``, or of points along each
            axis of a ``"grid"``; None where it is not used.
        drawn: Whether the points are random, others for each seed.
        even: Whether drawn points are as dense everywhere.
    """

    sampler: Callable[..., Mesh]
    size: Literal["points", "grid"] | None = "points"
    drawn: bool = True
    even: bool = True


# By the name in the configuration, ``data.mesh``, and on the command line.
MESH_KINDS: dict[str, MeshKind] = {
    "random-subset": MeshKind(random_subset),
    "grid": MeshKind(sub_grid, "grid", drawn=False),
    "all": MeshKind(every_point, None, drawn=False),
    "off-grid": MeshKind(off_grid),
    "clustered": MeshKind(clustered, even=False),
    "jittered": MeshKind(jittered, "grid"),
}
