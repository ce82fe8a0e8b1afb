"""Distances, neighbours, interpolation and quadrature on a sphere."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial import SphericalVoronoi
from scipy.spatial.transform import Rotation
from scipy.special import eval_legendre
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import (
    Domain,
    GraphBuilder,
    Region,
    bipartite_graph,
    equispaced_grid,
    quadrature_weights,
    radius_edges,
    spherical_harmonics,
)
from nfsgeo.nn import interpolate

SPHERE = Domain.sphere()
BALL = SPHERE.normalised
PLACES = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
BASES = ["mean", "linear", "quadratic", "spline"]


def scattered(num: int, seed: int = 0) -> Tensor:
    """Points spread evenly, with some at the poles and on the date line."""
    drawn = np.random.default_rng(seed).random((num, 2))
    latitude = np.rad2deg(np.arcsin(2 * drawn[:, 1] - 1))
    points = np.stack([360 * drawn[:, 0] - 180, latitude], axis=1)
    points[:4] = [[0, 90], [77, -90], [-180, 0], [179.999, 10]]
    return torch.from_numpy(points)


def normalised(num: int, seed: int = 0) -> Tensor:
    """The same as unit vectors."""
    return SPHERE.normalise(scattered(num, seed), torch.float64)


def turned(points: Tensor, seed: int = 1) -> Tensor:
    """Unit vectors after a rotation."""
    return points @ torch.from_numpy(Rotation.random(random_state=seed).as_matrix()).T


def smooth(vectors: Tensor) -> Tensor:
    x, y, z = vectors.double().unbind(1)
    return (x * y + z**3 + torch.sin(2 * x))[:, None, None]


def at(*place: float) -> Tensor:
    return torch.tensor([place], dtype=torch.float64)


@given(PLACES, PLACES)
@example((180.0, 12.0), (-180.0, 12.0))
@example((20.0, 90.0), (-100.0, 90.0))
@example((0.0, 30.0), (180.0, -30.0))
def test_distance_is_that_of_the_great_circle(a, b):
    (l1, p1), (l2, p2) = np.deg2rad(a), np.deg2rad(b)
    half = np.sin((p2 - p1) / 2) ** 2
    half += np.cos(p1) * np.cos(p2) * np.sin((l2 - l1) / 2) ** 2
    haversine = np.rad2deg(2 * np.arcsin(np.sqrt(min(half, 1.0))))
    found = SPHERE.distance(at(*a), at(*b))
    # Of opposite points the haversine has half of the digits.
    assert found.item() == pytest.approx(haversine, abs=1e-5)
    back = SPHERE.distance(at(*b), at(*a)).item()
    assert back == pytest.approx(found.item(), rel=1e-12, abs=1e-12)
    way = SPHERE.displacement(at(*a), at(*b))
    if found < 179.9:
        assert way.norm().item() == pytest.approx(found.item(), abs=1e-9)


def test_longitudes_beside_the_box_are_those_in_it(refuses):
    beside = torch.tensor([[190.0, 10.0], [359.0, -80.0], [-200.0, 0.0]])
    inside = torch.tensor([[-170.0, 10.0], [-1.0, -80.0], [160.0, 0.0]])
    assert torch.equal(SPHERE.normalise(beside), SPHERE.normalise(inside))
    refuses("point 0", SPHERE.normalise, beside + 720)


def test_displacement_leads_east_and_north():
    east = SPHERE.displacement(at(175, 0), at(-175, 0))
    torch.testing.assert_close(east, at(10, 0))
    over_the_pole = SPHERE.displacement(at(0, 85), at(180, 85))
    torch.testing.assert_close(over_the_pole, at(0, 10), atol=1e-9, rtol=0)
    # As every map does, from either end of a way the other has its own direction.
    a, b = at(0, 60), at(90, 60)
    assert SPHERE.displacement(a, b)[0, 1] > 0 < SPHERE.displacement(b, a)[0, 1]


@pytest.mark.parametrize("reach", [3.0, 12.0, 50.0])
def test_neighbours_are_those_of_brute_force(reach, backend, brute_force):
    source, target = scattered(300), scattered(200, seed=1)
    found = radius_edges(source, target, reach, SPHERE, backend=backend)
    assert torch.equal(found, brute_force(source, target, reach, SPHERE))
    ends = [SPHERE.normalise(pos, torch.float64) for pos in (source, target)]
    chord = SPHERE.normalised_length(reach)
    assert torch.equal(found, radius_edges(*ends, chord, BALL, backend=backend))


@pytest.mark.parametrize("num", [50, 1000])
def test_nodes_are_spread_evenly(num):
    nodes = equispaced_grid(BALL, (num,), torch.float64)
    assert torch.pdist(nodes).min() > 0.8 * math.sqrt(4 * math.pi / num)
    volumes = quadrature_weights(nodes, BALL) * num
    assert volumes.min() > 0.75 and volumes.max() < 1.25


def test_quadrature_weights_are_voronoi_areas():
    points, vectors = scattered(200), normalised(200)
    areas = SphericalVoronoi(vectors.numpy()).calculate_areas() / (4 * math.pi)
    found = quadrature_weights(points, SPHERE)
    assert found.sum().item() == pytest.approx(1)
    np.testing.assert_allclose(found, areas, atol=0.2 / 200)
    torch.testing.assert_close(found, quadrature_weights(vectors, BALL))
    # Of a function whose mean is known.
    assert (found * vectors[:, 2] ** 2).sum().item() == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("base", BASES)
def test_base_interpolation_commutes_with_rotations(base):
    pos, query = (normalised(n, seed=n) for n in (300, 150))
    weights = torch.zeros(2, 300, 150, dtype=torch.float64)
    pairs = (pos, query), (turned(pos), turned(query))
    for dense, ends in zip(weights, pairs, strict=True):
        graph = bipartite_graph(*ends, 0.6, BALL, interpolation=base)
        dense[*graph.edge_index] = graph.base_weight
    torch.testing.assert_close(*weights, atol=1e-6, rtol=0)


def test_splines_know_neither_the_date_line_nor_the_poles():
    pos = scattered(2000)
    pole = torch.tensor([[0.0, 90.0], [50.0, -90.0], [30.0, 89.5]], dtype=pos.dtype)
    date = torch.tensor([[-180.0, 3.0], [179.9999, 3.0]], dtype=pos.dtype)
    queries = torch.cat([scattered(1000, seed=2), pole, date])
    true = smooth(SPHERE.normalise(queries, torch.float64))
    values = smooth(normalised(2000))
    found = interpolate(values, pos, queries, SPHERE)
    error, latitude = (found - true).abs().flatten(), queries[:, 1].abs()
    assert error.max() < 3e-3
    assert error[latitude > 60].mean() < 1.5 * error[latitude < 30].mean()
    mixed = torch.randperm(len(pos))
    again = interpolate(values[mixed], pos[mixed], queries, SPHERE)
    torch.testing.assert_close(again, found)


def test_splines_have_derivatives_at_the_poles():
    pos = normalised(400)
    query = torch.tensor([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]]).double().requires_grad_()
    graph = GraphBuilder(BALL, 0.3, interpolation="spline").grid_to_points(pos, query)
    value = (graph.base_weight * smooth(pos)[graph.edge_index[0], 0, 0]).sum()
    (slope,) = torch.autograd.grad(value, query)
    assert slope.isfinite().all()
    # Of x y + z^3 + sin 2 x along the axis of x, at the pole.
    assert slope[0, 0].item() == pytest.approx(2, abs=0.05)


def test_spheres_travel_as_plain_numbers():
    for sphere in (SPHERE, Domain.sphere(0.0)):
        assert Domain.from_dict(json.loads(json.dumps(sphere.to_dict()))) == sphere
    assert copy.deepcopy(SPHERE) == SPHERE
    arrays = {k: np.array(v) for k, v in SPHERE.to_dict().items()}
    assert Domain.from_dict(arrays) == SPHERE
    assert Domain.from_dict(arrays | {"sphere": np.array(False)}) != SPHERE
    assert Domain(SPHERE.lower, SPHERE.upper, SPHERE.periodic) != SPHERE


def test_what_is_no_sphere(refuses):
    hole = Region.polygons([[(0, 0), (1, 0), (0, 1)]])
    refuses("no region", replace, SPHERE, region=hole)
    with pytest.raises(UserError, match="latitudes from -90 to 90"):
        Domain.from_dict(SPHERE.to_dict() | {"upper": [180.0, 80.0]})


def test_harmonics_satisfy_the_addition_theorem():
    pos = normalised(50)
    found = spherical_harmonics(pos, 9)
    for degree in range(9):
        part = found[:, degree**2 : (degree + 1) ** 2]
        legendre = eval_legendre(degree, (pos @ pos.T).clamp(-1, 1).numpy())
        expected = (2 * degree + 1) / (4 * math.pi) * torch.from_numpy(legendre)
        torch.testing.assert_close(part @ part.T, expected, atol=1e-12, rtol=0)
    scale = (3 / (4 * math.pi)) ** 0.5
    torch.testing.assert_close(found[:, 1:4], scale * pos[:, [1, 2, 0]])
