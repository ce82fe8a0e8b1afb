"""Plane elasticity against closed forms, and the random holes."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from skfem import Basis, Functional, LinearForm
from torch import Tensor
from torch.func import jacrev, vmap

from nfsgeo.data.pde import finite_elements as fem
from nfsgeo.data.pde.elasticity import Elasticity, hole_radius
from nfsgeo.data.pde.random_fields import sample_rng

Array = NDArray[np.float64]
LAME = fem.plane_stress(0.3)


def a_hole(angle: Array) -> Array:
    return 0.3 + 0.05 * np.cos(2 * angle) + 0.03 * np.sin(3 * angle)


def a_mesh(resolution: int, radius: Callable[[Array], Array] = a_hole) -> Any:
    return fem.hole_mesh(fem.reference_mesh(resolution), radius)


def waves(x: Tensor) -> Tensor:
    across, along = torch.pi * x
    return torch.stack([across.sin(), across.cos()]) * along.sin()


def kirsch(x: Tensor) -> Tensor:
    """Displacement in an infinite plate with a hole of radius 1/4, pulled along x."""
    away, kappa = x - 0.5, (3 - 0.3) / (1 + 0.3)
    r, angle = 4 * away.norm(), torch.atan2(away[1], away[0])
    third = 2 * (1 / r - 1 / r**3)
    along = ((kappa + 1) * (r + 2 / r), (kappa - 3) * r + 2 * (1 - kappa) / r)
    turned = torch.stack([angle.cos(), angle.sin()]) * torch.stack(along)
    both = turned + third * torch.stack([(3 * angle).cos(), (3 * angle).sin()])
    return 0.25 / 8 / LAME[1] * both


def stress(field: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Of a displacement, ``[2, 2]``."""
    slope = jacrev(field)(x)
    even = torch.eye(2, dtype=x.dtype) * slope.trace()
    return LAME[0] * even + LAME[1] * (slope + slope.T)


def force(field: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Minus the divergence of its stress."""
    return -torch.einsum("ijj->i", jacrev(partial(stress, field))(x))


def at(function: Callable[[Tensor], Tensor], x: Array) -> Array:
    """A function at points ``[2, ...]``, the points last."""
    pos = torch.from_numpy(x.reshape(2, -1).T.copy())
    found = vmap(function)(pos).movedim(0, -1).numpy()
    return found.reshape(*found.shape[:-1], *x.shape[1:])


def at_nodes(basis: Basis, field: Callable[[Tensor], Tensor]) -> Array:
    """A displacement at all degrees of freedom."""
    values = basis.zeros()
    for part in (basis.nodal_dofs, basis.facet_dofs):
        for axis, dofs in enumerate(part):
            values[dofs] = at(field, basis.doflocs[:, dofs])[axis]
    return values


def stress_error(
    basis: Basis, u: Array, field: Callable[[Tensor], Tensor]
) -> tuple[Array, float]:
    """Stress at the vertices ``[3, V]``, and its error in the mean square."""
    found = fem.stress_at_vertices(basis, u, LAME)
    exact = at(partial(stress, field), basis.mesh.p[:, : basis.mesh.nvertices])
    wanted = np.stack([exact[0, 0], exact[1, 1], exact[0, 1]])
    return found, float(np.sqrt(np.mean((found - wanted) ** 2)))


@pytest.mark.slow
def test_manufactured_solution(orders):
    displacements, stresses = [], []
    for resolution in (12, 24):
        basis = fem.displacements(a_mesh(resolution))
        fine = Basis(basis.mesh, basis.elem, intorder=8)
        work = LinearForm(lambda v, w: (at(partial(force, waves), w.x) * v).sum(axis=0))
        border, exact = basis.get_dofs().all(), at_nodes(basis, waves)
        u, residual = fem.equilibrium(basis, LAME, work.assemble(fine), border, exact)
        gap = Functional(lambda w: ((w.u - at(waves, w.x)) ** 2).sum(axis=0))
        displacements.append(math.sqrt(gap.assemble(fine, u=u)))
        stresses.append(stress_error(basis, u, waves)[1])
        assert residual < 1e-10
    assert displacements[-1] < 5e-5 and stresses[-1] < 6e-3
    assert orders(displacements) == pytest.approx([3], abs=0.2)
    assert orders(stresses)[-1] == pytest.approx(2, abs=0.2)


def test_kirsch(orders):
    """His displacement on the sides, a free hole: his stress, three times at most."""
    errors = []
    for resolution in (8, 16, 32):
        mesh = a_mesh(resolution, lambda angle: np.full_like(angle, 0.25))
        basis = fem.displacements(mesh)
        sides = basis.get_dofs(lambda x: np.abs(x - 0.5).max(axis=0) > 0.499).all()
        values = at_nodes(basis, kirsch)
        u, _ = fem.equilibrium(basis, LAME, basis.zeros(), sides, values)
        found, error = stress_error(basis, u, kirsch)
        errors.append(error)
    assert errors[-1] < 0.01
    assert orders(errors)[-1] > 1.7
    assert float(found[0].max()) == pytest.approx(3, rel=0.01)


def test_von_mises():
    stress = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 2.0, 0.0, -1.0], [0, 0, 1.0, 0]])
    np.testing.assert_allclose(fem.von_mises(stress), [1, 2, 3**0.5, 3**0.5])


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_holes(seed):
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


def test_shipped_batch():
    equation = Elasticity()
    solution = equation.solve(0, range(2), resolution=8)
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
def test_accuracy_at_the_shipped_size():
    equation = Elasticity()
    fine = equation.solve(0, [1], resolution=72)
    found = equation.solve(0, [1], resolution=24)
    away, same = cKDTree(fine.pos[0]).query(found.pos[0])
    assert away.max() < 1e-9
    lower = found.pos[0, :, 1] == 0
    corners = lower & ((found.pos[0, :, 0] == 0) | (found.pos[0, :, 0] == 1))
    exact = fine.u[0, 0, same, 0][~corners]
    error = found.u[0, 0, :, 0][~corners] - exact
    assert float(error.norm() / exact.norm()) < 0.01
