"""Travelling waves on the unit sphere, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from nfsgeo.data.pde.random_fields import sample_rng
from nfsgeo.data.pde.solver import Device, Positive, Solution, Solver
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

    Args:
        speed: :math:`c`.
        degree: :math:`L`.
    """

    speed: Positive = Field(default=1.0, description="of waves of high degrees")
    degree: PositiveInt = Field(
        default=12, description="highest degree of the harmonics"
    )

    name: ClassVar[str] = "sphere-waves"
    title: ClassVar[str] = "u_tt = c^2 Laplace u on the unit sphere, in closed form"
    dim: ClassVar[int] = 2
    domain: ClassVar[Domain] = Domain.sphere()
    num_steps: ClassVar[int] = 40
    resolution: ClassVar[int] = 48
    method: ClassVar[Mapping[str, str]] = {
        "time": "exact",
        "space": "spherical harmonics",
        "precision": "float64",
    }
    units: ClassVar[Mapping[str, str]] = {
        "x": "degrees_east",
        "y": "degrees_north",
        "t": "1",
        "u": "1",
    }
    samples: ClassVar[int] = 240
    spacing: ClassVar[float] = 0.05

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        step = np.arange(resolution) / resolution
        return 360 * step - 180, 180 * (step + 0.5 / resolution) - 90

    def times(self, num_steps: int) -> np.ndarray:
        return self.spacing * np.arange(num_steps)

    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        start = self._coefficients(seed, indices)[:, 0]
        values = start @ self._harmonics(resolution).T
        return values.unflatten(1, (resolution, resolution))

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int,
        device: Device = "cpu",
    ) -> Solution:
        degree = self._degrees()
        frequency = self.speed * (degree * (degree + 1)).sqrt()
        angle = torch.outer(torch.from_numpy(self.times(num_steps)), frequency)
        waves = torch.stack([angle.cos(), angle.sin()], dim=1).to(device)
        given = self._coefficients(seed, indices).to(device)
        given = torch.einsum("bpk,tpk->btk", given, waves)
        u = given @ self._harmonics(resolution).T.to(device)
        u = u.unflatten(2, (resolution, resolution))[..., None]
        return Solution(u=u, a=u[:, 0], dt=u.new_zeros(len(indices)))

    def _degrees(self) -> Tensor:
        """The degree of each harmonic, from 1 on."""
        number = torch.arange(1, self.degree + 1)
        return number.repeat_interleave(2 * number + 1).double()

    def _coefficients(self, seed: int, indices: Sequence[int]) -> Tensor:
        """Those of cosines and of sines, ``[B, 2, K]``."""
        degree = self._degrees()
        variance = (1 + degree**2) ** -1.5
        scale = (4 * torch.pi * variance / variance.sum()).sqrt()
        drawn = [
            sample_rng(seed, self.name, i).standard_normal((len(degree), 2))
            for i in indices
        ]
        return torch.from_numpy(np.stack(drawn)).transpose(1, 2) * scale

    def _harmonics(self, resolution: int) -> Tensor:
        """Values of the harmonics at the grid points, ``[N^2, K]``."""
        axes = [torch.from_numpy(axis) for axis in self.axes(resolution)]
        grid = torch.cartesian_prod(*axes)
        pos = self.domain.normalise(grid, torch.float64)
        return spherical_harmonics(pos, self.degree + 1)[:, 1:]
