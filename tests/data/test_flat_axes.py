"""Axes along which points have no extent are left out, on every way in."""

import numpy as np
import pytest
import torch
import xarray
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import nfsgeo
from nfsgeo.data.flat_axes import has_extent, with_flat_axes
from nfsgeo.evaluation.query_points import query_points_of
from nfsgeo.forecast.matching import matched
from nfsgeo.geometry import Domain
from nfsgeo.models.task import Task

RNG = np.random.default_rng(0)
PLANE = RNG.random((40, 2))
NOISE = 1e-16 * RNG.normal(size=40)
U = np.sin(5 * PLANE[:, :1])[None]


def table(points, path):
    header = ",".join("xyz"[: points.shape[1]])
    rows = [
        ",".join(map(repr, [*map(float, p), float(u)]))
        for p, u in zip(points, U[0, :, 0], strict=True)
    ]
    path.write_text("\n".join([f"{header},u", *rows]))
    return nfsgeo.open(path)


def data_set(points, path):
    axes = {a: ("p", v) for a, v in zip("xyz", points.T, strict=False)}
    return nfsgeo.from_xarray(xarray.Dataset({"u": ("p", U[0, :, 0])}, axes))


WAYS = {
    "table": table,
    "arrays": lambda points, path: nfsgeo.from_arrays(U, points),
    "meshes": lambda points, path: nfsgeo.from_arrays(
        [U[0, :30], U[0, 30:]], [points[:30], points[30:]]
    ),
    "graphs": lambda points, path: nfsgeo.from_pyg(
        [Data(pos=torch.tensor(points), x=torch.tensor(U[0]))]
    ),
    "xarray": data_set,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flat", [NOISE, np.full(40, 0.3), 0.3 + NOISE, 1e7 + NOISE])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_a_plane_in_space_is_a_plane(way, flat, order, tmp_path, caplog):
    points = np.c_[PLANE, flat][:, order]
    fields = WAYS[way](points, tmp_path / "table.csv")
    assert fields.space == ("x", "y") and "left out" in caplog.text
    pos = np.concatenate([*fields.meshes()])
    assert {*map(tuple, pos)} == {*map(tuple, PLANE)}
    whole = with_flat_axes(fields)
    pos = np.concatenate([*whole.meshes()])
    np.testing.assert_allclose(np.ptp(pos, axis=0)[order.index(2)], 0)
    assert pos.shape == points.shape and whole.read(0, slice(None)).shape[0] >= 10


def test_rounding_of_single_precision_is_no_extent():
    turn = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, -0.8, 0.6]])
    turned = (np.c_[PLANE, np.zeros(40)] @ turn).astype(np.float32)
    back = turned @ turn.T.astype(np.float32)
    assert has_extent(back.astype(np.float64)).tolist() == [True, True, False]


def test_what_has_an_extent_stays(caplog):
    thin = np.c_[PLANE, 1e-7 * RNG.random(40)]
    assert nfsgeo.from_arrays(U, thin).space == ("x", "y", "z")
    box = Domain((0.0,) * 3, (1.0,) * 3, (False,) * 3)
    flat = np.c_[PLANE, np.full(40, 0.5)]
    assert nfsgeo.from_arrays(U, flat, domain=box).space == ("x", "y", "z")
    same = nfsgeo.from_arrays(U[:, :1], np.array([[1.0, 2.0]]))
    assert same.space == ("x", "y")  # one station
    planes = [np.c_[PLANE, np.full(40, float(z))] for z in range(2)]
    assert nfsgeo.from_arrays([U[0], U[0]], planes).space == ("x", "y", "z")
    assert not caplog.text


@given(
    origin=st.floats(-1e6, 1e6),
    unit=st.floats(1e-6, 1e6),
    ratio=st.sampled_from([0.0, 1e-12, 1e-6, 1.0]),
)
def test_origin_and_units_do_not_matter(origin, unit, ratio):
    points = np.c_[PLANE, ratio * RNG.random(40)] + 1e-3 * origin
    assert has_extent(points * unit).tolist() == [True, True, ratio > 1e-9]


def test_a_sample_in_a_plane_suits_a_task_in_space(tmp_path):
    """A run in three dimensions reads files whose points are all at one height."""
    box = Domain((0.0,) * 3, (1.0,) * 3, (False,) * 3)
    task = Task(
        domain=box, components=("u",), n_in=0, n_out=1, times=(0.0,), num_points=40
    )
    flat = table(np.c_[PLANE, np.full(40, 0.5)], tmp_path / "flat.csv")
    assert matched(flat, task).coordinates().shape == (40, 3)


def test_query_points_of_a_plane(one_line):
    square = Domain((0.0, 0.0), (1.0, 1.0), (False, False))
    pos = np.c_[PLANE, NOISE]
    np.testing.assert_array_equal(query_points_of(pos, square).pos, PLANE)
    one_line(query_points_of, np.c_[PLANE, RNG.random(40)], square)


@pytest.mark.parametrize("single", range(3))
def test_an_axis_of_one_node_is_no_axis(single, caplog):
    shape = [4, 5, 6]
    shape[single] = 1
    axes = {a: np.arange(float(n)) for a, n in zip("xyz", shape, strict=True)}
    u = RNG.random(shape)
    fields = nfsgeo.from_xarray(xarray.Dataset({"u": (tuple("xyz"), u)}, axes))
    assert fields.shape == tuple(n for n in shape if n > 1)
    np.testing.assert_allclose(fields.read(0, slice(None)).ravel(), u.ravel())


NUM = 6
DAYS = np.arange("2024-01-01", "2024-01-05", dtype="M8[D]").astype("M8[ns]")
STATIONS = {
    "lon": ("s", RNG.uniform(5, 10, NUM), {"standard_name": "longitude"}),
    "lat": ("s", RNG.uniform(46, 48, NUM), {"standard_name": "latitude"}),
    "alt": ("s", RNG.uniform(200, 3000, NUM), {"axis": "Z", "units": "m"}),
    "name": ("s", [f"S{k}" for k in range(NUM)], {"cf_role": "timeseries_id"}),
}
OBSERVED = xarray.Dataset(
    {"T": (("s", "time"), RNG.random((NUM, len(DAYS))))}, STATIONS | {"time": DAYS}
)


def as_netcdf(data, columns=None, domain=None):
    data.to_netcdf("stations.nc")
    return nfsgeo.open("stations.nc", columns=columns, domain=domain)


def as_table(data, columns=None, domain=None):
    frame = data.to_dataframe().reset_index().drop(columns="s")
    frame = frame.rename(columns={"alt": "z", "name": "station"})
    frame.to_csv("stations.csv", index=False)
    columns = columns and {"z": "z"}
    return nfsgeo.open("stations.csv", columns=columns, domain=domain)


READERS = {"netcdf": as_netcdf, "table": as_table, "xarray": nfsgeo.from_xarray}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_heights_of_stations_are_a_static_input(read, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    fields = read(OBSERVED)
    assert fields.space == ("x", "y") and fields.static_names == ["height"]
    np.testing.assert_allclose(fields.dataset["height"], STATIONS["alt"][1])
    assert "heights of stations" in caplog.text
    again = nfsgeo.open(fields.write("out.nc"))
    assert again.space == ("x", "y") and again.static_names == ["height"]


def test_users_keep_heights_as_an_axis(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    box = Domain((0.0, 40.0, 0.0), (20.0, 50.0, 5000.0), (False,) * 3)
    for read in (as_netcdf, as_table):
        assert read(OBSERVED, {"z": "alt"}).space == ("x", "y", "z")
        assert read(OBSERVED, None, box).space == ("x", "y", "z")
    kept = as_netcdf(OBSERVED, {"z": "alt"}).write("a.nc")
    assert nfsgeo.open(kept).space == ("x", "y", "z")
    with xarray.open_dataset(kept) as dataset:
        assert nfsgeo.from_xarray(dataset).space == ("x", "y", "z")
        dataset.to_zarr("kept.zarr")
    assert nfsgeo.open("kept.zarr").space == ("x", "y", "z")
    masts = xarray.concat([OBSERVED, OBSERVED.assign_coords(alt=OBSERVED.alt + 9)], "s")
    masts = masts.assign_coords(name=("s", [f"S{k}" for k in range(2 * NUM)]))
    assert as_table(masts).space == ("x", "y", "z")  # two heights at each place
    assert "heights of stations" not in caplog.text


def test_heights_beside_a_field_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for read in (as_netcdf, as_table):
        fields = read(OBSERVED.rename(T="height"))
        assert fields.space == ("x", "y") and fields.component_names == ["height"]
        assert fields.static_names == ["station_height"]


def test_heights_that_do_not_differ_are_left_out(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    flat = OBSERVED.assign_coords(alt=("s", 2 + 1e-16 * np.arange(NUM), {"axis": "Z"}))
    assert as_table(flat).static_names == [] and "left out" in caplog.text


def test_a_station_may_be_in_several_samples(tmp_path):
    rows = ["sample,time,station,lon,lat,z,u"]
    for sample, names in enumerate(("ABCD", "CDEF")):
        for day in range(3):
            for name in names:
                k = ord(name) - ord("A")
                rows += [f"{sample},{day},{name},{5 + k},{46 + k * k},{90 * k},{k}"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.space == ("x", "y") and fields.static_names == ["height"]
    heights = [fields.read_values(["height"], sample)[:, 0, 0] for sample in (0, 1)]
    np.testing.assert_allclose(heights, [[0, 90, 180, 270], [180, 270, 360, 450]])
