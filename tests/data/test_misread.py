"""Healthy files that were misread in silence, and what is right for each kind."""

import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo.errors import UserError

RANDOM = np.random.default_rng(0)
HOURS = {"units": "hours since 2001-01-01"}


@pytest.mark.parametrize(("offset", "size"), [(101325.0, 0.01), (-2.5e9, 10.0)])
def test_small_changes_of_a_large_value(offset, size, tmp_path):
    points, phase = RANDOM.random((12, 2)), RANDOM.random((4, 1, 1))
    wave = np.sin(6 * points[:, :1] + phase + np.arange(5.0))
    made = nfsgeo.from_arrays(offset + size * wave, points, np.arange(5.0))
    again = nfsgeo.open(made.write(tmp_path / "u.nc"))
    for fields in (made, again):
        found = (fields.read(2, slice(None))[..., 0] - offset) / size
        np.testing.assert_allclose(found, wave[2], atol=1e-4)


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


def test_staggered_grids(tmp_path, one_line):
    u, v = RANDOM.random((6, 3, 5)), RANDOM.random((6, 3, 4))
    coords = {"time": ("time", np.arange(6.0), HOURS), "lat": range(3), "lon": range(5)}
    data = xarray.Dataset(
        {"u": (("time", "lat", "lon"), u), "v": (("time", "lat", "lon_v"), v)}, coords
    )
    assert "lon_v" in one_line(nfsgeo.from_xarray, data)
    for columns in ({"field": "u"}, {"ignore": "v"}):
        assert nfsgeo.from_xarray(data, columns=columns).component_names == ["u"]


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


def test_the_box_of_a_run_serves_for_fewer_stations(tiny, tmp_path):
    points = RANDOM.random((15, 2)) * [4, 3] + [5, 47]
    points[0] = [4.9, 48.3]  # at the edge of the network
    times = np.arange(60.0)
    u = np.sin(times / 4 + points[:, :1])[None]
    network = nfsgeo.from_arrays(u, points, times)
    settings = tiny | {"data.n_in": 3, "data.n_out": 2}
    run = nfsgeo.fit(nfsgeo.prepare(network, settings), tmp_path / "run")
    absent = nfsgeo.from_arrays(u[:, 1:, :12], points[1:], times[:12])
    ahead = nfsgeo.predict(run, absent, tmp_path / "ahead.nc")
    assert ahead.num_points(0) == 14 and ahead.domain == network.domain


@pytest.mark.parametrize("num", [1, 2, 15])
def test_few_series_train_on_a_grid(tiny, num):
    x, t = np.linspace(0, 1, 40), np.arange(80.0)
    u = np.stack([np.sin(7 * x - t[:, None] / 9 + k) for k in range(num)])
    data = xarray.Dataset({"u": (("sample", "time", "x"), u)}, {"time": t, "x": x})
    fields = nfsgeo.from_xarray(data)
    settings = tiny | {"data.n_in": 3, "data.n_out": 2}
    assert len(nfsgeo.prepare(fields, settings).data.parts["train"]) > 0
