"""Domains around points, where axes end, regions in files, and the sphere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.data.domains import check_within, read_region
from nfsgeo.data.meshes import (
    MESH_KINDS,
    disjoint,
    every_point,
    nested,
    random_subset,
    with_queries,
)
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Region

WAVED = Domain((0.0, 0.0), (1.0, 2.0), (True, False))


def line(axis: np.ndarray, domain: Domain | None = None) -> Fields:
    u = Array(np.sin(axis)[None], "tx", ["u"])
    return build(Path("line"), [u], axes=[axis], domain=domain)


@given(st.floats(-1.5, 2.5), st.floats(-1.5, 2.5), st.floats(-1, 3))
def test_points_may_be_a_period_away_but_span_no_more_than_one(one_line, a, b, y):
    points = np.array([[a, 0.5], [b, y]])
    ends = np.array([a + 1, b + 1, 2 - a, 2 - b, 1 - abs(a - b), y, 2 - y])
    u = Array(np.zeros((1, 2)), "tp", ["u"])
    fields = build(Path("cloud"), [u], points=points)
    if (ends >= 0).all():
        assert fields.with_domain(WAVED).domain == WAVED
        np.testing.assert_array_equal(fields.with_domain(WAVED).coordinates(), points)
    elif ends.min() < -1e-5:  # more than rounding
        assert "points in the domain" in one_line(fields.with_domain, WAVED)


def test_grids_lie_in_their_domain(one_line):
    axis = np.arange(4.0)
    for upper, periodic in ((4.0, True), (3.0, False), (9.0, True)):
        line(axis, Domain((0.0,), (upper,), (periodic,)))
    for lower, upper, periodic, message in (
        (0.0, 3.0, True, "periodic axis without its upper end"),
        (0.0, 2.0, False, "from 0 to 3"),
        (0.5, 4.5, True, "from 0 to 3 in a periodic domain"),
        (0.0, 2.5, True, "periodic domain"),
    ):
        assert message in one_line(line, axis, Domain((lower,), (upper,), (periodic,)))
    with pytest.raises(UserError, match="a domain of 2 axes: expected 1"):
        check_within(Domain.unit(2), [axis[:, None]], Path("line"))


BLOCK = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]
HOLE = [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]
BOX = Domain.unit(2, periodic=False)
OBSTACLE = replace(BOX, region=Region.polygons([BLOCK]))
SIDE = 12
AXIS = (np.arange(SIDE) + 0.5) / SIDE


def grid(domain: Domain) -> Fields:
    """Six samples on a grid, without values in the block."""
    x, y = np.meshgrid(AXIS, AXIS, indexing="ij")
    hidden = (abs(x - 0.5) < 0.2) & (abs(y - 0.5) < 0.2)
    u = np.random.default_rng(0).normal(size=(6, 4, SIDE, SIDE))
    u[:, :, hidden] = np.nan
    about = {"axes": [AXIS, AXIS], "times": np.arange(4.0), "domain": domain}
    return build(Path("grid"), [Array(u, "ntxy", ["u"])], **about)


def test_samplers_leave_obstacles_out():
    file = grid(OBSTACLE)
    whole = every_point(file)
    assert whole.grid_shape is None
    for mesh in (
        whole,
        random_subset(file, 60, seed=0),
        MESH_KINDS["clustered"].sampler(file, 20, 0),
        disjoint(random_subset(file, 60, seed=0), file, 30, seed=0),
    ):
        assert OBSTACLE.contains(torch.from_numpy(mesh.pos)).all()
        assert mesh.index is not None
        assert not np.isnan(file.read(0, slice(None), mesh.index)).any()
        np.testing.assert_array_equal(mesh.pos, file.coordinates()[mesh.index])
    with pytest.raises(UserError, match=f"1 to {len(whole)} points"):
        random_subset(file, len(whole) + 1, seed=0)


def test_samplers_without_a_region_take_the_points_that_they_took():
    between = Region.polygons([1e-3 * np.array(BLOCK) + 0.3 / SIDE])
    plain, walled = grid(BOX), grid(replace(BOX, region=between))
    assert every_point(walled).grid_shape == (SIDE, SIDE)
    for name, size in (("random-subset", 40), ("clustered", 20), ("grid", 6)):
        sampler = MESH_KINDS[name].sampler
        a, b = sampler(plain, size, 3), sampler(walled, size, 3)
        np.testing.assert_array_equal(a.index, b.index)


def test_geojson(tmp_path):
    closed = [[*ring, ring[0]] for ring in (BLOCK, HOLE)]
    polygon = {"type": "Polygon", "coordinates": closed}
    several = {"type": "MultiPolygon", "coordinates": [closed]}
    feature = {"type": "Feature", "properties": {}, "geometry": polygon}
    expected = Region.polygons([BLOCK, HOLE])
    points = torch.rand(300, 2, dtype=torch.float64)
    there = replace(BOX, region=expected).contains(points)
    for shape in (
        several,
        feature,
        {"type": "FeatureCollection", "features": [feature]},
        {"type": "GeometryCollection", "geometries": [several]},
        {"type": "Polygon", "coordinates": [[*ring] for ring in (BLOCK, HOLE)]},
    ):
        (tmp_path / "a.geojson").write_text(json.dumps(shape))
        region = read_region(tmp_path / "a.geojson")
        assert torch.equal(replace(BOX, region=region).contains(points), there)
    region = read_region(tmp_path / "a.geojson", inside=True)
    assert torch.equal(replace(BOX, region=region).contains(points), ~there)


def test_a_signed_distance_from_a_file(tmp_path, one_line):
    axis = np.linspace(0, 1, 41)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    distance = np.maximum(abs(x - 0.5), abs(y - 0.5)) - 0.2
    np.savez(tmp_path / "d.npz", x=axis, y=axis, distance=distance)
    region = read_region(tmp_path / "d.npz")
    points = torch.rand(300, 2, dtype=torch.float64)
    sure = (points - 0.5).abs().amax(1).sub(0.2).abs() > 0.02
    found = replace(BOX, region=region).contains(points)
    assert torch.equal(found[sure], OBSTACLE.contains(points)[sure])
    message = one_line(read_region, tmp_path / "d.npz", inside=True)
    assert "negative in obstacles" in message  # a distance has its own inside


def test_a_surface_from_a_file(tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    triangles = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    trimesh.Trimesh(corners, triangles).export(tmp_path / "a.stl")
    region = read_region(tmp_path / "a.stl", inside=True)
    box = Domain((0.0,) * 3, (1.0,) * 3, (False,) * 3, region)
    points = torch.rand(300, 3, dtype=torch.float64)
    assert torch.equal(box.contains(points), points.sum(1) < 1)


@pytest.mark.parametrize(
    "shape",
    [{}, [], {"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon"}]
    + [{"type": "Polygon", "coordinates": ring} for ring in ([], [[[0, 0]]], [["a"]])],
)
def test_geojson_without_polygons_is_refused(shape, tmp_path, one_line):
    (tmp_path / "a.geojson").write_text(json.dumps(shape))
    one_line(read_region, tmp_path / "a.geojson")


SPHERE = Domain.sphere()


def test_latitudes_beyond_the_poles(one_line):
    u, pos = np.ones((1, 1)), [[10.0, 95.0]]
    assert "95" in one_line(nfsgeo.from_arrays, u, pos, domain=SPHERE)


def test_subsets_are_even_on_the_sphere():
    axes = [np.arange(-180.0, 180.0, 4.0), np.linspace(-90, 90, 91)]  # both poles
    u = Array(np.zeros((90, 91)), "xy", ["u"])
    fields = build(Path("globe"), [u], axes=axes, domain=SPHERE)
    mesh = random_subset(fields, 400, seed=0)
    several = [
        mesh,
        disjoint(mesh, fields, 400, seed=0),
        with_queries(mesh, fields, 400, seed=0).queries,
        nested(mesh, fields, 800, seed=0),
    ]
    for drawn in several:
        assert drawn is not None
        height = np.sin(np.deg2rad(drawn.pos[:, 1]))
        assert abs((height**2).mean() - 1 / 3) < 0.05
        assert np.abs(drawn.pos[:, 1]).max() < 90
    assert len(every_point(fields)) == 90 * 91
