"""Interpolation of scattered data without anything learned."""

import math

import pytest
import torch

from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph, equispaced_grid
from nfsgeo.nn import interpolate
from nfsgeo.nn.base_interpolation import gaussian_means


@pytest.mark.parametrize("dim", [1, 2])
def test_converges_on_the_torus(dim):
    """Third order, at points on the seam as well."""
    domain = Domain.unit(dim)
    queries = torch.rand(60, dim, dtype=torch.float64)
    queries[:5] = 0

    def field(pos: torch.Tensor) -> torch.Tensor:
        angle = 2 * math.pi * pos
        return (angle.sin().sum(1) + (2 * angle[:, 0]).cos())[:, None, None]

    errors = []
    for size in (16, 64):
        pos = equispaced_grid(domain, (size,) * dim, dtype=torch.float64)
        jitter = 0.6 / size * (torch.rand_like(pos) - 0.5)
        pos = domain.wrap(pos + jitter)
        out = interpolate(field(pos), pos, queries, domain)
        errors.append((out - field(queries)).abs().mean())
    assert math.log(errors[0] / errors[1], 4) > 2.6


def test_samples_of_a_batch_do_not_mix():
    domain, sizes, asked = Domain.unit(2), (40, 50), (3, 4)
    x, pos, queries = torch.randn(90, 3, 2), torch.rand(90, 2), torch.rand(7, 2)
    batch, query_batch = (
        torch.arange(2).repeat_interleave(torch.tensor(n)) for n in (sizes, asked)
    )
    found = interpolate(x, pos, queries, domain, batch=batch, query_batch=query_batch)
    samples = zip(x.split(sizes), pos.split(sizes), queries.split(asked), strict=True)
    alone = torch.cat([interpolate(*sample, domain) for sample in samples])
    torch.testing.assert_close(found, alone)


def graph_of(pos: torch.Tensor, queries: torch.Tensor) -> BipartiteGraph:
    domain = Domain.unit(2)
    return bipartite_graph(
        pos, queries, None, domain, interpolation="spline", nearest=12
    )


def test_gaussian_means_are_those_written_out_in_any_order():
    """And of a constant they are the constant."""
    x, pos, queries = torch.rand(40, 3), torch.rand(40, 2), torch.rand(7, 2)
    graph = graph_of(pos, queries)
    found = gaussian_means(x, graph, (2.0, 0.5))
    source = graph.edge_index[0].view(7, 12)
    square = graph.displacement.square().sum(1).view(7, 12)
    square = square / square.mean(1, keepdim=True)
    for mean, sharpness in zip(found.unbind(1), (2, 0.5), strict=True):
        weight = torch.softmax(-sharpness * square, dim=1)[..., None]
        torch.testing.assert_close(mean, (weight * x[source]).sum(1))
    order = torch.randperm(40)
    again = gaussian_means(x[order], graph_of(pos[order], queries), (2.0, 0.5))
    torch.testing.assert_close(again, found)
    same = gaussian_means(torch.ones_like(x), graph, (2.0, 0.5))
    torch.testing.assert_close(same, torch.ones(7, 2, 3))


def test_gaussian_means_have_derivatives_in_positions():
    x, pos, queries = (torch.rand(n, 2, dtype=torch.float64) for n in (20, 20, 5))
    inputs = [each.requires_grad_() for each in (x, pos, queries)]

    def means(x: torch.Tensor, pos: torch.Tensor, queries: torch.Tensor):
        return gaussian_means(x, graph_of(pos, queries), (2.0, 0.5))

    assert torch.autograd.gradcheck(means, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(means, inputs, fast_mode=True)
