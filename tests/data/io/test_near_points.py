"""Points that are nearly the same and share no time are refused, on every way in."""

import numpy as np
import pytest
import xarray

import nfsgeo

RNG = np.random.default_rng(0)
STATIONS = RNG.random((12, 2)) * [4, 3] + [5, 47]
TIMES = np.arange(20.0)


def exported_twice(digits: int) -> tuple[np.ndarray, np.ndarray]:
    """Two exports of one network: the second has coordinates of fewer digits."""
    points = np.concatenate([STATIONS.round(9), STATIONS.round(digits)])
    u = np.full((24, 20, 1), np.nan)
    u[:12, :10], u[12:, 10:] = 1.0, 2.0
    return points, u


def in_arrays(points, u):
    return nfsgeo.from_arrays(u[None], points, TIMES)


def in_xarray(points, u):
    place = {
        axis: ("station", column) for axis, column in zip("xy", points.T, strict=True)
    }
    fields = {"u": (("station", "time"), u[..., 0])}
    return nfsgeo.from_xarray(xarray.Dataset(fields, place | {"time": TIMES}))


@pytest.mark.parametrize("way", [in_arrays, in_xarray])
def test_one_station_in_two_places_is_refused(way, one_line):
    assert "12 pairs" in one_line(way, *exported_twice(6))
    assert way(*exported_twice(2)).num_points() == 24  # two networks, 400 m apart


def test_points_with_all_values_stay():
    points, u = exported_twice(6)
    assert in_arrays(points, np.nan_to_num(u)).num_points() == 24
    steady = nfsgeo.from_arrays(np.ones((1, 24, 1)), points)
    assert steady.num_points() == 24


def test_meshes_with_cells_stay():
    points, u = exported_twice(6)
    cells = {"triangle": [[0, 1, 2]]}
    fields = nfsgeo.from_arrays(u[None], points, TIMES, cells=cells)
    assert fields.num_points() == 24


def test_gaps_that_two_near_points_share_stay():
    """Two sensors at one mast, each of which fails now and then."""
    points, u = exported_twice(6)
    u = np.where(RNG.random(u.shape) < 0.2, np.nan, 1.0)
    assert in_arrays(points, u).num_points() == 24
