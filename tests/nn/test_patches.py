"""Patches to tokens and back."""

import pytest
import torch
from torch import nn

from nfsgeo.nn import PatchEmbedding, PatchUnembedding
from nfsgeo.testing import assert_same

CHANNELS = 3
CASES = {(4,): (8,), (4, 2): (8, 6), (4, 4): (8, 12), (4, 4, 2): (8, 4, 6)}
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


@pytest.mark.parametrize("patch", CASES, ids=str)
def test_embedding_is_a_convolution_of_its_stride(patch):
    layer = PatchEmbedding(CHANNELS, patch).double()
    conv = CONVOLUTIONS[len(patch)](CHANNELS, CHANNELS, patch, patch).double()
    conv.weight.data = layer.linear.weight.data.view(CHANNELS, CHANNELS, *patch)
    conv.bias.data = layer.linear.bias.data
    x = torch.randn(2, CHANNELS, *CASES[patch], dtype=torch.float64)
    assert_same(layer, lambda x: nn.functional.gelu(conv(x)), (x,))


@pytest.mark.parametrize("patch", CASES, ids=str)
def test_way_back_is_a_transposed_convolution(patch):
    """With a bias of its own for every node of a patch."""
    layer = PatchUnembedding(CHANNELS, patch).double()
    conv = TRANSPOSED[len(patch)](CHANNELS, CHANNELS, patch, patch, bias=False)
    weight = layer.linear.weight.data.view(CHANNELS, *patch, CHANNELS)
    conv.weight.data = weight.movedim(-1, 0).contiguous()
    nn.init.normal_(layer.linear.bias)
    tokens = [n // p for n, p in zip(CASES[patch], patch, strict=True)]
    bias = layer.linear.bias.view(CHANNELS, *patch).tile(1, *tokens)
    x = torch.randn(2, CHANNELS, *tokens, dtype=torch.float64)
    assert layer(x).shape[2:] == CASES[patch]
    assert_same(layer, lambda x: nn.functional.gelu(conv(x) + bias), (x,))
