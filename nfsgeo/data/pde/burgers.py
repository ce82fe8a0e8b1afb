"""Viscous Burgers equation on a periodic interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import quadratic_flow, spectral_tail, whole_steps
from nfsgeo.data.pde.random_fields import periodic_field, sample_rng
from nfsgeo.data.pde.solver import PeriodicSolver, Positive

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

    Args:
        nu: Viscosity.
        time_stride: Time steps are ``0.005 * time_stride`` apart; 2 gives those of the
            paper's comparison.
    """

    nu: Positive = Field(default=0.01, description="viscosity")
    time_stride: PositiveInt = Field(
        default=1, description="time steps are 0.005 * time_stride apart"
    )

    name: ClassVar[str] = "burgers"
    title: ClassVar[str] = "u_t + (u^2/2)_x = nu u_xx, periodic on [0, 1]"
    units: ClassVar[Mapping[str, str]] = {"x": "1", "t": "1", "u": "1"}
    dim: ClassVar[int] = 1
    spacing: ClassVar[float] = 0.005
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

    def coarsest(self) -> int:
        """Points that carry the fronts."""
        return self.resolution

    def first_step(self, resolution: int) -> float:
        """Time step to try first, whatever the resolution."""
        return 1 / 400 if self.nu >= 0.005 else 1 / 1600

    def times(self, num_steps: int) -> np.ndarray:
        return self.spacing * self.time_stride * np.arange(num_steps)

    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        rngs = [sample_rng(seed, self.name, i) for i in indices]
        return periodic_field(
            rngs, dim=1, resolution=resolution, cutoff=self.cutoff, scale=self.scale
        )

    def evolve(
        self, u: Tensor, num_steps: int, *, dt: float, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Advance velocity; its start is the first time step.

        The guard is ``dt * max|u| * k``, ``k`` the largest mode that viscosity does not
        damp within a step.
        """
        _, dt = whole_steps(spacing, dt)
        n = u.shape[-1]
        k = 2 * torch.pi * torch.arange(n // 2 + 1, dtype=torch.float64)
        linear, flux = -self.nu * k**2, -0.5j * k
        out = quadratic_flow(
            u, num_steps, linear=linear, flux=flux, dt=dt, spacing=spacing
        )
        active = min(float(k[(n - 1) // 3]), (self.nu * dt) ** -0.5)
        return out, out.abs().amax(dim=(1, 2)) * (dt * active)

    def limits(self, u: Tensor) -> Mapping[str, tuple[Tensor, float]]:
        """The mean is conserved, the energy falls, and fronts are resolved."""
        energy = u.square().mean(dim=-1)
        growth = (energy[:, 1:] / energy[:, :-1] - 1).flatten(1)
        growth = torch.nn.functional.pad(growth, (1, 0)).amax(dim=1)
        return {
            "mean velocity": (u.mean(dim=-1).abs().amax(dim=1), 1e-12),
            "energy growth": (growth, 1e-10),
            "fraction of unresolved energy": (spectral_tail(u, 1), 1e-8),
        }
