"""Vortex shedding behind a cylinder in a channel."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.pde.channel_mesh import HEIGHT, LENGTH, NEAR, channel_mesh
from nfsgeo.data.pde.incompressible import Flow, Stepper

__all__ = ["Channel", "shedding"]

# Stages of a spin-up on the coarse mesh: its fraction, and the factor by which steps
# are shorter while the mean flow is inaccurate. The rest is spent on the fine mesh.
STAGES = (0.08, 4), (0.16, 2), (0.68, 1)
SETTLED = 0.08
# The mean flow is taken over two periods of shedding, of about 10/3 passages each.
AVERAGED = 20 / 3
# A flow that is faster than the mean inflow by this factor is numerically unstable.
FASTEST = 8


class Channel:
    """A flow in the channel of the DFG benchmark, with any cylinder in it.

    Args:
        side: Triangles across the channel, see :func:`channel_cells`.
        centre: Centre of the cylinder ``[2]``.
        radius: Radius of the cylinder.
        speed: Mean velocity of the parabolic inflow.
        nu: Kinematic viscosity.
        shorter: Factor by which time steps are shorter than usual.

    Attributes:
        flow: Its discrete operators.
        boundary: Velocities on the boundary, zeros elsewhere ``[2, n]``.
        cylinder: Numbers of the nodes on the cylinder.
        passage: Time in which the mean inflow passes the diameter of the cylinder.
        dt: Time step that is stable with the mean flow as carrier of the
            :class:`Stepper`.
    """

    def __init__(
        self,
        side: int,
        centre: Doubles,
        radius: float,
        speed: float,
        nu: float,
        shorter: float = 1,
    ) -> None:
        mesh = channel_mesh(side, centre, radius)
        border = mesh.boundary_facets()
        ends = mesh.facets[:, border]
        outflow = mesh.p[0, ends].min(axis=0) > LENGTH - NEAR
        self.flow = Flow(mesh, nu, border[~outflow])
        rim = border[(ends < 4 * side).all(axis=0)]
        self.cylinder = self.flow.basis.get_dofs(facets=rim).all()
        self.centre, self.radius, self.speed = centre, radius, speed
        x, y = self.flow.pos
        parabola = 6 * speed * y * (HEIGHT - y) / HEIGHT**2
        self.boundary = np.stack([np.where(x < NEAR, parabola, 0), np.zeros_like(x)])
        self.passage = 2 * radius / speed
        self.dt = self.passage / (shorter * max(32, 2.5 * side))

    def stokes(self, turning: float = 0.0) -> Doubles:
        """Return the Stokes flow around a cylinder that turns with a velocity."""
        values = self.boundary.copy()
        x, y = (self.flow.pos[:, self.cylinder] - self.centre[:, None]) / self.radius
        values[:, self.cylinder] = turning * np.stack([-y, x])
        return self.flow.oseen(values)[0]

    def steps(self, stepper: Stepper, number: int) -> Iterator[Doubles]:
        """Make steps, and yield the velocity ``[2, n]`` after each of them.

        Raises:
            FloatingPointError: The flow is unstable.
        """
        for _ in range(number):
            stepper.step(self.boundary)
            if not np.abs(stepper.now).max() < FASTEST * self.speed:
                raise FloatingPointError("time steps are too long")
            yield stepper.now

    def develop(
        self, u: Doubles, carrier: Doubles, duration: float, shorter: int = 1
    ) -> tuple[Doubles, Doubles]:
        """Return the velocity some passages later, and its mean over two periods."""
        dt = self.dt / shorter
        stepper = Stepper(self.flow, dt, carrier)
        stepper.start(u)
        number = math.ceil(duration * self.passage / dt)
        averaged = min(number, round(AVERAGED * self.passage / dt))
        total = np.zeros_like(u)
        for step, now in enumerate(self.steps(stepper, number)):
            if step >= number - averaged:
                total += now
        return stepper.now, total / averaged

    def at_nodes_of(self, other: Channel, u: Doubles) -> Doubles:
        """Interpolate a velocity ``[2, n]`` to the nodes of another mesh."""
        between = LinearNDInterpolator(self.flow.pos.T, u.T, fill_value=0.0)
        velocity = np.asarray(between(other.flow.pos.T)).T
        velocity[:, other.flow.dirichlet] = other.boundary[:, other.flow.dirichlet]
        return velocity


def shedding(
    coarse: Channel, fine: Channel, spin_up: float, spacing: float
) -> Iterator[Stepper]:
    """Yield states of vortex shedding on the fine mesh, ``spacing`` apart in time.

    The initial flow is that around a turning cylinder, so that shedding starts at once.
    It develops for ``spin_up`` passages, nearly all of them on the coarse mesh. On the
    fine mesh, the carrier is the mean flow of the last two periods.

    Raises:
        FloatingPointError: Time steps are too long.
    """
    u, mean = coarse.stokes(turning=coarse.speed), coarse.stokes()
    for part, shorter in STAGES:
        u, mean = coarse.develop(u, mean, part * spin_up, shorter)
    u, mean = (coarse.at_nodes_of(fine, velocity) for velocity in (u, mean))
    number = math.ceil(spacing / fine.dt)
    stepper = Stepper(fine.flow, spacing / number, mean)
    stepper.start(u)
    settling = math.ceil(SETTLED * spin_up * fine.passage / stepper.dt)
    for _ in fine.steps(stepper, settling):
        pass
    while True:
        yield stepper
        for _ in fine.steps(stepper, number):
            pass
