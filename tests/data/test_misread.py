"""Healthy files that were misread in silence, and what is right for each kind."""

import numpy as np
import pytest
import xarray

import nfsgeo
from nfsgeo.errors import UserError

RANDOM = np.random.default_rng(0)
HOURS = {"units": "hours since 2001-01-01"}


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


@pytest.mark.slow
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


ROWS = "t,x,y,u\n0,1,1,2\n0,2,1,3\n1,1,1,4\n1,2,1,5\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ROWS.replace("0,2,1,3", "0,2,1"), "3 cells in row 2"),  # which pandas fills
        (ROWS.replace(",", " ").replace("0 2 1 3", "0 2 1"), "3 cells in row 2"),
        (ROWS.replace("t,", "date,").replace("\n0,", "\n2001.11,"), "or a year"),
        (ROWS.replace("\n0,", "\n2026-01-01T00:00Z,"), "all or none of them with an"),
    ],
)
def test_rows_and_dates_of_tables_that_are_not_clear(text, words, tmp_path, one_line):
    other = "2026-01-02" if "2026" in text else "2001.12"
    (tmp_path / "a.csv").write_text(text.replace("\n1,", f"\n{other},"))
    assert words in one_line(nfsgeo.open, tmp_path / "a.csv")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ends_of_lines(end, tmp_path):
    (tmp_path / "a.csv").write_bytes(ROWS.replace("\n", end).encode())
    found = nfsgeo.open(tmp_path / "a.csv").read(0, slice(None))
    assert found[..., 0].tolist() == [[2, 4], [3, 5]]


def test_values_at_points_without_coordinates(one_line):
    u, x = RANDOM.random((3, 4)), np.array([0, 1, np.nan, 3])
    data = xarray.Dataset({"u": (("time", "point"), u)}, {"x": ("point", x)})
    data = data.assign_coords(time=("time", np.arange(3.0), HOURS))
    message = one_line(nfsgeo.from_xarray, data)
    assert "u at points without coordinates" in message and "leave u out" in message
    data["u"][:, 2] = np.nan
    assert nfsgeo.from_xarray(data).read(0, slice(None)).shape == (3, 3, 1)


@pytest.mark.parametrize("names", ["1.9 1.10", "1.9 1.11", "0.3 0.6 0.9 0.12"])
def test_numbers_of_files_that_are_decimal_or_not(names, tmp_path, one_line):
    names = names.split()
    for name in names:
        (tmp_path / f"u_{name}.csv").write_text("x,u\n0,1\n1,2\n")
    how = {"series": "time-steps", "times": range(len(names))}
    assert f"u_{names[-1]}.csv, of which either" in one_line(
        nfsgeo.open, tmp_path, **how
    )
