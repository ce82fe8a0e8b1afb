"""The part of a box that fields live in: outside of obstacles, or inside a vessel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nfsgeo.errors import UserError

__all__ = ["Region"]

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Region:
    """Closed boundaries in a box, and the side of them on which fields live.

    In the plane these are polygons, which are made by :meth:`polygons` or as the zero
    level of a signed distance by :meth:`signed_distance`; in space closed surfaces of
    triangles, by :meth:`surface`. A point is enclosed if a ray from it crosses the
    boundary an odd number of times, so that a boundary within another is a hole in it.
    Boundaries may reach beyond the box; on a periodic axis they come again with its
    period. A wall is an obstacle with a small width.

    Args:
        facets: Segments ``[F, 2, 2]`` or triangles ``[F, 3, 3]``, float64, in the units
            of the coordinates.
        inside: Whether fields live where the boundaries enclose a point, as in a
            vessel; if not, they enclose obstacles.

    Raises:
        UserError: The boundary is not closed, or a coordinate is not finite.
    """

    facets: Doubles
    inside: bool = False

    def __post_init__(self) -> None:
        facets = np.array(self.facets, np.float64)
        dim = facets.shape[-1] if facets.ndim == 3 else 0
        if facets.shape[1:] not in ((2, 2), (3, 3)) or not np.isfinite(facets).all():
            raise UserError(
                f"a boundary of shape {facets.shape}",
                "finite segments [F, 2, 2] or triangles [F, 3, 3]",
                "correct the boundary",
            )
        corners, number = np.unique(
            facets.reshape(-1, dim), axis=0, return_inverse=True
        )
        number = np.sort(number.reshape(-1, dim), axis=1)
        # Ends of segments, sides of triangles.
        sides = np.concatenate([np.delete(number, i, axis=1) for i in range(dim)])
        which, times = np.unique(sides, axis=0, return_counts=True)
        if (times % 2).any():
            at = corners[which[times % 2 == 1][0, 0]].tolist()
            raise UserError(
                f"a boundary that is open at {at}",
                "closed polygons, or a closed surface of triangles",
                "close the gap",
            )
        facets = facets[(np.diff(number, axis=1) > 0).all(axis=1)]
        if not len(facets):
            raise UserError(
                "a boundary without facets",
                "segments, or triangles",
                "split faces of more corners into triangles",
            )
        facets.setflags(write=False)
        object.__setattr__(self, "facets", facets)
        object.__setattr__(self, "inside", bool(self.inside))

    @classmethod
    def polygons(cls, rings: Sequence[ArrayLike], *, inside: bool = False) -> Region:
        """The region outside of polygons in the plane, or inside of them.

        Args:
            rings: Corners ``[k, 2]`` of each polygon in order; the first may come again
                as the last. Polygons do not overlap; one within another is a hole.
            inside: Whether fields live inside.

        Raises:
            UserError: A polygon has fewer than 3 corners or no area.
        """
        segments = []
        for number, ring in enumerate(rings):
            corners = np.asarray(ring, np.float64)
            flat = corners.ndim == 2 and corners.shape[1] == 2
            area = 0.0
            if flat and np.isfinite(corners).all():
                following = np.roll(corners, -1, axis=0)
                (x, y), (dx, dy) = (corners - corners[:1]).T, (following - corners).T
                area = float((x * dy - y * dx).sum()) / 2
            if not abs(area) > 0:
                raise UserError(
                    f"polygon {number} with corners of shape {corners.shape}",
                    "3 or more finite corners [k, 2] that enclose an area; give a wall "
                    "a small width",
                    "correct the polygon",
                )
            segments.append(np.stack([corners, following], axis=1))
        if not segments:
            raise UserError("no polygon", "at least one", "give its corners")
        facets = np.concatenate(segments)
        if (crossing := _first_crossing(facets)) is not None:
            ends = np.cumsum([len(each) for each in segments])
            one, other = np.searchsorted(ends, crossing, side="right").tolist()
            which = f"polygons {one} and {other} that cross"
            raise UserError(
                f"{which if one != other else f'polygon {one} that crosses itself'} "
                f"near {facets[crossing[0], 0].tolist()}",
                "polygons that do not overlap; one within another is a hole",
                "merge those that overlap, for example by shapely.union_all",
            )
        return cls(facets, inside)

    @classmethod
    def signed_distance(cls, x: ArrayLike, y: ArrayLike, distance: ArrayLike) -> Region:
        """The region where a signed distance on a grid in the plane is positive.

        Its boundary is the zero level of the linear interpolation, so that obstacles
        need to be a few spacings wide.

        Args:
            x: Coordinates along the first axis ``[n]``, increasing.
            y: Coordinates along the second axis ``[m]``, increasing.
            distance: ``[n, m]``, negative in obstacles; any function of that sign.

        Raises:
            UserError: Shapes do not fit, or nothing is negative.
        """
        from contourpy import contour_generator

        axes = [np.asarray(axis, np.float64) for axis in (x, y)]
        values = np.asarray(distance, np.float64)
        fits = values.shape == tuple(len(axis) for axis in axes)
        if not (fits and np.isfinite(values).all() and (values < 0).any()):
            raise UserError(
                f"a signed distance of shape {values.shape} on axes of "
                f"{' and '.join(str(len(axis)) for axis in axes)} coordinates",
                "a finite value [x, y] at each node, negative in obstacles",
                "correct it, or leave the region out",
            )
        levels = contour_generator(
            x=axes[0], y=axes[1], z=values.T, fill_type="OuterOffset"
        )
        rings = []
        for points, ends in zip(*levels.filled(values.min() - 1, 0.0), strict=True):
            rings += [points[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return cls.polygons(
            [ring for ring in rings if len(np.unique(ring, axis=0)) > 2]
        )

    @classmethod
    def surface(
        cls, corners: ArrayLike, triangles: ArrayLike, *, inside: bool = False
    ) -> Region:
        """The region outside of closed surfaces in space, or inside of them.

        Args:
            corners: ``[V, 3]``. Corners at one place are one.
            triangles: Numbers of the corners of each triangle, ``[F, 3]``.
            inside: Whether fields live inside.

        Raises:
            UserError: The surface is not closed.
        """
        return cls(np.asarray(corners, np.float64)[np.asarray(triangles)], inside)

    @property
    def dim(self) -> int:
        """Number of axes ``d``."""
        return int(self.facets.shape[-1])

    def moved(self, lower: ArrayLike, scale: ArrayLike) -> Region:
        """The same region in coordinates ``(x - lower) * scale``."""
        moved = (self.facets - np.asarray(lower)) * np.asarray(scale)
        return Region(moved, self.inside)

    @cached_property
    def _key(self) -> tuple[bytes, bool]:
        return self.facets.tobytes(), self.inside

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Region) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        side = "inside" if self.inside else "outside"
        kind = "segments" if self.dim == 2 else "triangles"
        return f"Region({side} of {len(self.facets)} {kind})"


def _first_crossing(segments: Doubles) -> NDArray[np.int64] | None:
    """Numbers of two ``segments [F, 2, 2]`` that cross, ends apart; None without any.

    Only segments that overlap along the first axis are compared.
    """
    order = np.argsort(segments[:, :, 0].min(1))
    low, high = segments[order, :, 0].min(1), segments[order, :, 0].max(1)
    count = np.searchsorted(low, high, side="left") - np.arange(len(low)) - 1
    count = np.maximum(count, 0)
    for some in np.array_split(np.arange(len(low)), 1 + count.sum() // 2**20):
        first = np.repeat(some, count[some])
        start = np.cumsum(count[some]) - count[some]
        step = np.arange(len(first)) - np.repeat(start, count[some])
        pairs = order[np.stack([first, first + 1 + step])]
        (a, b), (c, d) = (segments[each].swapaxes(0, 1) for each in pairs)
        sides = [_side(a, b, c), _side(a, b, d), _side(c, d, a), _side(c, d, b)]
        crossing = (sides[0] * sides[1] < 0) & (sides[2] * sides[3] < 0)
        if crossing.any():
            return np.sort(pairs[:, np.flatnonzero(crossing)[0]])
    return None


def _side(a: Doubles, b: Doubles, point: Doubles) -> Doubles:
    """On which side of the line from ``a`` to ``b`` points lie: -1, 0 or 1."""
    (x, y), (u, v) = (b - a).T, (point - a).T
    return np.sign(x * v - y * u)
