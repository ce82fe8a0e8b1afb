"""Convolution in Fourier space."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from nfsgeo.nn import SpectralConv, spectral

SIZES = {1: (12,), 2: (10, 12), 3: (6, 10, 8)}
MODES = {1: (4,), 2: (3, 4), 3: (2, 4, 3)}


def coordinates(sizes: tuple[int, ...]) -> list[Tensor]:
    axes = [torch.arange(n, dtype=torch.float64) / n for n in sizes]
    return list(torch.meshgrid(*axes, indexing="ij"))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, -1])
def test_differentiates_trigonometric_polynomials(dim, axis):
    modes, sizes = MODES[dim], SIZES[dim]
    layer = SpectralConv(1, 1, modes).double()
    # Rows of the weights: 0 .. m-1, -m .. -1, and 0 .. m-1 on the last axis.
    rows = [torch.arange(2 * m) - 2 * m * (torch.arange(2 * m) >= m) for m in modes]
    rows[-1] = torch.arange(modes[-1])
    wave = torch.meshgrid(*rows, indexing="ij")[axis]
    layer.weight.data[..., 0, 0, :] = (
        2 * math.pi * torch.stack([0 * wave, wave], -1).double()
    )
    x = coordinates(sizes)
    field = torch.zeros(sizes, dtype=torch.float64)
    derivative = torch.zeros_like(field)
    # Every frequency that is kept, the negative ones with amplitudes of their own.
    for k in itertools.product(*(range(-m + 1, m) for m in modes)):
        a, b = torch.randn(2, dtype=torch.float64)
        phase = 2 * math.pi * sum(ki * xi for ki, xi in zip(k, x, strict=True))
        field += a * phase.cos() + b * phase.sin()
        derivative += 2 * math.pi * k[axis] * (b * phase.cos() - a * phase.sin())
    out = layer(field[None, None])
    torch.testing.assert_close(out[0, 0], derivative, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_result_does_not_depend_on_resolution(dim):
    modes, sizes = MODES[dim], SIZES[dim]
    layer = SpectralConv(1, 2, modes).double()
    fine = tuple(2 * n for n in sizes)
    field = torch.zeros(fine, dtype=torch.float64)
    for k in itertools.product(*(range(-2, 3) for _ in sizes)):
        phase = sum(ki * xi for ki, xi in zip(k, coordinates(fine), strict=True))
        field += torch.randn(()) * torch.cos(2 * math.pi * phase + torch.randn(()))
    step = (slice(None), slice(None), *(slice(None, None, 2) for _ in sizes))
    out = layer(field[None, None])
    coarse = layer(field[None, None][step])
    torch.testing.assert_close(out[step], coarse)


@pytest.mark.parametrize("sizes", [(3, 5), (4, 4), (5, 2), (1, 1)])
def test_grids_with_fewer_points_than_modes(sizes):
    layer = SpectralConv(1, 1, (4, 4)).double()
    layer.weight.data[:] = torch.tensor([1.0, 0.0])
    x = torch.randn(1, 1, *sizes, dtype=torch.float64)
    torch.testing.assert_close(layer(x), x)


@pytest.mark.parametrize("size, modes", [(10, 6), (9, 5), (40, 6), (64, 9), (1, 1)])
def test_products_are_the_fast_transforms(size, modes, monkeypatch):
    layer = SpectralConv(2, 2, (2, modes)).double()
    x = torch.randn(3, 2, 4, size, dtype=torch.float64, requires_grad=True)
    results = []
    for most in (spectral.FEW, 0):
        monkeypatch.setattr(spectral, "FEW", most)
        out = layer(x)
        results.append((out, *torch.autograd.grad(out.square().sum(), x)))
    for product, fast in zip(*results, strict=True):
        torch.testing.assert_close(product, fast, rtol=1e-12, atol=1e-12)
    single = SpectralConv(2, 2, (2, modes))
    single.weight.data.copy_(layer.weight.data)
    torch.testing.assert_close(
        single(x.float()).double(), results[0][0], rtol=0, atol=2e-6
    )


@pytest.mark.parametrize(
    ("sizes", "modes"),
    [((16,), (5,)), ((16,), (16,)), ((7,), (16,)), ((8, 9), (3, 4)), ((5, 6), (8, 8))]
    + [((8, 6, 10), (2, 3, 4)), ((4, 5, 2), (8, 8, 8)), ((6, 5, 1), (2, 2, 2))],
)
def test_real_products_are_the_same_layer(sizes, modes, monkeypatch):
    """As exported programs have it, of more and of fewer nodes than frequencies."""
    layer = SpectralConv(3, 4, modes).double()
    x = torch.randn(2, 3, *sizes, dtype=torch.double)
    expected = layer(x)
    monkeypatch.setattr("torch.compiler.is_exporting", lambda: True)
    torch.testing.assert_close(layer(x), expected)


def test_half_precision_is_transformed_in_single():
    layer = SpectralConv(2, 2, (2, 2))
    x = torch.randn(1, 2, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x.bfloat16())
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(x), rtol=2e-2, atol=2e-2)
