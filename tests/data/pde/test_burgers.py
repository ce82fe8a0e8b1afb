"""Burgers' solver against Cole-Hopf, conservation laws and its own refinements."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde import Burgers


def cole_hopf(x: Tensor, t: float, nu: float) -> Tensor:
    """Solution from sin(2 pi x), by quadrature of the heat kernel."""
    z = torch.linspace(-16, 16, 4001, dtype=torch.float64)
    y = x[:, None] - (4 * nu * t) ** 0.5 * z
    weight = torch.exp(-(z**2) - (1 - torch.cos(2 * torch.pi * y)) / (4 * np.pi * nu))
    return (weight * torch.sin(2 * torch.pi * y)).sum(dim=1) / weight.sum(dim=1)


# The bound at the shipped step, and what two other steps were measured to reach.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("nu", "t", "steps", "bound"),
    [
        (0.01, 1.0, 200, 4.5e-9),
        (0.01, 1.0, 400, 2.9e-10),
        (0.01, 1.0, 800, 1.8e-11),
        (0.001, 0.5, 800, 1e-7),
    ],
)
def test_cole_hopf(nu, t, steps, bound):
    equation = Burgers(nu=nu)
    x = torch.from_numpy(equation.axes(equation.resolution)[0])
    u0 = torch.sin(2 * torch.pi * x)[None]
    u, guard = equation.evolve(u0, 1, substeps=steps, spacing=t)
    assert (u[0, -1] - cole_hopf(x, t, nu)).abs().max() < bound
    assert guard < 2 or steps == 200


def test_shipped_batch():
    equation = Burgers()
    solution = equation.solve(0, range(4), resolution=1024, num_steps=201)
    u = solution.u
    assert_close(u[:, 0], solution.a, rtol=0, atol=0)
    assert u.mean(dim=2).abs().max() < 1e-13
    energy = u.square().mean(dim=(2, 3))
    assert (energy.diff(dim=1) < 0).all()
    assert (u.abs().amax(dim=2).diff(dim=1) < 1e-12).all()
    assert_close(solution.dt, torch.full((4,), 1 / 400, dtype=torch.float64))


def test_time_stride():
    plain, strided = Burgers(), Burgers(time_stride=2)
    assert strided.num_steps == 101
    every, other = (
        of.solve(0, [0], resolution=1024, num_steps=steps).u
        for of, steps in ((plain, 41), (strided, 21))
    )
    assert_close(every[:, ::2], other, rtol=0, atol=1e-12)
    assert_close(strided.times(21), plain.times(41)[::2], rtol=0, atol=1e-15)


def test_unresolved_front_is_refused(one_line):
    solve = Burgers(nu=1e-4).solve
    assert "unresolved" in one_line(solve, 0, [0, 1], resolution=1024, num_steps=101)
