"""Latent coordinates, in which the points of a graded mesh are spread evenly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import gaussian_filter
from torch import Tensor

from nfsgeo.errors import UserError, check_shape, check_sizes
from nfsgeo.geometry.domain import Domain

__all__ = ["LatentCoordinates", "occupancy", "shared_strengths"]

# Most knots of the map of an axis, and fewest points between two of them.
KNOTS, POINTS_BETWEEN = 32, 8
# Weight of the coordinate itself in the strongest map: its least slope.
KEPT = 0.1
# Occupancy below which a mesh counts as graded, and the range over which the map grows
# to full strength. Evenly drawn points have occupancy 1 with a standard deviation of
# 0.5 / sqrt(n), of which NOISE allows four.
GRADED, RANGE, NOISE = 0.8, 0.3, 4 * 0.5
# Growth of the filled part of the box, over that which independent coordinates allow,
# at which the map begins and at which it has full strength. Maps of axes cannot
# separate several fine regions. It is measured on a grid of CELLS cells, smoothed over
# SMOOTHING of them. A part of LEAST_GROWTH counts as little.
WORTH, FULL_WORTH = 0.67, 0.74
CELLS, SMOOTHING, LEAST_GROWTH = 4096, 1.5, 0.05
# Kolmogorov distance from the uniform distribution at which the map of an axis begins,
# and at which it has full strength.
EVEN, UNEVEN = 0.05, 0.15
# Median strength from which the meshes of a data set have maps of full strength.
SHARED = 0.2
# Digits of the share of a box at which coordinates are equal.
DIGITS = 9
# Bisections that resolve an interval to double precision.
HALVINGS = 60


@dataclass(frozen=True)
class LatentCoordinates:
    r"""A smooth, increasing map of every axis of a box to itself, fitted to points.

    .. math:: \xi_a(x) = (1 - w) \, x_a + w \, L_a F_a(x_a)

    :math:`F_a` is the cumulative distribution of the points along axis :math:`a` of
    length :math:`L_a`, a monotone cubic interpolant of its quantiles. The strength
    :math:`w` depends on the :func:`occupancy` and on the distribution. It is 0 for
    evenly drawn points, for which the map is the identity, and 0.9 if most points lie
    in a small part of the box. It is 0, too, if the map would leave a large part of the
    box empty, as around several bodies. Periodic axes are mapped periodically. The
    order of the points does not matter, and the map converges as points of one density
    are added.

    An equispaced grid in latent coordinates is fine where points are dense. Other
    models get such grids from optimal transport ("Geometry Aware Operator Transformer",
    "Optimal Transport Neural Operator") or from a learned deformation (Geo-FNO).

    Use :meth:`of` to make one. Without ``knots`` the map is the identity.

    Args:
        domain: The box.
        knots: Coordinates, their images and the slopes of the map, ``[3, K + 1]``,
            float64, for each axis.
        strengths: The strength :math:`w` of each axis; none for the identity.
    """

    domain: Domain
    knots: tuple[Tensor, ...] = ()
    strengths: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, pos: Tensor, domain: Domain, strengths: Sequence[float] | None = None
    ) -> LatentCoordinates:
        """Fit latent coordinates to the points ``pos [n, d]`` of a sample.

        They are the identity on a sphere and in a domain with walls.

        Args:
            pos: The points.
            domain: The box.
            strengths: Strength of the map of each axis, such as :attr:`strengths` of
                other meshes; None if the points decide.

        Raises:
            UserError: There is no point, or one is outside the box or not a number.
        """
        if not len(pos):
            given, todo = "no points for latent coordinates", "give some"
            raise UserError(given, "at least one point", todo)
        domain.check_inside(domain.wrap(pos.detach()))
        if domain.curved or domain.walls is not None:
            return cls(domain)
        place = domain.wrap(pos.detach().double()).cpu()
        filled, lengths = occupancy(place, domain), np.array(domain.lengths)
        # Points on a mesh line share their coordinate, whatever its rounding.
        shares = ((place.numpy() - domain.lower) / lengths).round(DIGITS)
        points = shares * lengths
        num = min(KNOTS, len(points) // POINTS_BETWEEN)
        axes = [*zip(points.T, domain.lengths, domain.periodic, strict=True)]

        def fitted(parts: Sequence[float]) -> LatentCoordinates:
            knots = (
                _knots(x, length, periodic, num, part)
                for (x, length, periodic), part in zip(axes, parts, strict=True)
            )
            return cls(domain, tuple(knots), tuple(parts))

        if strengths is not None:
            return fitted(strengths) if num > 1 and any(strengths) else cls(domain)
        largest = min(GRADED, 1 - NOISE / len(points) ** 0.5)
        strength = (1 - KEPT) * min(1.0, max(0.0, (largest - filled) / RANGE))
        if not strength or num < 2:
            return cls(domain)
        parts = [strength * _unevenness(x) for x in shares.T]
        if not any(parts):
            return cls(domain)
        strongest = fitted(parts)
        growth = _growth(place, strongest(place), domain)
        share = min(1.0, (growth - WORTH) / (FULL_WORTH - WORTH))
        return fitted([share * part for part in parts]) if share > 0 else cls(domain)

    @property
    def identity(self) -> bool:
        """Return whether the map is the identity."""
        return not self.knots

    def __call__(self, pos: Tensor) -> Tensor:
        """Map points ``[n, d]`` to latent coordinates, in their precision.

        The map is differentiable with respect to the points, for fixed knots.
        """
        return self._mapped(pos, _cubic)

    def inverse(self, latent: Tensor) -> Tensor:
        """Map latent coordinates ``[n, d]`` back to points, without a gradient."""
        return self._mapped(latent, _bisected)

    def _mapped(self, pos: Tensor, along: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Apply a one-dimensional map ``along(x, knots)`` to every axis.

        Beyond the ends of a box, points move as the end does.
        """
        if self.identity:
            return pos
        low, upper = pos.new_tensor(
            [self.domain.lower, self.domain.upper], dtype=torch.float64
        )
        place = self.domain.wrap(pos.double())
        place = place.clamp(low, upper)
        columns = zip((place - low).unbind(-1), self.knots, strict=True)
        mapped = torch.stack([along(x, knots) for x, knots in columns], dim=-1)
        return (mapped + low + (pos.double() - place).detach()).to(pos.dtype)


def shared_strengths(maps: Iterable[LatentCoordinates]) -> tuple[float, ...]:
    """Return strengths for all meshes of a data set, from the maps of some of them.

    The rules for a single mesh pass from the identity to the strongest map by degrees,
    so that similar meshes have similar maps. A data set needs no such transition: if
    the medians of its strengths are not small, they are enlarged to those of the
    strongest map.
    """
    rows = [each.strengths or (0.0,) * each.domain.dim for each in maps]
    medians = np.median(rows, axis=0)
    largest = max(medians)
    share = (1 - KEPT) / largest if largest >= SHARED else 0.0
    return tuple((share * medians).round(2).tolist())


def occupancy(pos: Tensor, domain: Domain) -> float:
    r"""Return the fraction of grid cells that hold points, over that of even points.

    The grid has about as many cells as there are points. For points drawn with a
    density :math:`\rho` of mean 1 the fraction tends to

    .. math:: \int (1 - e^{-\rho(x)}) \, dx

    which is at most :math:`1 - 1/e`, for an even density. The occupancy is above 1 for
    the points of a grid and below 1 for those of a graded mesh.

    Args:
        pos: Points of one sample ``[n, d]`` in the box.
        domain: The box.
    """
    num, lengths = len(pos), domain.lengths
    if pos.shape != (num, domain.dim) or not num:
        check_shape("pos", pos, "n", domain.dim)
        check_sizes(num_points=num)
    spacing = (domain.volume / num) ** (1 / domain.dim)
    shape = [max(1, round(length / spacing)) for length in lengths]
    low = pos.new_tensor(domain.lower)
    place = (pos - low) / pos.new_tensor(lengths) * pos.new_tensor(shape)
    # A point on the face of a cell is in the next cell, whatever its rounding.
    cell = (place + 10.0**-DIGITS).long().minimum(torch.tensor(shape) - 1)
    strides = torch.tensor([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    total = math.prod(shape)
    return len((cell * strides).sum(1).unique()) / total / -math.expm1(-num / total)


def _growth(pos: Tensor, mapped: Tensor, domain: Domain) -> float:
    r"""Return the growth of the filled part of the box by a map of its axes.

    The filled part is :math:`\int (1 - e^{-\rho(x)}) \, dx` for a density of mean 1.
    The growth is divided by that of points whose coordinates are drawn independently of
    each other from those of the ``mapped`` points.
    """
    num = round(CELLS ** (1 / domain.dim))
    modes = ["wrap" if periodic else "reflect" for periodic in domain.periodic]
    smoothed = partial(gaussian_filter, sigma=SMOOTHING, mode=modes)
    # The expectation of 1 - exp(-density) at points that are drawn with density 1.
    point = np.zeros((num,) * domain.dim)
    point[(num // 2,) * domain.dim] = point.size / len(pos)
    noise = -np.expm1(-smoothed(point)).sum() * len(pos) / point.size
    before, after = (smoothed(_density(each, domain, num)) for each in (pos, mapped))
    axes = {*range(domain.dim)}
    along = (after.mean(axis=(*(axes - {axis}),), keepdims=True) for axis in axes)
    independent = noise * math.prod(along)
    first, last, most = (-np.expm1(-x).mean() for x in (before, after, independent))
    # Points on lines may fill more than points drawn at random.
    return 1 - max(0.0, float(most - last)) / max(LEAST_GROWTH, float(most - first))


def _density(pos: Tensor, domain: Domain, num: int) -> np.ndarray:
    """Return the density of points, of mean 1, on a grid of ``num`` cells per axis.

    A point counts for the nearest cells by linear weights.
    """
    shape = (num,) * domain.dim
    place = (pos.numpy() - domain.lower) / domain.lengths * num - 0.5
    first = np.floor(place)
    counts = np.zeros(shape).ravel()
    for corner in itertools.product((0, 1), repeat=domain.dim):
        weight = np.abs(1 - np.array(corner) - (place - first)).prod(axis=1)
        cell = first.astype(int) + corner
        cell = np.where(domain.periodic, cell % num, cell.clip(0, num - 1))
        index = np.ravel_multi_index(tuple(cell.T), shape)
        counts += np.bincount(index, weight, counts.size)
    return counts.reshape(shape) * (counts.size / len(pos))


def _unevenness(x: np.ndarray) -> float:
    """Return how uneven coordinates on [0, 1] are, from 0 (even) to 1."""
    values, counts = np.unique(x, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2) / len(x)
    # A regular grid is even, though its distribution has steps.
    away = np.abs(rank - values).max() - 0.5 / len(values)
    return float(np.clip((away - EVEN) / (UNEVEN - EVEN), 0, 1))


def _knots(
    x: np.ndarray, length: float, periodic: bool, num: int, strength: float
) -> Tensor:
    """Return coordinates, images and slopes at the knots of an axis."""
    values, counts = np.unique(x, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2) / len(x)
    levels = np.linspace(0, 1, num + 1)
    if periodic:
        # The origin of the axis lies between two points.
        around = np.concatenate([values - length, values, values + length])
        ranks = np.concatenate([rank - 1, rank, rank + 1])
        grid = np.linspace(0, length, 4 * num + 1)
        distribution = np.interp(grid, around, ranks)
        places = np.interp(levels, distribution - distribution[0], grid)
    else:
        inside = (values > 0) & (values < length)  # the ends are those of the box
        ranks = np.concatenate([[0], rank[inside], [1]])
        places = np.interp(
            levels, ranks, np.concatenate([[0], values[inside], [length]])
        )
    places[0], places[-1] = 0.0, length
    rank = length * levels
    image = (1 - strength) * places + strength * rank
    if periodic:
        turns = np.concatenate([places[:-1] - length, places, places[1:] + length])
        ranks = np.concatenate([rank[:-1] - length, rank, rank[1:] + length])
        slope = PchipInterpolator(turns, ranks).derivative()(places)
    else:
        slope = PchipInterpolator(places, rank).derivative()(places)
    slope = (1 - strength) + strength * slope
    return torch.from_numpy(np.stack([places, image, slope]))


def _cubic(x: Tensor, knots: Tensor) -> Tensor:
    """Evaluate the cubic Hermite interpolant of the knots at ``x [n]``."""
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
    """Invert the map of an axis at ``u [n]`` by bisection."""
    # The nodes of a grid share few coordinates.
    values, place = u.unique(return_inverse=True)
    at, image, slope = knots.to(u.device)
    number = torch.searchsorted(image, values, right=True) - 1
    number = number.clamp(0, len(at) - 2)
    width, rise = (ends[number + 1] - ends[number] for ends in (at, image))
    first, last = width * slope[number], width * slope[number + 1]
    square, cube = 3 * rise - 2 * first - last, first + last - 2 * rise
    values, t = values - image[number], torch.full_like(values, 0.5)
    for halving in range(2, HALVINGS):
        above = ((cube * t + square) * t + first) * t > values
        t = t + torch.where(above, -(0.5**halving), 0.5**halving)
    return (at[number] + width * t)[place]
