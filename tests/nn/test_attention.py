"""Attention over the tokens of a field."""

import pytest
import torch

from nfsgeo.nn import Attention
from nfsgeo.testing import assert_same

CHANNELS, HEADS = 16, 8


@pytest.mark.parametrize("sizes", [(6,), (4, 3), (2, 3, 4)])
def test_equals_multihead_attention(sizes):
    ours = Attention(CHANNELS, HEADS).double()
    theirs = torch.nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True).double()
    torch.nn.init.normal_(ours.input.bias)
    theirs.in_proj_weight, theirs.in_proj_bias = ours.input.weight, ours.input.bias
    theirs.out_proj.weight, theirs.out_proj.bias = ours.output.weight, ours.output.bias
    # Scores far below zero count too: nothing clips them.
    x = 5 * torch.randn(2, CHANNELS, *sizes, dtype=torch.float64)

    def plain(x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(2).transpose(1, 2)
        mixed, _ = theirs(tokens, tokens, tokens, need_weights=True)
        return mixed.transpose(1, 2).view_as(x)

    assert_same(ours, plain, (x,), ours.parameters())


def test_drops_weights_in_training_only():
    layer = Attention(CHANNELS, HEADS, dropout=0.5)
    x = torch.randn(1, CHANNELS, 10)
    assert not torch.allclose(layer(x), layer(x))
    layer.eval()
    torch.testing.assert_close(layer(x), layer(x))
    keep_all = Attention(CHANNELS, HEADS)
    keep_all.load_state_dict(layer.state_dict())
    torch.testing.assert_close(keep_all(x), layer(x))
