"""The surface of a sphere, in degrees and as unit vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry.box import length
from nfsgeo.geometry.domain import Domain

__all__ = ["Sphere", "UnitSphere"]

POLE = 90.0
GOLDEN_RATIO = (1 + 5**0.5) / 2


@dataclass(frozen=True)
class Sphere(Domain):
    """A sphere whose points are longitude and latitude in degrees, in this order.

    Distances are those along great circles, in degrees. Networks compute with the unit
    vectors of the points, see :attr:`normalised`: neither the date line nor a pole is
    a boundary. Made by :meth:`nfsgeo.geometry.Domain.sphere`.

    Raises:
        UserError: If the axes are no longitudes and latitudes of a whole sphere, or
            there is a region.
    """

    curved: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        west = self.lower[0]
        whole = Domain((west, -POLE), (west + 360.0, POLE), (True, False))
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
        return _unit_vectors(pos).to(dtype)

    def normalised_length(self, value: float) -> float:
        """The chord of an arc of ``value`` degrees, 180 at most."""
        return 2 * math.sin(math.radians(min(value, 180.0)) / 2)

    @property
    def volume(self) -> float:
        """The area, in square degrees."""
        return 4 * math.pi * math.degrees(1.0) ** 2

    def ball_radius(self, fraction: float) -> float:
        """Radius of the cap that covers a ``fraction`` of the sphere."""
        return math.degrees(2 * math.asin(min(1.0, fraction) ** 0.5))

    def displacement(self, a: Tensor, b: Tensor) -> Tensor:
        """The way from ``a`` to ``b`` along the great circle, in degrees.

        Args:
            a: Points ``[..., 2]``.
            b: Points ``[..., 2]``, broadcast against ``a``.

        Returns:
            How far it leads to the east and to the north as it starts ``[..., 2]``.
        """
        self._check_last_axis(a)
        self._check_last_axis(b)
        ends = _unit_vectors(a), _unit_vectors(b)
        flat = self.normalised.tangent(*ends)
        chord = length(flat)
        near = chord == 0
        arc = torch.rad2deg(_arc(*ends)) / chord.masked_fill(near, 1)
        factor = arc.masked_fill(near, math.degrees(1.0))
        return (flat * factor[..., None]).to(a.dtype)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Along the great circle, in degrees ``[...]``."""
        self._check_last_axis(a)
        self._check_last_axis(b)
        arc = _arc(_unit_vectors(a), _unit_vectors(b))
        return torch.rad2deg(arc).to(a.dtype)

    def even_nodes(self, num: int) -> Tensor:
        """Points of nearly equal distances, ``[num, 2]``, float64: a Fibonacci lattice.

        Each represents the same area. "Measurement of areas on a sphere using Fibonacci
        and latitude-longitude lattices" (González, 2010).
        """
        return self.wrap(_lattice(num))

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
        """Chord of the cap that covers a ``fraction`` of the sphere."""
        return 2 * min(1.0, fraction) ** 0.5

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        r"""``b`` in Lambert's equal-area projection around ``a``, ``[..., 2]``.

        .. math:: \frac{(b - a) \cdot (e, n)}{\sqrt{1 - |b - a|^2 / 4}}

        with unit vectors :math:`e` to the east and :math:`n` to the north; at a pole,
        as from longitude 0. Distances from ``a`` are chords.

        Args:
            a: Points ``[..., 3]``.
            b: Points ``[..., 3]``, broadcast against ``a``.
        """
        x, y, z = a.unbind(-1)
        pole = (x == 0) & (y == 0)
        away = (x.square() + y.square()).masked_fill(pole, 1).sqrt()
        cosine, sine = (x / away).masked_fill(pole, 1), y / away
        east = torch.stack([-sine, cosine, torch.zeros_like(z)], dim=-1)
        north = torch.stack([-z * cosine, -z * sine, away.masked_fill(pole, 0)], -1)
        chord = b - a
        # Rounding: on the other side of the sphere there is no direction.
        least = torch.finfo(chord.dtype).eps
        scale = (1 - chord.square().sum(-1, keepdim=True) / 4).clamp_min(least).rsqrt()
        flat = [(chord * axis).sum(-1, keepdim=True) for axis in (east, north)]
        return torch.cat(flat, dim=-1) * scale

    def even_nodes(self, num: int) -> Tensor:
        """Points of nearly equal distances, ``[num, 3]``, float64."""
        return _unit_vectors(_lattice(num))


def _lattice(num: int) -> Tensor:
    number = torch.arange(num, dtype=torch.float64)
    longitude = 360 * torch.frac(number / GOLDEN_RATIO)
    latitude = torch.rad2deg(torch.asin(1 - (2 * number + 1) / num))
    return torch.stack([longitude, latitude], dim=1)


def _unit_vectors(pos: Tensor) -> Tensor:
    """Unit vectors ``[..., 3]``, float64, of longitudes and latitudes in degrees."""
    longitude, latitude = torch.deg2rad(pos.to(torch.float64)).unbind(-1)
    ring = latitude.cos()
    return torch.stack(
        [ring * longitude.cos(), ring * longitude.sin(), latitude.sin()], dim=-1
    )


def _arc(a: Tensor, b: Tensor) -> Tensor:
    """Angle between unit vectors, exact for near and for opposite ones."""
    a, b = torch.broadcast_tensors(a, b)
    return torch.atan2(length(torch.linalg.cross(a, b)), (a * b).sum(-1))
