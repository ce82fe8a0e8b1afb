"""Weighted sums over neighbourhoods."""

from functools import partial

import pytest
import torch

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.nn import neighbour_sum, neighbour_sum_reference
from nfsgeo.testing import assert_same


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


@pytest.mark.parametrize(
    ("fields", "sources", "weights", "edges", "message"),
    [
        (1, 7, 1, None, "an entry for each source"),
        (1, None, 1, 3, "an entry for each edge"),
        (2, None, 3, None, "as many for each weight"),
    ],
)
def test_says_what_does_not_fit(case, fields, sources, weights, edges, message):
    x = torch.randn(fields, sources or case.graph.num_source, 2)
    weight = torch.randn(weights, edges or case.graph.num_edges)
    with pytest.raises(ValueError, match=message):
        neighbour_sum(x, weight, case.graph)
