"""Points along the axes of a file's grid, and between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.domains import is_at
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes.mesh import Mesh
from nfsgeo.data.streams import Stream, philox
from nfsgeo.errors import UserError, option

__all__ = ["check_flat", "grid_axes", "has_ends", "jittered", "off_grid", "sub_grid"]
__all__ += ["sub_grid_sizes"]


def check_flat(file: Fields, what: str) -> None:
    """Raise a UserError if a file is on a sphere, which has no ``what`` points."""
    if file.domain.curved:
        raise UserError(
            f"{what} points of {file.path}, which lie on a sphere",
            "all of its points, a random subset or a coarser grid",
            f"choose {option('mesh', 'all', 'random-subset', 'grid')}",
        )


def sub_grid(
    file: Fields, resolution: int | Sequence[int], seed: int = 0, sample: int = 0
) -> Mesh:
    """A coarser grid of the file's points; ``seed`` and ``sample`` are not used.

    Raises:
        UserError: The file has no grid, or the resolution does not divide it.
    """
    axes = grid_axes(file)
    sizes = [resolution] * len(axes) if isinstance(resolution, int) else resolution
    coarse = []
    for i, (axis, num) in enumerate(zip(axes, sizes, strict=True)):
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
    """Increasing resolutions that a file's sub-grids may have on all axes alike.

    Raises:
        UserError: The file has no grid.
    """
    axes = [(len(axis), has_ends(file, i)) for i, axis in enumerate(grid_axes(file))]
    return [
        n
        for n in range(1, 1 + min(num for num, _ in axes))
        if all(n > one and (num - one) % (n - one) == 0 for num, one in axes)
    ]


def off_grid(
    file: Fields,
    num_points: int,
    seed: int,
    sample: int = 0,
    stream: Stream = Stream.OFF_GRID,
) -> Mesh:
    """Points drawn uniformly between the grid points of the file's periodic axes.

    Along a bounded axis they keep to the grid's coordinates, for there is no exact
    interpolation. The ``stream`` is the purpose of the draw.

    Raises:
        UserError: The file has no grid or no periodic axis, or is on a sphere.
    """
    axes, domain = grid_axes(file), file.domain
    check_flat(file, "off-grid")
    if not any(domain.periodic):
        raise UserError(
            f"points off the grid of {file.path}",
            "at least one periodic axis",
            "draw a random subset",
        )
    columns = []
    random = philox(seed, stream, sample).random((num_points, len(axes)))
    for i, drawn in enumerate(random.T):
        low, high = domain.lower[i], domain.upper[i]
        at = low + (high - low) * drawn
        if domain.periodic[i]:  # never on its upper end
            columns.append(np.where(at < high, at, low))
        else:
            columns.append(axes[i][(drawn * len(axes[i])).astype(np.int64)])
    return Mesh(np.stack(columns, axis=1), None)


def jittered(
    file: Fields, resolution: int | Sequence[int], seed: int, sample: int = 0
) -> Mesh:
    """A sub-grid whose points are moved at random by up to 0.4 spacings.

    Along a bounded axis a point moves to one of the file's coordinates in its cell.

    Raises:
        UserError: As for :func:`sub_grid`, or the file is on a sphere.
    """
    check_flat(file, "jittered")
    coarse, domain = sub_grid(file, resolution), file.domain
    start = np.stack(np.unravel_index(np.asarray(coarse.index), file.shape or ()))
    moved = philox(seed, Stream.JITTERED, sample).random(start.shape)
    pos = coarse.pos.T.copy()
    for i, axis in enumerate(grid_axes(file)):
        places = np.unique(start[i])
        stride = places[1] - places[0] if len(places) > 1 else len(axis)
        first = start[i] - (stride - 1) // 2  # of the cell, beyond the axis at an end
        start[i] = (first + (moved[i] * stride).astype(np.int64)).clip(0, len(axis) - 1)
        low, high, length = domain.lower[i], domain.upper[i], domain.lengths[i]
        shift = 0.8 * length * stride / len(axis) * (moved[i] - 0.5)
        at = low + (pos[i] + shift - low) % length
        pos[i] = np.where(at < high, at, low) if domain.periodic[i] else axis[start[i]]
    on_file = np.ravel_multi_index(tuple(start), file.shape or ())
    return Mesh(pos.T, None if any(domain.periodic) else on_file)


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
            f"choose {option('mesh', 'all')}, or a model that takes any points, "
            f"such as {option('model', 'nfs')}",
        )
    return file.axes
