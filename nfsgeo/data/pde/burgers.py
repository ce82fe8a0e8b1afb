"""Viscous Burgers equation on a periodic interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from nfsgeo.data.pde.periodic import FourierGrid, PeriodicSolver
from nfsgeo.data.pde.random_fields import periodic_field
from nfsgeo.data.pde.solver import Limits, Positive, Rngs
from nfsgeo.geometry import Domain

__all__ = ["Burgers"]


class Burgers(PeriodicSolver):
    r"""Velocity of a one-dimensional viscous flow, periodic on [0, 1].

    .. math:: u_t + (u^2/2)_x = \nu u_{xx}

    The initial condition is a zero-mean Gaussian field of covariance
    :math:`7^4(-\Delta + 49)^{-5/2}`. Time steps are ETDRK4.

    State ``[B, N]``. Good values: ``nu`` 0.01 (1024 points, steps of 1/400) and 0.001
    (2048 points, steps of 1/1600); steeper fronts are refused where they are not
    resolved. The mean is conserved, the energy falls.

    Source: NFS paper, section "Data Generation". Its initial covariance
    :math:`0.625(-\Delta + 25)^{-2}` cannot be taken literally: such a field is some 30
    times smaller than the paper's errors say. The one above has their scale.
    A ``time_stride`` of 2 gives the time steps of the paper's comparison.
    """

    nu: Positive = Field(default=0.01, description="viscosity")
    time_stride: PositiveInt = Field(
        default=1, description="time steps are 0.005 * time_stride apart"
    )

    name = "burgers"
    title = "u_t + (u^2/2)_x = nu u_xx, periodic on [0, 1]"
    domain: ClassVar[Domain] = Domain.unit(1)
    max_tail = 1e-8
    # Higher modes hold 1e-7 of the variance.
    cutoff: ClassVar[int] = 64
    scale: ClassVar[float] = 7.0**4

    @property
    def resolution(self) -> int:
        """Points; smaller viscosities have thinner fronts."""
        return 1024 if self.nu >= 0.005 else 2048

    @property
    def num_steps(self) -> int:
        """Time steps from t=0 to t=1, both included."""
        return 200 // self.time_stride + 1

    @property
    def spacing(self) -> float:
        return 0.005 * self.time_stride

    def longest_step(self, resolution: int) -> float:
        return 1 / 400 if self.nu >= 0.005 else 1 / 1600

    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        return periodic_field(
            rngs, dim=1, resolution=resolution, cutoff=self.cutoff, scale=self.scale
        )

    def flow(self, grid: FourierGrid) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        (k,) = grid.k
        flux = -0.5j * k * grid.mask
        return -self.nu * k**2, lambda v: flux * grid.forward(grid.back(v).square_())

    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        """Return ``dt * max|u| * k``, with the largest k not damped within a step."""
        active = min(grid.k_max, (self.nu * dt) ** -0.5)
        return u.abs().amax(dim=(1, 2)) * (dt * active)

    def limits(self, u: Tensor, grid: FourierGrid) -> Limits:
        energy = u.square().mean(dim=-1)
        growth = torch.nn.functional.pad(energy[:, 1:] / energy[:, :-1] - 1, (1, 0))
        return {**super().limits(u, grid), "energy growth": (growth.amax(dim=1), 1e-10)}
