"""Regions of a box: outside obstacles, or inside a vessel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from nfsgeo.errors import UserError

__all__ = ["Region"]

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Region:
    """The part of a box on which fields are defined, bounded by closed boundaries.

    In the plane the boundaries are polygons, see :meth:`polygons` and
    :meth:`signed_distance`; in space they are closed surfaces of triangles, see
    :meth:`surface`. A point is enclosed if a ray from it crosses the boundary an odd
    number of times, so that a boundary within another is a hole. Boundaries may extend
    beyond the box and are repeated along periodic axes. A wall is a thin obstacle.

    Args:
        facets: Segments ``[F, 2, 2]`` or triangles ``[F, 3, 3]``, float64, in the units
            of the coordinates.
        inside: Whether the region is what the boundaries enclose, as in a vessel; if
            not, they enclose obstacles.

    Raises:
        UserError: The boundary is not closed, or a coordinate is not finite.
    """

    facets: Doubles
    inside: bool = False

    def __post_init__(self) -> None:
        facets = np.array(self.facets, np.float64)
        why = f"of shape {facets.shape}"
        if facets.shape[1:] in ((2, 2), (3, 3)) and np.isfinite(facets).all():
            dim = facets.shape[-1]
            corners, number = np.unique(
                facets.reshape(-1, dim), axis=0, return_inverse=True
            )
            number = np.sort(number.reshape(-1, dim), axis=1)
            # The ends of segments, or the sides of triangles.
            sides = np.concatenate([np.delete(number, i, axis=1) for i in range(dim)])
            which, times = np.unique(sides, axis=0, return_counts=True)
            facets = facets[(np.diff(number, axis=1) > 0).all(axis=1)]
            odd = which[times % 2 == 1]
            why = f"that is open at {corners[odd[0, 0]].tolist()}" if len(odd) else ""
            why = why or ("" if len(facets) else "without facets")
        if why:
            raise UserError(
                f"a boundary {why}",
                "finite segments [F, 2, 2] of closed polygons, or triangles [F, 3, 3] "
                "of a closed surface",
                "close its gaps, and split faces of more corners into triangles",
            )
        facets.setflags(write=False)
        object.__setattr__(self, "facets", facets)
        object.__setattr__(self, "inside", bool(self.inside))

    @classmethod
    def polygons(cls, rings: Sequence[ArrayLike], *, inside: bool = False) -> Region:
        """Make the region outside polygons in the plane, or inside them.

        Args:
            rings: Corners ``[k, 2]`` of each polygon in order; the last may repeat the
                first. Polygons do not overlap; one within another is a hole.
            inside: Whether the region is inside.

        Raises:
            UserError: There is no polygon, one has no area or crosses itself, or two of
                them overlap.
        """
        polygons = []
        for number, ring in enumerate(rings):
            try:
                polygons.append(shapely.Polygon(np.asarray(ring, np.float64)))
                why = shapely.is_valid_reason(polygons[-1])
                fits = polygons[-1].is_valid and polygons[-1].area > 0
            except ValueError as error:  # of another shape
                why, fits = str(error), False
            if not fits:
                raise UserError(
                    f"polygon {number}: {why}",
                    "3 or more finite corners [k, 2] of an outline that encloses an "
                    "area and does not cross itself; give a wall a small width",
                    "correct the polygon",
                )
        one, other = shapely.STRtree(polygons).query(polygons, "overlaps")
        if len(one) or not polygons:
            raise UserError(
                f"polygons {min(one[0], other[0])} and {max(one[0], other[0])} that "
                "cross"
                if polygons
                else "no polygon",
                "polygons that do not overlap; one within another is a hole",
                "merge those that overlap, for example by shapely.union_all",
            )
        return cls._outlines(
            [shapely.get_coordinates(polygon) for polygon in polygons], inside
        )

    @classmethod
    def _outlines(cls, rings: Sequence[Doubles], inside: bool = False) -> Region:
        """Make the region bounded by closed rings ``[k, 2]``."""
        segments = [np.stack([r[:-1], r[1:]], axis=1) for r in rings]
        return cls(np.concatenate([np.empty((0, 2, 2)), *segments]), inside)

    @classmethod
    def signed_distance(cls, x: ArrayLike, y: ArrayLike, distance: ArrayLike) -> Region:
        """Make the region in the plane where a signed distance on a grid is positive.

        Its boundary is the zero level of the linear interpolant, so that obstacles must
        be a few spacings wide.

        Args:
            x: Coordinates along the first axis ``[n]``, increasing.
            y: Coordinates along the second ``[m]``.
            distance: Distance ``[n, m]``, negative in obstacles; its sign suffices.

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
            rings += np.split(points, ends[1:-1])
        return cls._outlines([r for r in rings if len(np.unique(r, axis=0)) > 2])

    @classmethod
    def surface(
        cls, corners: ArrayLike, triangles: ArrayLike, *, inside: bool = False
    ) -> Region:
        """Make the region outside closed surfaces in space, or inside them.

        Args:
            corners: Positions ``[V, 3]``; corners that coincide are one.
            triangles: Numbers of their corners ``[F, 3]``.
            inside: Whether the region is inside.

        Raises:
            UserError: The surface is not closed.
        """
        return cls(np.asarray(corners, np.float64)[np.asarray(triangles)], inside)

    @property
    def dim(self) -> int:
        """Number of axes ``d``."""
        return int(self.facets.shape[-1])

    def moved(self, lower: ArrayLike, scale: ArrayLike) -> Region:
        """Return the region in coordinates ``(x - lower) * scale``."""
        moved = (self.facets - np.asarray(lower)) * np.asarray(scale)
        return Region(moved, self.inside)

    def check_in_box(
        self, lower: Sequence[float], upper: Sequence[float], periodic: Sequence[bool]
    ) -> None:
        """Check that boundaries have the axes of a box and lie partly in it.

        Along periodic axes they may lie outside.

        Args:
            lower: Lower end of every axis.
            upper: Upper end of every axis.
            periodic: Whether the axis wraps around.

        Raises:
            UserError: They do not.
        """
        low, high = self.facets.min(axis=(0, 1)), self.facets.max(axis=(0, 1))
        ends = zip(low, high, lower, upper, periodic, strict=False)
        if self.dim != len(lower) or any(
            not wraps and (a > up or b < down) for a, b, down, up, wraps in ends
        ):
            raise UserError(
                f"boundaries from {low.tolist()} to {high.tolist()} in a box from "
                f"{list(lower)} to {list(upper)}",
                "boundaries in the box, in the units of its coordinates",
                "correct the boundaries or their units",
            )

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
