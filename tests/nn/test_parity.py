"""Our Fourier layers against neuraloperator's, with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nfsgeo.nn import MixerBlock, Pointwise, SpectralConv
from nfsgeo.testing import assert_same

layers = pytest.importorskip(
    "neuralop.layers.fno_block", reason="neuraloperator is not installed"
)

CHANNELS, DEPTH = 6, 3
# Modes, sizes. Their shift of the spectrum is right for even sizes only.
CASES = {
    "1d": ((5,), (16,)),
    "2d": ((3, 4), (12, 10)),
    "3d": ((2, 3, 4), (8, 6, 10)),
    "every mode": ((4, 5), (8, 8)),
}


def total_modes(modes: tuple[int, ...]) -> tuple[int, ...]:
    """Their count of modes: both signs; half and zero on the last axis."""
    return (*(2 * m for m in modes[:-1]), 2 * (modes[-1] - 1))


def copy_weights(ours: SpectralConv, theirs: nn.Module) -> None:
    """Ours: modes first, 0 .. m-1, -m .. -1. Theirs: channels first, -m .. m-1."""
    axes = tuple(range(len(ours.modes) - 1))
    weight = torch.fft.fftshift(ours.weight.detach(), dim=axes)
    # The tensor alone: the bound of a factorised weight is that of their class.
    theirs.weight.tensor = nn.Parameter(weight.movedim((-2, -1), (0, 1)).contiguous())
    nn.init.zeros_(theirs.bias)


@pytest.mark.parametrize(("modes", "sizes"), CASES.values(), ids=CASES)
def test_spectral_convolution(modes, sizes):
    ours = SpectralConv(CHANNELS, CHANNELS, modes)
    theirs = layers.SpectralConv(CHANNELS, CHANNELS, total_modes(modes))
    copy_weights(ours, theirs)
    assert_same(ours, theirs, (torch.randn(2, CHANNELS, *sizes),))


@pytest.mark.parametrize(("modes", "sizes"), CASES.values(), ids=CASES)
def test_weights_have_the_same_gradients(modes, sizes):
    ours = SpectralConv(CHANNELS, CHANNELS, modes)
    theirs = layers.SpectralConv(CHANNELS, CHANNELS, total_modes(modes))
    copy_weights(ours, theirs)
    x, cotangent = torch.randn(2, 2, CHANNELS, *sizes)
    for layer in (ours, theirs):
        (layer(x) * cotangent).sum().backward()
    copied = SpectralConv(CHANNELS, CHANNELS, modes)
    copied.weight = nn.Parameter(ours.weight.grad)
    holder = layers.SpectralConv(CHANNELS, CHANNELS, total_modes(modes))
    copy_weights(copied, holder)
    torch.testing.assert_close(holder.weight.tensor, theirs.weight.tensor.grad)


@pytest.mark.parametrize("norm", [None, "group_norm"])
@pytest.mark.parametrize(("modes", "sizes"), CASES.values(), ids=CASES)
def test_fno_blocks(modes, sizes, norm):
    """Their last block has no activation, so they get one more than we use."""
    theirs = layers.FNOBlocks(
        CHANNELS,
        CHANNELS,
        total_modes(modes),
        n_layers=DEPTH + 1,
        use_channel_mlp=False,
        norm=norm,
    )
