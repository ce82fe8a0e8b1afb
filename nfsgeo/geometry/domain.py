"""Domains of problems: a box, a region in a box, a sphere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.box import ROUNDING, Box, length
from nfsgeo.geometry.region import Region
from nfsgeo.geometry.sphere import arc, azimuthal, unit_vectors
from nfsgeo.geometry.walls import PlaneWalls, SpaceWalls, walls_of

__all__ = ["Domain", "Sphere", "UnitSphere"]

# Shortest axis of the normalised box, whose longest axis has length 1.
SHORTEST = 1 / 8


@dataclass(frozen=True)
class Domain(Box):
    """An axis-aligned box, periodic or not on each axis, or a region in it.

    Args:
        lower: Lower end of every axis, in the units of the coordinates.
        upper: Upper end of every axis.
        periodic: Whether the axis wraps around.
        region: The part of the box on which fields are defined; None for all of it.

    Attributes:
        curved: Whether the domain is the surface of a sphere.

    Raises:
        ValueError: As :class:`~nfsgeo.geometry.box.Box`.
        UserError: If the region has another number of axes, or is outside the box.
    """

    region: Region | None = None

    curved: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.region is not None:
            self.region.check_in_box(self.lower, self.upper, self.periodic)

    @staticmethod
    def sphere(west: float = -180.0) -> Sphere:
        """Return a sphere in longitude, from ``west`` on, and latitude in degrees."""
        return Sphere((west, -90.0), (west + 360.0, 90.0), (True, False))

    @property
    def box(self) -> Self:
        """The domain without obstacles."""
        return replace(self, region=None)

    def contains(self, pos: Tensor) -> Tensor:
        """Return whether points ``[..., d]`` lie in the box and the region, ``[...]``.

        Periodic axes are half-open, without ``upper``; others are closed, and points
        may lie beyond their ends by rounding, as in :meth:`check_inside`. The ends are
        rounded to the precision of ``pos``, so that a float32 point at the end of an
        axis of length 2 pi is inside.
        """
        far = pos == self._ends(pos)[1]
        far = (far & torch.tensor(self.periodic, device=pos.device)).any(-1)
        inside = self._in_box(pos, [0 if p else ROUNDING for p in self.periodic]) & ~far
        if self.walls is not None:
            free = self.walls.contains(_as_numpy(pos[inside]))
            inside[inside.clone()] = torch.from_numpy(free).to(inside.device)
        return inside

    def check_region(self, pos: Tensor, name: str = "") -> None:
        """Check that no point ``pos [..., d]`` of the box is in an obstacle.

        Args:
            pos: The points.
            name: Prefix of the message, such as ``"mesh 0 with "``.

        Raises:
            UserError: Points are in an obstacle; the message counts them.
        """
        if self.region is None or self.walls is None:
            return
        points = _as_numpy(self.wrap(pos))
        hidden = np.flatnonzero(~self.walls.contains(points))
        if len(hidden):
            where = "outside of the region" if self.region.inside else "in an obstacle"
            raise UserError(
                f"{name}{len(hidden)} of {len(points)} points {where}, the first is "
                f"number {hidden[0]} at {points[hidden[0]].tolist()}",
                "points in the region of the domain",
                "leave these points out, or correct the region",
            )

    @cached_property
    def normalised(self) -> Domain:
        """The box that :meth:`normalise` maps to, from 0, with the longest axis 1.

        All axes have one scale, which preserves ratios of distances. An axis shorter
        than :data:`SHORTEST` times the longest is stretched to that length: probably
        its unit differs, and no affordable grid resolves both.
        """
        longest = max(self.lengths)
        # Rounded, since subtracting the ends loses digits.
        upper = tuple(
            max(SHORTEST, round(length / longest, 6)) for length in self.lengths
        )
        region = self.region
        if region is not None:
            region = region.moved(self.lower, np.divide(upper, self.lengths))
        return Domain((0.0,) * self.dim, upper, self.periodic, region)

    def normalise(self, pos: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return coordinates in the :attr:`normalised` box.

        They are computed in float64 and rounded at the end, so that points far from the
        origin stay apart. On periodic axes points may be up to one period outside.

        Args:
            pos: Points ``[..., d]`` of this box.
            dtype: Type of the result.

        Raises:
            UserError: If a point is outside the box or the region, or not a number.
        """
        inside = self._in_box(pos, [0] * self.dim)[..., None]
        pos = torch.where(inside, pos, self.wrap_near(pos))
        self.check_inside(pos)
        self.check_region(pos)
        low, _, lengths = self._ends(pos.double())
        box, place = self.normalised, (pos.double() - low) / lengths
        # Rounding may put a point beyond the end of an axis, or on a periodic end.
        place = place.clamp(0, 1) * place.new_tensor(box.upper)
        return box.wrap(place.to(dtype))

    def normalised_length(self, value: float) -> float:
        """Normalise a distance ``value`` in the units of the coordinates."""
        return value / max(self.lengths)

    def visible(self, a: Tensor, b: Tensor) -> Tensor:
        """Return whether no wall separates points ``a`` and ``b`` ``[..., d]``.

        The segment between them is that of :meth:`displacement`. It may not touch
        corners and edges of walls. The result is ``[...]``.
        """
        if self.walls is None:
            return torch.ones(a.shape[:-1], dtype=torch.bool, device=a.device)
        way = _as_numpy(self.displacement(a.double(), b.double()))
        start = _as_numpy(self.wrap(a))
        free = self.walls.visible(start, start + way)
        return torch.from_numpy(free).view(a.shape[:-1]).to(a.device)

    def to_boundary(self, pos: Tensor) -> Tensor:
        """Return distance and direction to the nearest boundary of the region.

        Args:
            pos: Points ``[n, d]``.

        Returns:
            Distances and unit vectors ``[n, 1 + d]``; zeros on a boundary.

        Raises:
            UserError: If there is no region.
        """
        if self.walls is None:
            raise UserError(
                "the distance to the boundary in a domain without a region",
                "a region",
                "give the domain one, for example by nfsgeo convert --obstacles",
            )
        points = _as_numpy(self.wrap(pos))
        way = torch.from_numpy(self.walls.feet(points) - points)
        distance = length(way)[:, None]
        return torch.cat([distance, way / distance.where(distance > 0, 1)], 1).to(pos)

    @cached_property
    def walls(self) -> PlaneWalls | SpaceWalls | None:
        """Geometric queries on the boundary of the region; None without a region."""
        if self.region is None:
            return None
        return walls_of(self.region, self.lower, self.lengths, self.periodic)

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as plain lists, for JSON and YAML."""
        content: dict[str, Any] = {
            name: list(getattr(self, name)) for name in ("lower", "upper", "periodic")
        }
        if self.region is not None:
            content["facets"] = self.region.facets.tolist()
            content["inside"] = self.region.inside
        return content

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Domain:
        """Make the domain from the result of :meth:`to_dict`, or from arrays."""
        region = Region(data["facets"], data["inside"]) if "facets" in data else None
        kind = Sphere if data.get("sphere") else Domain
        ends = tuple(data["lower"]), tuple(data["upper"]), tuple(data["periodic"])
        return kind(*ends, region)

    def __getstate__(self) -> dict[str, Any]:
        cached = ("normalised", "walls")
        return {k: v for k, v in vars(self).items() if k not in cached}


@dataclass(frozen=True)
class Sphere(Domain):
    """A sphere with points given by longitude and latitude in degrees.

    Distances are along great circles, in degrees. Networks compute with unit vectors,
    see :attr:`normalised`, so that neither the date line nor a pole is a boundary. Use
    :meth:`Domain.sphere` to make one.

    Raises:
        UserError: If the axes are not the longitudes and latitudes of a whole sphere,
            or there is a region.
    """

    curved: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        west = self.lower[0]
        whole = (west, -90.0), (west + 360.0, 90.0), (True, False), None
        if (self.lower, self.upper, self.periodic, self.region) != whole:
            raise UserError(
                f"a sphere from {self.lower} to {self.upper}, periodic "
                f"{self.periodic}, with region {self.region}",
                "360 degrees of longitude, latitudes from -90 to 90 and no region",
                "use Domain.sphere(west)",
            )

    @property
    def normalised(self) -> Domain:
        """The unit sphere in space."""
        return UnitSphere()

    def normalise(self, pos: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the unit vectors ``[..., 3]`` of points ``[..., 2]``."""
        pos = self.wrap_near(pos)
        self.check_inside(pos)
        return unit_vectors(pos).to(dtype)

    def normalised_length(self, value: float) -> float:
        """Return the chord of an arc of ``value`` degrees, at most 180."""
        return 2 * math.sin(math.radians(min(value, 180.0)) / 2)

    @property
    def volume(self) -> float:
        """Area in square degrees."""
        return 4 * math.pi * math.degrees(1.0) ** 2

    def ball_radius(self, fraction: float) -> float:
        return math.degrees(2 * math.asin(min(1.0, fraction) ** 0.5))

    def displacement(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the displacement along the great circle in degrees, ``[..., 2]``.

        Its components point east and north at ``a``.
        """
        self._check_last_axis(a, b)
        ends = unit_vectors(a), unit_vectors(b)
        flat = azimuthal(*ends)
        chord = length(flat)
        near = chord == 0
        factor = torch.rad2deg(arc(*ends)) / chord.masked_fill(near, 1)
        factor = factor.masked_fill(near, math.degrees(1.0))
        return (flat * factor[..., None]).to(a.dtype)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the distance along the great circle in degrees, ``[...]``."""
        self._check_last_axis(a, b)
        angle = arc(unit_vectors(a), unit_vectors(b))
        return torch.rad2deg(angle).to(a.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return the box of longitudes and latitudes, marked as a sphere."""
        return super().to_dict() | {"sphere": True}


@dataclass(frozen=True)
class UnitSphere(Domain):
    """The unit sphere in space, on which networks compute.

    Distances are chords. They increase with distances along great circles, so that
    searches in space find the same neighbours. A ball is a cap of the sphere, and the
    volume its area.
    """

    lower: tuple[float, ...] = (-1.0, -1.0, -1.0)
    upper: tuple[float, ...] = (1.0, 1.0, 1.0)
    periodic: tuple[bool, ...] = (False, False, False)
    curved: ClassVar[bool] = True
    volume: ClassVar[float] = 4 * math.pi

    @property
    def normalised(self) -> Domain:
        """The unit sphere itself."""
        return self

    def normalise(self, pos: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Check the points and return them as ``dtype``."""
        self.check_inside(pos)
        return pos.to(dtype)

    def ball_radius(self, fraction: float) -> float:
        return 2 * min(1.0, fraction) ** 0.5

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """See :func:`~nfsgeo.geometry.sphere.azimuthal`."""
        return azimuthal(a, b)


def _as_numpy(pos: Tensor) -> np.ndarray:
    """Return points as a float64 array ``[n, d]``."""
    return pos.detach().cpu().double().reshape(-1, pos.size(-1)).numpy()
