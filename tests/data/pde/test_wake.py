"""The flow behind a cylinder against closed forms and the DFG benchmarks."""

import math
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from skfem import MeshTri, MeshTri2

from nfsgeo.data.pde import Wake
from nfsgeo.data.pde.channel import Channel, shedding
from nfsgeo.data.pde.channel_mesh import channel_cells, channel_points, node_types
from nfsgeo.data.pde.incompressible import Flow, Stepper

Array = NDArray[np.float64]
CENTRE, RADIUS, NU = np.full(2, 0.2), 0.05, 1e-3


def a_square(cells: int, nu: float = 0.05, *, free: bool = False) -> Flow:
    """A flow in the unit square, free at x = 1 or not."""
    axis = np.linspace(0, 1, cells + 1)
    mesh = MeshTri2.from_mesh(MeshTri.init_tensor(axis, axis))
    given = mesh.facets_satisfying(
        lambda x: (x[0] < 1 - 1e-9) | (not free), boundaries_only=True
    )
    return Flow(mesh, nu, given)


def norm(flow: Flow, u: Array) -> float:
    return math.sqrt(sum(each @ flow.mass @ each for each in u))


def test_convection():
    flow = Channel(4, CENTRE, RADIUS, 1.0, NU).flow
    u = np.random.default_rng(0).standard_normal((2, flow.size))
    expected = flow.convection_reference(u)
    np.testing.assert_allclose(flow.convection(u), expected, atol=1e-15)
    matrix = flow.convection_matrix(u)
    np.testing.assert_allclose((matrix @ u.T).T, expected, atol=1e-15)
    # On triangles that are half as large, a particle crosses twice as many.
    rates = [
        a_square(cells).crossing_rate(np.ones((2, a_square(cells).size)))
        for cells in (4, 8)
    ]
    assert rates[1] == pytest.approx(2 * rates[0])


def test_poiseuille_flow_is_exact():
    flow, speed = a_square(4, free=True), 2.0
    x, y = flow.pos
    exact = np.stack([4 * speed * y * (1 - y), np.zeros_like(y)])
    pressure = 8 * speed * flow.nu * (1 - x[: flow.mesh.nvertices])
    steppers = [Stepper(flow, 0.01), Stepper(flow, 0.01, exact)]
    for stepper in steppers:
        stepper.start(exact)
        for _ in range(5):
            stepper.step(exact)
        np.testing.assert_allclose(stepper.now, exact, atol=1e-12)
        np.testing.assert_allclose(stepper.pressure, pressure, atol=1e-11)
    for found in (flow.oseen(exact), flow.oseen(exact, exact)):
        np.testing.assert_allclose(found[0], exact, atol=1e-12)
        np.testing.assert_allclose(found[1], pressure, atol=1e-11)
    # The walls hold back what the pressure pushes.
    walls = np.flatnonzero(((y < 1e-9) | (y > 1 - 1e-9)) & (x > 1e-9) & (x < 1 - 1e-9))
    drag = steppers[0].force(walls)
    assert 0 < drag[0] < 8 * speed * flow.nu
    np.testing.assert_allclose(drag, steppers[1].force(walls), atol=1e-12)


@pytest.mark.parametrize("carried", [False, True])
def test_second_order_in_time(carried, orders):
    """A flow that the elements hold exactly, in a load from discrete operators."""
    flow, errors = a_square(3), []
    x, y = flow.pos
    shape = np.stack([y * (1 - y), 2 * x * (1 - x)])
    moved = flow.convection(shape)
    inertia, friction = (
        np.stack([matrix @ each for each in shape])
        for matrix in (flow.mass, flow.nu * flow.stiffness)
    )
    for number in (16, 32, 64):
        dt = 1 / number
        stepper = Stepper(flow, dt, shape if carried else None)
        stepper.start(shape, math.cos(-3 * dt) * shape)
        for step in range(1, number + 1):
            now, rate = math.cos(3 * step * dt), -3 * math.sin(3 * step * dt)
            load = rate * inertia + now**2 * moved + now * friction
            stepper.step(now * shape, load)
        errors.append(norm(flow, stepper.now - now * shape))
    assert errors[-1] < 1e-4
    assert orders(errors)[-1] == pytest.approx(2, abs=0.15)


def test_third_order_in_space(orders):
    """Vortices that decay by viscosity alone, whose convection is a gradient."""
    errors, wave = [], 2 * np.pi
    for cells in (4, 8, 16):
        flow, dt = a_square(cells), 1e-3

        def vortices(time: float, flow: Flow = flow) -> Array:
            x, y = wave * flow.pos
            size = math.exp(-2 * flow.nu * wave**2 * time)
            return size * np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)])

        stepper = Stepper(flow, dt)
        stepper.start(vortices(0), vortices(-dt))
        for step in range(1, 51):
            stepper.step(vortices(step * dt))
        # By the mass matrix, the error at the nodes: of third order or better.
        errors.append(norm(flow, stepper.now - vortices(50 * dt)))
        assert np.abs(flow.divergence_of(stepper.now)).max() < 1e-13
    assert errors[-1] < 1e-3
    assert orders(errors)[-1] > 2.8


@settings(max_examples=10, deadline=None)
@given(
    st.integers(4, 20),
    st.floats(0.15, 0.25),
    st.floats(0.15, 0.25),
    st.floats(0.01, 0.1),
)
def test_mesh(side, x, y, radius):
    """No triangle folds over, all of them fill what the cylinder leaves."""
    points = channel_points(side, np.array([x, y]), radius)
    a, b, c = points[:, channel_cells(side)].transpose(2, 0, 1)
    area = ((b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0]) / 2
    assert area.min() > 0
    polygon = 2 * side * radius**2 * math.sin(np.pi / (2 * side))
    assert area.sum() == pytest.approx(2.2 * 0.41 - polygon)
    types = node_types(side)
    assert types.shape == points[0].shape
    on = {kind: points[:, types == kind] for kind in range(5)}
    assert (on[2][0] == 0).all() and len(on[2][0]) == side - 1
    np.testing.assert_allclose(on[3][0], 2.2)
    assert np.isin(on[1][1].round(9), [0, 0.41]).all()
    rim = np.linalg.norm(on[4] - [[x], [y]], axis=0)
    np.testing.assert_allclose(rim, radius)
    assert (np.linalg.norm(on[0] - [[x], [y]], axis=0) > radius).all()


def steady_forces(side: int) -> Array:
    """Drag and lift coefficients of the benchmark 2D-1, at Reynolds number 20."""
    channel = Channel(side, CENTRE, RADIUS, 0.2, NU)
    flow, carrier = channel.flow, None
    for _ in range(20):
        u, pressure = flow.oseen(channel.boundary, carrier)
        change = 1 if carrier is None else np.abs(u - carrier).max()
        carrier = u
        if change < 1e-8:
            break
    assert change < 1e-6
    friction = np.stack([flow.nu * flow.stiffness @ each for each in u])
    push = np.stack([each.T @ pressure for each in flow.divergence])
    force = (friction + flow.convection(u) - push)[:, channel.cylinder].sum(axis=1)
    return np.asarray(-2 * force / (0.2**2 * 2 * RADIUS))


@pytest.mark.slow
def test_steady_benchmark():
    drag, lift = steady_forces(12)
    assert drag == pytest.approx(5.57953523384, rel=0.005)
    assert lift == pytest.approx(0.010618948146, rel=0.02)


def shed(side: int, spin_up: float, shorter: float, periods: float) -> Array:
    """Strouhal number, largest drag and lift coefficient of the benchmark 2D-2."""
    coarse, fine = (
        Channel(each, CENTRE, RADIUS, 1.0, NU, shorter)
        for each in (max(8, side // 2), side)
    )
    states = shedding(coarse, fine, spin_up, fine.dt)
    number = round(periods / 3 / fine.dt)
    forces = [state.force(fine.cylinder) for state in islice(states, 1, number)]
    drag, lift = 2 * np.array(forces).T / (2 * RADIUS)
    rising = np.flatnonzero((lift[:-1] < 0) & (lift[1:] >= 0))
    at = rising - lift[rising] / (lift[rising + 1] - lift[rising])
    frequency = (len(at) - 1) / (at[-1] - at[0]) / fine.dt
    last = slice(-round(number / periods * 1.2), None)
    return np.array([2 * RADIUS * frequency, drag[last].max(), lift[last].max()])


@pytest.mark.slow
def test_shedding_on_a_coarse_mesh():
    found = shed(8, spin_up=30, shorter=1, periods=3)
    assert found == pytest.approx([0.3, 3.23, 1.0], rel=0.1)


@pytest.mark.slow
def test_benchmark_of_shedding():
    strouhal, drag, lift = shed(20, spin_up=60, shorter=1.5, periods=9)
    assert 0.295 < strouhal < 0.305
    assert 3.22 < drag < 3.24
    assert 0.99 < lift < 1.01


def test_samples():
    """What is given at the boundary, and what flows in flows out."""
    equation = Wake(spin_up=4)
    solution = equation.solve(0, range(2), resolution=16, num_steps=3)
    types = solution.a[0, :, 0]
    assert solution.u.shape == (2, 3, *equation.shape(16), 3)
    assert equation.cells(16)["triangle"].max() == len(types) - 1
    assert not torch.equal(*solution.pos)
    speeds = solution.scalars[:, 0].tolist()
    for u, pos, inflow in zip(solution.u, solution.pos, speeds, strict=True):
        assert 0.75 < inflow < 1.5
        assert (u[:, (types == 1) | (types == 4), :2] == 0).all()
        y = pos[types == 2, 1]
        expected = 6 * inflow * y * (0.41 - y) / 0.41**2
        torch.testing.assert_close(u[0, types == 2, 0], expected)
        left, right = pos[:, 0] < 1e-9, pos[:, 0] > 2.2 - 1e-9
        for border, rel in ((left, 0.1), (right, 0.2)):
            order = pos[border, 1].argsort()
            y, along = pos[border, 1][order], u[-1, border, 0][order]
            total = torch.trapezoid(along, y).item()
            assert total == pytest.approx(0.41 * inflow, rel=rel)


@pytest.mark.slow
def test_samples_shed():
    """The slowest flow around the thickest cylinder also does."""
    equation = Wake(slowest=0.75, fastest=0.75, thinnest=0.06, thickest=0.06)
    solution = equation.solve(0, [0], resolution=48, num_steps=40)
    behind = (solution.pos[0] - torch.tensor([0.5, 0.2])).norm(dim=1).argmin()
    across = solution.u[0, :, behind, 1]
    assert across.max() > 0.2 and across.min() < -0.2


def test_steps_that_are_too_long():
    channel = Channel(8, CENTRE, RADIUS, 1.0, NU, shorter=0.2)
    with pytest.raises(FloatingPointError):
        next(shedding(channel, channel, 20, 0.02))
