"""Mixing of tokens by a matrix, a filter, a transform; complex layers."""

import math

import pytest
import torch
from torch import nn

from nfsgeo.nn import (
    FourierTokens,
    GlobalFilter,
    ModulusGELU,
    Pointwise,
    RealPart,
    SplitComplex,
    TokenMLP,
)

SIZES = [(7,), (4, 6), (6, 5), (4, 3, 5)]


@pytest.mark.parametrize("sizes", SIZES)
def test_token_mlp_is_a_matrix_over_all_tokens(sizes):
    layer, x = TokenMLP(sizes), torch.randn(2, 3, *sizes)
    tokens = x.flatten(2) @ layer.linear.weight.T + layer.linear.bias
    torch.testing.assert_close(layer(x), tokens.view_as(x))


@pytest.mark.parametrize("sizes", SIZES)
def test_filter_scales_each_wave_by_its_weight(sizes):
    layer = GlobalFilter(2, sizes).double()
    axes = [torch.arange(n, dtype=torch.float64) / n for n in sizes]
    grid = torch.meshgrid(*axes, indexing="ij")
    for k in ([1] * len(sizes), [-1] * (len(sizes) - 1) + [2]):
        turns = sum(ki * xi for ki, xi in zip(k, grid, strict=True))
        wave = torch.cos(2 * math.pi * turns + 0.4)
        out = layer(torch.stack([wave, wave])[None])[0]
        gain = layer.weight[(slice(None), *k)].view(2, *(1 for _ in sizes))
        torch.testing.assert_close(out, gain * wave, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sizes", SIZES)
def test_tokens_are_transformed_over_all_axes(sizes):
    x = torch.randn(1, 2, *sizes, dtype=torch.cdouble)
    out = FourierTokens()(x)
    matrix = torch.ones(1, 1, dtype=torch.cdouble)
    for n in sizes:
        k = torch.arange(n, dtype=torch.float64)
        angle = -2 * math.pi * k[:, None] * k / n
        matrix = torch.kron(matrix, torch.polar(torch.full_like(angle, n**-0.5), angle))
    expected = x.flatten(2) @ matrix.T
    torch.testing.assert_close(out.flatten(2), expected)
    # Twice gives the mirror image: the transform loses nothing.
    back = FourierTokens()(out)
    axes = list(range(2, 2 + len(sizes)))
    mirrored = x.flip(axes).roll([1] * len(sizes), axes)
    torch.testing.assert_close(back, mirrored)


def test_activation_keeps_the_phase():
    layer = ModulusGELU(2)
    nn.init.constant_(layer.bias, 0.3)
    z = torch.randn(3, 2, 5, dtype=torch.cfloat)
    expected = nn.functional.gelu(z.abs() - 0.3)
    phase = torch.polar(torch.ones(()), z.angle())
    torch.testing.assert_close(layer(z), phase * expected)
    zero = torch.zeros_like(z, requires_grad=True)
    layer(zero).real.sum().backward()
    assert torch.view_as_real(zero.grad).isfinite().all()


def test_complex_layers_have_finite_difference_gradients():
    double = SplitComplex(Pointwise(2, 2).double(), nn.Tanh())
    z = torch.randn(2, 2, 4, dtype=torch.cdouble)
    expected = torch.complex(double.real(z.real), z.imag.tanh())
    torch.testing.assert_close(double(z), expected)
    torch.testing.assert_close(RealPart()(z), z.real)
    linear = Pointwise(2, 2, dtype=torch.cdouble)
    activation = ModulusGELU(2).double()
    layers = nn.Sequential(FourierTokens(), linear, double, activation, RealPart())
    x = torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layers, (x,))


@pytest.mark.parametrize("layer", [FourierTokens(), GlobalFilter(2, (6, 6))])
def test_half_precision_is_transformed_in_single(layer):
    x = torch.randn(1, 2, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x.bfloat16())
    pair = [out.real.float() for out in (found, layer(x))]
    torch.testing.assert_close(*pair, rtol=2e-2, atol=4e-2)
