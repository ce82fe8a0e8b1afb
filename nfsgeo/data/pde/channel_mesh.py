"""Meshes of a channel around a cylinder, with the same triangles wherever it is."""

from __future__ import annotations

import numpy as np
import skfem

from nfsgeo.data.conventions import Doubles, Indices

__all__ = [
    "HEIGHT",
    "LENGTH",
    "NEAR",
    "channel_cells",
    "channel_mesh",
    "channel_points",
    "node_types",
]

LENGTH, HEIGHT = 2.2, 0.41
# Positions closer than this are the same.
NEAR = 1e-9


def channel_cells(side: int) -> Indices:
    """Return the vertices of the triangles ``[cells, 3]``, counterclockwise.

    ``4 * side`` vertices are on the cylinder, and on each of ``side`` rings around it.
    The last ring is the border of a square as high as the channel, with columns of
    ``side + 1`` vertices behind it.
    """
    around = 4 * side
    ring = np.arange(side)[:, None] * around + np.arange(around)
    turned = np.roll(ring, -1, axis=1)
    squares = [np.stack([ring, ring + around, turned + around, turned], axis=-1)]
    start = around * (side + 1)
    # The first column is the right side of the square.
    columns = np.concatenate(
        [
            [start - around + np.arange(side + 1)],
            start + np.arange(_columns(side) * (side + 1)).reshape(-1, side + 1),
        ]
    )
    corners = columns[:-1, :-1], columns[1:, :-1], columns[1:, 1:], columns[:-1, 1:]
    squares.append(np.stack(corners, axis=-1))
    cells = []
    for block in squares:
        # Diagonals alternate, so that no direction is preferred.
        even = np.indices(block.shape[:2]).sum(axis=0) % 2 == 0
        a, b, c, d = np.moveaxis(block, -1, 0)
        cells += [
            np.where(even[..., None], np.stack(one, -1), np.stack(other, -1))
            for one, other in (((a, b, c), (a, b, d)), ((a, c, d), (b, c, d)))
        ]
    return np.concatenate([block_cells.reshape(-1, 3) for block_cells in cells])


def channel_points(side: int, centre: Doubles, radius: float) -> Doubles:
    """Return the positions of the vertices ``[2, V]`` around a cylinder."""
    x, y = centre
    right = x + HEIGHT / 2
    # From -1 to 1, denser in the middle.
    part = np.linspace(-1, 1, side + 1)
    part = 0.75 * part + 0.25 * part**3
    across, along = _between(part, y, HEIGHT), _between(part, x, right)
    # Counterclockwise from the lower right corner, each side without its end.
    border = np.concatenate(
        [
            [np.full(side, right), across[:-1]],
            [along[:0:-1], np.full(side, HEIGHT)],
            [np.zeros(side), across[:0:-1]],
            [along[:-1], np.zeros(side)],
        ],
        axis=1,
    )
    angle = np.pi * (np.arange(4 * side) / (2 * side) - 0.25)
    rim = centre[:, None] + radius * np.stack([np.cos(angle), np.sin(angle)])
    outward = _graded(np.arange(side + 1) / side, 1.6)[:, None, None]
    rings = (1 - outward) * rim + outward * border
    number = _columns(side)
    ahead = right + (LENGTH - right) * _graded(np.arange(1, number + 1) / number, 1.2)
    behind = np.stack(np.meshgrid(ahead, across, indexing="ij"))
    return np.concatenate(
        [rings.swapaxes(0, 1).reshape(2, -1), behind.reshape(2, -1)], axis=1
    )


def node_types(side: int) -> Indices:
    """Return the types of the vertices ``[V]``.

    They are 0 inside, 1 on a wall including the corners, 2 at the inflow, 3 at the
    outflow and 4 on the cylinder.
    """
    x, y = channel_points(side, np.full(2, HEIGHT / 2), HEIGHT / 8)
    types = np.zeros(len(x), dtype=np.int64)
    types[x < NEAR], types[x > LENGTH - NEAR] = 2, 3
    types[(y < NEAR) | (y > HEIGHT - NEAR)] = 1
    types[: 4 * side] = 4
    return types


def channel_mesh(side: int, centre: Doubles, radius: float) -> skfem.MeshTri2:
    """Make the mesh, with curved sides of triangles on the cylinder."""
    points = channel_points(side, centre, radius)
    straight = skfem.MeshTri1(points, np.ascontiguousarray(channel_cells(side).T))
    curved = skfem.MeshTri2.from_mesh(straight)
    ends = straight.facets
    on_cylinder = np.flatnonzero((ends < 4 * side).all(axis=0))
    moved = curved.doflocs.copy()
    middle = moved[:, points.shape[1] + on_cylinder] - centre[:, None]
    middle *= radius / np.linalg.norm(middle, axis=0)
    moved[:, points.shape[1] + on_cylinder] = centre[:, None] + middle
    return skfem.MeshTri2(moved, curved.t)


def _columns(side: int) -> int:
    return (5 * side + 1) // 2


def _between(part: Doubles, middle: float, length: float) -> Doubles:
    """Map [-1, 1] to [0, ``length``], with 0 mapped to ``middle``."""
    return (1 + part) * length / 2 + (middle - length / 2) * (1 - part**2)


def _graded(part: Doubles, growth: float) -> Doubles:
    """Map [0, 1] to itself, with spacings that grow by ``exp(growth)`` in all."""
    return np.expm1(growth * part) / np.expm1(growth)
