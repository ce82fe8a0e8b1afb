"""Attention among slices: the equations written out, and its symmetries."""

import math

import pytest
import torch
from torch import Tensor

from nfsgeo.nn import PhysicsAttention

CHANNELS, HEADS, SLICES = 12, 3, 5


@pytest.fixture
def layer() -> PhysicsAttention:
    layer = PhysicsAttention(CHANNELS, HEADS, SLICES).double()
    for parameter in layer.parameters():
        parameter.data.normal_()
    layer.temperature.data.uniform_(0.5, 1.0)
    return layer


def points(*shape: int) -> Tensor:
    return torch.randn(*shape, CHANNELS, dtype=torch.float64)


def written_out(layer: PhysicsAttention, x: Tensor) -> Tensor:
    """Equations (2) to (4) of the paper, head by head and point by point."""
    size = CHANNELS // HEADS
    to_slice, to_value = layer.input(x).chunk(2, dim=1)
    query, key, value = layer.query_key_value.weight.chunk(3)
    heads = []
    for head in range(HEADS):
        own = slice(head * size, (head + 1) * size)
        logits = to_slice[:, own] @ layer.slices.weight.t() + layer.slices.bias
        weight = (logits / layer.temperature[head]).softmax(1)
        tokens = torch.stack(
            [
                sum(weight[i, g] * to_value[i, own] for i in range(len(x)))
                / (sum(weight[i, g] for i in range(len(x))) + 1e-5)
                for g in range(SLICES)
            ]
        )
        scores = (tokens @ query.t()) @ (tokens @ key.t()).t() / math.sqrt(size)
        heads.append(weight @ (scores.softmax(1) @ (tokens @ value.t())))
    return layer.output(torch.cat(heads, dim=1))


def test_the_equations(layer):
    x = points(7)
    torch.testing.assert_close(layer(x, [7]), written_out(layer, x))


def test_repeated_points_change_nothing(layer):
    """Tokens are means: they do not depend on how many points there are."""
    layer.slices.weight.data.mul_(0.1)  # slices to which every point belongs
    x = points(6)
    twice = layer(torch.cat([x, x]), [12])
    torch.testing.assert_close(twice[:6], layer(x, [6]), atol=1e-4, rtol=1e-4)
