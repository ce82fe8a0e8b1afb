"""The points at which the samples of a run are observed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data import Fields
from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    MeshesInTurn,
    MeshOfFile,
    with_queries,
)
from nfsgeo.errors import UserError
from nfsgeo.training.config import DataSection
from nfsgeo.training.window_starts import part_samples

__all__ = [
    "Observation",
    "mesh_of",
    "observe",
    "observe_in_turn",
    "queried",
    "trained_points",
]

# Of a mesh that stays, which training samples cycle through.
QUERY_SETS = 16

Observation = Mesh | Callable[[int], Mesh]


def observe(data: DataSection, file: Fields, seed: int) -> Observation:
    """The mesh of all samples, or a function from a sample to its own.

    Where training samples cycle through several point sets this is the first, on which
    all other samples are observed.

    Args:
        data: Which points, resolved.
        file: Where the samples come from.
        seed: Seed of the draw where ``data`` has none; the same file and seed give
            the same points.

    Raises:
        UserError: The file does not have such points.
    """
    seed = seed if data.mesh_seed is None else data.mesh_seed
    kind = MESH_KINDS[data.mesh or ""]
    if kind.size is None and _many(file):
        return MeshOfFile(file)
    size = _size(data)
    if kind.drawn and (data.mesh_per_sample or _many(file)):
        return partial(kind.sampler, file, size, seed)
    return kind.sampler(file, size, seed)


def observe_in_turn(data: DataSection, file: Fields, seed: int) -> Observation:
    """Where training samples are observed: in every epoch each on another mesh.

    Meshes have unobserved query points where ``data`` asks for them and the file has
    any: each mesh its own, and a single one others in every turn.

    Args:
        data, file, seed: As for :func:`observe`, whose mesh is the first.

    Raises:
        UserError: The file does not have such points.
    """
    # Of more meshes than windows, the others would serve none.
    most = file.num_samples
    if data.window_stride is not None:
        most *= len(range(0, len(file.times), data.window_stride))
    num = min(data.point_sets or 1, most)
    queries = 0 if data.mesh == "all" else data.query_points or 0
    drawn_from = seed if data.mesh_seed is None else data.mesh_seed
    if num > 1 and not (data.mesh_per_sample or _many(file)):
        sampler, size = MESH_KINDS[data.mesh or ""].sampler, _size(data)
        meshes = [sampler(file, size, drawn_from, each) for each in range(num)]
    else:
        one = observe(data, file, seed)
        if not queries:
            return one
        if not isinstance(one, Mesh):
            return queried(one, file, queries, drawn_from)
        meshes = [one] * min(QUERY_SETS, most)
    if queries:
        meshes = [
            with_queries(mesh, file, queries, drawn_from, number)
            for number, mesh in enumerate(meshes)
        ]
    return MeshesInTurn(tuple(meshes))


def queried(observation: Observation, file: Fields, num: int, seed: int) -> Observation:
    """Where samples are observed, with at most ``num`` unobserved query points each."""
    if isinstance(observation, Mesh):
        return with_queries(observation, file, num, seed)
    return partial(_queried, observation, file, num, seed)


def _queried(
    mesh: Callable[[int], Mesh], file: Fields, num: int, seed: int, sample: int
) -> Mesh:
    return with_queries(mesh(sample), file, num, seed, sample)


def mesh_of(observation: Observation, sample: int) -> Mesh:
    """The mesh of one sample."""
    return observation if isinstance(observation, Mesh) else observation(sample)


def trained_points(
    data: DataSection, file: Fields, seed: int
) -> Callable[[int], Indices]:
    """Which points of the file training has seen: the union of all its point sets.

    Query points of training are among them. Points are told by their coordinates, so
    that meshes of the file that share points are one. Sets drawn between the points of
    the file hold none of these.

    Args:
        data, file, seed: As for :func:`observe_in_turn`.

    Returns:
        From a sample to the numbers of those of its points that any training point
        set contains, sorted.

    Raises:
        UserError: The file does not have such points.
    """
    observation = observe_in_turn(data, file, seed)
    if isinstance(observation, Mesh):
        meshes = [observation]
    elif isinstance(observation, MeshesInTurn):
        meshes = list(observation.meshes)
    else:
        samples = part_samples(data, file, "train")
        samples = samples if len(samples) else np.arange(file.num_samples)
        meshes = [observation(int(sample)) for sample in samples]
    sets = [_as_rows(mesh.with_queries_joined().pos) for mesh in meshes]
    known = np.unique(np.concatenate(sets))
    by_mesh: dict[int, Indices] = {}

    def of_sample(sample: int) -> Indices:
        mesh = file.mesh_id(sample)
        if mesh not in by_mesh:
            rows = _as_rows(file.coordinates(sample))
            by_mesh[mesh] = np.flatnonzero(np.isin(rows, known))
        return by_mesh[mesh]

    return of_sample


def _as_rows(pos: Doubles) -> NDArray[Any]:
    """Coordinates ``[n, d]`` as ``[n]`` values that compare as a whole."""
    # Adding zero turns -0 into 0.
    whole = np.ascontiguousarray(pos + 0.0, np.float64)
    return whole.view([(f"x{i}", np.float64) for i in range(pos.shape[1])])[:, 0]


def _size(data: DataSection) -> Any:
    """Number of points, or along each axis, as the sampler takes it."""
    key = MESH_KINDS[data.mesh or ""].size
    size = getattr(data, key) if key else None
    if key and size is None:
        raise UserError(f"no data.{key}", "a number", f"give --{key}")
    return size


def _many(file: Fields) -> bool:
    """Whether samples live on meshes of their own."""
    return any(file.mesh_id(sample) for sample in range(file.num_samples))
