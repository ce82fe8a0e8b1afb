"""Weights of edges by a small network."""

from __future__ import annotations

import pytest
import torch

from nfsgeo.nn import hidden_layer as module
from nfsgeo.nn.hidden_layer import edge_weights, edge_weights_reference
from nfsgeo.testing import assert_same

EDGES, NODES, HIDDEN = 23, 6, 5


@pytest.fixture(params=[1, 4 * HIDDEN, 10**6], ids=["single", "blocks", "at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one edge, of some, and of all."""
    monkeypatch.setattr(module, "BLOCK_CPU", request.param)
    monkeypatch.setattr(module, "BLOCK_CUDA", request.param)


def arguments(node: bool, mix: bool, bias: bool) -> list[torch.Tensor | None]:
    def draw(*size: int) -> torch.Tensor:
        return torch.randn(*size, dtype=torch.float64)

    return [
        draw(NODES, HIDDEN) if node else None,
        draw(HIDDEN, 3),
        draw(HIDDEN),
        draw(2, HIDDEN) if mix else None,
        draw(2) if bias else None,
    ]


@pytest.mark.parametrize("node", [True, False])
@pytest.mark.parametrize(("mix", "bias"), [(1, 1), (1, 0), (0, 0)])
def test_equals_all_edges_at_a_time(block, node, mix, bias, device):
    relative = torch.randn(EDGES, 3, dtype=torch.float64, device=device)
    source = torch.randint(NODES, (EDGES,), device=device)
    given = [a if a is None else a.to(device) for a in arguments(bool(node), mix, bias)]
    leaves = [a for a in given if a is not None]

    def call(function, *tensors):
        rest = iter(tensors)
        z, *others = (None if a is None else next(rest) for a in given)
        return function(relative, z, source, *others)

    assert_same(
        lambda *tensors: call(edge_weights, *tensors),
        lambda *tensors: call(edge_weights_reference, *tensors),
        leaves,
    )


def test_gradients_are_those_of_finite_differences(block):
    relative = torch.randn(EDGES, 3, dtype=torch.float64)
    source = torch.randint(NODES, (EDGES,))
    leaves = [a.requires_grad_() for a in arguments(True, True, True)]
    assert torch.autograd.gradcheck(
        lambda z, *others: edge_weights(relative, z, source, *others), leaves
    )


def test_no_edges():
    relative, source = torch.zeros(0, 3).double(), torch.zeros(0, dtype=torch.int64)
    node, *others = (a.requires_grad_() for a in arguments(True, True, True))
    out = edge_weights(relative, node, source, *others)
    assert out.shape == (2, 0)
    out.sum().backward()
    assert node.grad.abs().max() == 0


def test_keeps_no_hidden_layer():
    relative, source = torch.randn(EDGES, 3).double(), torch.randint(NODES, (EDGES,))
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        given = [a.requires_grad_() for a in arguments(True, True, True)]
        edge_weights(relative, given[0], source, *given[1:])
    assert max(kept) < EDGES * HIDDEN


def test_mixed_precision_computes_in_single():
    relative, source = torch.randn(EDGES, 3), torch.randint(NODES, (EDGES,))
    given = [a.float().requires_grad_() for a in arguments(True, True, True)]
    exact = edge_weights(relative, given[0], source, *given[1:])
    with torch.autocast("cpu", torch.bfloat16):
        out = edge_weights(relative, given[0].bfloat16(), source, *given[1:])
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, exact, rtol=5e-2, atol=5e-2)
