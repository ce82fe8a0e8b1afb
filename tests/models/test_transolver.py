"""Transolver: the order of its norms, blocks and learned shift, written out."""

import torch
from torch.nn.functional import gelu, layer_norm

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, Transolver

PROBLEM = Problem(Domain.unit(2), 2, 1, 3, 4, 20, None, True)


def test_the_equations():
    """Those of the attention itself are in ``tests/nn/test_physics_attention.py``."""
    model = Transolver(PROBLEM, width=12, depth=2, heads=3, slices=5).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
        for block in model.blocks:
            block.attention.temperature.uniform_(0.5, 1.0)
    x = torch.randn(20, 3, 2, dtype=torch.float64)
    pos = torch.rand(20, 2, dtype=torch.float64)

    def norm(v, layer):
        return layer_norm(v, (12,), layer.weight, layer.bias)

    first, _, second = model.lift
    v = second(gelu(first(torch.cat([pos, x.flatten(1)], dim=1)))) + model.shift
    for block in model.blocks:
        v = v + block.attention(norm(v, block.attention_norm), [20])
        own, hidden, _, out = block.mlp
        v = v + out(gelu(hidden(norm(v, own))))
    last, result = model.projector
    expected = result(norm(v, last)).unflatten(1, (4, 1))
    torch.testing.assert_close(model(x, pos), expected)
