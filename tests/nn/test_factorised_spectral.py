"""Convolution in Fourier space along each axis alone."""

import pytest
import torch

from nfsgeo.nn import FactorisedSpectralConv, SpectralConv

SIZES = {1: (12,), 2: (10, 12), 3: (6, 10, 8)}
MODES = {1: (4,), 2: (3, 4), 3: (2, 4, 3)}


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_is_the_sum_of_convolutions_whose_other_frequencies_pass(dim):
    layer = FactorisedSpectralConv(2, 3, MODES[dim]).double()
    x = torch.randn(2, 2, *SIZES[dim], dtype=torch.float64)
    expected = torch.zeros(2, 3, *SIZES[dim], dtype=torch.float64)
    for axis, convolution in enumerate(layer.axes):
        spectrum = torch.fft.rfft(x, dim=axis + 2)
        weight = torch.view_as_complex(convolution.weight)
        kept = spectrum.movedim((1, axis + 2), (-2, -1))[..., : weight.size(0)]
        mixed = torch.einsum("...ik,kio->...ok", kept, weight)
        line = torch.fft.irfft(mixed, n=SIZES[dim][axis])
        expected += line.movedim((-2, -1), (1, axis + 2))
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_fused_products_are_the_plain_convolutions_with_their_gradients(dim):
    plain = FactorisedSpectralConv(2, 3, MODES[dim], fused=False).double()
    fused = FactorisedSpectralConv(2, 3, MODES[dim]).double()
    fused.load_state_dict(plain.state_dict())
    # On the last axis a grid has fewer frequencies than there are weights.
    x = torch.randn(2, 2, *SIZES[dim][:-1], 5, dtype=torch.float64, requires_grad=True)
    results = [layer(x) for layer in (plain, fused)]
    torch.testing.assert_close(*results)
    grad = torch.randn_like(results[0])
    gradients = [
        torch.autograd.grad(result, [x, *layer.parameters()], grad)
        for result, layer in zip(results, (plain, fused), strict=True)
    ]
    torch.testing.assert_close(*gradients)


def test_fused_products_can_be_differentiated_twice():
    layer = FactorisedSpectralConv(2, 2, [3, 2]).double()
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(layer, x)


def test_is_the_full_convolution_in_one_dimension():
    layer, full = FactorisedSpectralConv(2, 3, [5]), SpectralConv(2, 3, [5])
    layer.axes[0].load_state_dict(full.state_dict())
    x = torch.randn(4, 2, 16)
    torch.testing.assert_close(layer(x), full(x))


def test_derivatives_along_both_axes_sum_to_the_divergence():
    layer = FactorisedSpectralConv(2, 1, [4, 4]).double()
    for component, convolution in enumerate(layer.axes):
        convolution.weight.data.zero_()
        wave = 2 * torch.pi * torch.arange(4, dtype=torch.float64)
        convolution.weight.data[:, component, 0, 1] = wave
    x, y = torch.meshgrid(*[torch.arange(16).double() / 16] * 2, indexing="ij")
    a, b = 2 * torch.pi * (2 * x + y), 2 * torch.pi * (3 * y - x)
    field = torch.stack([a.sin(), b.cos()])[None]
    divergence = 2 * torch.pi * (2 * a.cos() - 3 * b.sin())
    torch.testing.assert_close(layer(field)[0, 0], divergence)


def test_commutes_with_translations_along_axes():
    layer = FactorisedSpectralConv(1, 2, [3, 3]).double()
    x = torch.randn(1, 1, 8, 8, dtype=torch.float64)
    moved = layer(x.roll((3, 5), (2, 3)))
    torch.testing.assert_close(moved, layer(x).roll((3, 5), (2, 3)))


def test_axes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 axes"):
        FactorisedSpectralConv(1, 1, [3, 3])(torch.randn(1, 1, 8))
    with pytest.raises(ValueError, match="each transformed axis"):
        FactorisedSpectralConv(1, 1, [])
