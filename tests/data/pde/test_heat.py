"""Heat from bodies in potential flow, against closed forms and conservation laws."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nfsgeo.data.pde import find_equation
from nfsgeo.data.pde.advection_diffusion import (
    clustered,
    cyclic_solve,
    solve_around_circle,
)
from nfsgeo.data.pde.bodies import Aerofoil, Ellipse, Flow
from nfsgeo.data.pde.heat import Heat, HeatProblem, heat_flux, nearest_on_wall
from nfsgeo.data.pde.random_fields import sample_rng
from nfsgeo.errors import UserError

Array = NDArray[np.float64]
BODIES = [Ellipse(0.3, 0.7), Aerofoil(0.1, 0.05, 0.3), Aerofoil(0.1, -0.1, 0.0)]
CIRCLE = Ellipse(1.0, 0.0)


def problem(number: int, **options: Any) -> HeatProblem:
    return HeatProblem(sample_rng(0, "heat", number), Heat(**options))


def circle(angles: int = 1000, radius: float = 1.0) -> NDArray[np.complex128]:
    return radius * np.exp(2j * np.pi * (np.arange(angles) + 0.5) / angles)


def relative(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


# The bodies and the flow.


@pytest.mark.parametrize("body", BODIES)
def test_maps_are_conformal_and_one_to_one(body):
    zeta, step = circle(radius=1.3), 1e-6
    for turn in (1, 1j):  # the same derivative in both directions
        ahead, behind = (body.position(zeta + h) for h in (turn * step, -turn * step))
        slope = (ahead - behind) / (2 * turn * step)
        np.testing.assert_allclose(slope, body.derivative(zeta), rtol=1e-7)
    far = circle(radius=1e4)
    away = body.position(far) - body.coefficient * far
    assert np.abs(away).max() < 1e-4  # neither shifted nor turned otherwise
    wall = body.position(circle())
    turns = np.angle(np.roll(wall, -1) / wall).sum() / (2 * np.pi)
    assert turns == pytest.approx(1)


def test_sizes_of_the_bodies():
    axes = Ellipse(0.3, np.pi / 2).position(np.array([1, 1j, -1, -1j]))
    np.testing.assert_allclose(axes, [0.5j, -0.15, -0.5j, 0.15], atol=1e-15)
    # Joukowski's flat plate and circular arc, whose chords are known.
    for camber in (0.0, 0.1):
        arc = Aerofoil(0.0, camber, 0.0)
        assert arc.chord == pytest.approx(4, rel=1e-6)
        wall = arc.position(circle()) * arc.chord + arc.centre
        assert wall.imag.max() == pytest.approx(2 * camber, abs=1e-4)
    for body in BODIES[1:]:
        edge = body.position(np.ones(1, complex))
        wall = body.position(circle(4000))
        assert np.abs(wall - edge).max() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("degrees", [0, 10, 25])
def test_angle_of_the_trailing_edge(degrees):
    body = Aerofoil(0.1, 0.05, np.deg2rad(degrees))
    near = body.position(np.exp(1j * np.array([-1e-4, 0, 1e-4])))
    sides = near[[0, 2]] - near[1]
    assert np.rad2deg(np.angle(sides[0] / sides[1])) == pytest.approx(degrees, abs=0.2)


def test_flow_is_tangential_and_has_its_circulation_and_gradient():
    flow = Flow(0.3, 0.2)
    zeta = circle()
    inwards = (flow.velocity(zeta) * zeta).real
    assert np.abs(inwards).max() < 1e-12
    around = (flow.velocity(2 * zeta) * 2j * zeta).mean() * 2 * np.pi
    assert around == pytest.approx(-4 * np.pi * 0.2)
    s, theta = np.full(1000, math.log(2)), np.angle(zeta)
    along, across = flow.gradient(s, theta)
    found = flow.velocity(2 * zeta) * 2 * zeta
    np.testing.assert_allclose(along, found.real, atol=1e-12)
    np.testing.assert_allclose(across, -found.imag, atol=1e-12)


def test_wake_is_a_streamline_of_the_rear_stagnation_point():
    flow, s = Flow(0.3, 0.2), np.linspace(0, 3, 50)
    wake = flow.wake(s)
    assert np.abs(flow.velocity(np.exp(1j * wake[:1]))) < 1e-12
    streamfunction = 2 * np.sinh(s) * np.sin(wake - 0.3) + 2 * 0.2 * s
    assert np.abs(streamfunction).max() < 1e-12


@pytest.mark.parametrize("edge_angle", [0.0, 0.3])
def test_kutta_condition(edge_angle):
    """The speed at the edge is bounded, and without the condition it is not."""
    body = Aerofoil(0.1, 0.05, edge_angle)
    angle = 0.1 - float(np.angle(body.coefficient))
    near = 1 + np.array([1e-2, 1e-4, 1e-6])
    for lift, bounded in ((math.sin(angle), True), (math.sin(angle) + 0.1, False)):
        flow = Flow(angle, lift)
        scale = abs(body.coefficient) / np.abs(body.derivative(near))
        speed = np.abs(flow.velocity(near)) * scale
        assert (speed.max() < 2) == bounded
    random = problem(0, body="aerofoil")
    edge = random.flow.velocity(np.ones(1, complex))
    assert np.abs(edge).max() < 1e-14


# The solver around the unit circle.


def test_block_elimination_is_that_of_the_dense_matrix():
    rng = np.random.default_rng(0)
    bands, right = rng.standard_normal((12, 7, 2, 2)), rng.standard_normal((12, 2))
    matrix = np.zeros((12, 2, 12, 2))
    for i in range(12):
        for k in range(7):
            matrix[i, :, (i + k - 3) % 12] += bands[i, k]
    expected = np.linalg.solve(matrix.reshape(24, 24), right.ravel())
    np.testing.assert_allclose(cyclic_solve(bands, right).ravel(), expected, rtol=1e-9)


def test_clustered_angles_have_an_inverse():
    x = np.linspace(-3, 3, 25)
    there = clustered(x, 0.5)
    np.testing.assert_allclose(clustered(there, -0.5), x, atol=1e-14)
    assert there[13] / x[13] == pytest.approx(1 / 3, rel=0.01)


def waves(s: Array, theta: Array) -> Array:
    return np.exp(-2 * s) * np.cos(2 * theta - 0.4) + s * np.sin(theta) + 1


def source(peclet: float, flow: Flow) -> Callable[[Array, Array], Array]:
    """The Laplacian of :func:`waves`, less its advection."""

    def found(s: Array, theta: Array) -> Array:
        along, across = flow.gradient(s, theta)
        even, odd = (np.exp(-2 * s) * f(2 * theta - 0.4) for f in (np.cos, np.sin))
        by_s = -2 * even + np.sin(theta)
        by_theta = -2 * odd + s * np.cos(theta)
        laplacian = -s * np.sin(theta)
        return laplacian - peclet * (along * by_s + across * by_theta)

    return found


def manufactured(num_angles: int, num_radii: int) -> float:
    """Relative error between the points of the mesh."""
    peclet, flow, depth = 20.0, Flow(0.3, 0.4), 1.5

    def far(theta: Array) -> Array:
        end = np.full_like(theta, depth)
        slope = -2 * math.exp(-2 * depth) * np.cos(2 * theta - 0.4) + np.sin(theta)
        enters = flow.gradient(end, theta)[0] < 0
        return np.where(enters, waves(end, theta), slope)

    size = {"num_angles": num_angles, "num_radii": num_radii}
    wall = {"wall": lambda theta: waves(0 * theta, theta), "far": far}
    solved = solve_around_circle(
        peclet, flow, depth, source=source(peclet, flow), **wall, **size
    )
    s, angle = np.linspace(0, depth, 9), np.linspace(-3, 3, 20)
    theta = flow.wake(s)[:, None] + angle
    expected = waves(s[:, None], theta)
    slope = -2 * np.cos(2 * theta[0] - 0.4) + np.sin(theta[0])
    at_wall = relative(solved.wall_gradient(angle), slope)
    inside = relative(solved.at(np.tile(angle, (9, 1)), s), expected)
    return max(inside, at_wall)


def test_manufactured_solution(orders):
    """Sixth order in the angle and faster than any order in the radius."""
    around = [manufactured(n, 20) for n in (96, 192, 384)]
    assert around[-1] < 1e-6
    assert orders(around)[-1] == pytest.approx(6, abs=0.2)
    outwards = [manufactured(384, n) for n in (6, 9, 12)]
    assert outwards[1] < outwards[0] / 20 and outwards[2] < outwards[1] / 20


def test_exact_solution_of_the_flow():
    """The exponential of the potential solves the equation without a source."""
    peclet, flow, depth = 1.5, Flow(0.3), 1.0

    def exact(s: Array, theta: Array) -> Array:
        return np.exp(2 * peclet * np.cosh(s) * np.cos(theta - 0.3))

    def far(theta: Array) -> Array:
        end = np.full_like(theta, depth)
        along = flow.gradient(end, theta)[0]
        return exact(end, theta) * np.where(along < 0, 1, peclet * along)

    solved = solve_around_circle(
        *(peclet, flow, depth, lambda theta: exact(0 * theta, theta)),
        **{"num_angles": 240, "num_radii": 20, "far": far},
    )
    s, angle = np.linspace(0, depth, 9), np.linspace(-3, 3, 20)
    expected = exact(s[:, None], flow.wake(s)[:, None] + angle)
    assert relative(solved.at(np.tile(angle, (9, 1)), s), expected) < 1e-6


def test_pure_diffusion():
    """Without flow, the temperature in a ring is linear in the logarithm."""
    solved = solve_around_circle(
        *(0.0, Flow(0.3, 0.4), 2.0, np.ones_like),
        **{"num_angles": 48, "num_radii": 12},
        far=lambda theta: np.where(np.cos(theta - 0.3) < 0, 0, -0.5),
    )
    expected = np.broadcast_to(1 - solved.s / 2, solved.values.shape)
    np.testing.assert_allclose(solved.values, expected, atol=1e-9)
    assert solved.wall_heat() == pytest.approx(np.pi)
    assert solved.far_heat() == pytest.approx(np.pi)


def heat(peclet: float, lift: float = 0.0) -> float:
    """Heat that leaves a circle of diameter 1 and temperature 1."""
    made = problem(0, wall="uniform")
    made.body, made.flow, made.peclet = CIRCLE, Flow(0.1, lift), peclet
    made.depth = math.log(2 * 4.8)
    return made.solve().wall_heat()


def test_nusselt_number_of_a_circle():
    r"""Boussinesq's boundary layer, :math:`Nu = (4/\pi) \sqrt{2 Pe/\pi}`.

    In coordinates of the potential and the streamfunction, the temperature on both
    sides is that of a plate along which the potential grows by 2.
    """
    peclet = np.array([200.0, 500, 1000, 2000])
    nusselt = np.array([heat(each) for each in peclet]) / np.pi
    slope = np.polyfit(np.log(peclet), np.log(nusselt), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(nusselt, 4 / np.pi * np.sqrt(2 * peclet / np.pi), 2e-3)


def test_heat_with_circulation():
    """The potential grows by different amounts on the two sides."""
    lift, peclet = 0.3, 1000.0
    turn = math.asin(lift)
    above = 4 * math.cos(turn) + 2 * lift * (np.pi + 2 * turn)
    below = 4 * math.cos(turn) - 2 * lift * (np.pi - 2 * turn)
    expected = sum(2 * math.sqrt(peclet * each / 2 / np.pi) for each in (above, below))
    assert heat(peclet, lift) == pytest.approx(expected, rel=2e-3)


# The samples.


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_accuracy_of_the_shipped_solver(number):
    made = problem(number)
    solved, fine = made.solve(), made.solve(1.6)
    angle, s = made.mesh_lines(80)
    assert relative(solved.at(angle, s), fine.at(angle, s)) < 1e-3
    flux = fine.wall_gradient(angle[0])
    assert relative(solved.wall_gradient(angle[0]), flux) < 2e-3
    for each, tolerance in ((solved, 1e-2), (fine, 3e-3)):
        assert each.far_heat() == pytest.approx(each.wall_heat(), rel=tolerance)


@pytest.fixture(scope="module")
def batch():
    return Heat().solve(0, range(6), resolution=80)


def test_maximum_principle(batch):
    u = batch.u[:, 0, :, 0]
    wall = u[:, :80]
    tolerance = 2e-3
    assert (u.amax(1) <= wall.amax(1).clamp(min=0) + tolerance).all()
    assert (u.amin(1) >= wall.amin(1).clamp(max=0) - tolerance).all()


def test_static_inputs(batch):
    distance, kind, wall = batch.a.unbind(-1)
    flow = batch.scalars[:, 1:3]
    assert (distance[:, :80] == 0).all() and (distance[:, 80:] > 0).all()
    assert (kind[:, :80] == 1).all() and (kind[:, 80:-80] == 0).all()
    far = batch.pos[:, -80:]
    # Nearly a circle, so that the flow enters where it is against the radius.
    against = (far @ flow[..., None])[..., 0]
    clear = against.abs() > 0.5
    entering = kind[:, -80:] == 2
    assert (entering == (against < 0))[clear].all()
    assert (batch.u[:, 0, -80:, 0][entering] == 0).all()
    torch.testing.assert_close(wall[:, :80], batch.u[:, 0, :80, 0], rtol=0, atol=1e-9)
    for sample in range(6):
        nearest = cKDTree(batch.pos[sample, :80]).query(batch.pos[sample])[1]
        # The nearest of 80 points is not quite the nearest of the wall.
        assert float((wall[sample] - wall[sample, nearest]).abs().max()) < 0.1
    torch.testing.assert_close(flow.norm(dim=1), torch.ones(6).double())
    made = [problem(number) for number in range(6)]
    expected = [math.log10(each.peclet) for each in made]
    np.testing.assert_allclose(batch.scalars[:, 0], expected)
    around = [4 * np.pi * abs(p.body.coefficient) * p.flow.lift for p in made]
    np.testing.assert_allclose(batch.scalars[:, 3], around)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([4, 33, 80]))
def test_meshes(number, resolution):
    """No cell is inverted, and all lie in the domain."""
    equation, made = Heat(), problem(number)
    angle, s = made.mesh_lines(resolution)
    theta = made.flow.wake(s)[:, None] + angle
    z = made.body.position(np.exp(s[:, None] + 1j * theta)).ravel()
    assert (len(z),) == equation.shape(resolution)
    assert max(np.abs(z.real).max(), np.abs(z.imag).max()) < 5
    cells = equation.cells(resolution)["quad"]
    assert len(cells) == len(z) - resolution
    for corners in ([0, 1, 2], [0, 2, 3]) if resolution > 4 else ():
        a, b, c = z[cells[:, corners]].T
        assert (((b - a).conj() * (c - a)).imag > 0).all()
    if resolution == 80:
        heights = np.abs(np.diff(z.reshape(len(s), -1), axis=0))
        assert heights[-1].min() > 100 * np.median(heights[0])
        # A tenth of the thinnest boundary layer, whose thickness is 0.04.
        assert np.median(heights[0]) < 0.008


def test_distance_and_nearest_point_of_the_wall():
    z = 0.9 * circle(7)
    distance, place = nearest_on_wall(CIRCLE, z)
    np.testing.assert_allclose(distance, 0.4, atol=1e-9)
    np.testing.assert_allclose(np.exp(1j * place), circle(7), atol=1e-7)
    body = BODIES[1]
    z = np.concatenate([body.position(circle(50, radius)) for radius in (1.01, 1.4)])
    distance, place = nearest_on_wall(body, z)
    wall = body.position(circle(200_000))
    tree = cKDTree(np.stack([wall.real, wall.imag], axis=1))
    expected = tree.query(np.stack([z.real, z.imag], axis=1))[0]
    np.testing.assert_allclose(distance, expected, atol=1e-6)
    found = np.abs(body.position(np.exp(1j * place)) - z)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_heat_flux_is_of_second_order(orders):
    made, errors = problem(1), []
    for resolution in (40, 80, 160):
        angle, s = made.mesh_lines(resolution)
        theta = made.flow.wake(s)[:, None] + angle
        zeta = np.exp(s[:, None] + 1j * theta)
        z = made.body.position(zeta)
        # A layer as thin as that of the largest Peclet number.
        layer = torch.from_numpy(np.exp(-20 * s)[:, None] * np.cos(theta))
        pos = torch.from_numpy(np.stack([z.real, z.imag], axis=-1))
        found = heat_flux(layer.flatten(), pos.flatten(0, 1), resolution)
        exact = 20 * np.cos(theta[0]) / np.abs(made.body.derivative(zeta[0]))
        errors.append(relative(found.numpy(), exact))
    assert errors[1] < 0.03
    assert orders(errors)[-1] == pytest.approx(2, abs=0.3)


def test_heat_flux_of_the_stored_field(batch):
    found = heat_flux(batch.u[:, 0, :, 0], batch.pos, 80)
    for number in range(6):
        made = problem(number)
        angle, s = made.mesh_lines(80)
        zeta = np.exp(1j * (made.flow.wake(s[:1]) + angle[0]))
        slope = made.solve().wall_gradient(angle[0])
        exact = -slope / np.abs(made.body.derivative(zeta))
        assert relative(found[number].numpy(), exact) < 0.06


def test_options_change_only_what_they_are_about():
    usual, plain = problem(3), problem(3, wall="uniform", body="ellipse")
    assert usual.peclet == plain.peclet and usual.stream == plain.stream
    assert (plain.wall_temperature(np.linspace(0, 6, 9)) == 1).all()
    kinds = [type(problem(number).body) for number in range(200)]
    assert 70 < kinds.count(Aerofoil) < 130
    for kind, expected in (("ellipse", Ellipse), ("aerofoil", Aerofoil)):
        of_kind = {type(problem(number, body=kind).body) for number in range(9)}
        assert of_kind == {expected}
    drawn = [problem(n, peclet_min=300, peclet_max=900).peclet for n in range(300)]
    assert 300 <= min(drawn) < 310 and 880 < max(drawn) <= 900
    assert np.median(drawn) == pytest.approx(math.sqrt(300 * 900), rel=0.1)


def test_a_range_of_peclet_numbers_that_is_empty():
    with pytest.raises(UserError, match="peclet_min must not exceed peclet_max"):
        find_equation("heat", {"peclet_min": 3000})
