"""Two-dimensional incompressible Navier-Stokes equations, vorticity form."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from nfsgeo.data.pde.periodic import FourierGrid, PeriodicSolver
from nfsgeo.data.pde.random_fields import periodic_field
from nfsgeo.data.pde.solver import Positive, Rngs

__all__ = ["NavierStokes"]


class NavierStokes(PeriodicSolver):
    r"""Vorticity of a forced viscous flow on the unit torus.

    .. math::
        w_t + u \cdot \nabla w = \nu \Delta w + A(\sin 2\pi(x+y) + \cos 2\pi(x+y)),
        \quad u = (\psi_y, -\psi_x), \quad -\Delta\psi = w

    The initial vorticity is a zero-mean Gaussian field of covariance
    :math:`\sigma^2(-\Delta + 49)^{-5/2}`. The advection term is taken in Basdevant's
    form, four transforms an evaluation; time steps are ETDRK4.

    State ``[B, N, N]``, axes x and y. Good values: ``nu`` 1e-3 from 64 points an axis;
    smaller viscosities need finer grids, and are refused where they are not resolved.

    Source: FNO (Li et al., 2021), appendix A.3.3, which the NFS paper (section "Data
    Generation") follows. The paper also gives t in [0, 1] with 200 time steps; taken
    literally the field would hardly move, and repeating the last input would beat the
    paper's graph models. So the horizon is FNO's: a time step every 0.25, 200 to t=50.
    The initial condition is not one of them.
    """

    nu: Positive = Field(default=1e-3, description="viscosity")
    sigma2: Positive = Field(
        default=7.0**3, description="scale of the initial covariance"
    )
    forcing: FiniteFloat = Field(default=0.1, description="amplitude of f, 0 for none")

    name = "navier-stokes"
    title = "w_t + u . grad w = nu lap w + f on the unit torus"
    resolution: ClassVar[int] = 128
    num_steps: ClassVar[int] = 50
    spacing: ClassVar[float] = 0.25
    first = 1
    component_names = ("w",)
    static_names = ("w0",)
    method = f"{PeriodicSolver.method}; Basdevant's form of the advection"
    max_tail = 1e-4
    # 21 modes are what 64 points carry under the mask; the rest hold 2e-4 of the
    # variance and viscosity removes them within the first time step.
    cutoff: ClassVar[int] = 20

    def coarsest(self) -> int:
        # At a viscosity of 1e-5 the tail is then below 1e-5 to t=10.
        return 64 if self.nu >= 1e-3 else 128

    def longest_step(self, resolution: int) -> float:
        return 0.025 * min(1.0, 128 / resolution)

    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        return periodic_field(
            rngs, dim=2, resolution=resolution, cutoff=self.cutoff, scale=self.sigma2
        )

    def flow(self, grid: FourierGrid) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        kx, ky = grid.k
        velocity = self._velocity(grid)
        # -div(u w) = (dyy - dxx)(uv) - dxy(v^2 - u^2), in Fourier space.
        flux = torch.stack([kx**2 - ky**2, kx * ky]) * grid.mask
        flux = flux[:, None].to(torch.complex128)
        x = torch.arange(grid.num_points).double().to(kx.device) / grid.num_points
        phase = 2 * torch.pi * (x[:, None] + x)
        force = self.forcing * (torch.sin(phase) + torch.cos(phase))
        force = grid.forward(force) * grid.mask

        def nonlinear(state: Tensor) -> Tensor:
            u, v = grid.back(velocity * state)
            products = grid.forward(torch.stack([u * v, (v - u) * (v + u)]))
            out = torch.addcmul(force, flux[0], products[0])
            return out.addcmul_(flux[1], products[1])

        return -self.nu * (kx**2 + ky**2), nonlinear

    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        """Return ``dt * max|u| * k_max``, with the components u of the velocity."""
        velocity = self._velocity(grid)
        speeds = [
            grid.back(velocity * grid.forward(w)).abs().amax(dim=(0, 2, 3))
            for w in u.unbind(dim=1)
        ]
        return torch.stack(speeds).amax(dim=0) * (dt * grid.k_max)

    @staticmethod
    def _velocity(grid: FourierGrid) -> Tensor:
        """Return the map from modes of vorticity to velocity, ``[2, 1, *S]``."""
        kx, ky = grid.k
        squared = kx**2 + ky**2
        stream = grid.mask / torch.where(squared > 0, squared, torch.inf)
        return 1j * torch.stack([ky * stream, -kx * stream])[:, None]
