"""Neighbours that walls separate are none, whatever looks for them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from torch import Tensor

from nfsgeo.geometry import (
    Domain,
    GraphBuilder,
    Region,
    equispaced_grid,
    quadrature_weights,
    radius_edges,
)
from nfsgeo.geometry.search import Search

UNIT = (0.0, 0.0), (1.0, 1.0), (False, False)
# A wall across the unit square, with a gap at its upper end.
WALL = [[0.495, -0.1], [0.505, -0.1], [0.505, 0.7], [0.495, 0.7]]
CHAMBERS = Domain(*UNIT, Region.polygons([WALL]))
WALLS = [[[0.49, -1], [0.51, -1], [0.51, 2], [0.49, 2]]]
CLOSED = Domain(*UNIT, Region.polygons(WALLS))


def convex(dim: int, seed: int) -> tuple[Region, np.ndarray]:
    """A convex obstacle, and its half-spaces ``normal · x + offset <= 0``."""
    points = np.random.default_rng(seed).random((8 if dim == 2 else 12, dim))
    hull = ConvexHull(0.25 + 0.5 * points)
    if dim == 2:
        return Region.polygons([hull.points[hull.vertices]]), hull.equations
    return Region.surface(hull.points, hull.simplices), hull.equations


def clipped(a: Tensor, b: Tensor, planes: np.ndarray) -> Tensor:
    """How much of the way from ``a`` to ``b`` is in half-spaces (Cyrus and Beck)."""
    normal, offset = (torch.from_numpy(p) for p in (planes[:, :-1], planes[:, -1]))
    start, slope = a @ normal.T + offset, (b - a) @ normal.T
    at = -start / slope
    enters = torch.where(slope < 0, at, -torch.inf).amax(1).clamp(min=0)
    leaves = torch.where(slope > 0, at, torch.inf).amin(1).clamp(max=1)
    return leaves - enters


def height(points: Tensor, planes: np.ndarray) -> Tensor:
    """Above the highest of the planes; below zero in the obstacle."""
    normal, offset = (torch.from_numpy(p) for p in (planes[:, :-1], planes[:, -1]))
    return (points @ normal.T + offset).amax(1)


def free_points(dim: int, planes: np.ndarray, num: int, seed: int) -> Tensor:
    points = torch.from_numpy(np.random.default_rng(seed).random((num, dim)))
    return points[height(points, planes) > 1e-3]


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), dim=st.sampled_from([2, 3]))
def test_a_convex_obstacle_hides_what_the_way_through_it_leads_to(seed, dim):
    region, planes = convex(dim, seed)
    domain = Domain((0,) * dim, (1,) * dim, (False,) * dim, region)
    points = free_points(dim, planes, 300, seed)
    a, b = points[: len(points) // 2], points[-(len(points) // 2) :]
    part = clipped(a, b, planes)
    sure = part.abs() > 1e-6
    assert torch.equal(domain.visible(a, b)[sure], (part < 0)[sure])
    assert torch.equal(domain.visible(a, b), domain.visible(b, a))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), dim=st.sampled_from([2, 3]))
def test_corners_of_a_convex_obstacle_see_each_other_along_its_sides(seed, dim):
    region, planes = convex(dim, seed)
    domain = Domain((0,) * dim, (1,) * dim, (False,) * dim, region)
    facets = torch.tensor(region.facets)
    assert domain.visible(facets[:, 0], facets[:, 1]).all()
    middles = facets.mean(1)
    num = len(middles)
    a, b = middles.repeat_interleave(num, 0), middles.repeat(num, 1)
    hidden = clipped(a, b, planes) > 0.5
    deep = height((a + b) / 2, planes) < -1e-4
    assert not domain.visible(a, b)[hidden & deep].any()


@pytest.mark.parametrize("radius", [0.1, 0.3, 2.0])
def test_radius_edges_are_those_of_brute_force(radius, backend, brute_force):
    region, planes = convex(2, 3)
    domain = Domain(*UNIT, region)
    source, target = free_points(2, planes, 120, 1), free_points(2, planes, 90, 2)
    everywhere = brute_force(source, target, radius, Domain(*UNIT))
    free = clipped(source[everywhere[0]], target[everywhere[1]], planes) < 0
    found = radius_edges(source, target, radius, domain, backend=backend)
    assert torch.equal(found, everywhere[:, free])


def brute_nearest(source: Tensor, target: Tensor, domain: Domain, num: int) -> Tensor:
    shape = len(target), len(source), 2
    seen = domain.visible(target[:, None].expand(shape), source[None].expand(shape))
    distance = (target[:, None] - source[None]).norm(dim=2)
    order = distance.masked_fill(~seen, torch.inf).argsort(1)[:, :num]
    return order.masked_fill(~seen.gather(1, order), -1)


@pytest.mark.parametrize("num", [1, 6, 24])
def test_nearest_neighbours_are_those_of_brute_force(num):
    ends = (torch.rand(n, 2, dtype=torch.float64) for n in (150, 200))
    given = *(each[CHAMBERS.contains(each)] for each in ends), CHAMBERS
    found = Search(*given).nearest(num)
    assert torch.equal(found, brute_nearest(*given, num))


def side(points: Tensor) -> Tensor:
    return points[:, 0] > 0.5


@pytest.mark.parametrize("interpolation", ["mean", "linear", "quadratic", "spline"])
def test_no_base_interpolation_reaches_through_a_wall(interpolation):
    pos = torch.rand(60, 2)
    pos = pos[CLOSED.contains(pos)]
    grid = equispaced_grid(CLOSED, (12, 12))
    builder = GraphBuilder(CLOSED, 0.2, interpolation=interpolation)
    up, down = builder.points_to_grid(pos, grid), builder.grid_to_points(grid, pos)
    for graph, ends in ((up, (pos, grid)), (down, (grid, pos))):
        source, target = graph.edge_index
        assert torch.equal(side(ends[0])[source], side(ends[1])[target])
        total = torch.zeros(graph.num_target).index_add(0, target, graph.base_weight)
        torch.testing.assert_close(total, torch.ones(graph.num_target))
    # Two constants, one in each chamber, are followed exactly.
    value = side(pos).float()
    edge = up.base_weight * value[up.edge_index[0]]
    at_nodes = torch.zeros(len(grid)).index_add(0, up.edge_index[1], edge)
    torch.testing.assert_close(at_nodes, side(grid).float(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("interpolation", ["mean", "linear", "spline"])
def test_nodes_in_obstacles_have_no_neighbours(interpolation):
    block = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]
    domain = Domain(*UNIT, Region.polygons([block]))
    pos = torch.rand(200, 2)
    pos = pos[domain.contains(pos)]
    grid = equispaced_grid(domain, (10, 10))
    builder = GraphBuilder(domain, 0.15, interpolation=interpolation)
    hidden = ~domain.contains(grid)
    assert hidden.any()
    up, down = builder.points_to_grid(pos, grid), builder.grid_to_points(grid, pos)
    assert torch.equal(up.degree() == 0, hidden)
    assert not hidden[down.edge_index[0]].any()
    assert (down.degree() > 0).all()


def test_a_point_behind_corners_takes_what_others_see():
    # Three chambers in a row, open to the next at alternating ends.
    walls = [
        [[0.33, -1.0], [0.34, -1.0], [0.34, 0.95], [0.33, 0.95]],
        [[0.66, 0.05], [0.67, 0.05], [0.67, 2.0], [0.66, 2.0]],
    ]
    domain = Domain(*UNIT, Region.polygons(walls))
    source = torch.tensor([[0.02, 0.05], [0.05, 0.02]], dtype=torch.float64)
    target = equispaced_grid(domain, (20, 20), torch.float64)
    found = Search(source, target, domain).nearest(2)
    assert (found[:, 0] >= 0).all()
    seen = brute_nearest(source, target, domain, 2)[:, 0] >= 0
    assert not seen[target[:, 0] > 0.5].any()
    assert (found[~seen, 1] == -1).all()


def test_quadrature_weights_stop_at_the_boundary():
    pos = torch.tensor([[0.1, 0.5], [0.45, 0.5], [0.9, 0.5]], dtype=torch.float64)
    found = quadrature_weights(pos, CLOSED)
    # Without the wall, the second of them would reach beyond it.
    expected = torch.tensor([0.275, 0.215, 0.49], dtype=torch.float64) / 0.98
    torch.testing.assert_close(found, expected, atol=0.03, rtol=0)
    assert float(quadrature_weights(pos, Domain(*UNIT))[1]) > 0.3
