"""Distance and direction to the boundary of each sample's own mesh."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data.boundary import (
    boundary_at,
    boundary_kinds,
    boundary_names,
    with_boundary,
)
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

BOX = Domain((-2.0, 0.0), (2.0, 4.0), (False, False))


@settings(max_examples=15, deadline=None)
@given(
    layout=st.sampled_from(["shared", "own types", "ragged"]),
    seed=st.integers(0, 99),
    shift=st.floats(-100, 100),
    scale=st.floats(0.01, 100),
)
def test_the_nearest_point_of_each_type(layout, seed, shift, scale, sent):
    """Of all types, in normalised units: whatever the origin and the units are."""
    random, num = np.random.default_rng(seed), 3
    sizes = [6 + k * (layout == "ragged") for k in range(num)]
    pos = [random.random((n, 2)) * 4 - [2, 0] for n in sizes]
    kinds = [random.integers(0, 3, (n, 1)) for n in sizes]
    pos = pos if layout == "ragged" else [pos[0]] * num
    kinds = [kinds[0]] * num if layout == "shared" else kinds
    lower, upper = (scale * (np.array(ends) + shift) for ends in ([-2, 0], [2, 4]))
    fields = nfsgeo.from_arrays(
        [random.normal(size=n) for n in sizes],
        [scale * (each + shift) for each in pos],
        static=kinds,
        static_names=["node_type"],
        domain=Domain(tuple(lower), tuple(upper), (False, False)),
    )
    names = boundary_names(fields.domain, (1, 2))
    made = with_boundary(fields, (1, 2))
    assert made.static_names == ["node_type", *names] and len(names) == 6
    for each in (made, sent(made), with_boundary(made, (1, 2))):
        for sample in range(num):
            found = each.read_static(sample)[:, 1:].reshape(-1, 2, 3)
            for k, kind in enumerate((1, 2)):
                there = pos[sample][kinds[sample][:, 0] == kind]
                if not len(there):
                    assert (found[:, k] == [np.float32(2**0.5), 0, 0]).all()
                    continue
                ways = (there - pos[sample][:, None]) / 4  # the longest axis has 1
                away = np.linalg.norm(ways, axis=2)
                tolerance = {"rel": 1e-3, "abs": 1e-5}
                assert found[:, k, 0] == pytest.approx(away.min(1), **tolerance)
                way = found[:, k, :1] * found[:, k, 1:]
                nearest = ways[np.arange(len(away)), away.argmin(1)]
                np.testing.assert_allclose(way, nearest, atol=1e-4)


def test_kinds_are_those_of_the_samples_that_are_named():
    kinds = [[[0], [4], [6]], [[0], [0], [5]], [[4], [4], [4]]]
    pos = np.random.rand(3, 2)
    fields = nfsgeo.from_arrays(
        np.ones((3, 3)), pos, static=kinds, static_names=["node_type"]
    )
    assert boundary_kinds(fields, [0, 2]) == (4, 6)
    assert boundary_kinds(fields, range(3)) == (4, 5, 6)
    plain = nfsgeo.from_arrays(np.ones((3, 3)), pos)
    assert boundary_kinds(plain, range(3)) is None
    inside = nfsgeo.from_arrays(
        np.ones((3, 3)), pos, static=np.zeros((3, 3)), static_names=["node_type"]
    )
    assert boundary_kinds(inside, range(3)) is None
    cells = {"triangle": [[0, 1, 2]]}
    joined = nfsgeo.from_arrays(np.ones((3, 3)), pos, cells=cells)
    assert boundary_kinds(joined, range(3)) == ()
    about = {"flag_values": np.array([4, 6]), "flag_meanings": "fluid wall"}
    fields.dataset["node_type"].attrs.update(about)
    assert boundary_kinds(nfsgeo.from_xarray(fields.dataset), range(3)) == (0, 5, 6)


def test_the_boundary_of_cells_in_the_plane_and_in_space():
    """Of a square of two triangles, and of a tetrahedron."""
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.25]]) * 2
    cells = {"triangle": [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]}
    domain = Domain((0.0, 0.0), (4.0, 4.0), (False, False))
    fields = nfsgeo.from_arrays(np.ones((1, 5)), square, cells=cells, domain=domain)
    found = with_boundary(fields, ()).read_static(0)
    assert not found[:4, 0].any()
    np.testing.assert_allclose(np.linalg.norm(found[:4, 1:], axis=1), 1)
    np.testing.assert_allclose(found[4], [0.125, 0, -1])
    corners = np.vstack([np.zeros(3), np.eye(3), [[0.2, 0.1, 0.1]]])
    cells = {"tetra": [[0, 1, 2, 4], [0, 1, 3, 4], [0, 2, 3, 4], [1, 2, 3, 4]]}
    box = Domain((0.0,) * 3, (1.0,) * 3, (False,) * 3)
    fields = nfsgeo.from_arrays(np.ones((1, 5)), corners, cells=cells, domain=box)
    found = with_boundary(fields, ()).read_static(0)
    way = -np.array([0.2, 0.1, 0.1])
    np.testing.assert_allclose(found[4, 0] * found[4, 1:], way, atol=1e-6)


def test_it_is_made_once_for_each_mesh(around_bodies, monkeypatch):
    """Also in a file that is written with it."""
    from nfsgeo.data import boundary

    made: list[int] = []
    make = boundary._Ways.make
    monkeypatch.setattr(
        boundary._Ways, "make", lambda self, s: (made.append(s), make(self, s))[1]
    )
    fields = with_boundary(around_bodies(4), (4, 6))
    for _ in range(2):
        for sample in range(4):
            fields.read_inputs(sample, np.arange(3))
    assert made == [0, 1, 2, 3]
    again = nfsgeo.open(fields.write(Path("a.nc")))
    np.testing.assert_array_equal(again.read_inputs(2), fields.read_inputs(2))
    # From the inflow at the outer ring to the wall, and nowhere on the wall itself.
    values, kinds = fields.read_static(1), fields.read_static(1)[:, 0]
    np.testing.assert_array_equal(values[:, 4] == 0, kinds == 6)


@pytest.mark.parametrize("wrong", [0.5, np.nan, np.inf])
def test_node_types_that_are_no_whole_numbers_are_refused(wrong):
    """They would be an ordinary input, without boundaries or errors by type."""
    types = np.tile(np.arange(12.0)[:, None] % 3, (3, 1, 1))
    types[1, 4] = wrong
    u, points = np.random.rand(3, 12, 5), np.random.rand(12, 2)
    with pytest.raises(UserError, match=f"node_type with 1 of .* such as {wrong}"):
        nfsgeo.from_arrays(
            u, points, np.arange(5.0), static=types, static_names=["node_type"]
        )


def test_inputs_of_the_mesh_are_no_part_of_the_fingerprint(tmp_path):
    """Runs with and without them have the same data; a file that holds them has not."""
    pos, kinds = np.random.default_rng(0).random((6, 2)), [[0, 1, 1, 0, 2, 0]] * 3
    u = np.arange(18.0).reshape(3, 6)
    fields = nfsgeo.from_arrays(u, pos, static={"node_type": kinds})
    made = with_boundary(fields, (1, 2))
    before = fields.fingerprint()
    assert made.fingerprint() == before and made.holds(before)
    written = nfsgeo.open(made.write(tmp_path / "a.nc")).fingerprint()
    assert written != before
    assert made.holds(written)  # as runs of earlier versions have it
    other = nfsgeo.from_arrays(u + 1, pos, static={"node_type": kinds})
    assert not with_boundary(other, (1, 2)).holds(before)


@pytest.mark.parametrize("num", [3, 5, 9])
def test_sides_of_cells_lead_straight_to_a_boundary_of_a_type(num):
    """However many points the boundary has; a point of a type alone counts as well."""
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(0, 1, num)] * 2))
    number = np.arange(num**2).reshape(num, num)
    corners = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    cells = {"quad": np.stack(corners, axis=-1).reshape(-1, 4)}
    pos, types = np.stack([x, y], axis=1), np.zeros((num**2, 1))
    types[x == 0], types[(x == 1) & (y == 0.5)] = 1, 2
    data = {"static": np.stack([types] * 2), "static_names": ["node_type"]}
    box = Domain((0.0, 0.0), (1.0, 1.0), (False, False))
    data |= {"cells": cells, "domain": box}
    fields = nfsgeo.from_arrays(np.zeros((2, num**2)), pos, **data)
    random = np.random.default_rng(0).random((20, 2))
    inputs = boundary_at(fields, (1, 2), 0, torch.from_numpy(random))
    distance, *way = ([*inputs.values()][k] for k in range(3))
    np.testing.assert_allclose(distance, random[:, 0], atol=1e-6)
    np.testing.assert_allclose(np.stack(way, axis=1), [[-1, 0]] * 20, atol=1e-5)
    alone = np.linalg.norm(random - [1, 0.5], axis=1)
    np.testing.assert_allclose(inputs["distance_node_type_2"], alone, atol=1e-6)


def a_ring(layers, around):
    """A mesh between the unit circle, of type 1, and one of radius 2."""
    radius, angle = np.linspace(1, 2, layers), np.arange(around) * 2 * np.pi / around
    ray = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    number = np.arange(layers * around).reshape(layers, around)
    ends = number[:-1], number[1:]
    corners = ends[0], ends[1], np.roll(ends[1], -1, 1), np.roll(ends[0], -1, 1)
    quads = np.stack(corners, axis=-1).reshape(-1, 4)
    types = np.repeat([1.0] + [0.0] * (layers - 1), around)
    return radius[:, None, None] * ray, quads, types


@pytest.mark.parametrize("with_cells", [True, False])
def test_the_direction_at_a_boundary_is_the_limit_from_its_neighbours(with_cells):
    """It is continuous up to the boundary, so that interpolation of it converges."""
    box = Domain((-2.0, -2.0), (2.0, 2.0), (False, False))
    for layers, around in ((5, 24), (9, 48)):
        pos, quads, types = a_ring(layers, around)
        data = {"cells": {"quad": quads}} if with_cells else {}
        fields = nfsgeo.from_arrays(
            np.zeros((1, layers * around)),
            pos.reshape(-1, 2),
            static=types[None, :, None],
            static_names=["node_type"],
            domain=box,
            **data,
        )
        inputs = with_boundary(fields, (1,)).read_static(0)[:, 1:]
        distance, way = inputs[:, 0].reshape(layers, around), inputs[:, 1:]
        assert not distance[0].any() and (distance[1:] > 0).all()
        inward = -pos / np.linalg.norm(pos, axis=2, keepdims=True)
        difference = way.reshape(layers, around, 2) - inward
        assert np.abs(difference).max() < 1e-4
        on_the_wall = boundary_at(fields, (1,), 0, torch.from_numpy(pos[0, :3]))
        columns = np.stack([*on_the_wall.values()], axis=1)
        np.testing.assert_allclose(columns, inputs[:3], atol=1e-6)


def test_directions_hold_at_rounded_queries_and_at_thin_bodies():
    """On a slanted wall in single precision, and at two sides of a narrow gap."""
    num = 9
    x, y = np.meshgrid(*[np.linspace(0, 1, num)] * 2, indexing="ij")
    number = np.arange(num**2).reshape(num, num)
    corners = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    quads = np.stack(corners, axis=-1).reshape(-1, 4)
    slanted = np.stack([x, y + 0.37 * x], axis=-1).reshape(-1, 2)
    box = Domain((0.0, -2.0), (2.0, 2.0), (False, False))
    data = {"cells": {"quad": quads}, "domain": box}
    fields = nfsgeo.from_arrays(np.zeros((1, num**2)), slanted, **data)
    along = np.linspace(0.05, 0.95, 40)
    query = np.stack([along, 0.37 * along], axis=1).astype(np.float32)
    inputs = boundary_at(fields, (), 0, torch.from_numpy(query.astype(float)))
    normal = np.array([0.37, -1]) / np.hypot(0.37, 1)
    found = [inputs[f"direction_boundary_{axis}"] for axis in "xy"]
    np.testing.assert_allclose(np.stack(found, axis=1), [normal] * 40, atol=1e-3)
    # The points below the gap are nearer to its upper side than those above it.
    upper = np.stack([x, 0.01 + 0.8 * y], axis=-1).reshape(-1, 2)
    lower = np.stack([x, -0.16 * y], axis=-1).reshape(-1, 2)
    both = {"cells": {"quad": np.concatenate([quads, quads + num**2])}, "domain": box}
    pos = np.concatenate([upper, lower])
    fields = nfsgeo.from_arrays(np.zeros((1, 2 * num**2)), pos, **both)
    up = with_boundary(fields, ()).read_static(0)[:, 2]
    inside = (pos[:, 0] > 0.2) & (pos[:, 0] < 0.8)
    np.testing.assert_allclose(up[inside & (pos[:, 1] == 0.01)], -1, atol=1e-6)
    np.testing.assert_allclose(up[inside & (pos[:, 1] == 0)], 1, atol=1e-6)
