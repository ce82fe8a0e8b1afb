"""Healthy files that were misread in silence, and what is right for each kind."""

from __future__ import annotations

import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

RANDOM = np.random.default_rng(0)
HOURS = {"units": "hours since 2001-01-01"}
TINY = {
    "trainer.epochs": 1,
    "trainer.device": "cpu",
    "data.query_points": 0,
    "data.n_in": 3,
    "data.n_out": 2,
    "model.settings.modes": 2,
    "model.settings.width": 4,
    "model.settings.grid": 8,
}


@pytest.mark.parametrize("scale", [[8.0, 5.0], [1.0, 3.0], [0.5, 1.2]])
def test_points_over_more_than_a_period(scale):
    points, times = np.array(scale) * RANDOM.random((60, 2)), np.arange(4.0)
    points[:2] = [[0, 0], scale]
    u = RANDOM.random((3, 60, 4))
    with pytest.raises(UserError, match="domain"):
        nfsgeo.from_arrays(u, points, times, domain=Domain.unit(2))


def test_longitudes_on_either_side_are_one_period():
    points = np.array([[-180.0, 0.0], [-10.0, 5.0], [179.0, -5.0]])
    box = Domain((0.0, -10.0), (360.0, 10.0), (True, False))
    made = nfsgeo.from_arrays(np.ones((1, 3, 1)), points, domain=box)
    assert made.domain == box


@pytest.mark.parametrize(("offset", "size"), [(101325.0, 0.01), (-2.5e9, 10.0)])
def test_small_changes_of_a_large_value(offset, size, tmp_path):
    points, phase = RANDOM.random((12, 2)), RANDOM.random((4, 1, 1))
    wave = np.sin(6 * points[:, :1] + phase + np.arange(5.0))
    made = nfsgeo.from_arrays(offset + size * wave, points, np.arange(5.0))
    again = nfsgeo.open(made.write(tmp_path / "u.nc"))
    for fields in (made, again):
        found = (fields.read(2, slice(None))[..., 0] - offset) / size
        np.testing.assert_allclose(found, wave[2], atol=1e-4)


@pytest.mark.parametrize("key", ["valid_min", "valid_range", "_FillValue"])
def test_values_that_are_not_valid(key, tmp_path):
    field = 280 + RANDOM.random((6, 5, 4))
    field[2:4, 2, 3] = -9999.0
    value = {"valid_min": 150.0, "valid_range": np.array([150.0, 350.0])}.get(key)
    data = xarray.Dataset(
        {"t": (("time", "lat", "lon"), field, {} if value is None else {key: value})},
        {"time": ("time", np.arange(6), HOURS), "lat": range(5), "lon": range(4)},
    )
    data.to_netcdf(
        tmp_path / "t.nc",
        encoding={"t": {"_FillValue": -9999.0 if key == "_FillValue" else None}},
    )
    u = nfsgeo.open(tmp_path / "t.nc").read(0, slice(None))
    assert np.isnan(u).sum() == 2 and np.nanmin(u) >= 280


def test_zeros_of_zarr_are_values(tmp_path):
    zarr = pytest.importorskip("zarr")
    rain = np.maximum(0, np.sin(np.arange(60.0))).reshape(5, 3, 4)
    group = zarr.open_group(tmp_path / "rain.zarr", mode="w", zarr_format=2)
    axes = {"time": np.arange(5.0), "lat": np.arange(3.0), "lon": np.arange(4.0)}
    for name, values in {"rain": rain, **axes}.items():
        array = group.create_array(name, shape=values.shape, dtype="f8")
        array[...] = values
        array.attrs["_ARRAY_DIMENSIONS"] = [*axes] if values.ndim > 1 else [name]
    u = nfsgeo.open(tmp_path / "rain.zarr").read(0, slice(None))
    assert not np.isnan(u).any() and (u == 0).mean() == (rain == 0).mean()


def test_staggered_grids(tmp_path):
    u, v = RANDOM.random((6, 3, 5)), RANDOM.random((6, 3, 4))
    coords = {"time": ("time", np.arange(6.0), HOURS), "lat": range(3), "lon": range(5)}
    data = xarray.Dataset(
        {"u": (("time", "lat", "lon"), u), "v": (("time", "lat", "lon_v"), v)}, coords
    )
    with pytest.raises(UserError, match="lon_v"):
        nfsgeo.from_xarray(data)
    for columns in ({"field": "u"}, {"ignore": "v"}):
        assert nfsgeo.from_xarray(data, columns=columns).component_names == ["u"]


def test_arrays_of_a_series_of_meshes_that_never_change(tmp_path):
    meshio = pytest.importorskip("meshio")
    points, cells = RANDOM.random((9, 3)), [("vertex", np.arange(9)[:, None])]
    steps = []
    for k in range(4):
        data = {"head": RANDOM.random(9), "permeability": points[:, 1]}
        meshio.Mesh(points, cells, data).write(tmp_path / f"{k}.vtu")
        steps.append(f'<DataSet timestep="{k}" file="{k}.vtu"/>')
    listed = f'<VTKFile type="Collection"><Collection>{"".join(steps)}</Collection>'
    (tmp_path / "soil.pvd").write_text(f"{listed}</VTKFile>")
    with pytest.raises(UserError, match="permeability"):
        nfsgeo.open(tmp_path / "soil.pvd")
    made = nfsgeo.open(tmp_path / "soil.pvd", columns={"static": "permeability"})
    assert (made.component_names, made.static_names) == (["head"], ["permeability"])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_encodings_of_tables(encoding, tmp_path):
    rows = "".join(f"{t},{x},{x * x},{t * x}\n" for t in range(5) for x in (1, 2, 3))
    path = tmp_path / "u.csv"
    path.write_text("t,x,y,temp\xe9rature\n" + rows, encoding=encoding)
    if encoding == "utf-16":
        assert nfsgeo.open(path).component_names == ["température"]
    else:
        with pytest.raises(UserError, match="UTF-8.*iconv"):
            nfsgeo.open(path)


def test_the_box_of_a_run_serves_for_fewer_stations(tmp_path):
    points = RANDOM.random((15, 2)) * [4, 3] + [5, 47]
    points[0] = [4.9, 48.3]  # at the edge of the network
    times = np.arange(60.0)
    u = np.sin(times / 4 + points[:, :1])[None]
    network = nfsgeo.from_arrays(u, points, times)
    run = nfsgeo.fit(nfsgeo.prepare(network, TINY), tmp_path / "run")
    absent = nfsgeo.from_arrays(u[:, 1:, :12], points[1:], times[:12])
    ahead = nfsgeo.predict(run, absent, tmp_path / "ahead.nc")
    assert ahead.num_points(0) == 14 and ahead.domain == network.domain


@pytest.mark.parametrize("num", [1, 2, 15])
def test_few_series_train_on_a_grid(num):
    x, t = np.linspace(0, 1, 40), np.arange(80.0)
    u = np.stack([np.sin(7 * x - t[:, None] / 9 + k) for k in range(num)])
    data = xarray.Dataset({"u": (("sample", "time", "x"), u)}, {"time": t, "x": x})
    fields = nfsgeo.from_xarray(data)
    assert len(nfsgeo.prepare(fields, TINY).data.parts["train"]) > 0
