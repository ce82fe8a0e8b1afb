"""Searches among the boundaries of a region: what they enclose, and what they hide."""

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

# Of the longest axis: what lies as near to a boundary is on it. More than float32
# rounds away.
TOLERANCE = 1e-6
# Rays pass corners at a distance that decides for one of the facets there.
SHIFT = 1e-9 * np.array([0.0, 0.5 + np.sqrt(2), 0.5 + np.sqrt(3)])
# Of a facet's own size: gaps between facets that rounding would leave.
GAP = 1e-9


class PlaneWalls:
    """Polygons, searched by shapely."""

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
        # Without the outermost layer, points and ways along a boundary are free.
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
        """Whether fields live at points ``[n, d]``, those on a boundary among them."""
        return ~shapely.contains_xy(self.deep, points)

    def visible(self, a: Doubles, b: Doubles) -> Flags:
        """Whether no boundary lies between points ``a`` and ``b``, both ``[n, d]``."""
        ways = shapely.linestrings(np.stack([a, b], axis=1))
        return ~shapely.intersects(self.deep, ways)

    def clearance(self, points: Doubles) -> Doubles:
        """A lower bound of the distance of ``points [n, d]`` to a boundary ``[n]``."""
        return self.nearby.query(points)[0] - self.spacing / 2 - self.tolerance

    def feet(self, points: Doubles) -> Doubles:
        """The nearest point of a boundary to each of ``points [n, d]``."""
        points = shapely.points(points)
        ways = shapely.shortest_line(points, self.lines[self.tree.nearest(points)])
        return shapely.get_coordinates(ways)[1::2]


class SpaceWalls:
    """Surfaces, searched by trimesh in coordinates of about 1."""

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
        """As :meth:`PlaneWalls.contains`."""
        return self._contains(self._local(points))

    def _contains(self, points: Doubles) -> Flags:
        start = points + SHIFT
        end = start.copy()
        end[:, 0] = np.maximum(self.corners[..., 0].max(), start[:, 0]) + 1
        ray, facet = self._near(start, end)
        crossed = self._crossed(start[ray], end[ray], facet)
        odd = np.bincount(ray[crossed], minlength=len(points)) % 2 == 1
        found = odd == self.inside
        rest = np.flatnonzero(~found)
        away = np.linalg.norm(self._feet(points[rest]) - points[rest], axis=1)
        found[rest] = away <= TOLERANCE
        return found

    def visible(self, a: Doubles, b: Doubles) -> Flags:
        """As :meth:`PlaneWalls.visible`."""
        a, b = self._local(a), self._local(b)
        way, facet = self._near(a, b)
        free = np.ones(len(a), np.bool_)
        free[way[self._crossed(a[way], b[way], facet, TOLERANCE, GAP)]] = False
        # Between points that are both on boundaries may be an obstacle all the same.
        touched = free.copy()
        for end in (a, b):
            on = np.abs(self._height(end[way], facet)) <= TOLERANCE
            touched &= np.bincount(way[on], minlength=len(a)) > 0
        free[touched] = self._contains((a[touched] + b[touched]) / 2)
        return free

    def clearance(self, points: Doubles) -> Doubles:
        """None that costs less than to look: 0."""
        return np.zeros(len(points))

    def feet(self, points: Doubles) -> Doubles:
        """As :meth:`PlaneWalls.feet`."""
        return self._feet(self._local(points)) * self.scale + self.lower

    def _feet(self, points: Doubles) -> Doubles:
        from trimesh.proximity import closest_point

        return closest_point(self.mesh, points)[0] if len(points) else points

    def _near(self, a: Doubles, b: Doubles) -> tuple[Indices, Indices]:
        """Ways from ``a`` to ``b`` and facets whose boxes they meet, in pairs."""
        low, high = np.minimum(a, b) - TOLERANCE, np.maximum(a, b) + TOLERANCE
        facet, count = self.mesh.triangles_tree.intersection_v(low, high)
        return np.repeat(np.arange(len(a)), count.astype(np.int64)), facet

    def _height(self, points: Doubles, facet: Indices) -> Doubles:
        """Signed distance from the plane of a facet."""
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
        """Whether the segment from ``a`` to ``b`` crosses a facet between its ends."""
        before, after = self._height(a, facet), self._height(b, facet)
        found = (np.minimum(before, after) < -tolerance) & (
            np.maximum(before, after) > tolerance
        )
        some = np.flatnonzero(found)
        part = before[some] / (before[some] - after[some])
        away = a[some] + part[:, None] * (b - a)[some] - self.corners[facet[some], 0]
        place = np.einsum("pd,pdk->pk", away, self.inverse[facet[some]])
        found[some] = (place >= -gap).all(1) & (place.sum(1) <= 1 + gap)
        return found


def walls_of(
    region: Region,
    lower: Sequence[float],
    lengths: Sequence[float],
    periodic: Sequence[bool],
) -> PlaneWalls | SpaceWalls:
    """The boundaries of a region in a box, and their images over its periodic axes.

    Images are those that a way out of the box by half its length meets, each as a
    whole: rays tell by its facets what it encloses. What lies as near to a boundary as
    1e-6 of the longest axis is on it, so that a wall of such a width hides nothing.

    ``lower``, ``lengths`` and ``periodic`` are of every axis of the box.
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
    """Whether a ray from a point in the plane crosses an odd number of segments."""
    (x, y), (end_x, end_y) = facets.transpose(1, 2, 0)
    across = np.flatnonzero((y > point[1]) != (end_y > point[1]))
    part = (point[1] - y[across]) / (end_y - y)[across]
    beyond = x[across] + part * (end_x - x)[across] > point[0]
    return bool(np.count_nonzero(beyond) % 2)
