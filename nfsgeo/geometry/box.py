"""An axis-aligned box, periodic or not, and distances inside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["Box", "length"]


@dataclass(frozen=True)
class Box:
    """An axis-aligned box whose axes are periodic or not, each for itself.

    On a periodic axis ``lower`` and ``upper`` are one and the same place, and
    differences are those to the nearest image.

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
        flags = (False,) * points.size(1)
        return cls(
            tuple((low - margin).tolist()), tuple((high + margin).tolist()), flags
        )

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
        """Product of the lengths."""
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
        """Whether points ``[..., d]`` lie in the box, ``[...]`` bool.

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
        return inside

    def check_inside(self, pos: Tensor) -> None:
        """Makes sure that points ``[..., d]`` lie in the box, its ends included.

        Raises:
            UserError: Some are outside, or no numbers; it tells the first.
        """
        self._check_last_axis(pos)
        inside = self._closed_contains(pos)
        if not inside.all():
            index = int((~inside).reshape(-1).nonzero()[0])
            raise UserError(
                f"point {index} at {pos.reshape(-1, self.dim)[index].tolist()}",
                f"points within {list(self.lower)} and {list(self.upper)}",
                "enlarge the domain, or bring points on periodic axes back with "
                "domain.wrap",
            )

    def _closed_contains(self, pos: Tensor) -> Tensor:
        """As :meth:`contains`, with the far ends of periodic axes."""
        return Box(self.lower, self.upper, (False,) * self.dim).contains(pos)

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


def length(vectors: Tensor) -> Tensor:
    """Euclidean lengths ``[...]`` of ``vectors [..., d]``.

    Unlike ``norm``, also the second derivative at zero is zero, not NaN.
    """
    if not vectors.requires_grad:
        return vectors.norm(dim=-1)
    zero = (vectors == 0).all(-1)
    return vectors.masked_fill(zero[..., None], 1).norm(dim=-1).masked_fill(zero, 0)
