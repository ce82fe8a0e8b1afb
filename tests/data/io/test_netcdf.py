"""NetCDF and Zarr as the CF conventions have them: values in place, or one line."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
import nfsgeo.data
from nfsgeo.data.io import FORMATS, FileProbe
from nfsgeo.data.io.netcdf import fields_of
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

FAST = settings(max_examples=15)
KINDS = ["a.nc", "classic.nc", "a.zarr", "a.zarr.zip"]
DAYS = np.array(["2000-01-01", "2000-01-02", "2000-01-04"], "M8[ns]")


def saved(dataset: Any, path: Path, **encoding: Any) -> Path:
    """Written by xarray, as the name tells: classic NetCDF, NetCDF-4, Zarr or a zip."""
    if path.name.endswith(".zip"):
        folder = saved(dataset, path.with_suffix(""))
        shutil.make_archive(str(folder), "zip", folder)
        shutil.rmtree(folder)
    elif path.suffix == ".zarr":
        dataset.to_zarr(path, consolidated=False, zarr_format=2)
    else:
        engine = "scipy" if path.name.startswith("classic") else "h5netcdf"
        dataset.to_netcdf(path, engine=engine, encoding=encoding or None)
    return path


def weather(lat: int = 4, lon: int = 5, steps: int = 3, seed: int = 0) -> Any:
    """Temperature on a grid from north to south, and elevation, by days."""
    random = np.random.default_rng(seed)
    days = DAYS[0] + np.cumsum(random.integers(1, 9, steps)).astype("m8[D]")
    temp, elev = random.normal(size=(steps, lat, lon)), random.normal(size=(lat, lon))
    axes = {"lat": 60.0 - 2 * np.arange(lat), "lon": 3.0 * np.arange(lon) - 9}
    fields = {"temp": (("time", "lat", "lon"), temp), "elev": (("lat", "lon"), elev)}
    return xarray.Dataset(fields, {"time": days, **axes})


def stations(num: int = 6, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return xarray.Dataset(
        {"level": (("station", "time"), random.normal(size=(num, 3)), {"units": "m"})},
        {
            "time": DAYS,
            "name": ("station", [f"gauge {k}" for k in range(num)]),
            "lon": ("station", random.random(num) * 9),
            "lat": ("station", random.random(num) * 9),
        },
    )


def check_grid(fields: nfsgeo.data.Fields, dataset: Any) -> None:
    dataset = dataset.sortby("lat").transpose("time", "lon", "lat")
    assert fields.shape == (dataset.sizes["lon"], dataset.sizes["lat"])
    for axis, name in zip(fields.axes or (), ("lon", "lat"), strict=True):
        np.testing.assert_array_equal(axis, dataset[name])
    seconds = dataset.time.values.astype("M8[s]").astype(float)
    np.testing.assert_array_equal(fields.times, seconds)
    u = fields.read(0, slice(None))[..., 0].T.reshape(dataset.temp.shape)
    np.testing.assert_array_equal(u, dataset.temp.values)
    a = fields.read_static(0).reshape(fields.shape)
    np.testing.assert_array_equal(a, dataset.elev.values)
    assert (fields.component_names, fields.static_names) == (["temp"], ["elev"])


@pytest.mark.slow
@FAST
@given(
    kind=st.sampled_from(KINDS),
    size=st.tuples(*[st.integers(2, 5)] * 2, st.integers(1, 4), st.integers(0, 99)),
)
def test_grids_are_read(kind, size, sent):
    dataset = weather(*size)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(dataset, Path(folder) / kind)
        assert sum(each.recognises(FileProbe(path)) for each in FORMATS) == 1
        with sent(nfsgeo.open(path)) as fields:
            check_grid(fields, dataset)
            last = fields.num_points() - 1
            some = fields.read(0, slice(0, 1), np.array([last, 0]))
            np.testing.assert_array_equal(some, fields.read(0, slice(0, 1))[[last, 0]])
        with nfsgeo.open(nfsgeo.data.convert(path, Path(folder) / "out.nc")) as fields:
            check_grid(fields, dataset)
        check_grid(nfsgeo.from_xarray(dataset), dataset)


@FAST
@given(num=st.integers(2, 9), seed=st.integers(0, 99), kind=st.sampled_from(KINDS[:3]))
def test_stations_are_read(num, seed, kind, sent):
    dataset = stations(num, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(dataset, Path(folder) / kind)
        with sent(nfsgeo.open(path)) as fields:
            points = np.c_[dataset.lon, dataset.lat]
            np.testing.assert_array_equal(fields.coordinates(), points)
            u = dataset.level.values
            np.testing.assert_array_equal(fields.read(0, slice(None))[..., 0], u)
            assert fields.units["level"] == "m" and not fields.domain_is_known


@pytest.mark.slow
@FAST
@given(data=st.data())
def test_files_of_nfsgeo_by_xarray(any_fields, contents, tmp_path, data):
    """What xarray opens of them is what nfsgeo opens."""
    fields, _ = data.draw(any_fields.filter(lambda drawn: len(drawn[0].times) > 1))
    (tmp_path / "a.nc").unlink(missing_ok=True)
    path = fields.write(tmp_path / "a.nc")
    with xarray.open_dataset(path, decode_timedelta=False) as dataset:
        assert contents(nfsgeo.from_xarray(dataset)) == contents(fields)


def test_packed_values_and_fill_values(tmp_path):
    dataset = weather()
    dataset["temp"] = dataset.temp.round(1)
    dataset.temp[1, 2, 3] = np.nan
    how = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -999}
    path = saved(dataset, tmp_path / "a.nc", temp=how)
    wanted = dataset.temp.sortby("lat").transpose("time", "lon", "lat").values
    packed = xarray.open_dataset(path, mask_and_scale=False, engine="h5netcdf")
    for fields in (nfsgeo.open(path), nfsgeo.from_xarray(packed)):
        u = fields.read(0, slice(None))[..., 0].T.reshape(3, 5, 4)
        np.testing.assert_allclose(u, wanted, atol=1e-6)
        assert np.isnan(u).sum() == 1


@pytest.mark.parametrize("of", ["stored", "decoded"])
@pytest.mark.parametrize("scale", [0.5, -0.5, None])
def test_ranges_of_packed_values(scale, of):
    """In stored numbers, unless they are floats of packed integers; an offset packs."""
    stored = np.arange(60, dtype="i2").reshape(3, 4, 5)
    ends = np.array([10, 50], "i2")
    factor = scale or 1.0
    if of == "decoded":
        ends = np.sort(ends * factor + 7)
    about = {"add_offset": 7.0, "valid_range": ends}
    about |= {"scale_factor": scale} if scale else {}
    temp = ("time", "lat", "lon"), stored, about
    dataset = weather().drop_vars("elev").assign(temp=temp)
    wanted = np.sort(np.arange(10, 51) * factor + 7)
    for each in (dataset, xarray.decode_cf(dataset)):
        found = np.sort(nfsgeo.from_xarray(each).read(0, slice(None)).ravel())
        np.testing.assert_allclose(found[~np.isnan(found)], wanted)


@pytest.mark.parametrize(
    "mark",
    [{"_FillValue": -999}, {"missing_value": -999}]
    + [{"valid_min": -998}, {"valid_range": np.array([-998, 999], "i2")}],
)
def test_values_that_are_not_decoded(mark):
    dataset = weather()
    dataset["temp"] = (100 * dataset.temp).astype("i2")
    dataset.temp[1, 2, 3] = -999
    dataset.temp.attrs = mark
    for each in (dataset, dataset.stack(station=("lat", "lon")).reset_index("station")):
        values = fields_of(Path("a"), each).read(0, slice(None))
        assert np.isnan(values).sum() == 1 and np.nanmin(values) > -999
    dataset.temp.attrs = dict.fromkeys(mark, "none")
    assert fields_of(Path("a"), dataset).read(0, slice(None)).min() == -999
    with pytest.raises(UserError, match="temp of type complex128"):
        fields_of(Path("a"), dataset.assign(temp=1j * dataset.temp))


@pytest.mark.parametrize(
    "attrs",
    [
        {"units": "months since 2000-01-01"},
        {"units": "years since the flood"},
    ],
)
def test_times_that_are_not_clear_have_to_be_given(attrs, tmp_path, one_line, caplog):
    dataset = weather().assign_coords(time=np.arange(3))
    dataset.time.attrs = attrs
    path = saved(dataset, tmp_path / "a.nc")
    assert "3 time steps and no times" in one_line(nfsgeo.open, path)
    assert f"left out times in {attrs['units']}" in caplog.text
    with nfsgeo.open(path, times=[0.0, 1.0, 5.0]) as fields:
        assert fields.times.tolist() == [0.0, 1.0, 5.0]


@pytest.mark.parametrize("along", [(), ("time",), ("member",)])
def test_curvilinear_grids_are_points(along, tmp_path):
    """Also with coordinates along time that stay, and with those of each sample."""
    dataset = weather().rename(lat="j", lon="i").drop_vars(["i", "j"])
    dataset["temp"] = dataset.temp.expand_dims(member=2) * [[[[1]]], [[[2]]]]
    random, sizes = np.random.default_rng(0), {"time": 3, "member": 2}
    for name, units in (("lon", "degrees_east"), ("lat", "degrees_north")):
        here = random.random((4, 5)) + np.zeros([*(sizes[dim] for dim in along), 1, 1])
        if "member" in along:
            here[1] += 1
        dataset["nav_" + name] = ((*along, "j", "i"), here, {"units": units})
    path = saved(dataset, tmp_path / "a.nc")
    with nfsgeo.open(path, columns={"sample": "member"}) as fields:
        assert fields.num_points() == 20 and fields.component_names == ["temp"]
        for sample in range(2):
            here = dataset.nav_lon.isel(time=0, member=sample, missing_dims="ignore")
            found = fields.coordinates(sample)[:, 0]
            np.testing.assert_array_equal(found, here.values.ravel())
            u = dataset.temp.values[sample].reshape(3, 20).T
            np.testing.assert_array_equal(fields.read(sample, slice(None))[..., 0], u)
            elev = dataset.elev.values.reshape(20, 1)
            np.testing.assert_array_equal(fields.read_static(sample), elev)


def test_points_that_move_are_refused():
    dataset = weather().drop_vars(["lon", "lat"])
    dims = ("time", "lat", "lon")
    for name in ("lon", "lat"):
        here = np.ones((3, 1, 1)) * np.random.default_rng(0).random((4, 5))
        here[2] += name == "lat"
        dataset = dataset.assign_coords({f"{name}itude": (dims, here)})
    names = {"x": "lonitude", "y": "latitude"}
    with pytest.raises(UserError, match="points that move, latitude along time"):
        nfsgeo.from_xarray(dataset, columns=names)


@pytest.mark.parametrize("kind", ["grid", "stations"])
def test_longitudes_around_the_globe_need_a_domain(kind, tmp_path, one_line):
    dataset = weather(lon=8) if kind == "grid" else stations()
    around = dataset.lon * 0 + np.linspace(0, 350, dataset.lon.size)
    path = saved(dataset.assign_coords(lon=around), tmp_path / "a.nc")
    message = one_line(nfsgeo.open, path)
    assert "350 degrees" in message and "--axis 0:360:periodic" in message
    globe = Domain((0.0, -90.0), (360.0, 90.0), (True, False))
    assert nfsgeo.open(path, domain=globe).domain == globe


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.assign_coords(date=("time", [0.0, 1, 2])), None),
        (
            lambda d: d.rename(time="step").assign_coords(
                step=range(3), time=d.time[0], valid_time=("step", d.time.values)
            ),
            None,
        ),
        (lambda d: d.expand_dims(level=3), "along level, of 3"),
        (lambda d: d.expand_dims(level=1), None),
        (
            lambda d: d.assign(v=d.temp.isel(lon=slice(4)).rename(lon="lon_v")),
            "lon_v.*ignore.*v",
        ),
        (lambda d: d.rename(lat="row").assign_coords(row=range(4)), "along row, of 4"),
        (lambda d: d.drop_vars(["temp", "elev"]), "no field"),
        (lambda d: d.rename(temp="a_q").isel(time=slice(1)), "no field.*a_q"),
        (lambda d: d.assign(a_q=d.temp), "a_q, which changes in time"),
        (lambda d: d.assign(q=d.elev + 0 * d.temp), "q, which never changes in time"),
        (
            lambda d: d.assign_coords(
                x2=(("lat", "lon"), np.ones((4, 5)), {"units": "degrees_east"})
            ),
            "each of which may be coordinate x",
        ),
        (
            lambda d: d.rename(time="t0").assign_coords(
                t0=range(3), date=("t0", [0, 1, 2]), timestamp=("t0", [0, 1, 2])
            ),
            "date and timestamp, each of which may be the time",
        ),
    ],
)
def test_what_can_be_read_in_two_ways(change, words, tmp_path):
    path = saved(change(weather()), tmp_path / "a.nc")
    if words is None:
        assert nfsgeo.open(path).shape == (5, 4)
    else:
        with pytest.raises(UserError, match=words):
            nfsgeo.open(path)


@pytest.mark.parametrize("about", [{}, {"axis": "Z", "positive": "down"}])
def test_a_single_level_is_no_axis_and_a_field_may_be_called_z(about):
    """As of the surface of an ocean, and geopotentials."""
    u = np.random.default_rng(0).random((3, 1, 4, 5)).astype("f4")
    space = {"depth": ("depth", [0.5], about), "lat": range(4), "lon": range(5)}
    values = xarray.Dataset({"z": (["time", "depth", "lat", "lon"], u)}, space)
    times = DAYS if about else [0, 1, 2]
    file = fields_of(Path("a.nc"), values.assign_coords(time=times), {"field": "z"})
    assert file.shape == (5, 4) and file.component_names == ["z_field"]
    found = file.read(0, slice(None))[..., 0].T.reshape(3, 5, 4)
    assert np.array_equal(found.swapaxes(1, 2), u[:, 0])
    deep = fields_of(Path("a.nc"), values.assign_coords(time=times), {"z": "depth"})
    assert deep.shape == (5, 4, 1)


def test_one_number_is_a_parameter(tmp_path):
    """Of the samples of each file; what describes a projection is none."""
    crs = ((), 0, {"grid_mapping_name": "mercator"})
    files = []
    for nu in (1.0, 2.0):
        dataset = weather().assign(nu=nu, crs=crs)
        files.append(saved(dataset, tmp_path / f"{nu:g}.nc"))
    fields = nfsgeo.open(files, known=["nu"])
    assert fields.scalar_names == ["nu"] and {*fields.parameters} == {"nu"}
    assert fields.parameters["nu"].tolist() == [1.0, 2.0]


def test_fields_along_time_alone_are_known_ahead(tmp_path):
    dataset = stations().assign(co2=("time", np.arange(3.0)))
    path, out = saved(dataset, tmp_path / "a.nc"), tmp_path / "out.nc"
    for call in (
        lambda: nfsgeo.data.convert(path, out),
        lambda: nfsgeo.from_xarray(dataset),
    ):
        with pytest.raises(UserError, match="co2 along time alone.*known=co2"):
            call()
    assert not out.exists()
    nfsgeo.data.convert(path, out, known=["co2"])
    for fields in (nfsgeo.open(out), nfsgeo.from_xarray(dataset, known=["co2"])):
        assert fields.component_names == ["level"] and fields.forcing_names == ["co2"]


def test_names_of_several_lines_are_told_in_one(one_line):
    dataset = weather().rename(temp="te\nmp").expand_dims({"le\nvel": 3})
    assert "te mp" in one_line(nfsgeo.from_xarray, dataset)


def test_a_store_without_arrays(tmp_path, one_line):
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "empty.zarr" / "zarr.json").write_text("{}")
    one_line(nfsgeo.open, tmp_path / "empty.zarr")


@pytest.mark.parametrize("timed", [True, False])
def test_flags_are_categories(timed, tmp_path):
    """An input with flag_values (CF 1.11, section 3.5) keeps their meanings."""
    about = {"flag_values": np.array([0, 2], "i1"), "flag_meanings": "fluid wall"}
    zone = ("node", np.array([0, 2, 2], "i1"), about)
    T = (("time", "node"), np.random.default_rng(0).random((2, 3)))
    places = {"x": ("node", [0.0, 1.0, 0.5]), "y": ("node", [0.0, 0.0, 1.0])}
    dataset = xarray.Dataset({"T": T, "zone": zone}, {"time": [0.0, 1.0], **places})
    dataset = dataset if timed else dataset.isel(time=0, drop=True)
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    fields = nfsgeo.data.open(tmp_path / "a.nc")
    again = nfsgeo.data.open(fields.write(tmp_path / "b.nc"))
    for each in (fields, nfsgeo.from_xarray(dataset), again):
        assert each.categories == {"zone": {0: "fluid", 2: "wall"}}
        assert each.node_types == "zone" and each.component_names == ["T"]
        assert each.dataset["zone"].dtype == np.int8
        assert each.read_static(0)[:, 0].tolist() == [0, 2, 2]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%d.%m.%Y"])
def test_times_that_are_text(form, tmp_path, one_line):
    dates = [pandas.Timestamp(day) for day in DAYS]
    texts = [date.strftime(form) for date in dates]
    dataset = weather().assign_coords(time=texts)
    dataset.to_netcdf(path := tmp_path / "a.nc", engine="h5netcdf")
    if form.startswith("%d"):
        message = one_line(nfsgeo.open, path)
        lines = message.split("numbers; ")[1].replace(", with dayfirst=True if", " #")
        assert "to_datetime" in lines and "dayfirst" in message
    else:
        assert np.diff(nfsgeo.open(path).times).tolist() == [86400, 2 * 86400]


def test_two_pairs_of_coordinates_are_one_question(tmp_path, one_line):
    lon, lat = np.meshgrid([5.0, 6, 7], [50.0, 51])
    at = {"lon": (("y", "x"), lon), "lat": (("y", "x"), lat)}
    at |= {"x": [0.0, 1, 2], "y": [0.0, 1], "time": [0.0, 1]}
    dataset = xarray.Dataset({"u": (("time", "y", "x"), np.zeros((2, 2, 3)))}, at)
    dataset.to_netcdf(path := tmp_path / "a.nc", engine="h5netcdf")
    message = one_line(nfsgeo.open, path)
    for pair in ({"x": "lon", "y": "lat"}, {"x": "x", "y": "y"}):
        assert "x={x},y={y}".format(**pair) in message
        assert nfsgeo.open(path, columns=pair).num_points() == 6
