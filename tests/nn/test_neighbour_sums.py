"""Sums over neighbourhoods, weighted or under a matrix for every edge."""

from functools import partial

import pytest
import torch

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.nn import (
    DenseKernel,
    EdgeNetwork,
    KernelInterpolation,
    neighbour_sum,
    neighbour_sums,
)
from nfsgeo.nn.neighbour_sums import (
    matrix_sum,
    matrix_sum_reference,
    neighbour_sum_reference,
)
from nfsgeo.testing import assert_same

CHANNELS, OUT, RANK, NUM_STEPS = 4, 5, 3, 2


@pytest.mark.parametrize("fields", [1, 3, 6], ids=["shared", "own", "several"])
def test_equals_the_sum_written_out(case, fields, device):
    graph = case.graph.to(device)
    x = torch.randn(fields, graph.num_source, 5, dtype=torch.float64, device=device)
    weight = torch.randn(3, graph.num_edges, dtype=torch.float64, device=device)
    assert_same(
        lambda x, w: neighbour_sum(x, w, graph),
        lambda x, w: neighbour_sum_reference(x, w, graph),
        (x, weight),
    )


def test_gradient_of_either_argument_alone(case):
    x = torch.randn(1, case.graph.num_source, 2, dtype=torch.float64)
    weight = torch.randn(2, case.graph.num_edges, dtype=torch.float64)
    fast, plain = (
        partial(function, graph=case.graph)
        for function in (neighbour_sum, neighbour_sum_reference)
    )
    assert_same(lambda x: fast(x, weight), lambda x: plain(x, weight), (x,))
    assert_same(lambda w: fast(x, w), lambda w: plain(x, w), (weight,))


def test_half_precision_sums_in_single():
    points = torch.rand(50, 2)
    graph = bipartite_graph(points, points, 0.4, Domain.unit(2))
    x = torch.randn(1, 50, 3).bfloat16()
    weight = torch.randn(2, graph.num_edges).bfloat16()
    out = neighbour_sum(x, weight, graph)
    assert out.dtype == torch.bfloat16
    exact = neighbour_sum_reference(x.double(), weight.double(), graph)
    torch.testing.assert_close(out.double(), exact, rtol=1e-2, atol=1e-1)


@pytest.fixture(params=[1, 200, 10**6], ids=["single", "blocks", "at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one edge, of some, and of all."""
    monkeypatch.setattr(neighbour_sums, "BLOCK_CPU", request.param)
    monkeypatch.setattr(neighbour_sums, "BLOCK_CUDA", request.param)


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
