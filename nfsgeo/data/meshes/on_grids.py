"""Meshes laid out along the axes of a file's grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nfsgeo.data.domains import is_at
from nfsgeo.data.fields import Doubles, Fields
from nfsgeo.data.meshes.mesh import Mesh
from nfsgeo.data.streams import Stream, philox
from nfsgeo.errors import UserError

__all__ = [
    "between",
    "check_flat",
    "grid_axes",
    "has_ends",
    "off_grid",
    "sub_grid",
    "sub_grid_sizes",
]


def check_flat(file: Fields, what: str) -> None:
    """Makes sure that a file is not of a sphere, where there are no points of ``what``.

    Raises:
        UserError: It is.
    """
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

    ``file``, ``resolution``, ``seed`` and ``sample`` are those of all samplers.

    Raises:
        UserError: The file has no grid, or the resolution does not divide it.
    """
    axes = grid_axes(file)
    wanted = [resolution] * len(axes) if isinstance(resolution, int) else resolution
    coarse = []
    for i, (axis, num) in enumerate(zip(axes, wanted, strict=True)):
        # A grid that has both ends keeps both; any other divides evenly.
        one = has_ends(file, i)
        if num <= one or num > len(axis) or (len(axis) - one) % (num - one):
            rule = "whose predecessor divides" if one else "that divides"
            raise UserError(
                f"resolution {num} on axis {i} of {file.path}, which has {len(axis)}",
                f"a number {rule} {len(axis) - one}",
                "choose such a resolution",
            )
        stride = (len(axis) - one) // (num - one)
        first = 0 if one or file.domain.periodic[i] else (stride - 1) // 2
        coarse.append(np.arange(first, len(axis), stride))
    numbers = np.meshgrid(*coarse, indexing="ij")
    index = np.ravel_multi_index(tuple(numbers), file.shape or ()).ravel()
    return Mesh(file.coordinates()[index], index, numbers[0].shape)


def sub_grid_sizes(file: Fields) -> list[int]:
    """Points along each axis, as many on every one, of the file's sub-grids.

    Increasing; none where the axes have no common one.

    Raises:
        UserError: The file has no grid.
    """
    axes = [(len(axis), has_ends(file, i)) for i, axis in enumerate(grid_axes(file))]
    return [
        n
        for n in range(1, 1 + min(num for num, _ in axes))
        if all(n > one and (num - one) % (n - one) == 0 for num, one in axes)
    ]


def off_grid(file: Fields, num_points: int, seed: int, sample: int = 0) -> Mesh:
    """Points drawn uniformly between the grid points of periodic axes.

    Along a bounded axis they keep to the grid's coordinates, for there is no exact
    interpolation. ``file``, ``num_points``, ``seed`` and ``sample`` are those of all
    samplers.

    Raises:
        UserError: The file has no grid or no periodic axis.
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
    columns = []
    for i, drawn in enumerate(rng.random((num_points, len(axes))).T):
        low, high = domain.lower[i], domain.upper[i]
        at = low + (high - low) * drawn
        if domain.periodic[i]:  # never on its upper end
            columns.append(np.where(at < high, at, low))
        else:
            columns.append(axes[i][(drawn * len(axes[i])).astype(np.int64)])
    return np.stack(columns, axis=1)


def has_ends(file: Fields, i: int) -> int:
    """1 where an axis of the grid reaches both ends of the domain, else 0."""
    axis, domain = grid_axes(file)[i], file.domain
    if domain.periodic[i]:
        return 0
    return int(is_at(axis, 0, domain.lower[i]) and is_at(axis, -1, domain.upper[i]))


def grid_axes(file: Fields) -> tuple[Doubles, ...]:
    """Coordinates along each axis of the grid that a file has to have."""
    if file.axes is None:
        raise UserError(
            f"the point cloud {file.path}",
            "fields on a grid",
            "choose another --mesh, or a --model that takes any points, such as nfs",
        )
    return file.axes
