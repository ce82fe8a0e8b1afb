"""Sums over neighbourhoods under a matrix for every edge."""

from __future__ import annotations

import pytest
import torch

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.nn import DenseKernel, EdgeNetwork, KernelInterpolation
from nfsgeo.nn import matrix_sum as module
from nfsgeo.nn.matrix_sum import matrix_sum, matrix_sum_reference
from nfsgeo.testing import assert_same

CHANNELS, OUT, RANK, RECORDS = 4, 5, 3, 2


@pytest.fixture(params=[1, 200, 10**6], ids=["single", "blocks", "at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one edge, of some, and of all."""
    monkeypatch.setattr(module, "BLOCK_CPU", request.param)
    monkeypatch.setattr(module, "BLOCK_CUDA", request.param)


def arguments(case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def draw(*size: int) -> torch.Tensor:
        return torch.randn(*size, dtype=torch.float64)

    graph = case.graph
    return (
        draw(graph.num_source, RECORDS, CHANNELS),
        draw(RANK, graph.num_edges),
        draw(RANK, CHANNELS, OUT),
    )


def test_equals_all_edges_at_a_time(case, block, device):
    graph = case.graph.to(device)
    assert_same(
        lambda *given: matrix_sum(*given, graph),
        lambda *given: matrix_sum_reference(*given, graph),
        [given.to(device) for given in arguments(case)],
    )


def test_gradients_are_those_of_finite_differences(case, block):
    assert torch.autograd.gradcheck(
        lambda *given: matrix_sum(*given, case.graph),
        [given.requires_grad_() for given in arguments(case)],
    )


def test_keeps_nothing_for_an_edge_but_its_weights(case):
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        given = [tensor.requires_grad_() for tensor in arguments(case)]
        matrix_sum(*given, case.graph)
    assert max(kept) <= max(tensor.numel() for tensor in given)


@pytest.mark.parametrize("first", [True, False])
def test_both_orders_give_what_messages_give(case, first, monkeypatch):
    monkeypatch.setattr(DenseKernel, "_matrices_first", lambda *_: first)
    kernel = DenseKernel(CHANNELS, EdgeNetwork(case.domain.dim, 3, 5)).double()
    fused = KernelInterpolation(kernel).double()
    plain = KernelInterpolation(kernel, fused=False).double()
    plain.bias = fused.bias
    assert_same(
        lambda x, a: fused(x, case.source, case.graph, a),
        lambda x, a: plain(x, case.source, case.graph, a),
        (case.x, case.features),
        fused.parameters(),
    )


def test_many_records_want_matrices_and_few_want_sums():
    points = torch.rand(200, 2)
    graph = bipartite_graph(points, points, 0.15, Domain.unit(2))
    kernel = DenseKernel(32, EdgeNetwork(2, 0, 64))
    assert kernel._matrices_first(40, graph) and not kernel._matrices_first(1, graph)
