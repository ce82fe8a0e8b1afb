"""Geometric queries on the boundary of a region: containment, visibility, distance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nfsgeo.errors import UserError
from nfsgeo.geometry.region import Doubles, Region

__all__ = ["PlaneWalls", "SpaceWalls", "walls_of"]

Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

# Distance over the longest axis within which a point is on a boundary, larger than the
# rounding of float32.
TOLERANCE = 1e-6
# Shift of rays, so that they pass beside corners of facets.
SHIFT = 1e-9 * np.array([0.0, 0.5 + np.sqrt(2), 0.5 + np.sqrt(3)])
# Overlap of facets over their size, which closes gaps that rounding leaves.
GAP = 1e-9


class PlaneWalls:
    """Polygons in the plane, by shapely."""

    def __init__(self, facets: Doubles, inside: bool, tolerance: float) -> None:
        self.tolerance = tolerance
        lines = self.lines = shapely.linestrings(facets)
        self.tree = shapely.STRtree(lines)
        self.spacing = tolerance / TOLERANCE / 64
        marks = shapely.get_coordinates(shapely.segmentize(lines, self.spacing))
        self.nearby = cKDTree(marks)
        linework = shapely.node(shapely.multilinestrings(lines))
        faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(linework)))
        places = shapely.get_coordinates(shapely.point_on_surface(faces))
        solid = shapely.union_all(faces[[_enclosed(facets, place) for place in places]])
        if inside:
            room = np.ptp(facets, axis=(0, 1)).max()
            around = shapely.box(*shapely.total_bounds(shapely.buffer(faces, room)))
            solid = shapely.difference(around, solid)
        parts = shapely.get_parts(solid)
        # Without its outermost layer, points and segments on the boundary are free.
        deep = shapely.buffer(parts, -tolerance, join_style="mitre")
        ends = shapely.bounds(parts)
        speck = (ends[:, 2:] - ends[:, :2]).max(axis=1) <= 4 * tolerance
        if (thin := shapely.is_empty(deep) & ~speck).any():
            raise UserError(
                f"a wall at {shapely.get_coordinates(parts[thin])[0].tolist()} that is "
                f"thinner than {2 * tolerance:g}",
                "walls of a small width",
                "make it thicker",
            )
        self.deep = shapely.union_all(deep)
        shapely.prepare(self.deep)

    def contains(self, points: Doubles) -> Flags:
        """Return whether points ``[n, d]`` lie in the region or on its boundary."""
        return ~shapely.contains_xy(self.deep, points)

    def visible(self, a: Doubles, b: Doubles) -> Flags:
        """Return whether no boundary separates points ``a`` and ``b`` ``[n, d]``."""
        ways = shapely.linestrings(np.stack([a, b], axis=1))
        return ~shapely.intersects(self.deep, ways)

    def clearance(self, points: Doubles) -> Doubles:
        """Return a lower bound of the distance to the boundary ``[n]``."""
        return self.nearby.query(points)[0] - self.spacing / 2 - self.tolerance

    def feet(self, points: Doubles) -> Doubles:
        """Return the nearest point on the boundary for each point ``[n, d]``."""
        points = shapely.points(points)
        ways = shapely.shortest_line(points, self.lines[self.tree.nearest(points)])
        return shapely.get_coordinates(ways)[1::2]


class SpaceWalls:
    """Surfaces in space, by trimesh in coordinates of order 1."""

    def __init__(self, facets: Doubles, inside: bool, tolerance: float) -> None:
        import trimesh

        self.lower, self.scale = facets.min(axis=(0, 1)), tolerance / TOLERANCE
        self.mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(self._local(facets)))
        self.mesh.update_faces(self.mesh.nondegenerate_faces())
        self.inside, self.corners = inside, self.mesh.triangles
        self.inverse = np.linalg.pinv(self.corners[:, 1:] - self.corners[:, :1])

    def _local(self, points: Doubles) -> Doubles:
        return (points - self.lower) / self.scale

    def contains(self, points: Doubles) -> Flags:
        """Return whether points ``[n, d]`` lie in the region or on its boundary."""
        return self._contains(self._local(points))

    def _contains(self, points: Doubles) -> Flags:
        start = points + SHIFT
        end = start.copy()
        end[:, 0] = np.maximum(self.corners[..., 0].max(), start[:, 0]) + 1
        ray, facet = self._near(start, end)
        crossed = self._crossed(start[ray], end[ray], facet)
        odd = np.bincount(ray[crossed], minlength=len(points)) % 2 == 1
        free = odd == self.inside
        rest = np.flatnonzero(~free)
        away = np.linalg.norm(self._feet(points[rest]) - points[rest], axis=1)
        free[rest] = away <= TOLERANCE
        return free

    def visible(self, a: Doubles, b: Doubles) -> Flags:
        """Return whether no boundary separates points ``a`` and ``b`` ``[n, d]``."""
        a, b = self._local(a), self._local(b)
        way, facet = self._near(a, b)
        free = np.ones(len(a), np.bool_)
        free[way[self._crossed(a[way], b[way], facet, TOLERANCE, GAP)]] = False
        # Points on boundaries may be separated by an obstacle nevertheless.
        touched = free.copy()
        for end in (a, b):
            on = np.abs(self._height(end[way], facet)) <= TOLERANCE
            touched &= np.bincount(way[on], minlength=len(a)) > 0
        free[touched] = self._contains((a[touched] + b[touched]) / 2)
        return free

    def clearance(self, points: Doubles) -> Doubles:
        """Return the trivial bound 0; a better one costs as much as the query."""
        return np.zeros(len(points))

    def feet(self, points: Doubles) -> Doubles:
        """Return the nearest point on the boundary for each point ``[n, d]``."""
        return self._feet(self._local(points)) * self.scale + self.lower

    def _feet(self, points: Doubles) -> Doubles:
        from trimesh.proximity import closest_point

        return closest_point(self.mesh, points)[0] if len(points) else points

    def _near(self, a: Doubles, b: Doubles) -> tuple[Indices, Indices]:
        """Return pairs of a segment from ``a`` to ``b`` and a facet nearby."""
        low, high = np.minimum(a, b) - TOLERANCE, np.maximum(a, b) + TOLERANCE
        facet, count = self.mesh.triangles_tree.intersection_v(low, high)
        return np.repeat(np.arange(len(a)), count.astype(np.int64)), facet

    def _height(self, points: Doubles, facet: Indices) -> Doubles:
        """Return the signed distance from the plane of a facet."""
        away = points - self.corners[facet, 0]
        return np.einsum("pd,pd->p", away, self.mesh.face_normals[facet])

    def _crossed(
        self,
        a: Doubles,
        b: Doubles,
        facet: Indices,
        tolerance: float = 0.0,
        gap: float = 0.0,
    ) -> Flags:
        """Return whether segments from ``a`` to ``b`` cross facets."""
        before, after = self._height(a, facet), self._height(b, facet)
        crossed = (np.minimum(before, after) < -tolerance) & (
            np.maximum(before, after) > tolerance
        )
        candidates = np.flatnonzero(crossed)
        part = before[candidates] / (before[candidates] - after[candidates])
        away = (
            a[candidates]
            + part[:, None] * (b - a)[candidates]
            - self.corners[facet[candidates], 0]
        )
        place = np.einsum("pd,pdk->pk", away, self.inverse[facet[candidates]])
        crossed[candidates] = (place >= -gap).all(1) & (place.sum(1) <= 1 + gap)
        return crossed


def walls_of(
    region: Region,
    lower: Sequence[float],
    lengths: Sequence[float],
    periodic: Sequence[bool],
) -> PlaneWalls | SpaceWalls:
    """Make the boundary of a region in a box, with its periodic images.

    There are all images, as a whole, that reach within half a length of the box. A
    point within 1e-6 of the longest axis is on the boundary, so that a wall of such a
    width hides nothing.

    Args:
        region: The region.
        lower: Lower end of every axis of the box.
        lengths: Length of every axis.
        periodic: Whether the axis wraps around.
    """
    low, size = np.array(lower) - 0.5 * np.array(lengths), np.array(lengths)
    ends = region.facets.min(axis=(0, 1)), region.facets.max(axis=(0, 1))
    images = []
    for steps in itertools.product(*[(0, -1, 1) if p else (0,) for p in periodic]):
        step = np.array(steps) * size
        met = (ends[0] + step <= low + 2 * size) & (ends[1] + step >= low)
        if met.all() or not any(steps):
            images.append(region.facets + step)
    kind = PlaneWalls if region.dim == 2 else SpaceWalls
    return kind(np.concatenate(images), region.inside, TOLERANCE * max(lengths))


def _enclosed(facets: Doubles, point: Doubles) -> bool:
    """Return whether a ray from a point in the plane crosses segments oddly often."""
    (x, y), (end_x, end_y) = facets.transpose(1, 2, 0)
    across = np.flatnonzero((y > point[1]) != (end_y > point[1]))
    part = (point[1] - y[across]) / (end_y - y)[across]
    beyond = x[across] + part * (end_x - x)[across] > point[0]
    return bool(np.count_nonzero(beyond) % 2)
