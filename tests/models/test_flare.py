"""FLARE: its equations written out, and what holds for every set of points."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from nfsgeo.geometry import Domain
from nfsgeo.models import FLARE, Problem

PROBLEM = Problem(Domain.unit(2), 2, 1, 3, 4, 20, None, True)
SIZES = {"width": 12, "depth": 2, "heads": 3, "latents": 5, "mlp_layers": 2}


@pytest.fixture
def model() -> FLARE:
    model = FLARE(PROBLEM, **SIZES).double()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    return model


def sample(num_points: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(num_points, 3, 2, dtype=torch.float64)
    return x, torch.rand(num_points, 2, dtype=torch.float64)


def perceptron(net: nn.Module, x: Tensor, *, first: bool, last: bool) -> Tensor:
    """Residual layers, of which the ``first`` and ``last`` may add nothing."""
    linear = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    x = gelu(linear[0](x)) + (x if first else 0)
    for layer in linear[1:-1]:
        x = x + gelu(layer(x))
    return linear[-1](x) + (x if last else 0)


def test_the_equations(model):
    """Matrices of all scores, head by head, on one sample."""
    x, pos = sample(20)
    inputs = torch.cat([pos, x.flatten(1)], dim=1)
    v = perceptron(model.lift, inputs, first=False, last=True)
    whole = {"first": True, "last": True}
    for block in model.blocks:
        normed, attention = block.attention_norm(v), block.attention
        keys = perceptron(attention.key, normed, **whole).split(4, dim=1)
        values = perceptron(attention.value, normed, **whole).split(4, dim=1)
        heads = []
        for query, key, value in zip(attention.latents, keys, values, strict=True):
            scores = query @ key.t()
            latent = scores.softmax(1) @ value
            heads.append(scores.t().softmax(1) @ latent)
        v = v + attention.output(torch.cat(heads, dim=1))
        v = v + perceptron(block.mlp, block.mlp_norm(v), **whole)
    expected = perceptron(model.projector, model.norm(v), first=True, last=False)
    torch.testing.assert_close(model(x, pos), expected.unflatten(1, (4, 1)))


def test_it_depends_on_the_field_not_on_how_often_it_is_sampled(model):
    """Softmax over points is a mean: points given twice change nothing."""
    x, pos = sample(7)
    twice = model(torch.cat([x, x]), torch.cat([pos, pos]))
    torch.testing.assert_close(twice[:7], model(x, pos))
