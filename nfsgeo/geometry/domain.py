"""The box that a problem lives in, distances inside it, and walls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.region import Region
from nfsgeo.geometry.walls import Walls

__all__ = ["Domain", "length"]

# Least length of an axis of the normalised box; the longest has length 1.
SHORTEST = 1 / 8


@dataclass(frozen=True)
class Domain:
    """An axis-aligned box whose axes are periodic or not, each for itself.

    On a periodic axis ``lower`` and ``upper`` are one and the same place, and
    differences are those to the nearest image.

    Args:
        lower: Lower end of every axis, in the units of the coordinates.
        upper: Upper end of every axis.
        periodic: Whether the axis wraps around.
        region: The part of the box that fields live in, where that is not all of it.

    Raises:
        ValueError: If the three differ in length, an end is not finite, or
            ``lower`` is not below ``upper``.
        UserError: If the region has another number of axes.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]
    region: Region | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "periodic"):
            if isinstance(value := getattr(self, name), (bool, int, float)):
                raise ValueError(
                    f"{name} is {value}: expected a tuple of one entry an axis; write "
                    f"({value},) * d for d axes"
                )
        object.__setattr__(self, "lower", tuple(float(v) for v in self.lower))
        object.__setattr__(self, "upper", tuple(float(v) for v in self.upper))
        object.__setattr__(self, "periodic", tuple(bool(v) for v in self.periodic))
        if not len(self.lower) == len(self.upper) == len(self.periodic) >= 1:
            raise ValueError(
                f"lower, upper and periodic have {len(self.lower)}, "
                f"{len(self.upper)} and {len(self.periodic)} entries: "
                "expected one entry an axis in each; give as many of each"
            )
        for low, high in zip(self.lower, self.upper, strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(
                    f"an axis from {low} to {high}: expected finite ends, the "
                    "lower below the upper; correct the ends"
                )
        if self.region is not None and self.region.dim != self.dim:
            raise UserError(
                f"{self.region} in a box of {self.dim} axes",
                f"boundaries of {self.dim} axes",
                "correct one of them",
            )

    @classmethod
    def unit(cls, dim: int, periodic: bool = True) -> Domain:
        """The box ``[0, 1]^dim``, a torus unless told otherwise."""
        return cls((0.0,) * dim, (1.0,) * dim, (periodic,) * dim)

    @classmethod
    def bounding(cls, points: Any, pad: float = 0.05) -> Domain:
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
        flags = (False,) * points.size(1)
        return cls(
            tuple((low - margin).tolist()), tuple((high + margin).tolist()), flags
        )

    @staticmethod
    def sphere(west: float = -180.0) -> Domain:
        """The surface of a sphere; points are longitude and latitude, in degrees.

        Args:
            west: Where longitudes begin, such as -180 or 0.
        """
        from nfsgeo.geometry.sphere import Sphere

        return Sphere((west, -90.0), (west + 360.0, 90.0), (True, False))

    @property
    def dim(self) -> int:
        """Number of axes ``d``."""
        return len(self.lower)

    @property
    def curved(self) -> bool:
        """Whether the domain is curved: the surface of a sphere."""
        return False

    @property
    def intrinsic_dim(self) -> int:
        """Dimensions of the domain itself: 2 of a sphere, whatever its axes."""
        return self.dim

    @property
    def lengths(self) -> tuple[float, ...]:
        """Length of every axis."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

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
        stay apart.

        Args:
            pos: Points ``[..., d]`` of this box.
            dtype: Of the result.

        Raises:
            UserError: If a point is outside the box or the region, or not a number.
        """
        self._check_inside(pos)
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

    @property
    def volume(self) -> float:
        """Product of the lengths."""
        return math.prod(self.lengths)

    def ball_radius(self, fraction: float) -> float:
        """Radius of a ball whose volume is a ``fraction`` of the domain's."""
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
        self._check_last_axis(a)
        self._check_last_axis(b)
        delta = b - a
        if not any(self.periodic):
            return delta
        columns = [self._nearest(delta[..., axis], axis) for axis in range(self.dim)]
        return torch.stack(columns, dim=-1)

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """Coordinates of ``b`` in a plane around ``a``, ``[..., intrinsic_dim]``.

        The displacement; on the unit sphere, in the tangent plane at ``a``.
        """
        return self.displacement(a, b)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Euclidean length of ``displacement(a, b)``, ``[...]``.

        The squares are summed axis by axis, in this order and no other, so that
        the same pair has the same distance to the last bit whatever asks for it.
        """
        self._check_last_axis(a)
        self._check_last_axis(b)
        total = torch.zeros((), dtype=a.dtype, device=a.device)
        for axis in range(self.dim):
            delta = self._nearest(b[..., axis] - a[..., axis], axis)
            total = total + delta * delta
        return total.sqrt()

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
                column = column - length * torch.floor((column - low) / length)
                # Rounding may land on the far end, which is the near end.
                inside = (column >= low) & (column < self._rounded(pos)[1][axis])
                column = torch.where(inside | column.isnan(), column, low)
            columns.append(column)
        return torch.stack(columns, dim=-1)

    def contains(self, pos: Tensor) -> Tensor:
        """Whether points ``[..., d]`` lie in the box and the region, ``[...]`` bool.

        Periodic axes are half-open (``upper`` is left out), others closed. The
        ends are rounded to the precision of ``pos`` first, so that a float32
        point on the end of an axis of length 2 pi is inside.
        """
        self._check_last_axis(pos)
        low, high = self._rounded(pos)
        inside = torch.ones(pos.shape[:-1], dtype=torch.bool, device=pos.device)
        for axis, periodic in enumerate(self.periodic):
            column = pos[..., axis]
            below = column < high[axis] if periodic else column <= high[axis]
            inside &= (column >= low[axis]) & below
        if self.walls is not None:
            found = self.walls.contains(_as_numpy(pos[inside]))
            inside[inside.clone()] = torch.from_numpy(found).to(inside.device)
        return inside

    def check_region(self, pos: Tensor, name: str = "") -> None:
        """Makes sure that no point of the box is in an obstacle.

        Args:
            pos: Points ``[..., d]``.
            name: What they are, for the message, such as ``"mesh 0 with "``.

        Raises:
            UserError: Some points are; it tells how many, and the first.
        """
        if self.walls is None:
            return
        points = self.wrap(pos.detach().reshape(-1, self.dim))
        hidden = np.flatnonzero(~self.walls.contains(_as_numpy(points)))
        if len(hidden):
            first = int(hidden[0])
            where = "outside of the region" if self.walls.inside else "in an obstacle"
            raise UserError(
                f"{name}{len(hidden)} of {len(points)} points {where}, the first is "
                f"number {first} at {points[first].tolist()}",
                "points in the region of the domain",
                "leave these points out, or correct the region",
            )

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
    def walls(self) -> Walls | None:
        """Searches among the boundaries of the region; None without one."""
        if self.region is None:
            return None
        return Walls(self.region, self.lower, self.lengths, self.periodic)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, as JSON and YAML hold them; of a region, facets and side."""
        box: dict[str, Any] = {
            "lower": list(self.lower),
            "upper": list(self.upper),
            "periodic": list(self.periodic),
        }
        if self.region is None:
            return box
        facets = self.region.facets.tolist()
        return box | {"facets": facets, "inside": self.region.inside}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Domain:
        """The inverse of :meth:`to_dict`, from its ``data``; arrays will do."""
        region = Region(data["facets"], data["inside"]) if "facets" in data else None
        box = (tuple(data["lower"]), tuple(data["upper"]), tuple(data["periodic"]))
        if data.get("sphere"):
            from nfsgeo.geometry.sphere import Sphere

            return Sphere(*box, region)
        return cls(*box, region)

    def __getstate__(self) -> dict[str, Any]:
        # What is computed once is computed again.
        made = ("normalised", "walls")
        return {k: v for k, v in vars(self).items() if k not in made}

    def _check_inside(self, pos: Tensor) -> None:
        self._check_last_axis(pos)
        closed = Domain(self.lower, self.upper, (False,) * self.dim)
        inside = closed.contains(pos)
        if not inside.all():
            index = int((~inside).reshape(-1).nonzero()[0])
            raise UserError(
                f"point {index} at {pos.reshape(-1, self.dim)[index].tolist()}",
                f"points within {list(self.lower)} and {list(self.upper)}",
                "enlarge the domain, or bring points on periodic axes back with "
                "domain.wrap",
            )

    def _nearest(self, delta: Tensor, axis: int) -> Tensor:
        if not self.periodic[axis]:
            return delta
        length = self.lengths[axis]
        return delta - length * torch.round(delta / length)

    def _rounded(self, pos: Tensor) -> tuple[list[float], list[float]]:
        dtype = pos.dtype if pos.is_floating_point() else torch.float64
        low = torch.tensor(self.lower, dtype=torch.float64).to(dtype)
        high = torch.tensor(self.upper, dtype=torch.float64).to(dtype)
        return low.tolist(), high.tolist()

    def _check_last_axis(self, pos: Tensor) -> None:
        if pos.dim() == 0 or pos.size(-1) != self.dim:
            raise ValueError(
                f"points of shape {list(pos.shape)}: expected [..., {self.dim}] in a "
                f"domain of {self.dim} axes; check the points or the domain"
            )


def _as_numpy(pos: Tensor) -> np.ndarray:
    """Points as float64 ``[n, d]``."""
    return pos.detach().cpu().double().reshape(-1, pos.size(-1)).numpy()


def length(vectors: Tensor) -> Tensor:
    """Euclidean lengths ``[...]`` of ``vectors [..., d]``.

    Unlike ``norm``, also the second derivative at zero is zero, not NaN.
    """
    if not vectors.requires_grad:
        return vectors.norm(dim=-1)
    zero = (vectors == 0).all(-1)
    return vectors.masked_fill(zero[..., None], 1).norm(dim=-1).masked_fill(zero, 0)
