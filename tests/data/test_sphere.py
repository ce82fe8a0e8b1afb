"""Fields on a sphere: where they are, and what is drawn from them."""

from pathlib import Path

import numpy as np

import nfsgeo
from nfsgeo.data.build import Array, build
from nfsgeo.data.meshes import (
    disjoint,
    every_point,
    nested,
    random_subset,
    with_queries,
)
from nfsgeo.geometry import Domain

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
