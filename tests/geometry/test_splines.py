"""Base interpolation by local polyharmonic splines and by moving least squares."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import (
    Domain,
    bipartite_graph,
    equispaced_grid,
    moving_least_squares,
    polyharmonic_spline,
)
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.splines import (
    LARGEST_GAIN,
    LARGEST_GAIN_OF_FITS,
    spline_neighbours,
)

NEIGHBOURS = {1: 12, 2: 30, 3: 60}


def neighbours(source: Tensor, target: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Indices and displacements of the neighbours of every target."""
    near = Search(source, target, domain).nearest(spline_neighbours(domain))
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
        target = torch.zeros(len(points), dtype=torch.long)
        weights = [(polyharmonic_spline(points[None]), LARGEST_GAIN)]
        for degree in (1, 2):
            fit = moving_least_squares(-points.double(), target, 1, 0.25, degree)
            weights.append((fit, LARGEST_GAIN_OF_FITS))
        for weight, gain in weights:
            torch.testing.assert_close(weight.sum(), weight.new_tensor(1.0))
            assert weight.abs().sum() <= gain


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


def graph_of(dim: int, num_points: int):
    domain = Domain.unit(dim, periodic=False)
    ball = {1: 2.0, 2: math.pi, 3: 4 * math.pi / 3}[dim]
    radius = (NEIGHBOURS[dim] / num_points / ball) ** (1 / dim)
    per_axis = round(num_points ** (1 / dim))
    source = equispaced_grid(domain, (per_axis,) * dim, dtype=torch.float64)
    # Jittered: irregular, but without gaps.
    source = source + 0.6 / per_axis * (torch.rand_like(source) - 0.5)
    source = source.clamp(0, 1 - 1e-6)
    target = torch.rand(50, dim, dtype=torch.float64)
    # Away from the walls, where neighbours surround a target.
    target = radius + (1 - 2 * radius) * target
    return source, target, radius, bipartite_graph(source, target, radius, domain)


def weights_of(graph, radius: float, degree: int) -> Tensor:
    return moving_least_squares(
        graph.displacement, graph.edge_index[1], graph.num_target, radius, degree
    )


def along(graph, weight: Tensor, values: Tensor) -> Tensor:
    out = weight.new_zeros(graph.num_target)
    return out.index_add(0, graph.edge_index[1], weight * values[graph.edge_index[0]])


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_fits_follow_polynomials_exactly(dim, degree):
    source, target, radius, graph = graph_of(dim, 400)
    weight = weights_of(graph, radius, degree)
    for powers in itertools.product(range(degree + 1), repeat=dim):
        if sum(powers) <= degree:
            exact, values = (
                (x ** torch.tensor(powers)).prod(1) for x in (target, source)
            )
            out = along(graph, weight, values)
            # The displacements of a graph are of single precision.
            torch.testing.assert_close(out, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("degree", "order"), [(1, 2), (2, 3)])
def test_fits_converge_with_the_order_of_their_polynomials(degree, order):
    errors = []
    for num_points in (1000, 16000):
        source, target, radius, graph = graph_of(2, num_points)
        values, exact = ((3 * x[:, 0] + 2 * x[:, 1]).sin() for x in (source, target))
        out = along(graph, weights_of(graph, radius, degree), values)
        errors.append((out - exact).abs().mean())
    # Four times finer in distance.
    assert math.log(errors[0] / errors[1], 4) > order - 0.4


def test_linear_fields_stay_exact_where_quadratic_ones_cannot():
    """Three neighbours around a target carry a plane, and no parabola."""
    points = torch.tensor([[0.1, 0.0], [-0.06, 0.08], [-0.06, -0.07]]).double()
    target = torch.zeros(3, dtype=torch.long)
    weight = moving_least_squares(-points, target, 1, 0.25, 2)
    assert (weight @ points).abs().max() < 1e-6
