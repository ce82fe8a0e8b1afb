"""Cells of meshes: edges, boundary sides, and displacements to the boundary."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search

__all__ = ["boundary_sides", "cell_edges", "outside_cells", "way_to_points"]
__all__ += ["way_to_segments"]

Indices = NDArray[np.int64]
# Digits of normalised positions to which points coincide.
DIGITS = 9
# Distance from a mesh, in mean sides of its boundary, within which a point may lie on a
# curved wall.
NEAR_WALL = 0.1


@dataclass(frozen=True)
class CellType:
    """Topology of a cell, with corners numbered as in VTK.

    Attributes:
        corners: Number of corners.
        edges: Pairs of corners. In cells of second order, further nodes split the edges
            in this order.
        sides: Facets that a cell shares with its neighbours: points of a line, edges of
            a plane cell, faces of a solid one.
    """

    corners: int
    edges: Sequence[tuple[int, int]]
    sides: Sequence[tuple[int, ...]]

    @property
    def dim(self) -> int:
        """Dimension of the cell."""
        return min(3, len(self.sides[0])) if self.corners > 2 else 1


def _ring(*corners: int) -> list[tuple[int, int]]:
    return list(zip(corners, (*corners[1:], corners[0]), strict=True))


# Cell types by meshio's names, without the number of nodes.
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
    """Return types and nodes of the cells of known types."""
    named = [(kind.rstrip("0123456789"), nodes) for kind, nodes in cells.items()]
    return [(CELLS[kind], nodes) for kind, nodes in named if kind in CELLS]


def cell_edges(cells: Mapping[str, Indices]) -> Indices:
    """Return the edges of cells in both directions ``[2, E]``, sorted by target.

    Args:
        cells: Point numbers ``[cells, nodes]`` by type; unknown types have no edges.
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
    """Return the sides that belong to one cell only.

    Points that coincide are one, so that the seam of a ring is no boundary. Only cells
    of the highest dimension count.

    Args:
        cells: Point numbers ``[cells, nodes]`` by type.
        pos: Normalised positions ``[n, d]``.

    Returns:
        Point numbers ``[m, k]``, an array for each number ``k`` of points of a side.
    """
    typed = _typed(cells)
    highest = max((kind.dim for kind, _ in typed), default=0)
    _, place = np.unique(pos.numpy().round(DIGITS), axis=0, return_inverse=True)
    place, cell_sides = place.reshape(-1), list[Indices]()
    for kind, nodes in typed:
        if kind.dim == highest:
            cell_sides += [nodes[:, list(side)] for side in kind.sides]
    if not cell_sides:
        return []
    widest = max(side.shape[1] for side in cell_sides)
    sorted_places, padded = [], []
    for side in cell_sides:
        pad = ((0, 0), (0, widest - side.shape[1]))
        sorted_places.append(
            np.pad(np.sort(place[side], axis=1), pad, constant_values=-1)
        )
        padded.append(np.pad(side, pad, constant_values=-1))
    key, sides = np.concatenate(sorted_places), np.concatenate(padded)
    _, where, times = np.unique(key, axis=0, return_index=True, return_counts=True)
    boundary = np.sort(where[times == 1])
    # Sides that have collapsed to one point do not count.
    if highest > 1:
        places = np.where(key[boundary] < 0, key[boundary, :1], key[boundary])
        boundary = boundary[np.ptp(places, axis=1) > 0]
    sizes = (sides[boundary] >= 0).sum(1)
    return [sides[boundary][sizes == size][:, :size] for size in np.unique(sizes)]


def _area_within(
    lines: NDArray[Any], ends: NDArray[np.float64]
) -> shapely.MultiPolygon:
    """Return the area that sides bound, also where a hole meets the outer boundary.

    A ray from a point of the area crosses an odd number of sides.

    Args:
        lines: The sides.
        ends: Their ends ``[sides, 2, 2]``.
    """
    faces = shapely.get_parts(shapely.polygonize(lines))
    (x0, y0), (x1, y1) = ends.transpose(1, 2, 0)
    odd = np.zeros(len(faces), bool)
    for k, (x, y) in enumerate(
        shapely.get_coordinates(shapely.point_on_surface(faces))
    ):
        crossed = (y0 > y) != (y1 > y)
        at = x0[crossed] + (x1 - x0)[crossed] * (y - y0[crossed]) / (y1 - y0)[crossed]
        odd[k] = np.sum(at > x) % 2
    return shapely.multipolygons(faces[odd])


def outside_cells(
    cells: Mapping[str, Indices], pos: Tensor, points: Tensor
) -> NDArray[np.bool_]:
    """Return a mask of the points that lie outside a plane mesh, as in its holes.

    Args:
        cells: Point numbers ``[cells, nodes]`` by type, of plane cells.
        pos: Normalised positions of the mesh ``[n, 2]``, on the CPU.
        points: Other points ``[m, 2]`` likewise.
    """
    sides = [side for side in boundary_sides(cells, pos) if side.shape[1] == 2]
    if not sides or pos.shape[1] != 2:
        return np.zeros(len(points), bool)
    ends = pos.numpy().round(DIGITS)[np.concatenate(sides)]
    lines = shapely.linestrings(ends)
    area = _area_within(lines, ends)
    shapely.prepare(area)
    outside = ~shapely.intersects_xy(area, *points.numpy().T)
    far = NEAR_WALL * shapely.length(lines).mean()
    away = shapely.distance(shapely.points(points.numpy()[outside]), area)
    outside[outside] = away > far
    return outside


def way_to_points(pos: Tensor, source: Tensor, domain: Domain) -> Tensor:
    """Return the displacement from each point to the nearest ``source``, ``[n, d]``.

    Args:
        pos: Points ``[n, d]``, float64, on the CPU.
        source: Points ``[m, d]`` likewise.
        domain: A domain without walls.
    """
    nearest = Search(source, pos, domain).nearest(1)[:, 0]
    return domain.displacement(pos, source[nearest])


def way_to_segments(pos: Tensor, ends: Tensor, domain: Domain) -> Tensor:
    """Return the displacement from each point to the nearest segment, ``[n, 2]``.

    Args:
        pos: Points ``[n, 2]``, float64, on the CPU.
        ends: Ends of the segments ``[m, 2, 2]``, which have images on periodic axes.
        domain: The box.
    """
    steps = itertools.product(*[(0, -1, 1) if p else (0,) for p in domain.periodic])
    shifts = np.array(list(steps)) * np.array(domain.lengths)
    images = (ends.numpy() + shifts[:, None, None]).reshape(-1, 2, 2)
    lines = shapely.linestrings(images)
    points = shapely.points(pos.numpy())
    nearest = shapely.STRtree(lines).nearest(points)
    feet = shapely.get_coordinates(shapely.shortest_line(points, lines[nearest]))[1::2]
    return torch.from_numpy(feet) - pos
