"""Meshes laid out along the axes of a file's grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nfsgeo.data.domains import is_at
from nfsgeo.data.fields import Doubles, Fields, Indices
from nfsgeo.data.meshes.mesh import Mesh
from nfsgeo.data.streams import Stream, philox
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "between",
    "check_flat",
    "grid_axes",
    "has_ends",
    "jittered",
    "off_grid",
    "sub_grid",
    "sub_grid_sizes",
]

# Largest distance of two points that one of a jittered grid may become, in spacings.
JITTER = 0.8


def check_flat(file: Fields, what: str) -> None:
    """Makes sure that the domain is a box, for points that are ``what``."""
    if file.domain.curved:
        raise UserError(
            f"{what} points of {file.path}, which lie on a sphere",
            "all of its points, a random subset or a coarser grid",
            "choose --mesh all, random-subset or grid",
        )


def sub_grid(
    file: Fields, resolution: int | Sequence[int], seed: int = 0, sample: int = 0
) -> Mesh:
    """A coarser regular grid among the points of the file's grid.

    Args:
        file, resolution, seed, sample: As for all samplers; the last two do nothing.

    Raises:
        UserError: The file has no grid, or the resolution does not divide it.
    """
    coarse = _coarse_axes(file, resolution)
    return _of_grid(file, np.meshgrid(*coarse, indexing="ij"))


def sub_grid_sizes(file: Fields) -> list[int]:
    """Points along each axis, as many on every one, of the file's sub-grids.

    Increasing; none where the axes have no common one.

    Raises:
        UserError: The file has no grid.
    """
    axes = [(len(axis), has_ends(file, i)) for i, axis in enumerate(grid_axes(file))]
    sizes = range(1, 1 + min(num for num, _ in axes))
    return [n for n in sizes if all(_divides(n, *axis) for axis in axes)]


def off_grid(file: Fields, num_points: int, seed: int, sample: int = 0) -> Mesh:
    """Points drawn uniformly between the grid points of periodic axes.

    Along a bounded axis they keep to the grid's coordinates, for there is no exact
    interpolation.

    Args:
        file, num_points, seed, sample: As for all samplers.
    """
    return Mesh(between(file, num_points, philox(seed, Stream.OFF_GRID, sample)), None)


def between(file: Fields, num_points: int, rng: np.random.Generator) -> Doubles:
    """Coordinates ``[n, d]`` for :func:`off_grid`, drawn by ``rng``."""
    axes, domain = grid_axes(file), file.domain
    check_flat(file, "off-grid")
    if not any(domain.periodic):
        raise UserError(
            f"points off the grid of {file.path}",
            "at least one periodic axis",
            "draw a random subset",
        )
    drawn = rng.random((num_points, domain.dim)).T
    columns = [
        _wrapped(domain, i, phase)
        if domain.periodic[i]
        else axis[(phase * len(axis)).astype(np.int64)]
        for i, (axis, phase) in enumerate(zip(axes, drawn, strict=True))
    ]
    return np.stack(columns, axis=1)


def jittered(
    file: Fields, resolution: int | Sequence[int], seed: int, sample: int = 0
) -> Mesh:
    """A coarser grid, each point moved at random by up to 0.4 spacings.

    Along a bounded axis a point moves to one of the file's coordinates in its cell.

    Args:
        file, resolution, seed, sample: As for all samplers.
    """
    check_flat(file, "jittered")
    domain, rng = file.domain, philox(seed, Stream.JITTERED, sample)
    axes, coarse = grid_axes(file), _coarse_axes(file, resolution)
    moved, phases = [], []
    for i, start in enumerate(np.meshgrid(*coarse, indexing="ij")):
        num, drawn = len(axes[i]), rng.random(start.size).reshape(start.shape)
        stride = np.diff(coarse[i])[0] if len(coarse[i]) > 1 else num
        moved.append(np.minimum(start + (drawn * stride).astype(np.int64), num - 1))
        phase = (axes[i][start] - domain.lower[i]) / domain.lengths[i]
        phases.append(phase + JITTER * (stride / num) * (drawn - 0.5))
    if not any(domain.periodic):
        mesh = _of_grid(file, moved)
        return Mesh(mesh.pos, mesh.index)
    columns = [
        _wrapped(domain, i, phases[i]) if domain.periodic[i] else axis[moved[i]]
        for i, axis in enumerate(axes)
    ]
    return Mesh(np.stack([column.ravel() for column in columns], axis=1), None)


def grid_axes(file: Fields) -> tuple[Doubles, ...]:
    """Coordinates along each axis of the grid that a file has to have."""
    if file.axes is None:
        raise UserError(
            f"{file.path}", "fields on a grid", "draw a random subset of its points"
        )
    return file.axes


def has_ends(file: Fields, i: int) -> int:
    """1 where an axis of the grid reaches both ends of the domain, else 0."""
    axis, domain = grid_axes(file)[i], file.domain
    if domain.periodic[i]:
        return 0
    return int(is_at(axis, 0, domain.lower[i]) and is_at(axis, -1, domain.upper[i]))


def _of_grid(file: Fields, numbers: Sequence[Indices]) -> Mesh:
    """Points of a grid by their numbers along each axis, arrays of one shape."""
    axes = grid_axes(file)
    index = np.ravel_multi_index(tuple(numbers), tuple(map(len, axes))).ravel()
    columns = [axis[n].ravel() for axis, n in zip(axes, numbers, strict=True)]
    return Mesh(np.stack(columns, axis=1), index, numbers[0].shape)


def _wrapped(domain: Domain, i: int, phase: Doubles) -> Doubles:
    """Coordinates at phases of a periodic axis, never on its upper end."""
    at = domain.lower[i] + domain.lengths[i] * (phase - np.floor(phase))
    return np.where(at < domain.upper[i], at, domain.lower[i])


def _divides(num: int, of: int, ends: int) -> bool:
    """Whether a grid keeps both its ends, or neither, with ``num`` of its points."""
    return ends < num <= of and (of - ends) % (num - ends) == 0


def _coarse_axes(file: Fields, resolution: int | Sequence[int]) -> list[Indices]:
    axes = grid_axes(file)
    wanted = [resolution] * len(axes) if isinstance(resolution, int) else resolution
    coarse = []
    for i, (axis, num) in enumerate(zip(axes, wanted, strict=True)):
        one = has_ends(file, i)
        if not _divides(num, len(axis), one):
            rule = "whose predecessor divides" if one else "that divides"
            raise UserError(
                f"resolution {num} on axis {i} of {file.path}, which has {len(axis)}",
                f"a number {rule} {len(axis) - one}",
                "choose such a resolution",
            )
        stride = (len(axis) - one) // (num - one)
        first = 0 if one or file.domain.periodic[i] else (stride - 1) // 2
        coarse.append(np.arange(first, len(axis), stride))
    return coarse
