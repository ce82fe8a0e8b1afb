"""Two-dimensional incompressible Navier-Stokes equations, vorticity form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import ETDRK4, dealias_mask, spectral_tail, whole_steps
from nfsgeo.data.pde.random_fields import periodic_field, sample_rng
from nfsgeo.data.pde.solver import PeriodicSolver, Positive

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

    Args:
        nu: Viscosity.
        sigma2: Scale of the initial covariance.
        forcing: Amplitude ``A``, constant in time; 0 leaves the flow to decay.
    """

    nu: Positive = Field(default=1e-3, description="viscosity")
    sigma2: Positive = Field(
        default=7.0**3, description="scale of the initial covariance"
    )
    forcing: FiniteFloat = Field(default=0.1, description="amplitude of f, 0 for none")

    name: ClassVar[str] = "navier-stokes"
    title: ClassVar[str] = "w_t + u . grad w = nu lap w + f on the unit torus"
    dim: ClassVar[int] = 2
    num_steps: ClassVar[int] = 50
    resolution: ClassVar[int] = 128
    component_names: ClassVar[tuple[str, ...]] = ("w",)
    static_names: ClassVar[tuple[str, ...]] = ("w0",)
    method: ClassVar[Mapping[str, str]] = {
        **PeriodicSolver.method,
        "advection": "Basdevant's form",
    }
    units: ClassVar[Mapping[str, str]] = {"x": "1", "y": "1", "t": "1", "w": "1"}
    spacing: ClassVar[float] = 0.25
    step: ClassVar[float] = 0.025
    # 21 modes are what 64 points carry under the mask; the rest hold 2e-4 of the
    # variance and viscosity removes them within the first time step.
    cutoff: ClassVar[int] = 20

    def coarsest(self) -> int:
        """Twice as many points as at the paper's viscosity where there is less.

        At 1e-5 the outer tenth of the modes then has less than 1e-5 of the variance to
        t=10.
        """
        return 64 if self.nu >= 1e-3 else 128

    def first_step(self, resolution: int) -> float:
        return self.step * min(1.0, 128 / resolution)

    def times(self, num_steps: int) -> np.ndarray:
        """From 0.25: the initial condition is not one of the time steps."""
        return self.spacing * np.arange(1, num_steps + 1)

    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        rngs = [sample_rng(seed, self.name, i) for i in indices]
        return periodic_field(
            rngs, dim=2, resolution=resolution, cutoff=self.cutoff, scale=self.sigma2
        )

    def evolve(
        self, w: Tensor, num_steps: int, *, dt: float, spacing: float = spacing
    ) -> tuple[Tensor, Tensor]:
        """Advance vorticity; the first time step is ``spacing`` after the start.

        The guard is ``dt * max|u| * k_max``.
        """
        n = w.shape[-1]
        substeps, dt = whole_steps(spacing, dt)
        flow = _Flow(self, n, w.device)
        scheme = ETDRK4(flow.linear, dt, flow.nonlinear)
        k_max = 2 * torch.pi * ((n - 1) // 3)
        state = torch.fft.rfft2(w) * flow.mask
        fastest = flow.speed(state)
        out = []
        for _ in range(num_steps):
            for _ in range(substeps):
                state = scheme.step(state)
            out.append(torch.fft.irfft2(state, s=(n, n)))
            fastest = torch.maximum(fastest, flow.speed(state))
        return torch.stack(out, dim=1), fastest * (dt * k_max)

    def limits(self, u: Tensor) -> Mapping[str, tuple[Tensor, float]]:
        """The mean is conserved, and the flow is resolved."""
        return {
            "mean vorticity": (u.mean(dim=(-2, -1)).abs().amax(dim=1), 1e-12),
            "fraction of unresolved enstrophy": (spectral_tail(u, 2), 1e-4),
        }


class _Flow:
    """Multipliers of one grid in Fourier space, dealiased."""

    def __init__(
        self, equation: NavierStokes, n: int, device: torch.device | str
    ) -> None:
        self.n = n
        kx = torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)[:, None] * 2 * torch.pi
        ky = torch.fft.rfftfreq(n, 1 / n, dtype=torch.float64) * 2 * torch.pi
        mask = dealias_mask(n, half=False)[:, None] & dealias_mask(n, half=True)
        k2 = kx**2 + ky**2
        stream = mask / torch.where(k2 > 0, k2, torch.inf)
        velocity = 1j * torch.stack([ky * stream, -kx * stream])[:, None]
        # -div(u w) = (dyy - dxx)(uv) - dxy(v^2 - u^2), in Fourier space.
        flux = torch.stack([(kx**2 - ky**2) * mask, kx * ky * mask])[:, None]
        x = torch.arange(n, dtype=torch.float64) / n
        phase = 2 * torch.pi * (x[:, None] + x)
        force = equation.forcing * (torch.sin(phase) + torch.cos(phase))
        self.mask = mask.to(device)
        self.linear = (-equation.nu * k2).to(device)
        self.velocity = velocity.to(device)
        self.flux = flux.to(device, torch.complex128)
        self.force = (torch.fft.rfft2(force) * mask).to(device)

    def nonlinear(self, state: Tensor) -> Tensor:
        """Advection and forcing, ``[B, N, N // 2 + 1]`` complex."""
        u, v = torch.fft.irfft2(self.velocity * state, s=(self.n, self.n))
        products = torch.fft.rfft2(torch.stack([u * v, (v - u) * (v + u)]))
        out = torch.addcmul(self.force, self.flux[0], products[0])
        return out.addcmul_(self.flux[1], products[1])

    def speed(self, state: Tensor) -> Tensor:
        """Largest velocity component of each sample ``[B]``."""
        velocity = torch.fft.irfft2(self.velocity * state, s=(self.n, self.n))
        return velocity.abs().amax(dim=(0, 2, 3))
