"""Compressible flow with shocks on a periodic square."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver
from nfsgeo.geometry import Domain

__all__ = ["Euler", "advance", "hllc", "to_conserved", "to_primitive"]

GAMMA = 1.4
COURANT = 0.4
# Lowest and highest initial density, velocities and pressure of a quadrant.
LOWEST, HIGHEST = (0.1, -1.0, -1.0, 0.1), (1.0, 1.0, 1.0, 1.0)


class Euler(Solver):
    r"""Density, velocity and pressure of an ideal gas, from Riemann problems.

    .. math:: \rho_t + \nabla\cdot(\rho v) = 0, \quad
        (\rho v)_t + \nabla\cdot(\rho v \otimes v + p I) = 0, \quad
        E_t + \nabla\cdot((E + p) v) = 0, \quad
        E = \frac{p}{\gamma - 1} + \frac{\rho |v|^2}{2}

    with :math:`\gamma = 1.4`, periodic on the unit square. The initial state is
    constant in each of four quadrants around a random point: density and pressure are
    uniform on [0.1, 1], velocities on [-1, 1]. Shocks, contact discontinuities and
    rarefactions come from the edges of the quadrants and meet.

    Finite volumes: primitive variables are linear in a cell, with van Leer's limiter
    (J. Comput. Phys. 14, 1974), fluxes are those of HLLC (Toro, Spruce and Speares,
    Shock Waves 4, 1994), steps in time Heun's. Each sample has steps of its own size.

    State ``[B, N, N, 4]``: values at the cell centres, where a shock takes about three
    cells. Second order where the flow is smooth, at most first at discontinuities.
    Mass, momentum and energy are conserved. Good values: 128 cells an axis.
    """

    name = "euler"
    title = "compressible Euler equations, periodic on [0, 1]^2, from Riemann problems"
    domain: ClassVar[Domain] = Domain.unit(2)
    resolution: ClassVar[int] = 128
    num_steps: ClassVar[int] = 21
    spacing: ClassVar[float] = 0.025
    component_names = ("density", "velocity_x", "velocity_y", "pressure")
    static_names = tuple(f"{name}0" for name in component_names)
    method = "finite volumes, van Leer's limiter, HLLC fluxes, Heun's method; float64"
    samples = 600

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of the cell centres."""
        return ((np.arange(resolution) + 0.5) / resolution,) * 2

    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        """Draw density, velocity and pressure of samples ``[B, 4, N, N]``."""
        centres, starts = self.axes(resolution)[0], []
        for rng in rngs:
            states = rng.uniform(LOWEST, HIGHEST, (2, 2, 4))
            x, y = ((centres - origin) % 1 < 0.5 for origin in rng.uniform(size=2))
            starts.append(states[np.ix_(x.astype(int), y.astype(int))])
        return torch.from_numpy(np.stack(starts)).permute(0, 3, 1, 2)

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        flows = []
        # One sample after the other, so that each has its own steps and fits the cache.
        for start in self.initial(rngs, resolution).to(device):
            flow = [to_conserved(start)]
            for _ in range(num_steps - 1):
                flow.append(advance(flow[-1], self.spacing, 1 / resolution))
            flows.append(torch.stack(flow, dim=1))
        conserved = torch.stack(flows)  # [B, 4, T, N, N]
        total = conserved.mean(dim=(3, 4))
        change = (total - total[:, :, :1]).abs().flatten(1).amax(dim=1)
        u = to_primitive(conserved.transpose(0, 1))
        positive = u[[0, 3]].transpose(0, 1).flatten(1).amin(dim=1)
        limits = {
            "change of mass, momentum or energy": (change, 1e-10),
            "negative density or pressure": (-positive, 0.0),
        }
        u = u.permute(1, 2, 3, 4, 0)
        return Solution(u, u[:, 0], limits)


def advance(conserved: Tensor, duration: float, length: float) -> Tensor:
    """Advance densities of mass, momentum and energy in time.

    Both axes are periodic. The result is NaN once a pressure is negative.

    Args:
        conserved: Means over square cells ``[4, N, M]``.
        duration: Time to advance.
        length: Side of a cell.
    """
    left = duration
    while left > 0:
        primitive = to_primitive(conserved)
        density, v, w, pressure = primitive
        sound = (GAMMA * pressure / density).sqrt()
        fastest = float((v.abs() + w.abs() + 2 * sound).max())
        if not math.isfinite(fastest):
            return torch.full_like(conserved, torch.nan)
        # Steps are equal if speeds do not change.
        dt = left / math.ceil(left * fastest / (2 * COURANT * length))
        first = conserved + dt * _rate(primitive, length)
        second = first + dt * _rate(to_primitive(first), length)
        conserved = (conserved + second) / 2
        left = left - dt if dt < left else 0.0
    return conserved


def _rate(primitive: Tensor, length: float) -> Tensor:
    """Return the time derivative of the conserved densities in the cells."""
    along_x = _flux_differences(primitive, 1)
    # A reflection at the diagonal swaps the components of the velocity.
    turned = _flux_differences(primitive[[0, 2, 1, 3]], 2)[[0, 2, 1, 3]]
    return -(along_x + turned) / length


def _flux_differences(primitive: Tensor, axis: int) -> Tensor:
    """Return the flux through the upper face of each cell minus that of the lower."""
    change = primitive.roll(-1, axis) - primitive
    before = change.roll(1, axis)
    product = (change * before).clamp_min_(0)
    # Half the harmonic mean of both slopes, and 0 at an extremum.
    half = product / (change + before).where(product > 0, 1.0)
    flux = hllc(primitive + half, (primitive - half).roll(-1, axis))
    return flux - flux.roll(1, axis)


def hllc(left: Tensor, right: Tensor) -> Tensor:
    """Return the HLLC flux along the first velocity between states ``[4, ...]``.

    The wave speeds are Einfeldt's (SIAM J. Numer. Anal. 25, 1988): the smallest
    velocity minus speed of sound, and the largest velocity plus speed of sound.
    """
    (r0, u0, _, p0), (r1, u1, _, p1) = left, right
    c0, c1 = (GAMMA * p0 / r0).sqrt(), (GAMMA * p1 / r1).sqrt()
    slow, fast = torch.minimum(u0 - c0, u1 - c1), torch.maximum(u0 + c0, u1 + c1)
    m0, m1 = r0 * (slow - u0), r1 * (fast - u1)
    middle = (p1 - p0 + m0 * u0 - m1 * u1) / (m0 - m1)
    upwind = middle >= 0
    state = torch.where(upwind, left, right)
    outer, mass = torch.where(upwind, slow, fast), torch.where(upwind, m0, m1)
    r, u, w, p = state
    conserved = to_conserved(state)
    momentum, energy = conserved[1], conserved[3]
    flux = torch.stack([momentum, momentum * u + p, momentum * w, (energy + p) * u])
    # Between the outer wave and the contact discontinuity, which moves with `middle`.
    density = mass / (outer - middle)
    inside = energy / r + (middle - u) * (middle + p / mass)
    star = torch.stack([torch.ones_like(r), middle, w, inside]) * density
    # If all waves move to one side, the flux is that of the other.
    moving = torch.where(upwind, slow.clamp_max(0), fast.clamp_min(0))
    return flux + moving * (star - conserved)


def to_conserved(primitive: Tensor) -> Tensor:
    """Convert density, velocity, pressure ``[4, ...]`` to mass, momentum, energy."""
    density, v, w, pressure = primitive
    energy = pressure / (GAMMA - 1) + density * (v**2 + w**2) / 2
    return torch.stack([density, density * v, density * w, energy])


def to_primitive(conserved: Tensor) -> Tensor:
    """Convert mass, momentum, energy ``[4, ...]`` to density, velocity, pressure."""
    density, momentum_x, momentum_y, energy = conserved
    v, w = momentum_x / density, momentum_y / density
    pressure = (GAMMA - 1) * (energy - density * (v**2 + w**2) / 2)
    return torch.stack([density, v, w, pressure])
