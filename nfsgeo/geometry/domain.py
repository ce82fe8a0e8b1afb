"""The domain that a problem lives in: a box, or a part of it; a sphere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.displacements import length
from nfsgeo.geometry.region import Region
from nfsgeo.geometry.sphere import arc, azimuthal, lattice, unit_vectors
from nfsgeo.geometry.walls import PlaneWalls, SpaceWalls, walls_of

__all__ = ["Domain", "Sphere", "UnitSphere"]

# Least length of an axis of the normalised box; the longest has length 1.
SHORTEST = 1 / 8


@dataclass(frozen=True)
class Domain:
    """An axis-aligned box, periodic or not on each axis, or the part between walls.

    On a periodic axis ``lower`` and ``upper`` are one and the same place, and
    differences are those to the nearest image.

    Args:
        lower: Lower end of every axis, in the units of the coordinates.
        upper: Upper end of every axis.
        periodic: Whether the axis wraps around.
        region: The part of the box that fields live in, where that is not all of it.

    Attributes:
        curved: Whether the domain is curved: the surface of a sphere.

    Raises:
        ValueError: If the three differ in length, an end is not finite, or
            ``lower`` is not below ``upper``.
        UserError: If the region has another number of axes, or is outside the box.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]
    region: Region | None = None

    curved: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            lower, upper = (tuple(map(float, e)) for e in (self.lower, self.upper))
            periodic = tuple(map(bool, self.periodic))
            fits = len(lower) == len(upper) == len(periodic) >= 1
        except TypeError:
            fits = False
        if not fits or not all(
            math.isfinite(low) and math.isfinite(high) and low < high
            for low, high in zip(lower, upper, strict=True)
        ):
            raise ValueError(
                f"a box from {self.lower} to {self.upper}, periodic {self.periodic}: "
                "expected a tuple of one entry per axis in each, finite ends and the "
                "lower below the upper; correct them"
            )
        for name, value in (("lower", lower), ("upper", upper), ("periodic", periodic)):
            object.__setattr__(self, name, value)
        if self.region is None:
            return
        if self.region.dim != self.dim:
            raise UserError(
                f"{self.region} in a box of {self.dim} axes",
                f"boundaries of {self.dim} axes",
                "correct one of them",
            )
        corners = self.region.facets.reshape(-1, self.dim)
        low, high = corners.min(0), corners.max(0)
        apart = (low > upper) | (high < lower)
        if (apart & ~np.array(periodic)).any():
            raise UserError(
                f"boundaries from {low.tolist()} to {high.tolist()} in a box from "
                f"{list(lower)} to {list(upper)}",
                "boundaries in the box, in the units of its coordinates",
                "correct the boundaries or their units",
            )

    @classmethod
    def unit(cls, dim: int, periodic: bool = True) -> Self:
        """The box ``[0, 1]^dim``, a torus unless told otherwise."""
        return cls((0.0,) * dim, (1.0,) * dim, (periodic,) * dim)

    @classmethod
    def bounding(cls, points: Any, pad: float = 0.05) -> Self:
        """A box without periodic axes around ``points``.

        Args:
            points: Coordinates ``[n, d]``, a tensor or an array.
            pad: Room left at either end of an axis, as a fraction of the points'
                extent on it (of the largest extent on an axis without any).

        Raises:
            ValueError: If there is no point or a coordinate is not finite.
        """
        points = torch.as_tensor(points, dtype=torch.float64)
        if points.dim() != 2 or points.numel() == 0 or not points.isfinite().all():
            raise ValueError(
                f"points of shape {list(points.shape)}: expected finite "
                "coordinates [n, d] of at least one point; check the coordinates"
            )
        low, high = points.amin(0), points.amax(0)
        extent = high - low
        fallback = extent.max() if extent.max() > 0 else extent.new_tensor(1.0)
        margin = pad * torch.where(extent > 0, extent, fallback)
        ends = [tuple(end.tolist()) for end in (low - margin, high + margin)]
        return cls(ends[0], ends[1], (False,) * points.size(1))

    @staticmethod
    def sphere(west: float = -180.0) -> Sphere:
        """The surface of a sphere; points are longitude and latitude, in degrees.

        Args:
            west: Where longitudes begin, such as -180 or 0.
        """
        return Sphere((west, -90.0), (west + 360.0, 90.0), (True, False))

    @property
    def dim(self) -> int:
        """Number of axes ``d``."""
        return len(self.lower)

    @property
    def intrinsic_dim(self) -> int:
        """Dimensions of the domain itself: 2 of a sphere, whatever its axes."""
        return self.dim

    @property
    def lengths(self) -> tuple[float, ...]:
        """Length of every axis."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def volume(self) -> float:
        """The volume: the product of the lengths, or the area of a sphere."""
        return math.prod(self.lengths)

    def span(self, axis: int) -> str:
        """Where an axis begins and ends, as short text: ``0 to 1``.

        Far from the origin the length stands in for the end: ``1000000 to +3000``.
        """
        low, high, length = self.lower[axis], self.upper[axis], self.lengths[axis]
        if max(abs(low), abs(high)) > 100 * length:
            return f"{low:.9g} to +{length:.4g}"
        return f"{low:.4g} to {high:.4g}"

    def ball_radius(self, fraction: float) -> float:
        """Radius of a ball, or a cap, that covers a ``fraction`` of the domain."""
        unit_ball = math.pi ** (self.dim / 2) / math.gamma(self.dim / 2 + 1)
        return (fraction * self.volume / unit_ball) ** (1 / self.dim)

    def displacement(self, a: Tensor, b: Tensor) -> Tensor:
        """``b - a``, taken to the nearest image on periodic axes.

        Computed in the tensors' own precision; antisymmetric to the last bit. Half
        a box apart, either image is as near and the sign is left to rounding.

        Args:
            a: Points ``[..., d]``.
            b: Points ``[..., d]``, broadcast against ``a``.

        Returns:
            Displacements ``[..., d]``.
        """
        self._check_last_axis(a, b)
        delta = b - a
        if not any(self.periodic):
            return delta
        columns = [self._nearest(delta[..., axis], axis) for axis in range(self.dim)]
        return torch.stack(columns, dim=-1)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Euclidean length of ``displacement(a, b)``, ``[...]``.

        The squares are summed axis by axis, in this order and no other, so that
        the same pair has the same distance to the last bit whatever asks for it.
        """
        self._check_last_axis(a, b)
        total = torch.zeros((), dtype=a.dtype, device=a.device)
        for axis in range(self.dim):
            delta = self._nearest(b[..., axis] - a[..., axis], axis)
            total = total + delta * delta
        return total.sqrt()

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """Coordinates of ``b`` in a plane around ``a``, ``[..., intrinsic_dim]``.

        The displacement; on the unit sphere, in the tangent plane at ``a``.
        """
        return self.displacement(a, b)

    def wrap(self, pos: Tensor) -> Tensor:
        """Bring ``pos [..., d]`` into the box along its periodic axes."""
        self._check_last_axis(pos)
        if not any(self.periodic):
            return pos
        columns = []
        for axis, periodic in enumerate(self.periodic):
            column = pos[..., axis]
            if periodic:
                low, length = self.lower[axis], self.lengths[axis]
                high = self._rounded(pos)[1][axis]
                # The far end is the near end; rounding may land there, too.
                inside = column != high
                column = column - length * torch.floor((column - low) / length)
                inside &= (column >= low) & (column < high)
                column = torch.where(inside | column.isnan(), column, low)
            columns.append(column)
        return torch.stack(columns, dim=-1)

    def wrap_near(self, pos: Tensor) -> Tensor:
        """As :meth:`wrap`, but only points at most one period outside the box.

        Longitudes of 270 or of 180 degrees have one meaning; points many periods away
        rather have other units, and stay where they are.
        """
        lengths = pos.new_tensor(self.lengths)
        low, high = (pos.new_tensor(ends) for ends in (self.lower, self.upper))
        near = (pos >= low - lengths) & (pos <= high + lengths)
        return torch.where(near, self.wrap(pos), pos)

    def contains(self, pos: Tensor) -> Tensor:
        """Whether points ``[..., d]`` lie in the box and the region, ``[...]`` bool.

        Periodic axes are half-open (``upper`` is left out), others closed. The
        ends are rounded to the precision of ``pos`` first, so that a float32
        point on the end of an axis of length 2 pi is inside.
        """
        inside = self._in_box(pos, self.periodic)
        if self.walls is not None:
            found = self.walls.contains(_as_numpy(pos[inside]))
            inside[inside.clone()] = torch.from_numpy(found).to(inside.device)
        return inside

    def check_inside(self, pos: Tensor, name: str = "") -> None:
        """Makes sure that points ``[..., d]`` lie in the box, its ends included.

        Args:
            pos: Points ``[..., d]``.
            name: What they are, for the message, such as ``"source "``.

        Raises:
            UserError: Some are outside, or no numbers; it tells the first.
        """
        inside = self._in_box(pos)
        if not inside.all():
            index = int((~inside).reshape(-1).nonzero()[0])
            raise UserError(
                f"{name}point {index} at {pos.reshape(-1, self.dim)[index].tolist()}",
                f"points within {list(self.lower)} and {list(self.upper)}",
                "enlarge the domain, or bring points on periodic axes back with "
                "domain.wrap",
            )

    def check_region(self, pos: Tensor, name: str = "") -> None:
        """Makes sure that no point of the box is in an obstacle.

        Args:
            pos: Points ``[..., d]``.
            name: What they are, for the message, such as ``"mesh 0 with "``.

        Raises:
            UserError: Some points are; it tells how many, and the first.
        """
        if self.region is None or self.walls is None:
            return
        points = self.wrap(pos.detach().reshape(-1, self.dim))
        hidden = np.flatnonzero(~self.walls.contains(_as_numpy(points)))
        if len(hidden):
            first = int(hidden[0])
            where = "outside of the region" if self.region.inside else "in an obstacle"
            raise UserError(
                f"{name}{len(hidden)} of {len(points)} points {where}, the first is "
                f"number {first} at {points[first].tolist()}",
                "points in the region of the domain",
                "leave these points out, or correct the region",
            )

    @cached_property
    def normalised(self) -> Domain:
        """The box that :meth:`normalise` maps to: from 0, the longest axis 1.

        One scale serves all axes, so that distances keep their meaning. Only an axis
        that is shorter than :data:`SHORTEST` of the longest is stretched to that: its
        unit is another, or no grid of affordable size resolves both.
        """
        longest = max(self.lengths)
        # Digits that subtracting the ends may have lost do not make another box.
        upper = tuple(
            max(SHORTEST, round(length / longest, 6)) for length in self.lengths
        )
        region = self.region
        if region is not None:
            region = region.moved(self.lower, np.divide(upper, self.lengths))
        return Domain((0.0,) * self.dim, upper, self.periodic, region)

    def normalise(self, pos: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Coordinates in the :attr:`normalised` box, whatever origin and units.

        Computed in float64 and rounded at the end, so that points far from the origin
        stay apart. On periodic axes points may be up to one period outside the box.

        Args:
            pos: Points ``[..., d]`` of this box.
            dtype: Of the result.

        Raises:
            UserError: If a point is outside the box or the region, or not a number.
        """
        pos = torch.where(self._in_box(pos)[..., None], pos, self.wrap_near(pos))
        self.check_inside(pos)
        self.check_region(pos)
        box = self.normalised
        low, lengths, upper = (
            torch.tensor(values, dtype=torch.float64, device=pos.device)
            for values in (self.lower, self.lengths, box.upper)
        )
        place = (pos.to(torch.float64) - low) / lengths * upper
        # Rounding may put a point beyond the far end, or on that of a periodic axis.
        return box.wrap(place.clamp(min=torch.zeros_like(upper), max=upper).to(dtype))

    def normalised_length(self, value: float) -> float:
        """A distance in the units of the coordinates, ``value``, when normalised."""
        return value / max(self.lengths)

    def visible(self, a: Tensor, b: Tensor) -> Tensor:
        """Whether the straight way from ``a`` to ``b`` crosses no wall ``[...]`` bool.

        It is the way of :meth:`displacement`. Corners and edges of walls hide what is
        behind them.

        Args:
            a: Points ``[..., d]`` of the box.
            b: Points ``[..., d]``, of the shape of ``a``.
        """
        if self.walls is None:
            return torch.ones(a.shape[:-1], dtype=torch.bool, device=a.device)
        way = _as_numpy(self.displacement(a.double(), b.double()))
        start = _as_numpy(self.wrap(a))
        found = self.walls.visible(start, start + way)
        return torch.from_numpy(found).view(a.shape[:-1]).to(a.device)

    def to_boundary(self, pos: Tensor) -> Tensor:
        """Distance and direction from points to the nearest boundary of the region.

        Args:
            pos: Points ``[n, d]`` of the box.

        Returns:
            ``[n, 1 + d]``: the distance and a vector of length 1; zeros on a boundary.

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
        direction = way / distance.where(distance > 0, 1)
        return torch.cat([distance, direction], dim=1).to(pos)

    @cached_property
    def walls(self) -> PlaneWalls | SpaceWalls | None:
        """Searches among the boundaries of the region; None without one."""
        if self.region is None:
            return None
        return walls_of(self.region, self.lower, self.lengths, self.periodic)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, as JSON and YAML hold them; of a region, facets and side."""
        told: dict[str, Any] = {
            name: list(getattr(self, name)) for name in ("lower", "upper", "periodic")
        }
        if self.region is not None:
            told["facets"] = self.region.facets.tolist()
            told["inside"] = self.region.inside
        return told

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Domain:
        """The inverse of :meth:`to_dict`, from its ``data``; arrays will do."""
        region = Region(data["facets"], data["inside"]) if "facets" in data else None
        kind = Sphere if data.get("sphere") else Domain
        ends = tuple(data["lower"]), tuple(data["upper"]), tuple(data["periodic"])
        return kind(*ends, region)

    def __getstate__(self) -> dict[str, Any]:
        # What is computed once is computed again.
        made = ("normalised", "walls")
        return {k: v for k, v in vars(self).items() if k not in made}

    def _in_box(self, pos: Tensor, half_open: tuple[bool, ...] = ()) -> Tensor:
        """Whether points lie in the box; far ends of ``half_open`` axes do not."""
        self._check_last_axis(pos)
        low, high = self._rounded(pos)
        inside = torch.ones(pos.shape[:-1], dtype=torch.bool, device=pos.device)
        for axis, column in enumerate(pos.unbind(-1)):
            open_end = half_open and half_open[axis]
            below = column < high[axis] if open_end else column <= high[axis]
            inside &= (column >= low[axis]) & below
        return inside

    def _nearest(self, delta: Tensor, axis: int) -> Tensor:
        if not self.periodic[axis]:
            return delta
        length = self.lengths[axis]
        return delta - length * torch.round(delta / length)

    def _rounded(self, pos: Tensor) -> list[list[float]]:
        dtype = pos.dtype if pos.is_floating_point() else torch.float64
        ends = torch.tensor([self.lower, self.upper], dtype=torch.float64)
        return ends.to(dtype).tolist()

    def _check_last_axis(self, *points: Tensor) -> None:
        for pos in points:
            if pos.dim() == 0 or pos.size(-1) != self.dim:
                raise ValueError(
                    f"points of shape {list(pos.shape)}: expected [..., {self.dim}] in "
                    f"a domain of {self.dim} axes; check the points or the domain"
                )


@dataclass(frozen=True)
class Sphere(Domain):
    """A sphere whose points are longitude and latitude in degrees, in this order.

    Distances are those along great circles, in degrees. Networks compute with the unit
    vectors of the points, see :attr:`normalised`: neither the date line nor a pole is
    a boundary. Made by :meth:`Domain.sphere`.

    Raises:
        UserError: If the axes are no longitudes and latitudes of a whole sphere, or
            there is a region.
    """

    curved: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        west = self.lower[0]
        whole = Domain((west, -90.0), (west + 360.0, 90.0), (True, False))
        if self.region is not None or vars(self) != vars(whole):
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
        """Unit vectors ``[..., 3]`` of points ``[..., 2]``; see :class:`Domain`."""
        self.check_inside(pos)
        return unit_vectors(pos).to(dtype)

    def normalised_length(self, value: float) -> float:
        """The chord of an arc of ``value`` degrees, 180 at most."""
        return 2 * math.sin(math.radians(min(value, 180.0)) / 2)

    @property
    def volume(self) -> float:
        """The area, in square degrees."""
        return 4 * math.pi * math.degrees(1.0) ** 2

    def ball_radius(self, fraction: float) -> float:
        return math.degrees(2 * math.asin(min(1.0, fraction) ** 0.5))

    def displacement(self, a: Tensor, b: Tensor) -> Tensor:
        """The way from ``a`` to ``b`` along the great circle, in degrees.

        Args:
            a: Points ``[..., 2]``.
            b: Points ``[..., 2]``, broadcast against ``a``.

        Returns:
            How far it leads to the east and to the north as it starts ``[..., 2]``.
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
        """Along the great circle, in degrees ``[...]``."""
        self._check_last_axis(a, b)
        angle = arc(unit_vectors(a), unit_vectors(b))
        return torch.rad2deg(angle).to(a.dtype)

    def even_nodes(self, num: int) -> Tensor:
        """Points of nearly equal distances, ``[num, 2]``, float64."""
        return self.wrap(lattice(num))

    def to_dict(self) -> dict[str, Any]:
        """The box of longitudes and latitudes, and that it is a sphere."""
        return super().to_dict() | {"sphere": True}


@dataclass(frozen=True)
class UnitSphere(Domain):
    """The same sphere in space, around 0, with radius 1.

    Distances are those along chords, which grow with those along great circles, so that
    searches in space find the same neighbours. A ball is a cap of the sphere.
    """

    lower: tuple[float, ...] = (-1.0, -1.0, -1.0)
    upper: tuple[float, ...] = (1.0, 1.0, 1.0)
    periodic: tuple[bool, ...] = (False, False, False)
    curved: ClassVar[bool] = True
    intrinsic_dim: ClassVar[int] = 2
    volume: ClassVar[float] = 4 * math.pi

    @property
    def normalised(self) -> Domain:
        """This sphere."""
        return self

    def normalise(self, pos: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The same points."""
        self.check_inside(pos)
        return pos.to(dtype)

    def ball_radius(self, fraction: float) -> float:
        return 2 * min(1.0, fraction) ** 0.5

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """See :func:`~nfsgeo.geometry.sphere.azimuthal`."""
        return azimuthal(a, b)

    def even_nodes(self, num: int) -> Tensor:
        """Points of nearly equal distances, ``[num, 3]``, float64."""
        return unit_vectors(lattice(num))


def _as_numpy(pos: Tensor) -> np.ndarray:
    """Points as float64 ``[n, d]``."""
    return pos.detach().cpu().double().reshape(-1, pos.size(-1)).numpy()
