"""Edges and boundaries of cells, and the way to them, against counting by hand."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import shapely
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from nfsgeo.geometry import Domain
from nfsgeo.geometry.cells import (
    CELLS,
    boundary_sides,
    cell_edges,
    outside_cells,
    way_to_points,
    way_to_segments,
)

FAST = settings(max_examples=25, deadline=None)


@FAST
@given(num=st.integers(4, 30), keep=st.floats(0.2, 1.0), seed=st.integers(0, 99))
def test_triangles_with_holes(num, keep, seed):
    random = np.random.default_rng(seed)
    points = random.random((num, 2))
    triangles = Delaunay(points).simplices.astype(np.int64)
    triangles = triangles[random.random(len(triangles)) <= keep]
    times = Counter(
        tuple(sorted((t[a], t[b])))
        for t in triangles.tolist()
        for a, b in ((0, 1), (1, 2), (2, 0))
    )
    cells = {"triangle": triangles} if len(triangles) else {}
    edges = cell_edges(cells)
    both = {(a, b) for pair in times for a, b in (pair, pair[::-1])}
    assert {*map(tuple, edges.T.tolist())} == both and edges.shape[1] == len(both)
    assert (np.lexsort(edges) == np.arange(edges.shape[1])).all()
    sides = boundary_sides(cells, torch.from_numpy(points))
    found = [tuple(sorted(pair)) for side in sides for pair in side.tolist()]
    assert sorted(found) == sorted(pair for pair, number in times.items() if number < 2)


def block(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Points and hexahedra of a box of cells."""
    ranges = [np.arange(n + 1.0) for n in shape]
    points = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).reshape(-1, 3)
    numbers = np.arange(len(points)).reshape([n + 1 for n in shape])
    ring = [(0, 0), (1, 0), (1, 1), (0, 1)]
    at = [(*corner, height) for height, corner in product((0, 1), ring)]
    cut = [tuple(slice(a, a - 1 or None) for a in corner) for corner in at]
    return points, np.stack([numbers[c] for c in cut], -1).reshape(-1, 8)


@FAST
@given(shape=st.tuples(*[st.integers(1, 3)] * 3))
def test_hexahedra_of_a_box(shape):
    """As many faces, and points on them, as the surface of a box has."""
    points, cells = block(shape)
    a, b, c = shape
    (faces,) = boundary_sides({"hexahedron": cells}, torch.from_numpy(points))
    assert faces.shape == (2 * (a * b + b * c + c * a), 4)
    inner = (points > 0).all(1) & (points < np.array(shape)).all(1)
    assert {*faces.ravel().tolist()} == {*np.flatnonzero(~inner).tolist()}
    edges = cell_edges({"hexahedron": cells})
    assert (np.abs(points[edges[0]] - points[edges[1]]).sum(1) == 1).all()
    assert edges.shape[1] == 2 * sum(
        shape[i] * np.prod([shape[j] + 1 for j in range(3) if j != i]) for i in range(3)
    )


def test_every_type_of_cell_is_closed():
    """Euler's formula, and every edge belongs to two faces."""
    for kind in (kind for kind in CELLS.values() if kind.dim == 3):
        pairs = Counter(
            tuple(sorted(pair))
            for side in kind.sides
            for pair in zip(side, (*side[1:], side[0]), strict=True)
        )
        assert {*pairs} == {tuple(sorted(edge)) for edge in kind.edges}
        assert {*pairs.values()} == {2}
        assert kind.corners - len(kind.edges) + len(kind.sides) == 2


def test_seams_mixed_cells_and_cells_of_second_order():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [1, 0], [1, 1], [2, 0.5]])
    cells = {"quad": np.array([[0, 1, 2, 3]]), "triangle": np.array([[4, 6, 5]])}
    (sides,) = boundary_sides(cells, torch.from_numpy(square))
    found = {tuple(sorted(side)) for side in sides.tolist()}
    assert found == {(0, 1), (2, 3), (0, 3), (4, 6), (5, 6)}
    edges = cell_edges({"triangle6": np.arange(6)[None], "unknown": np.ones((1, 4))})
    assert edges.T[edges[0] < edges[1]].tolist() == [
        *([0, 3], [1, 3], [1, 4], [2, 4], [0, 5], [2, 5])
    ]
    line = {"line": np.array([[0, 1], [1, 2]])}
    (ends,) = boundary_sides(line, torch.tensor([[0.0], [1.0], [2.0]]).double())
    assert sorted(ends.ravel().tolist()) == [0, 2]
    assert boundary_sides({}, torch.zeros(3, 2)) == [] and cell_edges({}).size == 0


@pytest.mark.slow
@FAST
@given(periodic=st.tuples(st.booleans(), st.booleans()), seed=st.integers(0, 99))
def test_the_way_to_points_and_segments(periodic, seed):
    """The shortest among all images, and among many points of each segment."""
    random = np.random.default_rng(seed)
    domain = Domain((0.0, 0.0), (1.0, 1.0), periodic)
    pos, ends = random.random((20, 2)), random.random((5, 2, 2))
    steps = np.array([*product(*[(0, -1, 1) if p else (0,) for p in periodic])])
    along = np.linspace(0, 1, 2001)[:, None]
    for found, sources in (
        (way_to_points(*map(torch.from_numpy, (pos, ends[:, 0])), domain), ends[:, :1]),
        (
            way_to_segments(*map(torch.from_numpy, (pos, ends)), domain),
            ends[:, :1] * (1 - along) + ends[:, 1:] * along,
        ),
    ):
        images = (sources.reshape(-1, 2) + steps[:, None]).reshape(-1, 2)
        away = np.linalg.norm(images - pos[:, None], axis=2).min(1)
        assert found.norm(dim=1).numpy() == pytest.approx(away, abs=1e-3)
        reached = torch.from_numpy(pos) + found
        off = np.linalg.norm(images - reached.numpy()[:, None], axis=2).min(1)
        assert off == pytest.approx(0, abs=1e-3)


@FAST
@given(num=st.integers(4, 30), keep=st.floats(0.2, 1.0), seed=st.integers(0, 99))
def test_points_outside_cells_are_in_none_of_them(num, keep, seed):
    """Holes, islands in holes and cells that meet in a corner."""
    random = np.random.default_rng(seed)
    points, places = random.random((num, 2)), random.random((200, 2))
    triangles = Delaunay(points).simplices.astype(np.int64)
    triangles = triangles[random.random(len(triangles)) <= keep]
    mask = outside_cells(
        {"triangle": triangles}, torch.from_numpy(points), torch.from_numpy(places)
    )
    if not len(triangles):
        assert not mask.any()  # no cells, which could tell it
        return
    whole = shapely.union_all(shapely.polygons(points[triangles]))
    away = shapely.distance(shapely.points(places), whole)
    assert (away[mask] > 0).all()
    assert mask[away > 0.15].all()


def test_points_on_a_curved_wall_are_not_outside():
    """Nodes of a finer mesh lie beyond the sides of a coarse one."""
    turn = 2 * np.pi * np.arange(24) / 24
    circle = np.stack([np.cos(turn), np.sin(turn)], -1)
    pos = torch.from_numpy(0.5 + np.concatenate([0.2 * circle, 0.4 * circle]))
    k = np.arange(24)
    quads = np.stack([k, (k + 1) % 24, 24 + (k + 1) % 24, 24 + k], -1)
    between = np.stack([np.cos(turn + 0.13), np.sin(turn + 0.13)], -1)
    walls = [0.5 + radius * between for radius in (0.2, 0.4)]
    others = [[0.5, 0.5], [0.95, 0.5]]
    points = torch.from_numpy(np.concatenate([*walls, others]))
    mask = outside_cells({"quad": quads}, pos, points)
    assert mask.tolist() == [False] * 48 + [True] * 2
