"""Searches among the boundaries of a region: what they enclose, and what they hide."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nfsgeo.geometry.region import Doubles, Region

__all__ = ["Walls"]

Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

# Of the longest axis: what lies as near to a boundary is on it. More than float32
# rounds away.
TOLERANCE = 1e-6
# Rays pass corners at a distance that decides for one of the facets there.
SHIFT = 1e-9 * np.array([0.0, 0.5 + np.sqrt(2), 0.5 + np.sqrt(3)])
# Of a facet's own size: gaps between facets that rounding would leave.
GAP = 1e-9
# As many facets are all looked at. Of more, only those nearby, once large ones are
# divided into so many along the longest axis.
FEW, PIECES = 32, {2: 64, 3: 32}
# Points or pairs that are looked at together.
TOGETHER = 1 << 13


class Walls:
    """The facets of a region in a box, with their periodic images, in a k-d tree.

    Args:
        region: Its boundaries.
        lower: Lower end of every axis of the box.
        lengths: Length of every axis.
        periodic: Whether it wraps around.
    """

    def __init__(
        self,
        region: Region,
        lower: Sequence[float],
        lengths: Sequence[float],
        periodic: Sequence[bool],
    ) -> None:
        dim, longest = region.dim, max(lengths)
        self.inside, self.tolerance = region.inside, TOLERANCE * longest
        facets = _with_images(region.facets, lower, lengths, periodic)
        self.few = len(facets) <= FEW
        size = np.inf if self.few else longest / PIECES[dim]
        self.corners = _divided(facets, size)
        sides = self.corners[:, 1:] - self.corners[:, :1]
        if dim == 2:
            normal = sides[:, 0] @ np.array([[0.0, -1.0], [1.0, 0.0]])
        else:
            normal = np.cross(sides[:, 0], sides[:, 1])
        self.normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        self.inverse = np.linalg.pinv(sides)
        centres = self.corners.mean(axis=1)
        away = np.linalg.norm(self.corners - centres[:, None], axis=2)
        self.radius = float(away.max())
        self.beyond = float(self.corners[..., 0].max()) + longest
        self.shift = longest * SHIFT[:dim]
        self.tree = cKDTree(centres)
        self.across = cKDTree(centres[:, 1:])

    def contains(self, points: Doubles) -> Flags:
        """Whether fields live at points ``[n, d]``, those on a boundary among them."""
        return _in_parts(self._contains, points)

    def visible(self, a: Doubles, b: Doubles) -> Flags:
        """Whether no boundary lies between points ``a`` and ``b``, both ``[n, d]``."""
        return _in_parts(self._visible, a, b)

    def feet(self, points: Doubles) -> Doubles:
        """The nearest point of a boundary to each of ``points [n, d]``."""
        return _in_parts(self._feet, points)

    def clearance(self, points: Doubles) -> Doubles:
        """A lower bound of the distance of ``points [n, d]`` to a boundary ``[n]``."""
        if self.few:
            return np.linalg.norm(self.feet(points) - points, axis=1) - self.tolerance
        return self.tree.query(points)[0] - self.radius

    def _contains(self, points: Doubles) -> Flags:
        start = points + self.shift
        point, facet = self._near(self.across, start[:, 1:], self.radius)
        end = start[point]
        end[:, 0] = self.beyond
        crossed = self._crossed(start[point], end, facet, 0.0)
        odd = np.bincount(point[crossed], minlength=len(points)) % 2 == 1
        found = odd == self.inside
        rest = np.flatnonzero(~found)
        away = np.linalg.norm(self._feet(points[rest]) - points[rest], axis=1)
        found[rest] = away <= self.tolerance
        return found

    def _visible(self, a: Doubles, b: Doubles) -> Flags:
        free = np.ones(len(a), np.bool_)
        length = np.linalg.norm(b - a, axis=1)
        close = np.arange(len(a))
        if not self.few:
            close = close[self.clearance(a) <= length]
        middle = (a[close] + b[close]) / 2
        pair, facet = self._near(self.tree, middle, length[close] / 2 + self.radius)
        pair = close[pair]
        crossed = self._crossed(a[pair], b[pair], facet, self.tolerance)
        free[pair[crossed]] = False
        # Between points that are both on boundaries may be an obstacle all the same.
        touched = free.copy()
        for end in (a, b):
            on = np.abs(self._height(end[pair], facet)) <= self.tolerance
            touched &= np.bincount(pair[on], minlength=len(a)) > 0
        both = np.flatnonzero(touched)
        free[both] = self._contains((a[both] + b[both]) / 2)
        return free

    def _feet(self, points: Doubles) -> Doubles:
        if not len(points):
            return points
        some = self._foot(points, self.tree.query(points)[1])
        most = np.linalg.norm(some - points, axis=1) * (1 + 1e-9)
        point, facet = self._near(self.tree, points, most + self.radius)
        foot = self._foot(points[point], facet)
        away = np.linalg.norm(foot - points[point], axis=1)
        order = np.lexsort((away, point))
        first = order[np.searchsorted(point[order], np.arange(len(points)))]
        return foot[first]

    def _near(
        self, tree: cKDTree, points: Doubles, reach: float | Doubles
    ) -> tuple[Indices, Indices]:
        """Points and facets whose centres are within ``reach``, in pairs."""
        number, facets = np.arange(len(points)), np.arange(len(self.corners))
        if self.few:
            return np.repeat(number, len(facets)), np.tile(facets, len(points))
        lists = tree.query_ball_point(points, reach)
        counts = np.array([len(found) for found in lists], np.int64)
        flat = np.fromiter(itertools.chain.from_iterable(lists), np.int64, counts.sum())
        return np.repeat(number, counts), flat

    def _foot(self, points: Doubles, facet: Indices) -> Doubles:
        """The nearest point of one facet to each point."""
        corners = self.corners[facet]
        dim = corners.shape[1]
        found, least = np.empty_like(points), np.full(len(points), np.inf)
        for i, j in itertools.combinations(range(dim), 2):
            side = corners[:, j] - corners[:, i]
            along = ((points - corners[:, i]) * side).sum(1) / (side * side).sum(1)
            foot = corners[:, i] + np.clip(along, 0, 1)[:, None] * side
            away = np.linalg.norm(foot - points, axis=1)
            found = np.where((away < least)[:, None], foot, found)
            least = np.minimum(away, least)
        if dim == 3:
            above = points - self._height(points, facet)[:, None] * self.normal[facet]
            within = self._within(above, facet, 0.0)
            found = np.where(within[:, None], above, found)
        return found

    def _height(self, points: Doubles, facet: Indices) -> Doubles:
        """Signed distance from the line or plane of a facet."""
        away = points - self.corners[facet, 0]
        return np.einsum("pd,pd->p", away, self.normal[facet])

    def _within(self, points: Doubles, facet: Indices, gap: float) -> Flags:
        """Whether points of the line or plane of a facet belong to it."""
        away = points - self.corners[facet, 0]
        place = np.einsum("pd,pdk->pk", away, self.inverse[facet])
        return np.asarray((place >= -gap).all(1) & (place.sum(1) <= 1 + gap))

    def _crossed(
        self, a: Doubles, b: Doubles, facet: Indices, tolerance: float
    ) -> Flags:
        """Whether the segment from ``a`` to ``b`` crosses a facet between its ends."""
        before, after = self._height(a, facet), self._height(b, facet)
        found = (np.minimum(before, after) < -tolerance) & (
            np.maximum(before, after) > tolerance
        )
        some = np.flatnonzero(found)
        part = before[some] / (before[some] - after[some])
        at = a[some] + part[:, None] * (b[some] - a[some])
        found[some] = self._within(at, facet[some], GAP if tolerance else 0.0)
        return found


def _in_parts(function: Callable[..., NDArray], *arrays: Doubles) -> NDArray:
    starts = range(0, max(1, len(arrays[0])), TOGETHER)
    return np.concatenate(
        [function(*(array[at : at + TOGETHER] for array in arrays)) for at in starts]
    )


def _with_images(
    facets: Doubles,
    lower: Sequence[float],
    lengths: Sequence[float],
    periodic: Sequence[bool],
) -> Doubles:
    """The facets, and their images that a way out of the box by half its length meets.

    An image is taken as a whole: rays tell by its facets what it encloses.
    """
    box, size = np.array(lower), np.array(lengths)
    ends = facets.min(axis=(0, 1)), facets.max(axis=(0, 1))
    found = []
    for steps in itertools.product(*[(0, -1, 1) if p else (0,) for p in periodic]):
        step = np.array(steps) * size
        met = (ends[0] + step <= box + 1.5 * size) & (
            ends[1] + step >= box - 0.5 * size
        )
        if met.all() or not any(steps):
            found.append(facets + step)
    return np.concatenate(found)


def _divided(facets: Doubles, size: float) -> Doubles:
    """The same facets in pieces with sides of at most ``size``."""
    dim = facets.shape[1]
    while True:
        sides = np.linalg.norm(facets - np.roll(facets, -1, axis=1), axis=2)
        long = np.flatnonzero(sides.max(axis=1) > size)
        if not len(long):
            return facets
        i = sides[long].argmax(axis=1)
        j, row = (i + 1) % dim, np.arange(len(long))
        first, second = facets[long], facets[long]
        first[row, i] = second[row, j] = (first[row, i] + first[row, j]) / 2
        facets = np.concatenate([np.delete(facets, long, axis=0), first, second])
