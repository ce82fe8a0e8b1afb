"""Darcy's solver against closed forms and a direct solve."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde.darcy import Darcy, Darcy3D, solve_pressure
from nfsgeo.data.pde.random_fields import neumann_field, sample_rng


def permeability(num: int, n: int, coefficient: Any = "12/3") -> Tensor:
    rngs = [sample_rng(0, "darcy", index) for index in range(num)]
    return Darcy(coefficient=coefficient).permeability(rngs, n)


def manufactured(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """a, f and u = sin(pi x) sin(2 pi y) with a = exp(sin(2 pi x) cos(2 pi y) / 2)."""
    axis = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    x, y = torch.pi * axis[:, None], torch.pi * axis
    a = torch.exp(torch.sin(2 * x) * torch.cos(2 * y) / 2)
    u = torch.sin(x) * torch.sin(2 * y)
    log_a_x = torch.cos(2 * x) * torch.cos(2 * y)
    log_a_y = -torch.sin(2 * x) * torch.sin(2 * y)
    u_x = torch.cos(x) * torch.sin(2 * y)
    u_y = 2 * torch.sin(x) * torch.cos(2 * y)
    f = -(torch.pi**2) * a * (log_a_x * u_x + log_a_y * u_y - 5 * u)
    return a, f, u


def direct(a: np.ndarray) -> np.ndarray:
    """The same scheme, cell by cell, as a sparse matrix."""
    n = len(a)
    cell = np.arange(n * n).reshape(n, n)
    entries = []
    for i, j in np.ndindex(n, n):
        for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            inside = 0 <= k < n and 0 <= m < n
            flux = 2 / (1 / a[i, j] + 1 / a[k, m]) if inside else 2 * a[i, j]
            entries.append((flux, cell[i, j], cell[i, j]))
            if inside:
                entries.append((-flux, cell[i, j], cell[k, m]))
    values, *places = map(np.array, zip(*entries, strict=True))
    matrix = scipy.sparse.csc_array((values * n**2, tuple(places)))
    return scipy.sparse.linalg.spsolve(matrix, np.ones(n * n)).reshape(n, n)


def test_manufactured_solution(orders):
    errors = []
    for n, bound in ((64, 8e-4), (128, 2e-4), (256, 5e-5)):
        a, f, u = manufactured(n)
        found, _ = solve_pressure(a.numpy(), f.numpy())
        errors.append(float((torch.from_numpy(found) - u).norm() / u.norm()))
        assert errors[-1] < bound
    assert orders(errors) == pytest.approx([2, 2], abs=0.1)


def test_centre_of_the_homogeneous_square():
    u, residual = solve_pressure(np.ones((255, 255)), np.ones((255, 255)))
    assert u[127, 127] == pytest.approx(0.07367, abs=1e-5)
    assert residual < 1e-11  # the preconditioner alone is exact here


def test_manufactured_solution_in_a_cube():
    """u = sin(pi x) sin(2 pi y) sin(pi z) for a = exp(x y z)."""
    errors = []
    for n in (16, 32):
        axis = (np.arange(n) + 0.5) / n
        x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
        wave = [np.sin(np.pi * x), np.sin(2 * np.pi * y), np.sin(np.pi * z)]
        u, a = np.prod(wave, axis=0), np.exp(x * y * z)
        slopes = [
            np.pi * np.cos(np.pi * x) * wave[1] * wave[2],
            2 * np.pi * np.cos(2 * np.pi * y) * wave[0] * wave[2],
            np.pi * np.cos(np.pi * z) * wave[0] * wave[1],
        ]
        along = y * z * slopes[0] + x * z * slopes[1] + x * y * slopes[2]
        found, _ = solve_pressure(a, a * (6 * np.pi**2 * u - along))
        errors.append(np.linalg.norm(found - u) / np.linalg.norm(u))
    assert errors[1] < 4e-3
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_axes_of_a_cube_are_alike():
    cube = Darcy3D()
    assert len(cube.axes(8)) == 3
    a = cube.solve(0, [0], resolution=16).a[0, ..., 0]
    assert sorted(a.unique().tolist()) == [3.0, 12.0]
    swapped = a.permute(2, 0, 1).numpy()
    u, _ = solve_pressure(a.numpy(), np.ones_like(swapped))
    moved, _ = solve_pressure(swapped, np.ones_like(swapped))
    np.testing.assert_allclose(moved, u.transpose(2, 0, 1), rtol=1e-8)


@pytest.mark.parametrize("coefficient", ["12/3", "12/4", "lognormal"])
def test_direct_solve(coefficient):
    equation = Darcy(coefficient=coefficient)
    assert equation.axes(64)[0][[0, -1]].tolist() == [0.5 / 64, 63.5 / 64]
    solution = equation.solve(0, [0], resolution=64)
    expected = torch.from_numpy(direct(solution.a[0, ..., 0].numpy()))
    error = (solution.u[0, 0, ..., 0] - expected).norm() / expected.norm()
    assert error < 1e-9


def test_symmetry_scaling_and_sign():
    a = permeability(1, 64)[0].numpy()
    f = np.ones_like(a)
    u, _ = solve_pressure(a, f)
    assert (u > 0).all()
    for move in (np.transpose, np.flipud, np.fliplr):
        moved, _ = solve_pressure(move(7 * a), f)
        np.testing.assert_allclose(7 * moved, move(u), rtol=1e-9)


def test_coefficients():
    rngs = [sample_rng(0, "darcy", 0)]
    field = neumann_field(rngs, dim=2, resolution=64, cutoff=128, tau=3.0)
    for name, high, low in (("12/3", 12.0, 3.0), ("12/4", 12.0, 4.0)):
        a = permeability(1, 64, name)
        assert ((a == high) == (field >= 0)).all()
        assert ((a == low) == (field < 0)).all()
    assert_close(permeability(1, 64, "lognormal"), field.exp())
