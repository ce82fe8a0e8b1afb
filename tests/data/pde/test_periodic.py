"""Pseudo-spectral methods: order and exactness of steps, modes, unresolved ones."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from nfsgeo.data.pde.periodic import ETDRK4, FourierGrid, flush_denormals, spectral_tail


def test_mask_is_strict():
    assert FourierGrid(12, 1).mask.tolist() == [True] * 4 + [False] * 3
    both = FourierGrid(12, 2).mask
    assert both[:, 0].nonzero().flatten().tolist() == [0, 1, 2, 3, 9, 10, 11]
    assert both.sum() == 7 * 4 and FourierGrid(128, 1).mask.sum() == 43


@pytest.mark.parametrize("rate", [0.0, 1e-9, -1e-3, -1.0, -50.0, -1e6, 3j, 200j])
def test_a_constant_force_is_exact(rate):
    linear = torch.tensor([rate], dtype=torch.complex128)
    if isinstance(rate, float):
        linear = linear.real
    scheme = ETDRK4(linear, 0.1, lambda v: torch.ones_like(v))
    v = scheme.step(torch.zeros(1, dtype=torch.complex128))
    exact = np.expm1(complex(rate) * 0.1) / rate if rate else 0.1
    assert complex(v[0]) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("rate", [-2.0, 20j])
def test_fourth_order(rate, orders):
    """v' = rate v + cos(t) v, time carried as a second unknown."""
    linear = torch.tensor([rate, 0.0], dtype=torch.complex128)
    if linear.imag.abs().max() == 0:
        linear = linear.real

    def nonlinear(v: Tensor) -> Tensor:
        return torch.stack([torch.cos(v[1]) * v[0], torch.ones_like(v[1])])

    exact = torch.exp(torch.tensor(rate + math.sin(1.0), dtype=torch.complex128))
    errors = []
    for steps in (40, 80, 160):
        scheme = ETDRK4(linear, 1 / steps, nonlinear)
        v = torch.tensor([1.0, 0.0], dtype=torch.complex128)
        for _ in range(steps):
            v = scheme.step(v)
        errors.append(float((v[0] - exact).abs()))
    assert min(orders(errors)) > 3.8


@pytest.mark.parametrize("dim", [1, 2])
def test_spectral_tail(dim):
    x = torch.arange(60, dtype=torch.float64) / 60
    low, high = torch.sin(2 * torch.pi * 3 * x), torch.sin(2 * torch.pi * 19 * x)
    u = torch.stack([low, low + 0.1 * high]).reshape(2, 1, *[1] * (dim - 1), 60)
    u = u.expand(2, 5, *[60] * dim) + 7.0
    tail = spectral_tail(u, FourierGrid(60, dim))
    assert tail.tolist() == pytest.approx([0, 0.01 / 1.01], abs=1e-12)


@pytest.mark.parametrize("before", [False, True])
def test_flushing_is_restored(before):
    tiny = torch.full((1,), torch.finfo(torch.float64).tiny, dtype=torch.float64)
    if not torch.set_flush_denormal(before):
        pytest.skip("this processor cannot flush denormals")
    try:
        with flush_denormals():
            assert float(tiny / 2) == 0
        assert (float(tiny / 2) == 0) is before
    finally:
        torch.set_flush_denormal(False)
