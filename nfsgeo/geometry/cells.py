"""Cells of meshes: their edges, their boundary, and the way to a boundary."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search

__all__ = ["boundary_sides", "cell_edges", "way_to_points", "way_to_segments"]

Indices = NDArray[np.int64]
DIGITS = 9  # to which points are at one place, in the normalised domain


@dataclass(frozen=True)
class CellType:
    """The corners of a cell by their local numbers, in the order of VTK.

    Attributes:
        corners: How many there are.
        edges: Pairs of corners. Cells of second order have further nodes on these, in
            this order, which split them.
        sides: What a cell shares with its neighbours: points of lines, edges of cells
            in the plane, faces of others.
    """

    corners: int
    edges: Sequence[tuple[int, int]]
    sides: Sequence[tuple[int, ...]]

    @property
    def dim(self) -> int:
        """Number of its dimensions."""
        return min(3, len(self.sides[0])) if self.corners > 2 else 1


def _ring(*corners: int) -> list[tuple[int, int]]:
    return list(zip(corners, (*corners[1:], corners[0]), strict=True))


# By the name that meshio gives them, without the number of their nodes.
CELLS = {
    "line": CellType(2, [(0, 1)], [(0,), (1,)]),
    "triangle": CellType(3, _ring(0, 1, 2), _ring(0, 1, 2)),
    "quad": CellType(4, _ring(0, 1, 2, 3), _ring(0, 1, 2, 3)),
    "tetra": CellType(
        4,
        [*_ring(0, 1, 2), (0, 3), (1, 3), (2, 3)],
        [(0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)],
    ),
    "pyramid": CellType(
        5,
        [*_ring(0, 1, 2, 3), (0, 4), (1, 4), (2, 4), (3, 4)],
        [(0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)],
    ),
    "wedge": CellType(
        6,
        [*_ring(0, 1, 2), *_ring(3, 4, 5), (0, 3), (1, 4), (2, 5)],
        [(0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)],
    ),
    "hexahedron": CellType(
        8,
        [*_ring(0, 1, 2, 3), *_ring(4, 5, 6, 7), (0, 4), (1, 5), (2, 6), (3, 7)],
        [
            *((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4)),
            *((1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
        ],
    ),
}


def _typed(cells: Mapping[str, Indices]) -> list[tuple[CellType, Indices]]:
    """Types and nodes of the cells whose type is known."""
    named = [(kind.rstrip("0123456789"), nodes) for kind, nodes in cells.items()]
    return [(CELLS[kind], nodes) for kind, nodes in named if kind in CELLS]


def cell_edges(cells: Mapping[str, Indices]) -> Indices:
    """Edges of cells ``[2, E]``, each once in both directions, sorted by target.

    Of ``cells`` by type, ``[cells, nodes]``; those of unknown types have none.
    """
    pairs = [np.empty((0, 2), np.int64)]
    for kind, nodes in _typed(cells):
        for number, (a, b) in enumerate(kind.edges):
            if nodes.shape[1] > kind.corners + number and nodes.shape[1] > kind.corners:
                middle = kind.corners + number
                pairs += [nodes[:, [a, middle]], nodes[:, [middle, b]]]
            else:
                pairs.append(nodes[:, [a, b]])
    one = np.concatenate(pairs)
    both = np.unique(np.concatenate([one, one[:, ::-1]]), axis=0)
    both = both[both[:, 0] != both[:, 1]]
    return np.ascontiguousarray(both[:, ::-1].T)


def boundary_sides(cells: Mapping[str, Indices], pos: Tensor) -> list[Indices]:
    """Sides that belong to one cell alone, numbers of points ``[m, k]`` by their size.

    Points of the normalised domain, ``pos [n, d]``, that lie at one place are one: the
    seam of a ring is no boundary. Only cells of the highest dimension count.
    """
    known = _typed(cells)
    highest = max((kind.dim for kind, _ in known), default=0)
    _, place = np.unique(pos.numpy().round(DIGITS), axis=0, return_inverse=True)
    place, found = place.reshape(-1), list[Indices]()
    for kind, nodes in known:
        if kind.dim == highest:
            found += [nodes[:, list(side)] for side in kind.sides]
    if not found:
        return []
    widest = max(side.shape[1] for side in found)
    keys, whole = [], []
    for side in found:
        pad = ((0, 0), (0, widest - side.shape[1]))
        keys.append(np.pad(np.sort(place[side], axis=1), pad, constant_values=-1))
        whole.append(np.pad(side, pad, constant_values=-1))
    key, sides = np.concatenate(keys), np.concatenate(whole)
    _, where, times = np.unique(key, axis=0, return_index=True, return_counts=True)
    alone = np.sort(where[times == 1])
    # A side whose points are all at one place is none.
    if highest > 1:
        real = np.where(key[alone] < 0, key[alone, :1], key[alone])
        alone = alone[np.ptp(real, axis=1) > 0]
    sizes = (sides[alone] >= 0).sum(1)
    return [sides[alone][sizes == size][:, :size] for size in np.unique(sizes)]


def way_to_points(pos: Tensor, source: Tensor, domain: Domain) -> Tensor:
    """Displacement from each of ``pos [n, d]`` to the nearest ``source``, ``[n, d]``.

    Float64 and on the CPU, in a domain without walls.
    """
    nearest = Search(source, pos, domain).nearest(1)[:, 0]
    return domain.displacement(pos, source[nearest])


def way_to_segments(pos: Tensor, ends: Tensor, domain: Domain) -> Tensor:
    """Displacement from each of ``pos [n, 2]`` to the nearest segment, ``[n, 2]``.

    Segments ``ends [m, 2, 2]`` come again over the periodic axes of the domain.
    """
    steps = itertools.product(*[(0, -1, 1) if p else (0,) for p in domain.periodic])
    shifts = np.array(list(steps)) * np.array(domain.lengths)
    images = (ends.numpy() + shifts[:, None, None]).reshape(-1, 2, 2)
    lines = shapely.linestrings(images)
    points = shapely.points(pos.numpy())
    nearest = shapely.STRtree(lines).nearest(points)
    feet = shapely.get_coordinates(shapely.shortest_line(points, lines[nearest]))[1::2]
    return torch.from_numpy(feet) - pos
