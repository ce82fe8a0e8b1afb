"""Plane elasticity against closed forms, and the random holes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from skfem import Basis, Functional, LinearForm

from nfsgeo.data.pde import finite_elements as fem
from nfsgeo.data.pde.elasticity import Elasticity, hole_radius, rings
from nfsgeo.data.pde.random_fields import sample_rng

Array = NDArray[np.float64]
Field = Callable[[Array, Array], tuple[Any, ...]]
LAME = fem.material("stress", 0.3)


def a_hole(angle: Array) -> Array:
    return 0.3 + 0.05 * np.cos(2 * angle) + 0.03 * np.sin(3 * angle)


def a_mesh(resolution: int, radius: Callable[[Array], Array] = a_hole) -> Any:
    return fem.hole_mesh(fem.reference_mesh(resolution, rings(resolution)), radius)


def at_nodes(basis: Basis, field: Field) -> Array:
    """A displacement at all degrees of freedom."""
    values = basis.zeros()
    for part in (basis.nodal_dofs, basis.facet_dofs):
        for axis, dofs in enumerate(part):
            values[dofs] = field(*basis.doflocs[:, dofs])[axis]
    return values


def l2_norm(basis: Basis, u: Array, field: Field) -> float:
    """Of the difference between a displacement and a field."""

    def integrand(w: Any) -> Array:
        x, y = field(*w.x)
        return (w.u[0] - x) ** 2 + (w.u[1] - y) ** 2

    fine = Basis(basis.mesh, basis.elem, intorder=8)
    return math.sqrt(Functional(integrand).assemble(fine, u=u))


def orders(errors: list[float]) -> list[float]:
    return [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]


@pytest.mark.parametrize("plane", ["stress", "strain"])
def test_patch(plane: str) -> None:
    """A linear displacement is exact, its stress constant, on curved triangles."""
    lame = lam, mu = fem.material(plane, 0.3)
    basis = fem.displacements(a_mesh(8))
    exact = at_nodes(basis, lambda x, y: (0.2 * x - 0.5 * y, 0.3 * x + 0.7 * y))
    border = basis.get_dofs().all()
    u, _ = fem.equilibrium(basis, lame, basis.zeros(), border, exact)
    np.testing.assert_allclose(u, exact, atol=1e-12)
    stress = fem.stress_at_vertices(basis, u, lame)
    expected = (lam * 0.9 + 2 * mu * 0.2, lam * 0.9 + 2 * mu * 0.7, mu * -0.2)
    np.testing.assert_allclose(stress.T, [expected] * stress.shape[1], atol=1e-11)


def waves(x: Array, y: Array) -> tuple[Array, Array]:
    return np.sin(np.pi * x) * np.sin(np.pi * y), np.cos(np.pi * x) * np.sin(np.pi * y)


def force_of_waves(x: Array, y: Array) -> tuple[Array, Array]:
    """Minus the divergence of their stress."""
    lam, mu = LAME
    along, across = waves(x, y)
    of_divergence = (
        -np.sin(np.pi * x) * (np.sin(np.pi * y) + np.cos(np.pi * y)),
        np.cos(np.pi * x) * (np.cos(np.pi * y) - np.sin(np.pi * y)),
    )
    scale = np.pi**2
    return (
        scale * (2 * mu * along - (lam + mu) * of_divergence[0]),
        scale * (2 * mu * across - (lam + mu) * of_divergence[1]),
    )


def stress_of_waves(x: Array, y: Array) -> Array:
    lam, mu = LAME
    sin, cos, pi = np.sin, np.cos, np.pi
    xx, yy = cos(pi * x) * sin(pi * y), cos(pi * x) * cos(pi * y)
    xy = sin(pi * x) * (cos(pi * y) - sin(pi * y))
    trace = lam * (xx + yy)
    return pi * np.stack([trace + 2 * mu * xx, trace + 2 * mu * yy, mu * xy])


def test_manufactured_solution() -> None:
    displacements, stresses = [], []
    for resolution in (8, 16, 32):
        basis = fem.displacements(a_mesh(resolution))

        def work(v: Any, w: Any) -> Array:
            force = force_of_waves(*w.x)
            return force[0] * v[0] + force[1] * v[1]

        load = LinearForm(work).assemble(Basis(basis.mesh, basis.elem, intorder=6))
        border = basis.get_dofs().all()
        u, residual = fem.equilibrium(basis, LAME, load, border, at_nodes(basis, waves))
        displacements.append(l2_norm(basis, u, waves))
        found = fem.stress_at_vertices(basis, u, LAME)
        exact = stress_of_waves(*basis.mesh.p[:, : basis.mesh.nvertices])
        stresses.append(float(np.sqrt(np.mean((found - exact) ** 2))))
        assert residual < 1e-10
    assert displacements[-1] < 2e-5 and stresses[-1] < 3e-3
    assert orders(displacements) == pytest.approx([3, 3], abs=0.2)
    assert orders(stresses)[-1] == pytest.approx(2, abs=0.2)


def kirsch(x: Array, y: Array) -> tuple[Array, Array]:
    """Displacement in an infinite plate with a hole of radius 1/4, pulled along x."""
    r, angle = np.hypot(x - 0.5, y - 0.5) * 4, np.arctan2(y - 0.5, x - 0.5)
    kappa = (3 - 0.3) / (1 + 0.3)
    third = 2 * (1 / r - 1 / r**3)
    scale = 0.25 / 8 / LAME[1]
    return (
        scale * ((kappa + 1) * (r + 2 / r) * np.cos(angle) + third * np.cos(3 * angle)),
        scale
        * (
            ((kappa - 3) * r + 2 * (1 - kappa) / r) * np.sin(angle)
            + third * np.sin(3 * angle)
        ),
    )


def stress_of_kirsch(x: Array, y: Array) -> Array:
    r, angle = np.hypot(x - 0.5, y - 0.5) * 4, np.arctan2(y - 0.5, x - 0.5)
    a, b = 1 / r**2, 1.5 / r**4
    double, fourth = 2 * angle, 4 * angle
    return np.stack(
        [
            1 - a * (1.5 * np.cos(double) + np.cos(fourth)) + b * np.cos(fourth),
            -a * (0.5 * np.cos(double) - np.cos(fourth)) - b * np.cos(fourth),
            -a * (0.5 * np.sin(double) + np.sin(fourth)) + b * np.sin(fourth),
        ]
    )


def quarter(angle: Array) -> Array:
    return np.full_like(angle, 0.25)


def test_kirsch() -> None:
    """His displacement on the sides, a free hole: his stress, three times at most."""
    errors = []
    for resolution in (8, 16, 32):
        basis = fem.displacements(a_mesh(resolution, quarter))
        sides = basis.get_dofs(lambda x: np.abs(x - 0.5).max(axis=0) > 0.499).all()
        values = at_nodes(basis, kirsch)
        u, _ = fem.equilibrium(basis, LAME, basis.zeros(), sides, values)
        found = fem.stress_at_vertices(basis, u, LAME)
        exact = stress_of_kirsch(*basis.mesh.p[:, : basis.mesh.nvertices])
        errors.append(float(np.sqrt(np.mean((found - exact) ** 2))))
    assert errors[-1] < 0.01
    assert orders(errors)[-1] > 1.7
    assert float(found[0].max()) == pytest.approx(3, rel=0.01)


def test_planes_of_stress_and_strain() -> None:
    """Stress of plane strain is that of plane stress at another Poisson's ratio."""
    basis = fem.displacements(a_mesh(8))
    found = [
        fem.stress_at_vertices(basis, fem.pulled(basis, lame)[0], lame)
        for lame in (fem.material("strain", 0.2), fem.material("stress", 0.25))
    ]
    np.testing.assert_allclose(*found, atol=1e-9)


def test_von_mises() -> None:
    stress = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 2.0, 0.0, 1.0], [0, 0, 1.0, 0]])
    expected = [1, 2, math.sqrt(3), 1]
    np.testing.assert_allclose(fem.von_mises(stress, 0.0), expected)
    # Equal on all sides, nothing is left.
    np.testing.assert_allclose(fem.von_mises(stress, 0.5)[3], 0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_holes(seed: int) -> None:
    """Within the cell, closed, and no triangle of their mesh folds over."""
    radius = hole_radius(np.random.default_rng(seed), Elasticity.cutoff)
    angle = np.linspace(-np.pi, np.pi, 200)
    found = radius(angle)
    assert found.min() > 0.2 and found.max() < 0.4
    assert found[0] == pytest.approx(found[-1])
    mesh = a_mesh(16, radius)
    corners = np.array([[0, 1, 0, 0.5, 0.5, 0], [0, 0, 1, 0, 0.5, 0.5]])
    areas = mesh.mapping().detDF(corners)
    assert (np.sign(areas) == np.sign(areas[:, :1])).all()
    assert (mesh.p >= 0).all() and (mesh.p <= 1).all()


def test_shipped_batch() -> None:
    equation = Elasticity()
    solution = equation.solve(0, range(2), resolution=8)
    assert solution.u.shape == (2, 1, 120, 1) and equation.shape(8) == (120,)
    assert solution.pos is not None and solution.pos.shape == (2, 120, 2)
    assert (solution.u > 0).all()
    assert equation.cells(8)["triangle"].max() == 119
    for points, away, number in zip(solution.pos, solution.a, (0, 1), strict=True):
        angle = np.linspace(0, 2 * np.pi, 20000)
        radius = hole_radius(sample_rng(0, "elasticity", number), equation.cutoff)
        rim = 0.5 + radius(angle) * np.stack([np.cos(angle), np.sin(angle)])
        expected = cKDTree(rim.T).query(points.numpy())[0]
        np.testing.assert_allclose(away[:, 0], expected, atol=1e-4)
        assert int((away < 1e-4).sum()) == 16


@pytest.mark.slow
def test_accuracy_at_the_shipped_size() -> None:
    equation = Elasticity()
    fine = equation.solve(0, [1], resolution=72)
    found = equation.solve(0, [1], resolution=24)
    assert fine.pos is not None and found.pos is not None
    away, same = cKDTree(fine.pos[0]).query(found.pos[0])
    assert away.max() < 1e-9
    lower = found.pos[0, :, 1] == 0
    corners = lower & ((found.pos[0, :, 0] == 0) | (found.pos[0, :, 0] == 1))
    exact = fine.u[0, 0, same, 0][~corners]
    error = found.u[0, 0, :, 0][~corners] - exact
    assert float(error.norm() / exact.norm()) < 0.01
