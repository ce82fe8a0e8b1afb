"""Base interpolation by local polyharmonic splines."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, bipartite_graph, polyharmonic_spline
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.splines import LARGEST_GAIN, spline_neighbours


def neighbours(source: Tensor, target: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Indices and displacements of the neighbours of every target."""
    near = Search(source, target, domain).nearest(spline_neighbours(domain.dim))
    targets = target[:, None].expand(*near.shape, -1)
    return near, domain.displacement(targets, source[near])


def interpolated(source: Tensor, target: Tensor, values: Tensor) -> Tensor:
    near, away = neighbours(source, target, Domain.unit(source.size(1), False))
    return (polyharmonic_spline(away) * values[near]).sum(1)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("clustered", [False, True])
def test_polynomials_are_exact_on_random_meshes(dim, clustered):
    source = torch.rand(600, dim, dtype=torch.float64)
    if clustered:
        source = source**3
    target = 0.1 + 0.8 * torch.rand(60, dim, dtype=torch.float64)
    for powers in itertools.product(range(2), repeat=dim):
        if sum(powers) <= 1:
            exact, values = (
                (x ** torch.tensor(powers)).prod(1) for x in (target, source)
            )
            out = interpolated(source, target, values)
            torch.testing.assert_close(out, exact, rtol=0, atol=1e-6)


def test_converges_with_the_order_of_its_polynomials():
    errors = []
    target = 0.1 + 0.8 * torch.rand(400, 2, dtype=torch.float64)
    for num_points in (1000, 16000):
        source = torch.rand(num_points, 2, dtype=torch.float64)
        values, exact = ((3 * x[:, 0] + 2 * x[:, 1]).sin() for x in (source, target))
        errors.append((interpolated(source, target, values) - exact).abs().mean())
    # Four times finer in distance; polynomials of degree 2 alone have order 3.
    assert math.log(errors[0] / errors[1], 4) > 3


def test_poor_neighbourhoods_stay_stable_and_exact_for_constants():
    """One neighbour, neighbours on a line, all on one side, the same one repeated."""
    line = torch.stack([torch.linspace(0.01, 0.2, 24), torch.zeros(24)], dim=1)
    side = 0.05 + 0.05 * torch.rand(24, 2)
    one = torch.tensor([[0.03, 0.04]])
    for points in (one, line, side, one.repeat(24, 1)):
        weight = polyharmonic_spline(points[None])
        torch.testing.assert_close(weight.sum(), weight.new_tensor(1.0))
        assert weight.abs().sum() <= LARGEST_GAIN


def test_the_graph_has_the_ball_and_the_nearest_and_weights_of_these_alone():
    domain = Domain.unit(2)
    source, target = torch.rand(300, 2), torch.rand(40, 2)
    graph = bipartite_graph(source, target, 0.2, domain, interpolation="spline")
    plain = bipartite_graph(source, target, 0.2, domain)
    assert graph.num_edges >= plain.num_edges and (graph.degree() >= 24).all()
    assert ((graph.base_weight != 0).sum() <= 24 * 40).item()
    code = graph.edge_index[1] * 300 + graph.edge_index[0]
    assert (code[1:] > code[:-1]).all()  # sorted, none twice
    assert torch.isin(plain.edge_index[1] * 300 + plain.edge_index[0], code).all()
    near, away = neighbours(source.double(), target.double(), domain)
    values = torch.randn(300, dtype=torch.float64)
    expected = (polyharmonic_spline(away) * values[near]).sum(1)
    out = torch.zeros(40, dtype=torch.float64).index_add(
        0, graph.edge_index[1], graph.base_weight.double() * values[graph.edge_index[0]]
    )
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("regular", [False, True])
def test_order_of_points_does_not_matter(regular):
    """Not even where many are as near: the points of a grid."""
    domain = Domain.unit(2)
    axis = torch.arange(12) / 12
    source = torch.cartesian_prod(axis, axis) if regular else torch.rand(144, 2)
    target = torch.cartesian_prod(axis, axis) + 1 / 24
    order = torch.randperm(144)
    values = torch.randn(144, dtype=torch.float64)
    outs = []
    for points, field in ((source, values), (source[order], values[order])):
        graph = bipartite_graph(points, target, 0.01, domain, interpolation="spline")
        edge = graph.base_weight.double() * field[graph.edge_index[0]]
        outs.append(edge.new_zeros(144).index_add(0, graph.edge_index[1], edge))
    torch.testing.assert_close(outs[0], outs[1], rtol=1e-5, atol=1e-5)


def test_samples_of_a_batch_keep_to_themselves_and_may_be_small():
    batch, asking = (
        torch.arange(2).repeat_interleave(torch.tensor(n)) for n in ([30, 3], [12, 8])
    )
    given = torch.rand(33, 2), torch.rand(20, 2), 0.1, Domain.unit(2)
    batches = {"source_batch": batch, "target_batch": asking}
    graph = bipartite_graph(*given, interpolation="spline", **batches)
    assert (batch[graph.edge_index[0]] == asking[graph.edge_index[1]]).all()
    total = torch.zeros(20).index_add(0, graph.edge_index[1], graph.base_weight)
    torch.testing.assert_close(total, torch.ones(20))
