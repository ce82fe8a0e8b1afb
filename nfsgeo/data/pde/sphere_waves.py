"""Travelling waves on the unit sphere, in closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveInt

from nfsgeo.data.pde.solver import Device, Positive, Rngs, Solution, Solver
from nfsgeo.geometry import Domain, spherical_harmonics

__all__ = ["SphereWaves"]


class SphereWaves(Solver):
    r"""Waves that travel in all directions on a sphere of radius 1.

    .. math:: u_{tt} = c^2 \Delta u, \qquad u = \sum_{l=1}^{L} \sum_{m=-l}^{l}
        (a_{lm} \cos \omega_l t + b_{lm} \sin \omega_l t) \, Y_{lm}, \quad
        \omega_l = c \sqrt{l (l + 1)}

    with real spherical harmonics and independent normal coefficients, of variances
    proportional to :math:`(1 + l^2)^{-3/2}` such that :math:`u` has variance 1. No
    direction is distinguished from another: rotated samples are as likely. Waves of
    different degrees travel at different speeds.

    State ``[B, N, N]`` on longitudes and latitudes, half a spacing away from the poles.
    The solution is exact at every point; a time step alone does not determine the next,
    two of them do.
    """

    speed: Positive = Field(default=1.0, description="of waves of high degrees")
    degree: PositiveInt = Field(
        default=12, description="highest degree of the harmonics"
    )

    name = "sphere-waves"
    title = "u_tt = c^2 Laplace u on the unit sphere, in closed form"
    domain: ClassVar[Domain] = Domain.sphere()
    resolution: ClassVar[int] = 48
    num_steps: ClassVar[int] = 40
    spacing: ClassVar[float] = 0.05
    method = "spherical harmonics, exact in time; float64"
    units = {"x": "degrees_east", "y": "degrees_north"}
    samples = 240

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        step = np.arange(resolution) / resolution
        return 360 * step - 180, 180 * (step + 0.5 / resolution) - 90

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        number = torch.arange(1, self.degree + 1)
        degree = number.repeat_interleave(2 * number + 1).double()
        variance = (1 + degree**2) ** -1.5
        scale = (4 * torch.pi * variance / variance.sum()).sqrt()
        drawn = np.stack([rng.standard_normal((len(degree), 2)) for rng in rngs])
        modes = torch.from_numpy(drawn).transpose(1, 2) * scale
        frequency = self.speed * (degree * (degree + 1)).sqrt()
        angle = torch.outer(torch.from_numpy(self.times(num_steps)), frequency)
        waves = torch.stack([angle.cos(), angle.sin()], dim=1)
        modes = torch.einsum("bpk,tpk->btk", modes.to(device), waves.to(device))
        grid = torch.cartesian_prod(*map(torch.from_numpy, self.axes(resolution)))
        pos = self.domain.normalise(grid, torch.float64)
        harmonics = spherical_harmonics(pos, self.degree + 1)[:, 1:].to(device)
        u = (modes @ harmonics.T).unflatten(2, (resolution, resolution))[..., None]
        return Solution(u, u[:, 0], {})
