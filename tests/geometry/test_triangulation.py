"""Triangulations, and points far from each other, in every order and place."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain, Region, equispaced_grid
from nfsgeo.geometry.triangulation import farthest_points, triangulation


def pairs(edges: Tensor) -> set[tuple[int, ...]]:
    return {tuple(edge) for edge in edges.t().tolist()}


@pytest.mark.parametrize("num", [1, 2, 3, 7, 60])
@pytest.mark.parametrize("periodic", [True, False], ids=["torus", "box"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_order_of_points_does_not_matter(dim, periodic, num):
    domain, pos = Domain.unit(dim, periodic), torch.rand(num, dim)
    edges, radii = triangulation(pos, domain)
    assert pairs(edges) == pairs(edges.flip(0)) and len(radii) == num
    assert edges.numel() == 0 or int(edges.max()) < num
    order = torch.randperm(num)
    again, others = triangulation(pos[order], domain)
    assert pairs(order[again]) == pairs(edges)
    torch.testing.assert_close(others, radii[order])
    few = farthest_points(pos, domain, -(-num // 3))
    assert torch.equal(order[farthest_points(pos[order], domain, len(few))], few)


@pytest.mark.parametrize("num", [40, 400])
@pytest.mark.parametrize("dim", [1, 2])
@settings(max_examples=8, deadline=None)
@given(shift=st.floats(0, 1))
def test_a_torus_has_no_seam(dim, num, shift):
    torch.manual_seed(0)  # points that are nowhere nearly as far as others
    domain, pos = Domain.unit(dim), torch.rand(num, dim, dtype=torch.float64)
    edges, radii = triangulation(pos, domain)
    assert edges.size(1) == num * (2 if dim == 1 else 6)  # Euler's formula
    moved = domain.wrap(pos + shift)
    again, others = triangulation(moved, domain)
    assert pairs(again) == pairs(edges)
    torch.testing.assert_close(others, radii, atol=1e-5, rtol=0)
    assert torch.equal(
        farthest_points(moved, domain, 9), farthest_points(pos, domain, 9)
    )


@pytest.mark.parametrize("periodic", [True, False], ids=["torus", "box"])
def test_no_point_is_in_the_circle_of_a_triangle(periodic):
    """Delaunay's condition, for each pair: some circle through both is empty."""
    domain, pos = Domain.unit(2, periodic), torch.rand(30, 2, dtype=torch.float64)
    edges, _ = triangulation(pos, domain)
    share = torch.linspace(-6, 6, 2001, dtype=torch.float64)[:, None]
    for i, j in pairs(edges):
        way = domain.displacement(pos[i], pos[j])
        centre = pos[i] + way / 2 + share * way.flip(0) * way.new_tensor([-1, 1])
        away = domain.displacement(centre[:, None], pos[None]).norm(dim=2)
        least = (pos[i] - centre).norm(dim=1) - 1e-3
        if periodic and bool((least > 0.4).all()):
            continue
        assert bool((away >= least[:, None]).all(1).any())


@pytest.mark.parametrize("dim", [1, 2])
def test_balls_of_the_radii_cover_a_torus(dim):
    domain, pos = Domain.unit(dim), torch.rand(50, dim)
    _, radii = triangulation(pos, domain)
    anywhere = torch.rand(2000, dim)
    away = domain.distance(anywhere[:, None], pos[None])
    assert bool((away <= radii + 1e-5).any(1).all())


def test_points_far_from_each_other_fill_a_grid():
    domain = Domain.unit(2)
    pos = equispaced_grid(domain, (8, 8))
    few = pos[farthest_points(pos, domain, 16)]
    apart = domain.distance(few[:, None], few[None]).fill_diagonal_(1)
    torch.testing.assert_close(apart.min(), torch.tensor(0.25))


def test_edges_on_a_sphere_and_between_walls():
    pos = torch.nn.functional.normalize(torch.randn(80, 3), dim=1)
    assert triangulation(pos, Domain.sphere().normalised)[0].size(1) == 6 * 80 - 12
    wall = Region.polygons([[[0.48, 0.1], [0.52, 0.1], [0.52, 0.9], [0.48, 0.9]]])
    domain = Domain((0, 0), (1, 1), (False, False), wall).normalised
    pos = torch.rand(200, 2)
    pos = pos[domain.contains(pos)]
    edges, _ = triangulation(pos, domain)
    assert bool(domain.visible(pos[edges[0]], pos[edges[1]]).all())
    assert edges.size(1) < triangulation(pos, domain.box)[0].size(1)


def test_points_at_one_place_have_the_same_neighbours():
    domain, pos = Domain.unit(2), torch.rand(30, 2)
    joined = pairs(triangulation(torch.cat([pos, pos[:5]]), domain)[0])
    alone = pairs(triangulation(pos, domain)[0])
    place = [*range(30), *range(5)]
    expected = {
        (a, b)
        for a, b in product(range(35), repeat=2)
        if a != b and (place[a] == place[b] or (place[a], place[b]) in alone)
    }
    assert joined == expected


@pytest.mark.parametrize("apart", [0.0, 1e-6])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_points_at_one_place_are_joined(dim, apart):
    domain, pos = Domain.unit(dim, False), 0.3 + apart * torch.rand(40, dim)
    edges, radii = triangulation(pos, domain)
    assert edges.unique().tolist() == [*range(40)]
    assert bool((radii <= 1e-5).all())
