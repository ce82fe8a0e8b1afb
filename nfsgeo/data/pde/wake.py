"""Vortex shedding behind a cylinder, two-dimensional and incompressible."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from nfsgeo.data.pde.solver import Device, Positive, Rngs, Solution, Solver, stacked
from nfsgeo.geometry import Domain

__all__ = ["Wake"]


class Wake(Solver):
    r"""The flow behind a cylinder in a channel, which sheds vortices periodically.

    .. math:: \partial_t u + (u\cdot\nabla) u - \nu\Delta u + \nabla p = 0, \quad
        \nabla\cdot u = 0

    in a channel of length 2.2 and height 0.41, with no slip on the walls and on the
    cylinder. The inflow at x = 0 is parabolic; at x = 2.2, :math:`\nu\,\partial_n u =
    p n`. Each sample has its own cylinder: the centre is uniform in a square around
    (0.2, 0.2), and the radius and the mean inflow velocity are uniform in intervals.
    With the default options, the Reynolds number of mean velocity and diameter is
    between 60 and 180, and a shedding period has about 9 to 27 time steps.

    Each sample has its own mesh with N points on the cylinder and the same triangles in
    the same order; N is rounded up to a multiple of 4, and is at least 16. Velocities
    are quadratic and pressures linear on each triangle; the file has their values at
    the vertices. ``node_type`` is 0 in the interior, 1 on the walls, 2 at the inflow, 3
    at the outflow and 4 on the cylinder. Flows develop from an asymmetric start for 18
    periods before the first time step, mostly on a mesh of half the resolution.
    Everything is computed on the CPU.

    On the benchmark 2D-2 with N = 80 and time steps two thirds as long as usual, the
    Strouhal number is 0.300, and the largest drag and lift coefficients are 3.227 and
    0.996; the intervals of the reference are 0.295 to 0.305, 3.22 to 3.24 and 0.99 to
    1.01.

    Source: Schäfer and Turek, "Benchmark Computations of Laminar Flow Around a
    Cylinder". Its cylinder has the centre (0.2, 0.2) and the radius 0.05.
    """

    nu: Positive = Field(default=1e-3, description="kinematic viscosity")
    slowest: Positive = Field(default=0.75, description="least mean inflow velocity")
    fastest: Positive = Field(default=1.5, description="largest mean inflow velocity")
    thinnest: Positive = Field(default=0.04, description="least radius", le=0.1)
    thickest: Positive = Field(default=0.06, description="largest radius", le=0.1)
    shift: float = Field(
        default=0.03, description="largest shift along an axis", ge=0, le=0.05
    )
    spin_up: Positive = Field(
        default=60.0, description="diameters of inflow before the first time step"
    )

    name = "wake"
    title = "vortex shedding behind a cylinder in a channel, Navier-Stokes"
    domain: ClassVar[Domain] = Domain((0.0, 0.0), (2.2, 0.41), (False, False))
    resolution: ClassVar[int] = 64
    num_steps: ClassVar[int] = 60
    spacing: ClassVar[float] = 0.02
    component_names = ("velocity_x", "velocity_y", "pressure")
    node_types = ("interior", "wall", "inflow", "outflow", "cylinder")
    static_names = ("node_type",)
    static_inputs = True
    scalar_names = ("inflow",)
    method = (
        "Taylor-Hood elements; BDF2, convection by the mean flow implicit and the rest "
        "extrapolated; sparse LU; float64"
    )
    samples = 100
    needs = ("skfem",)

    def shape(self, resolution: int) -> tuple[int, ...]:
        from nfsgeo.data.pde.channel_mesh import node_types

        return node_types(side(resolution)).shape

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        from nfsgeo.data.pde.channel_mesh import channel_cells

        return {"triangle": channel_cells(side(resolution))}

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        from nfsgeo.data.pde.channel_mesh import node_types

        types = torch.from_numpy(node_types(side(resolution))).double()[:, None]
        samples = (self._sample(rng, resolution, num_steps) for rng in rngs)
        u, pos, inflow, divergence = stacked(samples)
        a = types.expand(len(rngs), -1, -1)
        limits = {"largest moment of the divergence": (divergence, 1e-10)}
        return Solution(u, a, limits, pos=pos, scalars=inflow[:, None])

    def _sample(
        self, rng: np.random.Generator, resolution: int, num_steps: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return fields ``[T, P, 3]``, positions ``[P, 2]``, inflow and divergence."""
        from nfsgeo.data.pde.channel import Channel, shedding

        centre = 0.2 + self.shift * rng.uniform(-1, 1, 2)
        radius = self.thinnest + (self.thickest - self.thinnest) * rng.random()
        inflow = self.slowest + (self.fastest - self.slowest) * rng.random()
        # The first stored time step has any phase of a period.
        spin_up = self.spin_up + rng.uniform(0, 10 / 3)
        number, points = side(resolution), *self.shape(resolution)
        fields = np.full((num_steps, points, 3), np.nan)
        divergence = np.nan
        for shorter in (1, 2, 4):
            coarse, fine = (
                Channel(triangles, centre, radius, inflow, self.nu, shorter)
                for triangles in (min(number, max(8, number // 2)), number)
            )
            states = shedding(coarse, fine, spin_up, self.spacing)
            try:
                for step, state in enumerate(islice(states, num_steps)):
                    fields[step, :, :2] = state.now[:, :points].T
                    fields[step, :, 2] = state.pressure
            except FloatingPointError:
                fields[:] = np.nan
            else:
                divergence = np.abs(fine.flow.divergence_of(state.now)).max()
                break
        pos = fine.flow.pos[:, :points].T
        return fields, pos, np.asarray(inflow), np.asarray(divergence)


def side(resolution: int) -> int:
    """Return the triangles across the channel for so many points on the cylinder."""
    return max(4, -(-resolution // 4))
