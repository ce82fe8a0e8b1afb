"""An axis-aligned box, and distances in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["ROUNDING", "Box", "length"]

# A coordinate this far outside the box, as a fraction of the length of the axis, is
# taken as rounded.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Box:
    """An axis-aligned box, periodic or not on each axis.

    On a periodic axis ``lower`` and ``upper`` are the same place, and displacements
    lead to the nearest image.

    Args:
        lower: Lower end of every axis, in the units of the coordinates.
        upper: Upper end of every axis.
        periodic: Whether the axis wraps around.

    Raises:
        ValueError: If the three differ in length, an end is not finite, or
            ``lower`` is not below ``upper``.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        try:
            box = [tuple(map(float, ends)) for ends in (self.lower, self.upper)]
            box.append(tuple(map(bool, self.periodic)))
            fits = bool(box[0]) and all(
                math.isfinite(low) and math.isfinite(high) and low < high
                for low, high, _ in zip(*box, strict=True)
            )
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError(
                f"a box from {self.lower} to {self.upper}, periodic {self.periodic}: "
                "expected a tuple of one entry per axis in each, finite ends and the "
                "lower below the upper; correct them"
            )
        for name, value in zip(("lower", "upper", "periodic"), box, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def unit(cls, dim: int, periodic: bool = True) -> Self:
        """Return the box ``[0, 1]^dim``, by default periodic on every axis."""
        return cls((0.0,) * dim, (1.0,) * dim, (periodic,) * dim)

    @classmethod
    def bounding(cls, points: Any, pad: float = 0.05) -> Self:
        """Return a box without periodic axes around ``points [n, d]``.

        At both ends of an axis it leaves a margin of ``pad`` times the extent of the
        points, or times their largest extent on axes where they have none.

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

    @property
    def dim(self) -> int:
        """Number of axes ``d``."""
        return len(self.lower)

    @property
    def lengths(self) -> tuple[float, ...]:
        """Length of every axis."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def volume(self) -> float:
        """Volume of the box, or area of the sphere."""
        return math.prod(self.lengths)

    def ball_radius(self, fraction: float) -> float:
        """Return the radius of a ball or cap that covers a fraction of the domain."""
        unit_ball = math.pi ** (self.dim / 2) / math.gamma(self.dim / 2 + 1)
        return (fraction * self.volume / unit_ball) ** (1 / self.dim)

    def displacement(self, a: Tensor, b: Tensor) -> Tensor:
        """Return ``b - a`` to the nearest image on periodic axes, ``[..., d]``.

        ``a`` and ``b`` ``[..., d]`` are broadcast. The result has their precision. For
        points half a period apart, rounding decides between the two nearest images.
        """
        self._check_last_axis(a, b)
        delta = b - a
        if not any(self.periodic):
            return delta
        lengths = delta.new_tensor(self.lengths)
        nearest = delta - lengths * torch.round(delta / lengths)
        periodic = torch.tensor(self.periodic, device=delta.device)
        return torch.where(periodic, nearest, delta)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the Euclidean length of ``displacement(a, b)``, ``[...]``.

        The squares are summed axis by axis, so that all callers get the same bits.
        """
        first, *others = self.displacement(a, b).square().unbind(-1)
        return sum(others, start=first).sqrt()

    def tangent(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the displacement, on the unit sphere in the tangent plane at ``a``."""
        return self.displacement(a, b)

    def wrap(self, pos: Tensor) -> Tensor:
        """Bring ``pos [..., d]`` into the box along its periodic axes."""
        low, high, lengths = self._ends(pos)
        moved = pos - lengths * torch.floor((pos - low) / lengths)
        # The upper end is the lower one, and rounding may land on it.
        inside = (pos != high) & (moved >= low) & (moved < high)
        moved = torch.where(inside | moved.isnan(), moved, low)
        return torch.where(torch.tensor(self.periodic, device=pos.device), moved, pos)

    def wrap_near(self, pos: Tensor) -> Tensor:
        """Wrap only points that are at most one period outside the box.

        A longitude of 270 degrees has one meaning. Points many periods away probably
        have other units, and stay where they are.
        """
        low, high, lengths = self._ends(pos)
        near = (pos >= low - lengths) & (pos <= high + lengths)
        return torch.where(near, self.wrap(pos), pos)

    def check_inside(self, pos: Tensor, name: str = "") -> None:
        """Check that points ``pos [..., d]`` lie in the box, its ends included.

        They may lie outside by rounding, :data:`ROUNDING` times the length of an axis.

        Args:
            pos: The points.
            name: Prefix of the message, such as ``"source "``.

        Raises:
            UserError: A point is outside or not a number; the message names the first.
        """
        inside = self._in_box(pos, [ROUNDING] * self.dim)
        if not inside.all():
            index = int((~inside).reshape(-1).nonzero()[0])
            raise UserError(
                f"{name}point {index} at {pos.reshape(-1, self.dim)[index].tolist()}",
                f"points within {list(self.lower)} and {list(self.upper)}",
                "enlarge the domain, or bring points on periodic axes back with "
                "domain.wrap",
            )

    def _ends(self, pos: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return lower ends, upper ends and lengths in the precision of ``pos``."""
        self._check_last_axis(pos)
        dtype = pos.dtype if pos.is_floating_point() else torch.float64
        ends = torch.tensor([self.lower, self.upper, self.lengths], dtype=torch.float64)
        low, high, lengths = ends.to(pos.device, dtype)
        return low, high, lengths

    def _in_box(self, pos: Tensor, room: Sequence[float]) -> Tensor:
        """Return whether points are in the box, or outside by at most ``room``, a
        fraction of the length of each axis.
        """
        low, high, lengths = self._ends(pos)
        beside = lengths * lengths.new_tensor(room)
        return ((pos >= low - beside) & (pos <= high + beside)).all(-1)

    def _check_last_axis(self, *points: Tensor) -> None:
        for pos in points:
            if pos.dim() == 0 or pos.size(-1) != self.dim:
                raise ValueError(
                    f"points of shape {list(pos.shape)}: expected [..., {self.dim}] in "
                    f"a domain of {self.dim} axes; check the points or the domain"
                )


def length(vectors: Tensor) -> Tensor:
    """Return the Euclidean lengths ``[...]`` of ``vectors [..., d]``.

    Unlike those of ``norm``, the second derivatives at zero are zero, not NaN.
    """
    if not vectors.requires_grad:
        return vectors.norm(dim=-1)
    zero = (vectors == 0).all(-1)
    return vectors.masked_fill(zero[..., None], 1).norm(dim=-1).masked_fill(zero, 0)
