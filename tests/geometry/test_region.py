"""Boundaries, what they enclose, and what is refused."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Region

SQUARE = [[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]]
HOLE = [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]
BOX = (0.0, 0.0), (1.0, 1.0), (False, False)


def cube(lower: float, upper: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles of a cube."""
    corners = np.array(list(itertools.product((lower, upper), repeat=3)))
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6]]
    quads += [[0, 2, 6, 4], [1, 5, 7, 3]]
    return corners, np.array([[q[0], q[i], q[i + 1]] for q in quads for i in (1, 2)])


def in_square(points: torch.Tensor, ring: list[list[float]]) -> torch.Tensor:
    low, high = ring[0][0], ring[2][0]
    return ((points > low) & (points < high)).all(1)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("hole", [HOLE, HOLE[::-1]], ids=["forwards", "backwards"])
def test_polygons_with_a_hole(hole, inside):
    points = torch.rand(2000, 2, dtype=torch.float64)
    solid = in_square(points, SQUARE) & ~in_square(points, HOLE)
    domain = Domain(*BOX, Region.polygons([SQUARE, hole], inside=inside))
    assert torch.equal(domain.contains(points), solid if inside else ~solid)


@pytest.mark.parametrize("inside", [False, True])
def test_points_on_a_boundary_belong_to_the_region(inside):
    ring = torch.tensor(SQUARE)
    along = torch.cat([ring, ring.lerp(ring.roll(-1, 0), 0.3)])
    domain = Domain(*BOX, Region.polygons([SQUARE], inside=inside))
    assert domain.contains(along).all()
    assert domain.normalised.contains(domain.normalise(along)).all()
    assert not domain.to_boundary(along).any()


@settings(deadline=None, max_examples=25)
@given(
    centre=st.floats(-0.5, 1.5), radius=st.floats(0.05, 0.3), seed=st.integers(0, 99)
)
def test_an_obstacle_across_a_seam(centre, radius, seed):
    torus = Domain((0, 0), (1, 1), (True, False))
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.stack([centre + radius * np.cos(angle), 0.5 + radius * np.sin(angle)], 1)
    domain = Domain((0, 0), (1, 1), (True, False), Region.polygons([ring]))
    points = torch.from_numpy(np.random.default_rng(seed).random((500, 2)))
    middle = torus.wrap(torch.tensor([[centre, 0.5]], dtype=torch.float64))
    away = torus.distance(points, middle)
    sure = (away - radius).abs() > 1e-3 * radius
    assert torch.equal(domain.contains(points)[sure], (away > radius)[sure])
    outside = sure & (away > radius)
    found = domain.to_boundary(points[outside])
    expected = away[outside] - radius
    torch.testing.assert_close(found[:, 0], expected, atol=1e-4, rtol=1e-3)
    there = torus.displacement(points[outside], middle.expand_as(points[outside]))
    cosine = (found[:, 1:] * there).sum(1) / there.norm(dim=1)
    assert (cosine > 0.999)[found[:, 0] > 1e-3].all() or radius < 0.06


def test_a_closed_surface_in_space():
    region = Region.surface(*cube(0.25, 0.75))
    domain = Domain((0,) * 3, (1,) * 3, (False,) * 3, region)
    points = torch.rand(2000, 3, dtype=torch.float64)
    outside = ~((points > 0.25) & (points < 0.75)).all(1)
    assert torch.equal(domain.contains(points), outside)
    way = (points.clamp(0.25, 0.75) - points)[outside]
    found = domain.to_boundary(points[outside])
    torch.testing.assert_close(found[:, 0], way.norm(dim=1))
    torch.testing.assert_close(found[:, 1:] * found[:, :1], way, atol=1e-12, rtol=0)


def test_a_signed_distance_is_its_zero_level():
    axis = np.linspace(0, 1, 65)
    x, y = np.meshgrid(axis, axis[:49], indexing="ij")
    distance = np.hypot(x - 0.4, y - 0.3) - 0.2
    region = Region.signed_distance(axis, axis[:49], distance)
    domain = Domain((0, 0), (1, 0.75), (False, False), region)
    points = torch.rand(2000, 2, dtype=torch.float64) * torch.tensor([1.0, 0.75])
    away = torch.hypot(points[:, 0] - 0.4, points[:, 1] - 0.3)
    sure = (away - 0.2).abs() > 1e-3
    assert torch.equal(domain.contains(points)[sure], (away > 0.2)[sure])


def test_lengths_and_origin_do_not_matter():
    region = Region.polygons([SQUARE])
    points = torch.rand(300, 2, dtype=torch.float64)
    moved = points * 40 + torch.tensor([1e3, -5.0])
    far = (1e3, -5.0), (1e3 + 40, 35.0), (False, False)
    here = Domain(*BOX, region)
    there = Domain(*far, region.moved([-25, 0.125], [40, 40]))
    assert torch.equal(here.contains(points), there.contains(moved))
    assert there.normalised.region is not None
    np.testing.assert_allclose(there.normalised.region.facets, region.facets, atol=1e-9)
    a, b = points.chunk(2)
    c, d = moved.chunk(2)
    assert torch.equal(here.visible(a, b), there.visible(c, d))


def test_regions_compare_and_survive_a_dictionary():
    domain, plain = Domain(*BOX, Region.polygons([SQUARE, HOLE])), Domain(*BOX)
    again = Domain.from_dict(domain.to_dict())
    assert again == domain and hash(again) == hash(domain)
    assert again != plain and again != Domain(*BOX, Region.polygons([SQUARE]))
    assert set(plain.to_dict()) == {"lower", "upper", "periodic"}


@pytest.mark.parametrize(
    "facets",
    [np.zeros((3, 2)), np.full((3, 2, 2), np.nan), np.empty((0, 2, 2))]
    + [np.array([[[0, 0], [1, 0]], [[1, 0], [1, 1]]], float)],
)
def test_bad_boundaries_are_refused(facets):
    with pytest.raises(UserError):
        Region(facets)


@pytest.mark.parametrize(
    "ring",
    [[[0, 0], [1, 1]], [[0, 0], [1, 1], [0, 0]], [[0, 0], [1, 0], [math.inf, 1]], [0]]
    + [[[0, 0], [1, 1], [1, 0], [0, 0.5]]],
)
def test_a_polygon_without_area_or_that_crosses_is_refused(ring, refuses):
    refuses("polygon 1", Region.polygons, [SQUARE, ring])
    over = [[0.5, 0.5], [0.9, 0.5], [0.9, 0.6], [0.5, 0.6]]
    refuses("polygons 0 and 1", Region.polygons, [SQUARE, over])


def test_points_in_obstacles_are_refused_in_one_line(refuses):
    domain = Domain(*BOX, Region.polygons([SQUARE]))
    points = torch.tensor([[0.1, 0.1], [0.5, 0.4], [0.6, 0.6]])
    refuses(r"2 of 3 points in an obstacle.*number 1 at", domain.normalise, points)
    vessel = Domain(*BOX, Region.polygons([SQUARE], inside=True))
    refuses(r"1 of 3 points outside of the region", vessel.normalise, points)
    with pytest.raises(UserError, match="boundaries from"):
        Domain((0,) * 3, (1,) * 3, (False,) * 3, Region.polygons([SQUARE]))
    with pytest.raises(UserError, match="without a region"):
        Domain.unit(2).to_boundary(points)


def test_polygons_side_by_side_are_one_obstacle():
    """Sides that they share, in whole or in part, are no gap."""
    boxes = [(0.2, 0.3, 0.6, 0.5), (0.2, 0.5, 0.6, 0.7), (0.6, 0.4, 0.8, 0.6)]
    rings = [[[a, b], [c, b], [c, d], [a, d]] for a, b, c, d in boxes]
    domain = Domain(*BOX, Region.polygons(rings))
    points = torch.rand(2000, 2, dtype=torch.float64)
    x, y = points.T
    solid = ((x - 0.4).abs() < 0.2) & ((y - 0.5).abs() < 0.2)
    solid |= ((x - 0.7).abs() < 0.1) & ((y - 0.5).abs() < 0.1)
    assert torch.equal(domain.contains(points), ~solid)
    below, above = torch.tensor([[[0.4, 0.1], [0.55, 0.5]], [[0.4, 0.9], [0.7, 0.5]]])
    assert not domain.visible(below.double(), above.double()).any()


def test_a_wall_too_thin_to_be_seen_is_refused():
    sliver = [[0.5, 0.0], [0.5 + 1e-7, 0.0], [0.5 + 1e-7, 1.0], [0.5, 1.0]]
    with pytest.raises(UserError, match="thinner"):
        Domain(*BOX, Region.polygons([sliver])).contains(torch.rand(3, 2))
    speck = 0.5 + 1e-7 * np.array(SQUARE)
    points = torch.rand(50, 2, dtype=torch.float64)
    assert Domain(*BOX, Region.polygons([speck, SQUARE])).contains(points).any()
    assert Domain(*BOX, Region.polygons([speck])).contains(points).all()


def test_boundaries_lie_in_the_box():
    """Not in millimetres where the box is in metres; but beside a seam they may."""
    beside = np.array(SQUARE) + [1.0, 0.0]
    for ring, message in (
        (1000 * np.array(SQUARE), "in the units of its coordinates"),
        (beside, "boundaries from"),
    ):
        with pytest.raises(UserError, match=message):
            Domain(*BOX, Region.polygons([ring]))
    Domain((0.0, 0.0), (1.0, 1.0), (True, False), Region.polygons([beside]))
