"""Base interpolation by moving least squares."""

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
)

NEIGHBOURS = {1: 12, 2: 30, 3: 60}


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


def interpolate(graph, weight: Tensor, values: Tensor) -> Tensor:
    out = weight.new_zeros(graph.num_target)
    return out.index_add(0, graph.edge_index[1], weight * values[graph.edge_index[0]])


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_polynomials_are_exact(dim, degree):
    source, target, radius, graph = graph_of(dim, 400)
    weight = weights_of(graph, radius, degree)
    for powers in itertools.product(range(degree + 1), repeat=dim):
        if sum(powers) <= degree:
            exact, values = (
                (x ** torch.tensor(powers)).prod(1) for x in (target, source)
            )
            out = interpolate(graph, weight, values)
            # The displacements of a graph are of single precision.
            torch.testing.assert_close(out, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("degree", "order"), [(1, 2), (2, 3)])
def test_converges_with_the_order_of_the_polynomials(degree, order):
    errors = []
    for num_points in (1000, 16000):
        source, target, radius, graph = graph_of(2, num_points)
        values, exact = ((3 * x[:, 0] + 2 * x[:, 1]).sin() for x in (source, target))
        out = interpolate(graph, weights_of(graph, radius, degree), values)
        errors.append((out - exact).abs().mean())
    # Four times finer in distance.
    assert math.log(errors[0] / errors[1], 4) > order - 0.4


def test_linear_fields_stay_exact_where_quadratic_ones_cannot():
    """Three neighbours around a target carry a plane, and no parabola."""
    points = torch.tensor([[0.1, 0.0], [-0.06, 0.08], [-0.06, -0.07]]).double()
    target = torch.zeros(3, dtype=torch.long)
    weight = moving_least_squares(-points, target, 1, 0.25, 2)
    assert (weight @ points).abs().max() < 1e-6


@pytest.mark.parametrize("degree", [1, 2])
def test_poor_neighbourhoods_stay_stable_and_exact_for_constants(degree):
    """One neighbour, neighbours on a line, all of them on one side, duplicates."""
    line = torch.stack([torch.linspace(0, 0.2, 9), torch.zeros(9)], dim=1)
    side = 0.05 + 0.05 * torch.rand(9, 2)
    for points in (torch.tensor([[0.03, 0.04]]), line, side, side[:1].repeat(9, 1)):
        displacement = -points.double()
        target = torch.zeros(len(points), dtype=torch.long)
        weight = moving_least_squares(displacement, target, 1, 0.25, degree)
        torch.testing.assert_close(weight.sum(), weight.new_tensor(1.0))
        assert weight.abs().sum() <= 3
