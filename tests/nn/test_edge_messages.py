"""Learned messages along edges, summed in blocks."""

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu

from nfsgeo.geometry import Domain, bipartite_graph, nearest_neighbour_graph
from nfsgeo.nn import BipartiteMessages, edge_messages
from nfsgeo.nn.edge_messages import edge_sum, edge_sum_reference
from nfsgeo.testing import assert_same

HIDDEN = 6


def layer(**more: object) -> BipartiteMessages:
    made = BipartiteMessages((3, 4), 5, 2, hidden=HIDDEN, **more).double()
    nn.init.normal_(made.out.weight)
    return made


def ends(seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Positions and features of sources and targets."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (40, 2), (30, 2), (40, 3), (30, 4)
    kind = {"dtype": torch.float64, "generator": generator}
    return tuple(torch.rand(size, **kind) for size in sizes)


@pytest.fixture
def case():
    """Ends, and the graph of the five nearest sources."""
    source, target, x, y = ends()
    return (
        source,
        target,
        x,
        y,
        nearest_neighbour_graph(source, target, 5, Domain.unit(2)),
    )


@pytest.mark.parametrize("block", [1, 50, 1 << 18], ids=["tiny", "some", "whole"])
def test_blocks_give_what_all_edges_do(block, device, monkeypatch):
    monkeypatch.setattr(edge_messages, "BLOCK_CPU", block)
    monkeypatch.setattr(edge_messages, "BLOCK_CUDA", block)
    source, target, *_ = ends()
    graph = bipartite_graph(source, target, 0.2, Domain.unit(2)).to(device)
    make = {"dtype": torch.float64, "device": device}
    place = torch.randn(graph.num_edges, 3, **make)
    weight = graph.mean_weight(torch.float64)
    given = torch.randn(40, HIDDEN, **make), torch.randn(30, HIDDEN, **make)
    matrix = torch.randn(HIDDEN, 3, **make)
    assert_same(
        lambda a, b, c: edge_sum(a, b, place, c, weight, graph),
        lambda a, b, c: edge_sum_reference(a, b, place, c, weight, graph),
        (*given, matrix),
    )


def test_is_the_equation_written_out(case):
    source, target, x, y, graph = case
    made, found = layer(), []
    for j in range(len(target)):
        near = graph.edge_index[0, graph.ptr[j] : graph.ptr[j + 1]]
        away = Domain.unit(2).displacement(source[near], target[j].expand(5, 2))
        place = torch.cat([away, away.norm(dim=1, keepdim=True)], 1)
        place = place / away.norm(dim=1).mean()
        hidden = made.source(x[near]) + made.target(y[j]) + made.edge(place)
        found.append(made.out(gelu(hidden).mean(0)))
    result = made((x, y), source, graph)
    torch.testing.assert_close(result, torch.stack(found), rtol=1e-6, atol=1e-6)


def test_edge_index_and_messages_give_what_a_prepared_graph_does(case):
    source, target, x, y, graph = case
    made = layer(domain=Domain.unit(2))
    expected = made((x, y), source, graph)
    shuffled = graph.edge_index[:, torch.randperm(graph.num_edges)]
    torch.testing.assert_close(made((x, y), (source, target), shuffled), expected)
    made.use_fused = False
    torch.testing.assert_close(made((x, y), (source, target), shuffled), expected)


def test_begins_at_zero(case):
    source, _, x, y, graph = case
    made = BipartiteMessages((3, 4), 5, 2).double()
    assert not made((x, y), source, graph).any()


def test_scales_and_translations_of_space_do_not_matter():
    source, target, x, y = ends()
    made = layer()
    edges = nearest_neighbour_graph(
        source, target, 5, Domain.unit(2, periodic=False)
    ).edge_index
    expected = made((x, y), (source, target), edges)
    moved = made((x, y), (7 * source + 3, 7 * target + 3), edges)
    torch.testing.assert_close(moved, expected)


def test_derivatives_in_features_and_positions():
    source, target, x, y = (each.requires_grad_() for each in ends())
    domain, made = Domain.unit(2), layer(domain=Domain.unit(2))
    edges = nearest_neighbour_graph(
        source.detach(), target.detach(), 4, domain
    ).edge_index

    def called(x, y, source, target):
        return made((x, y), (source, target), edges)

    inputs = x, y, source, target
    assert torch.autograd.gradcheck(called, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(called, inputs, fast_mode=True)


def test_targets_without_a_neighbour_get_the_bias():
    made = layer()
    nn.init.normal_(made.out.bias)
    source, target, x, y = ends()
    edges = torch.tensor([[0, 1], [2, 2]])
    found = made((x, y), (source, target), edges)
    torch.testing.assert_close(found[0], made.out.bias)
    assert not torch.allclose(found[2], made.out.bias)


def test_spacing_is_the_mean_distance():
    grid = torch.cartesian_prod(torch.arange(8), torch.arange(8)).float() / 8
    graph = nearest_neighbour_graph(
        grid, grid, 5, Domain.unit(2)
    )  # itself, and four around it
    spacing = graph.spacing(torch.float32)
    torch.testing.assert_close(spacing, torch.full((64,), 0.8 * 0.125))


def test_half_precision_sums_in_single(case):
    source, _, x, y, graph = case
    made = layer().float()
    exact = made((x.float(), y.float()), source, graph)
    with torch.autocast("cpu", torch.bfloat16):
        rough = made((x.float(), y.float()), source, graph)
    torch.testing.assert_close(rough.float(), exact, rtol=5e-2, atol=5e-2)
