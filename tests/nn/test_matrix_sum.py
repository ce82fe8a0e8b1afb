"""Sums over neighbourhoods under a matrix for every edge."""

import pytest
import torch

from nfsgeo.nn import DenseKernel, EdgeNetwork, KernelInterpolation
from nfsgeo.nn import matrix_sum as module
from nfsgeo.nn.matrix_sum import matrix_sum, matrix_sum_reference
from nfsgeo.testing import assert_same

CHANNELS, OUT, RANK, NUM_STEPS = 4, 5, 3, 2


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
        draw(graph.num_source, NUM_STEPS, CHANNELS),
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
