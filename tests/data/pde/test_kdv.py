"""KdV's solver against solitons, conservation laws and its own refinements."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde.kdv import KdV, drift, soliton
from nfsgeo.data.pde.random_fields import sample_rng

L = KdV.length
BOUNDS = torch.tensor([[1e-12], [1e-7], [1e-7]], dtype=torch.float64)


def physical_grid(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.float64) * (L / n)


def around(x: Tensor) -> Tensor:
    """Distance to 0 on the circle, in [-L/2, L/2)."""
    return torch.remainder(x + L / 2, L) - L / 2


def two_solitons(x: Tensor, t: float) -> Tensor:
    """Hirota's solution with speeds 4 and 1 on the line, crests apart at t=0."""
    rates, shifts = (2.0, 1.0), (-14.0, -3.0)
    exponents = [k * (x - s) - k**3 * t for k, s in zip(rates, shifts, strict=True)]
    overlap = ((rates[0] - rates[1]) / (rates[0] + rates[1])) ** 2
    # tau = 1 + f + g + A f g; u = 2 (log tau)'' from its first two derivatives.
    f, g = (torch.exp(e) for e in exponents)
    both = sum(rates)
    tau = 1 + f + g + overlap * f * g
    first = rates[0] * f + rates[1] * g + both * overlap * f * g
    second = rates[0] ** 2 * f + rates[1] ** 2 * g + both**2 * overlap * f * g
    return 2 * (second / tau - (first / tau) ** 2)


def test_one_soliton():
    x = physical_grid(1024)
    u0 = soliton(around(x - 20), 1.0, L)
    u, guard = KdV().evolve(u0[None], 10, substeps=200, spacing=0.5)
    assert (u[0, -1] - soliton(around(x - 25), 1.0, L)).abs().max() < 1e-8
    assert (drift(u, L) < BOUNDS).all()
    assert guard < 2


@pytest.mark.slow
def test_two_solitons_meet():
    # On the line, far from the ends of a period, where both are below 1e-9.
    x = physical_grid(512) - L / 2
    u0, exact = two_solitons(x, 0.0)[None], two_solitons(x, 6.0)
    errors = []
    for substeps in (40, 80):
        u, guard = KdV().evolve(u0, 60, substeps=substeps, spacing=0.1)
        errors.append(float((u[0, -1] - exact).abs().max()))
    assert errors[0] < 1e-5
    assert errors[0] > 12 * errors[1]
    assert (drift(u, L) < BOUNDS).all() and guard < 2


@pytest.mark.slow
def test_accuracy_of_the_shipped_step():
    equation = KdV()
    u0 = equation.initial([sample_rng(0, "kdv", i) for i in range(16)], 1024)
    reference, _ = equation.evolve(u0, 1, substeps=3200, spacing=1.0)
    for steps, bound in ((400, 6e-8), (800, 2.7e-9)):
        u, _ = equation.evolve(u0, 1, substeps=steps, spacing=1.0)
        error = (u - reference)[:, -1].norm(dim=1) / reference[:, -1].norm(dim=1)
        assert float(error.mean()) < bound


@pytest.mark.slow
@pytest.mark.parametrize("ic", ["cos", "sech2"])
def test_shipped_batch(ic):
    equation = KdV(ic=ic)
    solution = equation.solve(0, range(8), resolution=1024, num_steps=201)
    u = solution.u
    assert_close(u[:, 0], solution.a, rtol=0, atol=0)
    assert (drift(u[..., 0], L) < BOUNDS).all()
    assert (solution.dt <= 1 / 400).all()


def test_long_preset():
    equation = KdV(preset="long")
    assert equation.times(201)[-1] == 10
    solution = equation.solve(0, range(2), resolution=1024, num_steps=21)
    standard = KdV().solve(0, range(2), resolution=1024, num_steps=201)
    assert_close(solution.u[:, 20], standard.u[:, 200], rtol=0, atol=1e-6)
