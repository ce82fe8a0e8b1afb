"""Latent coordinates, in which the points of a graded mesh lie evenly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import PchipInterpolator
from torch import Tensor

from nfsgeo.geometry.domain import Domain

__all__ = ["LatentCoordinates", "occupancy"]

# Knots of the map of an axis, fewer where so few points are between two of them.
KNOTS, POINTS_BETWEEN = 32, 8
# Least slope of the map: the part of every axis that the coordinate itself keeps.
KEPT = 0.1
# Largest occupancy of a graded mesh, and how far below it the map is whole. Points
# drawn evenly have 1, with a standard deviation of 0.5 / sqrt(n); four of them.
GRADED, RANGE, NOISE = 0.8, 0.3, 4 * 0.5
# Distance of a distribution from the even one up to which an axis is even, and above
# which it is not.
EVEN, UNEVEN = 0.05, 0.15
# Halvings of an interval that leave nothing of it in double precision.
HALVINGS = 60


@dataclass(frozen=True)
class LatentCoordinates:
    r"""A smooth, increasing map of every axis of a box to itself, made of points.

    .. math:: \xi_a(x) = (1 - w) \, x_a + w \, L_a F_a(x_a)

    :math:`F_a` is the distribution of the points along axis :math:`a`, of length
    :math:`L_a`, interpolated between its quantiles by monotone cubic polynomials. The
    strength :math:`w` follows from the :func:`occupancy` and from the distribution: it
    is 0 for points that are drawn evenly, so that the map is the identity, and 0.9 for
    points of which most lie in a small part of the box. Periodic axes are mapped
    periodically. The order of the points does not matter, and the map converges as the
    points of one density become more.

    An equispaced grid in latent coordinates is fine where points are dense. Models with
    grids of the density of points have them from optimal transport ("Geometry Aware
    Operator Transformer", "Optimal Transport Neural Operator") or a learned
    deformation (Geo-FNO).

    Made by :meth:`of`. Without ``knots`` it is the identity.

    Args:
        domain: The box.
        knots: Of each axis, coordinates, their images and the slopes of the map there
            ``[3, K + 1]``, float64.
    """

    domain: Domain
    knots: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, pos: Tensor, domain: Domain) -> LatentCoordinates:
        """The latent coordinates of the points ``pos [n, d]`` of a sample.

        The identity on a sphere, and in a domain with walls.
        """
        if domain.curved or domain.walls is not None:
            return cls(domain)
        place = domain.wrap(pos.detach().double()).cpu()
        filled, points = occupancy(place, domain), place.numpy() - domain.lower
        largest = min(GRADED, 1 - NOISE / len(points) ** 0.5)
        strength = (1 - KEPT) * min(1.0, max(0.0, (largest - filled) / RANGE))
        num = min(KNOTS, len(points) // POINTS_BETWEEN)
        if not strength or num < 2:
            return cls(domain)
        axes = [*zip(points.T, domain.lengths, domain.periodic, strict=True)]
        parts = [strength * _unevenness(x / length) for x, length, _ in axes]
        if not any(parts):
            return cls(domain)
        knots = (_knots(*of, num, part) for of, part in zip(axes, parts, strict=True))
        return cls(domain, tuple(knots))

    @property
    def identity(self) -> bool:
        """Whether the map is the identity."""
        return not self.knots

    def __call__(self, pos: Tensor) -> Tensor:
        """The latent coordinates of points ``[n, d]`` of the box, in their precision.

        Gradients with respect to the points exist, for fixed knots.
        """
        return self._mapped(pos, _cubic)

    def inverse(self, latent: Tensor) -> Tensor:
        """The points ``[n, d]`` whose latent coordinates are given."""
        return self._mapped(latent, _bisected)

    def _mapped(self, pos: Tensor, along: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The coordinates of each axis, from its lower end, mapped by its knots."""
        if self.identity:
            return pos
        low = pos.new_tensor(self.domain.lower, dtype=torch.float64)
        columns = zip((pos.double() - low).unbind(-1), self.knots, strict=True)
        found = torch.stack([along(x, knots) for x, knots in columns], dim=-1)
        return (found + low).to(pos.dtype)


def occupancy(pos: Tensor, domain: Domain) -> float:
    r"""Fraction of the cells of a grid that hold a point, over that of even points.

    The grid has about as many cells as there are points. Of points that are drawn with
    the density :math:`\rho`, whose mean is 1, the fraction tends to

    .. math:: \int (1 - e^{-\rho(x)}) \, dx

    which is :math:`1 - 1/e` at most, for an even density. Points of a grid have more
    than drawn ones, points of a graded mesh fewer.

    Args:
        pos: Points of one sample ``[n, d]`` in the box.
        domain: The box.
    """
    num, lengths = len(pos), domain.lengths
    spacing = (domain.volume / num) ** (1 / domain.dim)
    shape = [max(1, round(length / spacing)) for length in lengths]
    low = pos.new_tensor(domain.lower)
    place = (pos - low) / pos.new_tensor(lengths) * pos.new_tensor(shape)
    cell = place.long().clamp_min(0).minimum(torch.tensor(shape) - 1)
    strides = torch.tensor([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    total = math.prod(shape)
    return len((cell * strides).sum(1).unique()) / total / -math.expm1(-num / total)


def _unevenness(x: np.ndarray) -> float:
    """From 0, for coordinates that are even along an axis [0, 1], to 1."""
    values, counts = np.unique(x, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2) / len(x)
    # Half a step of a grid is not uneven.
    away = np.abs(rank - values).max() - 0.5 / len(values)
    return float(np.clip((away - EVEN) / (UNEVEN - EVEN), 0, 1))


def _knots(
    x: np.ndarray, length: float, periodic: bool, num: int, strength: float
) -> Tensor:
    """Knots of the map of an axis ``[3, K + 1]``: coordinates, images and slopes."""
    levels = np.linspace(0, 1, num + 1)
    if periodic:
        # The distribution starts at the origin of the axis, between two points.
        ordered = np.sort(x)
        around = np.concatenate([ordered - length, ordered, ordered + length])
        rank = (np.arange(len(around)) + 0.5) / len(x) - 1
        grid = np.linspace(0, length, 4 * num + 1)
        distribution = np.interp(grid, around, rank)
        found = np.interp(levels, distribution - distribution[0], grid)
    else:
        found = np.quantile(x, levels)
    found[0], found[-1] = 0.0, length
    # Many points may share a coordinate, such as those of a boundary.
    found, first = np.unique(found, return_index=True)
    levels = levels[first]
    levels[-1] = 1.0
    rank = length * levels
    image = (1 - strength) * found + strength * rank
    if periodic and len(found) > 2:
        turns = np.concatenate([found[:-1] - length, found, found[1:] + length])
        ranks = np.concatenate([rank[:-1] - length, rank, rank[1:] + length])
        slope = PchipInterpolator(turns, ranks).derivative()(found)
    elif len(found) > 2:
        slope = PchipInterpolator(found, rank).derivative()(found)
    else:
        slope = np.ones_like(found)
    slope = (1 - strength) + strength * slope
    return torch.from_numpy(np.stack([found, image, slope]))


def _cubic(x: Tensor, knots: Tensor) -> Tensor:
    """The cubic Hermite polynomial between the knots of an axis, at ``x [n]``."""
    at, image, slope = knots.to(x.device)
    number = torch.searchsorted(at, x.detach().contiguous(), right=True) - 1
    number = number.clamp(0, len(at) - 2)
    width = (at[number + 1] - at[number]).clamp_min(torch.finfo(x.dtype).tiny)
    t = (x - at[number]) / width
    ends = image[number], image[number + 1]
    slopes = width * slope[number], width * slope[number + 1]
    return (
        (1 + 2 * t) * (1 - t) ** 2 * ends[0]
        + t * (1 - t) ** 2 * slopes[0]
        + t**2 * (3 - 2 * t) * ends[1]
        - t**2 * (1 - t) * slopes[1]
    )


def _bisected(u: Tensor, knots: Tensor) -> Tensor:
    """Where the map of an axis has the values ``u [n]``."""
    low, high = torch.zeros_like(u), torch.full_like(u, float(knots[0, -1]))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = _cubic(middle, knots) > u
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (low + high) / 2
