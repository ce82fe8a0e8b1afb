"""Temperature around a heated body in potential flow."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.spatial import cKDTree
from torch import Tensor

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.pde.advection_diffusion import (
    RoundSolution,
    clustered,
    solve_around_circle,
)
from nfsgeo.data.pde.bodies import Aerofoil, Body, Complexes, Ellipse, Flow
from nfsgeo.data.pde.solver import Device, Rngs, Solution, Solver, stacked
from nfsgeo.geometry import Domain

__all__ = ["Heat", "HeatProblem", "heat_flux"]

# Radius of the far boundary.
FAR = 4.8
# Modes of the wall temperature, and the standard deviation of the first.
MODES, DEVIATION = 3, 0.25
# Spacings of the stored mesh grow as exp(GROWTH p) from the wall, p = 0, to the far
# boundary, p = 1, until BOUND limits them.
GROWTH, BOUND = 4.7, 0.025
# Clustering of its lines around the wake, at the far boundary and at the wall. Few
# lines start near the edge of an aerofoil, where the map makes spacings small.
CLUSTER_FAR, CLUSTER_ELLIPSE, CLUSTER_AEROFOIL = 0.5, 0.0, -0.3
# Points of the wall among which the nearest is searched.
WALL_POINTS = 2048
INTERIOR, WALL, INFLOW, OUTFLOW = range(4)


class Heat(Solver):
    r"""Temperature around a heated ellipse or aerofoil in potential flow.

    .. math:: \mathrm{Pe}\, u \cdot \nabla T = \nabla^2 T, \quad
        T = T_w \text{ on the wall}, \quad T = 0 \text{ where fluid enters}, \quad
        \partial_n T = 0 \text{ where it leaves}

    Lengths are in units of the body's length (the major axis or the chord), velocities
    of the free-stream speed, temperatures of the mean wall temperature over the angle
    of the unit circle. The Peclet number of the body's length is drawn uniformly in its
    logarithm. The free stream makes an angle of up to 15 degrees with the x axis.

    Half of the bodies are ellipses with axis ratios from 0.2 to 1, any inclination
    and a circulation of up to 0.3 times that at which both stagnation points meet. The
    others are Karman-Trefftz aerofoils along the x axis, with trailing-edge angles from
    8 to 25 degrees and the circulation of the Kutta condition. The wall temperature is
    1 plus Fourier modes 1 to 3 in the angle of the unit circle, whose coefficients have
    standard deviations of 0.25 / k.

    Conformal maps leave the equation unchanged, so it is solved around the unit circle,
    whose exterior is mapped to that of the body. The far boundary is the image of a
    circle, 4.8 body lengths away.

    Each sample is stored on a mesh of its own, of N lines and N / 4 points on each,
    1600 points at N = 80. The first N points are those of the wall, the last N those of
    the far boundary. Lines start normal to the wall and cluster around the wake; the
    heights of cells grow along them from about 0.005 to 1. The relative L2 error of the
    stored temperature is below 1e-3. All of it is computed on the CPU.

    Inputs of a model are, at each point, the distance from the body, the type of node
    (0 interior, 1 wall, 2 inflow, 3 outflow) and the wall temperature at the nearest
    point of the wall; and for each sample the decadic logarithm of the Peclet number,
    the direction of the free stream and the clockwise circulation. Together with the
    points they determine the solution.
    """

    peclet_min: float = Field(
        default=200, description="smallest Peclet number", ge=10, le=5000
    )
    peclet_max: float = Field(
        default=2000, description="largest Peclet number", ge=10, le=5000
    )
    body: Literal["both", "ellipse", "aerofoil"] = Field(
        default="both", description="kind of body"
    )
    wall: Literal["varying", "uniform"] = Field(
        default="varying", description="wall temperature, 1 where it is uniform"
    )

    name = "heat"
    title = "Pe u.grad T = Laplace T around a heated body in potential flow"
    domain: ClassVar[Domain] = Domain((-5.0, -5.0), (5.0, 5.0), (False, False))
    resolution: ClassVar[int] = 80
    component_names = ("temperature",)
    node_types = ("interior", "wall", "inflow", "outflow")
    static_names = ("distance", "node_type", "wall_temperature")
    scalar_names = ("log10_peclet", "flow_x", "flow_y", "circulation")
    method = (
        "conformal map of a circle's exterior; Chebyshev collocation along wake-fitted "
        "lines, sixth-order differences between them, block elimination; float64"
    )
    samples = 1000

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.peclet_min > self.peclet_max:
            raise ValueError("peclet_min must not exceed peclet_max")
        return self

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Return the number of lines times the number of points on a line."""
        return (resolution * num_layers(resolution),)

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        """Return quadrilaterals between neighbouring lines, counterclockwise."""
        layers = num_layers(resolution)
        number = np.arange(layers * resolution).reshape(layers, resolution)
        after = np.roll(number, -1, axis=1)
        corners = [number[:-1], number[1:], after[1:], after[:-1]]
        return {"quad": np.stack(corners, axis=-1).reshape(-1, 4)}

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        samples = (self._sample(HeatProblem(rng, self), resolution) for rng in rngs)
        u, a, pos, scalars, checks = stacked(samples)
        limits = {
            "temperature beyond its bounds": (checks[:, 0], 5e-3),
            "relative heat imbalance": (checks[:, 1], 0.05),
        }
        return Solution(u[:, None, :, None], a, limits, pos=pos, scalars=scalars)

    def _sample(self, problem: HeatProblem, resolution: int) -> tuple[Doubles, ...]:
        """Return temperature, static inputs, points, scalars and checks."""
        solved, (angle, s) = problem.solve(), problem.mesh_lines(resolution)
        theta = problem.flow.wake(s)[:, None] + angle
        z = problem.body.position(np.exp(s[:, None] + 1j * theta))
        distance, nearest = nearest_on_wall(problem.body, z)
        distance[0], nearest[0] = 0, theta[0]
        kind = np.full(z.shape, INTERIOR)
        enters = problem.flow.gradient(s[-1:], theta[-1])[0] < 0
        kind[0], kind[-1] = WALL, np.where(enters, INFLOW, OUTFLOW)
        wall = problem.wall_temperature(nearest)
        static = np.stack([distance, kind, wall], axis=-1).reshape(-1, 3)
        stream = np.cos(problem.stream), np.sin(problem.stream)
        scalars = np.log10(problem.peclet), *stream, problem.circulation
        values, heat = solved.values, solved.wall_heat()
        low, high = min(0, values[:, 0].min()), max(0, values[:, 0].max())
        beyond = max(low - values.min(), values.max() - high) / (high - low)
        checks = np.array([beyond, abs(solved.far_heat() / heat - 1)])
        temperature = solved.at(angle, s)
        temperature[-1, enters] = 0
        points = np.stack([z.real, z.imag], axis=-1).reshape(-1, 2)
        return temperature.ravel(), static, points, np.array(scalars), checks


class HeatProblem:
    """One random body with its flow, Peclet number and wall temperature.

    Args:
        rng: Random numbers of the sample.
        equation: The options.

    Attributes:
        body: The body.
        flow: The flow, in the plane of the unit circle.
        peclet: Peclet number of the body's length and the free-stream speed.
        stream: Angle of the free stream to the x axis, in radians.
        circulation: Clockwise circulation.
        depth: Logarithm of the far boundary's radius in the plane of the circle.
    """

    def __init__(self, rng: np.random.Generator, equation: Heat) -> None:
        # All options draw the same numbers, so that each changes nothing else.
        draws, self._modes = rng.random(7), rng.standard_normal((2, MODES))
        self._modes *= DEVIATION / np.arange(1, MODES + 1)
        if equation.wall == "uniform":
            self._modes[:] = 0
        low, high = np.log([equation.peclet_min, equation.peclet_max])
        self.peclet = float(np.exp(low + draws[0] * (high - low)))
        self.stream = float(np.deg2rad(30 * draws[1] - 15))
        kind = equation.body
        if kind == "both":
            kind = "ellipse" if draws[2] < 0.5 else "aerofoil"
        self.body: Body
        if kind == "ellipse":
            self.body = Ellipse(0.2 + 0.8 * draws[3], np.pi * (draws[4] - 0.5))
        else:
            edge = np.deg2rad(8 + 17 * draws[5])
            self.body = Aerofoil(0.05 + 0.15 * draws[3], 0.2 * draws[4] - 0.1, edge)
        c = self.body.coefficient
        angle = self.stream - float(np.angle(c))
        lift = 0.6 * draws[6] - 0.3 if kind == "ellipse" else float(np.sin(angle))
        self.flow = Flow(angle, lift)
        self.circulation = 4 * np.pi * abs(c) * lift
        self.depth = float(np.log(FAR / abs(c)))

    def wall_temperature(self, theta: Doubles) -> Doubles:
        """Return the wall temperature at angles on the unit circle."""
        phase = np.multiply.outer(theta, np.arange(1, MODES + 1))
        cosines, sines = self._modes
        return np.asarray(1 + np.cos(phase) @ cosines + np.sin(phase) @ sines)

    def solve(self, refinement: float = 1.0) -> RoundSolution:
        """Solve on a mesh that resolves the boundary layer and the wake.

        Their thickness decreases with the square root of the Peclet number.

        Args:
            refinement: Factor of the numbers of lines and of points on a line.
        """
        ratio = self.peclet / 2000
        return solve_around_circle(
            self.peclet * abs(self.body.coefficient),
            self.flow,
            self.depth,
            self.wall_temperature,
            num_angles=3 * round(refinement * max(40, 60 * ratio**0.5)),
            num_radii=round(refinement * max(32, 42 * ratio**0.25)),
        )

    def mesh_lines(self, resolution: int) -> tuple[Doubles, Doubles]:
        """Return angles from the wake ``[N / 4, N]`` and circles ``[N / 4]``.

        They are those of the stored mesh. Lines are normal to the wall, and none starts
        at the wake's centre, the edge of an aerofoil, where the heat flux may be
        singular.
        """
        number = np.arange(resolution) - resolution // 2
        even = 2 * np.pi * (number + 0.5) / resolution
        part = np.linspace(0, 1, num_layers(resolution))
        s = np.log1p(BOUND * np.exp(GROWTH * part)) - np.log1p(BOUND)
        s *= self.depth / s[-1]
        sharp = isinstance(self.body, Aerofoil)
        near = CLUSTER_AEROFOIL if sharp else CLUSTER_ELLIPSE
        amount = near + (CLUSTER_FAR - near) * s**2 / (s**2 + 0.25)
        return clustered(even, amount[:, None]), s


def num_layers(resolution: int) -> int:
    """Return the points on each line of the stored mesh, with both ends."""
    return max(4, round(resolution / 4))


def nearest_on_wall(body: Body, z: Complexes) -> tuple[Doubles, Doubles]:
    """Return distances of points x + iy from a body, and the nearest wall points.

    The latter are angles on the unit circle: the nearest of 2048, moved to the minimum
    of the parabola through the squared distances there and on both sides.
    """
    step = 2 * np.pi / WALL_POINTS
    wall = body.position(np.exp(1j * step * np.arange(WALL_POINTS)))
    tree = cKDTree(np.stack([wall.real, wall.imag], axis=1))
    number = tree.query(np.stack([z.real, z.imag], axis=-1))[1]
    before, at, after = (
        np.abs(np.roll(wall, shift)[number] - z) ** 2 for shift in (1, 0, -1)
    )
    place = step * (number + (before - after) / (before - 2 * at + after) / 2)
    return np.abs(body.position(np.exp(1j * place)) - z), place


def heat_flux(temperature: Tensor, pos: Tensor, resolution: int) -> Tensor:
    """Return the heat flux from the wall into the fluid, minus the normal derivative.

    It is a one-sided difference of second order along the mesh lines, which are
    normal to the wall. In the units of :class:`Heat`, it is the local Nusselt number.

    Args:
        temperature: Temperatures of samples at their points ``[..., P]``.
        pos: Points ``[..., P, 2]``, in the order of the file.
        resolution: Number N of lines, with which the file was made.

    Returns:
        The flux at the N points of the wall ``[..., N]``.
    """
    T = temperature.unflatten(-1, (-1, resolution))[..., :3, :]
    layers = pos.unflatten(-2, (-1, resolution))[..., :3, :, :]
    near, far = layers.diff(dim=-3).norm(dim=-1).cumsum(dim=-2).unbind(dim=-2)
    wall, first, second = T.unbind(dim=-2)
    slopes = far / near * (first - wall) - near / far * (second - wall)
    return -slopes / (far - near)
