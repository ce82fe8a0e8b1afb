"""The domain that a problem lives in: a box, or the part of it between walls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.box import Box, length
from nfsgeo.geometry.region import Region
from nfsgeo.geometry.walls import PlaneWalls, SpaceWalls, walls_of

__all__ = ["Domain"]

# Least length of an axis of the normalised box; the longest has length 1.
SHORTEST = 1 / 8


@dataclass(frozen=True)
class Domain(Box):
    """A :class:`Box`, or the part of it that fields live in.

    Args:
        lower: Lower end of every axis, in the units of the coordinates.
        upper: Upper end of every axis.
        periodic: Whether the axis wraps around.
        region: The part of the box that fields live in, where that is not all of it.

    Raises:
        ValueError: If the three differ in length, an end is not finite, or
            ``lower`` is not below ``upper``.
        UserError: If the region has another number of axes, or is outside the box.
    """

    region: Region | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        apart = (low > self.upper) | (high < self.lower)
        if (apart & ~np.array(self.periodic)).any():
            raise UserError(
                f"boundaries from {low.tolist()} to {high.tolist()} in a box from "
                f"{list(self.lower)} to {list(self.upper)}",
                "boundaries in the box, in the units of its coordinates",
                "correct the boundaries or their units",
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
    def curved(self) -> bool:
        """Whether the domain is curved: the surface of a sphere."""
        return False

    @property
    def intrinsic_dim(self) -> int:
        """Dimensions of the domain itself: 2 of a sphere, whatever its axes."""
        return self.dim

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
        inside = self._closed_contains(pos)[..., None]
        pos = torch.where(inside, pos, self.wrap_near(pos))
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

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """Coordinates of ``b`` in a plane around ``a``, ``[..., intrinsic_dim]``.

        The displacement; on the unit sphere, in the tangent plane at ``a``.
        """
        return self.displacement(a, b)

    def contains(self, pos: Tensor) -> Tensor:
        """Whether points ``[..., d]`` lie in the box and the region, ``[...]`` bool.

        The ends of axes count as in :meth:`Box.contains`.
        """
        inside = super().contains(pos)
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


def _as_numpy(pos: Tensor) -> np.ndarray:
    """Points as float64 ``[n, d]``."""
    return pos.detach().cpu().double().reshape(-1, pos.size(-1)).numpy()
