"""Korteweg-de Vries equation on a periodic interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from nfsgeo.data.pde.periodic import GUARD, FourierGrid, PeriodicSolver
from nfsgeo.data.pde.solver import Rngs
from nfsgeo.geometry import Domain

__all__ = ["KdV", "drift", "soliton"]


class KdV(PeriodicSolver):
    r"""Height of shallow-water waves, periodic with length L = 50.

    .. math:: u_t + 6uu_x + u_{xxx} = 0

    The initial condition is one of

    * ``cos``: :math:`\sum_{k\le3} 0.5 c_k\cos(2\pi m_k x/L - a_k)` with
      :math:`m_k = \max(1, \mathrm{round}(0.5\sqrt{|c_k|+b_k}\,L/2\pi))`,
      :math:`c \sim N(0, 0.5^2)`, :math:`b \sim U(0, 1)`, :math:`a \sim U(0, 2\pi)`;
    * ``sech2``: two periodised solitons of speeds :math:`U(0.5, 4)`, anywhere.

    State ``[B, N]``; the stored coordinate is x/L in [0, 1). Good values: 1024 points,
    steps of 1/400, which resolve speeds up to 4. Mass, momentum and energy are
    conserved; a sample in which the last two drift by 1e-7 is solved again with half
    the step.

    Source: NFS paper, section "Data Generation" (equation "kdv", whose
    :math:`3\partial_x u^2` is :math:`6uu_x`). Three things there cannot be taken
    literally: on a physical [0, 1] the highest mode would turn at :math:`k^3 \approx
    3\cdot10^{10}`, so [0, 1] is the scaled coordinate; its cosines are not periodic, so
    wavenumbers are rounded; and its square root needs :math:`|c|`.
    """

    ic: Literal["cos", "sech2"] = Field(
        default="cos", description="initial condition: three cosines or two solitons"
    )
    preset: Literal["standard", "long"] = Field(
        default="standard", description="standard to t=1, long to t=10"
    )

    name = "kdv"
    title = "u_t + 6 u u_x + u_xxx = 0, periodic, length 50 scaled to [0, 1]"
    units = {"x": "a period of 50"}
    domain: ClassVar[Domain] = Domain.unit(1)
    resolution: ClassVar[int] = 1024
    num_steps: ClassVar[int] = 201
    max_tail = 1e-10
    length: ClassVar[float] = 50.0

    @property
    def spacing(self) -> float:
        return {"standard": 1.0, "long": 10.0}[self.preset] / 200

    def longest_step(self, resolution: int) -> float:
        return 1 / 400 * min(1.0, 1024 / resolution)

    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        x = torch.arange(resolution, dtype=torch.float64) * (self.length / resolution)
        make = self._cosines if self.ic == "cos" else self._solitons
        return torch.stack([make(rng, x) for rng in rngs])

    def _cosines(self, rng: np.random.Generator, x: Tensor) -> Tensor:
        c = 0.5 * rng.standard_normal(3)
        b, a = rng.random(3), 2 * np.pi * rng.random(3)
        unit = 2 * np.pi / self.length
        m = np.maximum(1, np.round(0.5 * np.sqrt(np.abs(c) + b) / unit))
        waves = [0.5 * c[k] * torch.cos(unit * m[k] * x - a[k]) for k in range(3)]
        return torch.stack(waves).sum(dim=0)

    def _solitons(self, rng: np.random.Generator, x: Tensor) -> Tensor:
        speeds, centres = 0.5 + 3.5 * rng.random(2), self.length * rng.random(2)
        both = zip(speeds.tolist(), centres, strict=True)
        one, other = (soliton(x - centre, c, self.length) for c, centre in both)
        return one + other

    def flow(self, grid: FourierGrid) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        k = 2 * torch.pi / self.length * grid.wavenumbers[0]
        flux = -3j * k * grid.mask
        return 1j * k**3, lambda v: flux * grid.forward(grid.back(v).square_())

    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        """Return ``6 dt max|u| k_max``, or twice the drift over 1e-7 if larger."""
        courant = u.abs().amax(dim=(1, 2)) * (6 * dt * grid.k_max / self.length)
        some = torch.linspace(0, u.shape[1] - 1, 11).long()
        change = drift(u[:, some], self.length)[1:].amax(dim=0)
        return torch.maximum(courant, change * (GUARD / 1e-7))


def soliton(x: Tensor, speed: float, length: float) -> Tensor:
    r"""Evaluate the soliton :math:`c/2\,\mathrm{sech}^2(\sqrt c\,x/2)`.

    Args:
        x: Distance from its crest, within one period of 0.
        speed: Its speed c.
        length: The period.
    """
    images = [x + image * length for image in range(-3, 4)]
    waves = [speed / 2 / torch.cosh(speed**0.5 / 2 * y) ** 2 for y in images]
    return torch.stack(waves).sum(dim=0)


def drift(u: Tensor, length: float) -> Tensor:
    r"""Return the largest change of mass, momentum and energy in time, ``[3, B]``.

    They are the means of :math:`u`, :math:`u^2` and :math:`u^3 - u_x^2/2`. The change
    of mass is absolute, the others are relative to the sum of the initial absolute
    terms.

    Args:
        u: Time steps ``[B, T, N]``.
        length: The period.
    """
    grid = FourierGrid(u.shape[-1], 1, u.device)
    k = 2 * torch.pi / length * grid.wavenumbers[0]
    slope = grid.back(1j * k * grid.forward(u))
    square, cube, bend = u.square(), u.square() * u, slope.square() / 2
    values = torch.stack([u, square, cube - bend]).mean(dim=-1)
    sizes = torch.stack([torch.ones_like(u), square, cube.abs() + bend]).mean(dim=-1)
    return (values - values[..., :1]).abs().amax(dim=-1) / sizes[..., 0]
