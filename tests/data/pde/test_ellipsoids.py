"""Pressure on ellipsoids against the potential around them and known forces."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from scipy.special import elliprd

from nfsgeo.data.pde import Ellipsoids
from nfsgeo.data.pde.ellipsoids import geodesic_sphere, graded, shape_factors

Array = NDArray[np.float64]


def arrays(found: Any, sample: int = 0) -> tuple[Array, Array, Array, Array]:
    """Positions, normals, pressures and flow of a sample."""
    each = (found.pos, found.a, found.u[:, 0, :, 0], found.scalars)
    return tuple(of[sample].numpy() for of in each)  # type: ignore[return-value]


def body_of(pos: Array) -> tuple[Array, Array]:
    """Semi-axes ``[3]`` of the ellipsoid through points, and their directions, rows."""
    x, y, z = pos.T
    columns = [x * x, y * y, z * z, 2 * y * z, 2 * x * z, 2 * x * y]
    a, b, c, d, e, f = np.linalg.lstsq(
        np.stack(columns, 1), np.ones(len(pos)), rcond=None
    )[0]
    values, vectors = np.linalg.eigh([[a, f, e], [f, b, d], [e, d, c]])
    return values**-0.5, vectors.T


def potential(axes: Array, flow: Array, x: Array) -> Array:
    """Of the flow around an ellipsoid, at points ``[..., 3]`` in its own axes.

    Its ellipsoidal coordinate is the largest root of sum x_i^2 / (a_i^2 + l) = 1.
    """
    squares, found = axes**2, np.empty(x.shape[:-1])
    for index in np.ndindex(*found.shape):
        cubic = np.poly1d(-squares, r=True)
        others = (np.poly1d(-np.delete(squares, i), r=True) for i in range(3))
        terms = zip(x[index] ** 2, others, strict=True)
        outside = (cubic - sum(of * one for of, one in terms)).roots.real.max()
        p, q, r = squares + outside
        integral = elliprd([q, r, p], [r, p, q], [p, q, r]) * 2 / 3 * axes.prod()
        moved = 1 + integral / (2 - shape_factors(axes))
        found[index] = (flow * moved * x[index]).sum()
    return found


def area_vectors(pos: Array, triangles: NDArray[np.int64]) -> Array:
    a, b, c = np.moveaxis(pos[triangles], 1, 0)
    return np.cross(b - a, c - a) / 2


def test_sphere():
    """The pressure is 1 - 9/4 sin^2 of the angle to the flow."""
    found = Ellipsoids(shortest=1).solve(0, range(3), resolution=6)
    for sample in range(3):
        pos, normal, pressure, flow = arrays(found, sample)
        np.testing.assert_allclose(normal, pos, atol=1e-12)
        expected = 1 - 9 / 4 * (1 - (pos @ flow) ** 2)
        np.testing.assert_allclose(pressure, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("ratio", "end_on", "broadside"),
    [(1, 0.5, 0.5), (1.5, 0.305, 0.621), (2, 0.209, 0.702), (3.99, 0.082, 0.860)],
)
def test_added_mass_of_prolate_spheroids(ratio, end_on, broadside):
    """Lamb, "Hydrodynamics": its closed form and the table, which is rounded
    (articles 114 and 115).
    """
    alpha = shape_factors(np.array([ratio, 1.0, 1.0]))
    found = alpha / (2 - alpha)
    np.testing.assert_allclose(found, [end_on, broadside, broadside], atol=3e-3)
    if ratio > 1:
        e = np.sqrt(1 - ratio**-2)
        turn = np.log((1 + e) / (1 - e))
        first = 2 * (1 - e**2) / e**3 * (turn / 2 - e)
        second = 1 / e**2 - (1 - e**2) / (2 * e**3) * turn
        np.testing.assert_allclose(alpha, [first, second, second], rtol=1e-10)


def test_cylinders_and_discs():
    """A flow across a long body is twice as fast at its sides, along it unchanged."""
    needle = 2 / (2 - shape_factors(np.array([1e3, 1.0, 1.0])))
    np.testing.assert_allclose(needle, [1, 2, 2], atol=1e-4)
    flat = shape_factors(np.array([1.0, 1.0, 1e-5]))
    np.testing.assert_allclose(flat, [0, 0, 2], atol=1e-4)


def test_potential():
    """It is harmonic, tangential on the surface, uniform far away; its velocity there
    gives the pressure of a sample.
    """
    pos, normal, pressure, flow = arrays(Ellipsoids().solve(3, [5], resolution=4))
    axes, own = body_of(pos)
    x, n, flow, h = pos @ own.T, normal @ own.T, own @ flow, 1e-4

    def gradient(at: Array) -> Array:
        ends = (potential(axes, flow, at + s * h * np.eye(3)[:, None]) for s in (1, -1))
        return np.asarray(np.subtract(*ends).T / (2 * h))

    velocity = gradient(x)
    assert np.abs((velocity * n).sum(1)).max() < 1e-6
    np.testing.assert_allclose(1 - (velocity**2).sum(1), pressure, atol=1e-6)
    constant = 2 / (2 - shape_factors(axes)) * flow
    tangential = constant - (n @ constant)[:, None] * n
    np.testing.assert_allclose(velocity, tangential, atol=1e-6)
    far = np.random.default_rng(0).standard_normal((9, 3))
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    np.testing.assert_allclose(gradient(100 * far), np.tile(flow, (9, 1)), atol=1e-5)
    near, h = 1.5 * far, 1e-2
    around = [near + s * h * one for s in (1, -1) for one in np.eye(3)]
    values = potential(axes, flow, np.stack(around)), potential(axes, flow, near)
    laplacian = (values[0].sum(0) - 6 * values[1]) / h**2
    curvature = np.abs(values[0][:3] + values[0][3:] - 2 * values[1]) / h**2
    assert np.abs(laplacian).max() < 1e-3 * curvature.max()


@pytest.mark.parametrize("sample", range(3))
def test_the_velocity_is_a_gradient_on_the_surface(sample):
    """Its potential there is x . W U, whose differences along triangles give it."""
    errors = []
    for resolution in (8, 16, 32):
        equation = Ellipsoids()
        found = equation.solve(0, [sample], resolution=resolution)
        pos, _, pressure, flow = arrays(found)
        axes, own = body_of(pos)
        phi = pos @ own.T @ (2 / (2 - shape_factors(axes)) * (own @ flow))
        triangles = equation.cells(resolution)["triangle"]
        a, b, c = np.moveaxis(pos[triangles], 1, 0)
        edges = np.stack([b - a, c - a, area_vectors(pos, triangles)], axis=1)
        steps = phi[triangles][:, 1:] - phi[triangles][:, :1]
        steps = np.concatenate([steps, 0 * steps[:, :1]], axis=1)
        slope = np.linalg.solve(edges, steps[..., None])[..., 0]
        error = 1 - (slope**2).sum(1) - pressure[triangles].mean(1)
        errors.append(np.sqrt((error**2).mean()))
    assert errors[2] < 0.01 and errors[0] > 2.3 * errors[1] > 5.3 * errors[2]


@pytest.mark.parametrize("sample", range(3))
def test_no_force_and_the_moment_of_munk(sample):
    """The force vanishes (d'Alembert); the moment is that of the added masses."""
    errors = []
    for resolution in (16, 32):
        equation = Ellipsoids()
        found = equation.solve(1, [sample], resolution=resolution)
        pos, _, pressure, flow = arrays(found)
        axes, own = body_of(pos)
        triangles = equation.cells(resolution)["triangle"]
        pushed = pressure[triangles].mean(1)[:, None] * area_vectors(pos, triangles)
        force = -pushed.sum(0) / 2
        moment = -np.cross(pos[triangles].mean(1), pushed).sum(0) / 2
        alpha, volume = shape_factors(axes), 4 / 3 * np.pi * axes.prod()
        momentum = volume * alpha / (2 - alpha) * (own @ flow)
        expected = np.cross(momentum @ own, flow)
        assert np.linalg.norm(expected) > 0.01
        gap = np.linalg.norm(moment - expected) / np.linalg.norm(expected)
        errors.append([np.linalg.norm(force), gap])
    assert max(errors[1]) < 0.02
    assert (3.5 * np.array(errors[1]) < errors[0]).all()


class Drawn:
    """Given random numbers in the place of a generator."""

    def __init__(self, body: Array, flow: Array) -> None:
        self.body, self.flow = body, flow

    def random(self, size: int) -> Array:
        return np.linspace(0.3, 0.9, size)

    def standard_normal(self, size: tuple[int, int]) -> Array:
        drawn = np.random.default_rng(0).standard_normal(size)
        drawn[0], drawn[2, :3] = self.body, self.flow
        return drawn


def test_commutes_with_rotations():
    both = Rotation.random(2, rng=1)
    first, turn = both[0], both[1]
    flow, equation = np.array([0.2, -1.0, 0.4]), Ellipsoids()
    here, there = (
        arrays(equation.solution([Drawn(r.as_quat(), u)], 5, 1, "cpu"))  # type: ignore
        for r, u in ((first, flow), (turn * first, turn.apply(flow)))
    )
    np.testing.assert_allclose(here[2], there[2], atol=1e-12)
    for one, other in zip((*here[:2], here[3]), (*there[:2], there[3]), strict=True):
        np.testing.assert_allclose(turn.apply(one), other, atol=1e-12)


def test_shipped_batch():
    """Bodies of length 2 in the domain, normals outward, stagnation points, a seed."""
    equation = Ellipsoids()
    found = equation.solve(0, range(20), resolution=equation.resolution)
    triangles = equation.cells(equation.resolution)["triangle"]
    assert found.pos.shape == (20, *equation.shape(equation.resolution), 3)
    assert equation.domain.contains(found.pos).all()
    ratios = []
    for sample in range(20):
        pos, normal, pressure, flow = arrays(found, sample)
        axes, _ = body_of(pos)
        ratios.append(axes / axes.max())
        assert axes.max() == pytest.approx(1) and axes.min() >= equation.shortest
        np.testing.assert_allclose(np.linalg.norm([*normal, flow], axis=1), 1)
        assert pressure.max() <= 1 and pressure.max() > 0.97
        assert pressure.min() < -0.2
        flat = area_vectors(pos, triangles)
        flat /= np.linalg.norm(flat, axis=1, keepdims=True)
        assert (flat * normal[triangles].mean(1)).sum(1).min() > 0.9
    assert np.ptp(np.array(ratios)) > 0.6
    again = equation.solve(0, [7], resolution=equation.resolution)
    assert torch.equal(again.u[0], found.u[7])
    other = equation.solve(1, [7], resolution=equation.resolution)
    assert not torch.allclose(other.pos[0], found.pos[7], atol=0.1)


@pytest.mark.parametrize("parts", [1, 2, 5, 14])
def test_geodesic_sphere(parts):
    """Closed, of genus 0, of the area of a sphere as the parts become small."""
    points, triangles = geodesic_sphere(parts)
    assert points.shape == (10 * parts**2 + 2, 3)
    assert triangles.shape == (20 * parts**2, 3)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    edges = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ways = {tuple(edge) for edge in edges.tolist()}
    assert len(ways) == 60 * parts**2 and {edge[::-1] for edge in ways} == ways
    flat = area_vectors(points, triangles)
    assert ((flat * points[triangles].mean(1)).sum(1) > 0).all()
    area = np.linalg.norm(flat, axis=1)
    assert area.sum() == pytest.approx(4 * np.pi, rel=0.35 / parts**2)
    assert area.max() < 2.2 * area.min()


def test_grading_is_conformal():
    """Angles stay, spacings change by the ratio from the place to the other side."""
    points, place, h = geodesic_sphere(3)[0], np.array([0.0, 0.6, 0.8]), 1e-6
    moved = graded(points, place, 4)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1)
    np.testing.assert_allclose(graded(moved, -place, 4), points, atol=1e-12)
    np.testing.assert_allclose(graded(points, place, 1), points, atol=1e-12)
    across = np.cross(points, [0.36, 0.48, -0.8])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    along = np.cross(points, across)
    first, second = (
        (graded(np.cos(h) * points + np.sin(h) * way, place, 4) - moved) / h
        for way in (across, along)
    )
    lengths = np.linalg.norm([first, second], axis=2)
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=1e-5)
    np.testing.assert_allclose((first * second).sum(1), 0, atol=1e-5)
    ends = np.stack([place, -place])
    side = np.array([[1.0, 0.0, 0.0]] * 2)
    steps = graded(np.cos(h) * ends + np.sin(h) * side, place, 4) - ends
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1) / h, [0.5, 2], rtol=1e-6)
