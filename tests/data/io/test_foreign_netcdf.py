"""Fill values, flags, choices of fields, longitudes and calendars of foreign NetCDF."""

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_netcdf import DIMS, RANDOM, SHAPE, grid, saved, values_of

import nfsgeo
from nfsgeo.data.io.roles import unwrapped
from nfsgeo.geometry import Domain

# As the netCDF library fills what nobody has written.
FILLS = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i2": -32767}


FILLS |= {"i4": -2147483647, "i8": -9223372036854775806, "u2": 65535}


FILLS |= {"u4": 4294967295, "u8": 18446744073709551614}


@pytest.mark.parametrize("kind", ["nc", "classic", "zarr"])
@pytest.mark.parametrize("dtype", sorted(FILLS))
@pytest.mark.parametrize("scale", [None, 0.5])
def test_values_that_were_never_written(kind, dtype, scale, tmp_path):
    """Default fill values without an attribute, packed or not."""
    if kind == "classic" and dtype not in ("f4", "f8", "i2", "i4"):
        pytest.skip("classic NetCDF has no such type")
    stored = RANDOM.integers(0, 99, SHAPE).astype(dtype)
    stored[4:] = FILLS[dtype]
    about = {"scale_factor": scale} if scale else {}
    path = saved(grid(u=(DIMS, stored, about)), tmp_path, kind)
    opened = [nfsgeo.open(path)]
    for decode in (True, False) if kind != "zarr" else ():
        engine = "scipy" if kind == "classic" else "h5netcdf"
        whole = xarray.open_dataset(path, engine=engine, mask_and_scale=decode)
        opened.append(nfsgeo.from_xarray(whole))
    for fields in opened:
        found = values_of(fields)
        assert np.isnan(found[:, 4:]).all()
        wanted = stored[:4].reshape(4, 3, 4).transpose(2, 1, 0).reshape(12, 4)
        np.testing.assert_allclose(found[:, :4], wanted * (scale or 1.0))


@pytest.mark.parametrize(
    ("about", "missing"),
    [({"_FillValue": np.int16(7)}, False), ({"missing_value": np.int16(7)}, True)]
    + [({"_Unsigned": "true"}, False), ({"valid_min": np.int16(-32768)}, True)],
)
def test_default_fill_values_beside_attributes(about, missing, tmp_path):
    """As the netCDF library masks them: unless there is a _FillValue or _Unsigned."""
    stored = np.ones(SHAPE, "i2")
    stored[0] = -32767
    dataset = grid(u=(DIMS, stored))
    dataset["u"].attrs = about
    path = tmp_path / "a.nc"
    dataset.to_netcdf(path, engine="h5netcdf")
    fields = nfsgeo.open(path, columns={"missing": ""})  # others are no marks
    assert np.isnan(values_of(fields)[:, 0]).all() == missing


def test_ranges_of_integers_without_a_sign(tmp_path):
    """As the netCDF library reads ``_Unsigned``: -1 of 16 bits is 65535."""
    stored = np.arange(72, dtype="i2").reshape(SHAPE)
    stored[0], stored[1] = -1, -2
    dataset = grid(u=(DIMS, stored, {"_Unsigned": "true", "valid_max": np.int16(-2)}))
    dataset["u"].attrs["_FillValue"] = np.int16(70)
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    found = values_of(nfsgeo.open(tmp_path / "a.nc"))
    assert np.isnan(found).sum() == 13 and (found[:, 1] == 65534).all()


@pytest.mark.parametrize("filled", [True, False])
def test_bytes_are_masked_where_the_file_fills_them(filled, tmp_path):
    stored = RANDOM.integers(0, 99, SHAPE).astype("i1")
    stored[0] = -127
    path = saved(grid(v=(DIMS, stored.astype("f4"))), tmp_path)
    with h5py.File(path, "a") as file:
        u = file.create_dataset("u", data=stored, fillvalue=-127 if filled else None)
        for number, dim in enumerate(DIMS):
            u.dims[number].attach_scale(file[dim])
    with nfsgeo.open(path, columns={"field": "u"}) as fields:
        assert np.isnan(values_of(fields)[:, 0]).all() == filled


def test_integers_stay_categories(tmp_path):
    """A land mask of integers, of which none is the default fill value."""
    about = {"flag_values": np.array([0, 1], "i4"), "flag_meanings": "sea land"}
    mask = RANDOM.integers(0, 2, SHAPE[1:]).astype("i4")
    dataset = grid(u=(DIMS, RANDOM.random(SHAPE)), mask=(DIMS[1:], mask, about))
    fields = nfsgeo.open(saved(dataset, tmp_path))
    assert fields.categories == {"mask": {0: "sea", 1: "land"}}


@pytest.mark.parametrize("fill", [1e20, 1e37, -1e34, 9.969209968386869e36, -999.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("told", [True, False])
def test_places_that_were_never_written(fill, dtype, told, tmp_path, caplog, one_line):
    """Coordinates of models that leave land out; -999 only where an attribute says."""
    x, y = np.meshgrid(np.arange(6.0), np.arange(5.0))
    u = RANDOM.random((4, 5, 6)).astype(dtype)
    x, y = x.astype(dtype), y.astype(dtype)
    x[0, :2] = y[0, :2] = u[:, 0, :2] = fill
    about = {"_FillValue": np.dtype(dtype).type(fill)} if told else {"_FillValue": None}
    names = {"x": (("j", "i"), x), "y": (("j", "i"), y), "u": (("time", "j", "i"), u)}
    dataset = xarray.Dataset(names, {"time": np.arange(4.0)}).set_coords(["x", "y"])
    path = saved(dataset, tmp_path, **dict.fromkeys("xyu", about))
    known = told or fill != -999
    if not known:
        assert "-999 in 8 of 120 values of u" in one_line(nfsgeo.open, path)
    fields = nfsgeo.open(path, columns=None if known else {"missing": ""})
    assert len(fields.coordinates()) == (28 if known else 30)
    assert (fields.extent.max() == 5) and (np.nanmax(values_of(fields)) < 2)
    assert ("left out 2 of 30 points" in caplog.text) == known
    x[:] = fill
    if known:
        path = saved(dataset, tmp_path, **dict.fromkeys("xyu", about))
        assert "none of whose values was written" in one_line(nfsgeo.open, path)


def test_axes_and_times_that_were_never_written(tmp_path, caplog, one_line):
    fill = FILLS["f8"]
    dataset = grid(u=(DIMS, RANDOM.random(SHAPE))).assign_coords(time=np.arange(6.0))
    dataset["time"].attrs["units"] = "hours since 2026-01-01"
    late = dataset.assign_coords(
        time=("time", [0, 1, 2, 3, fill, fill], dataset.time.attrs)
    )
    fields = nfsgeo.open(saved(late, tmp_path))
    assert fields.read(0, slice(None)).shape == (12, 4, 1)
    assert "2 of 6 time steps" in caplog.text
    holed = dataset.assign_coords(lon=[0.0, 1, fill, 3])
    assert "1 of 4 values of lon missing" in one_line(
        nfsgeo.open, saved(holed, tmp_path)
    )


def analysis():
    t, u = np.zeros((6, 2, 3, 4)), np.zeros(SHAPE)
    dataset = grid(
        temperature=(("time", "level", "lat", "lon"), t + RANDOM.random(t.shape)),
        msl=(DIMS, u + RANDOM.random(SHAPE)),
        wind=(("time", "lat", "lon_u"), RANDOM.random((6, 3, 5))),
        count=("time", np.arange(6)),
        elev=(DIMS[1:], RANDOM.random(SHAPE[1:])),
    )
    return dataset.assign_coords(level=[500, 850])


@pytest.mark.parametrize("kind", ["nc", "zarr", "memory"])
@pytest.mark.parametrize(
    ("columns", "shape"),
    [
        ({"field": "msl"}, (1, 12, 2)),
        ({"field": ["temperature"], "sample": "level"}, (2, 12, 2)),
        ({"field": "temperature", "z": "level"}, (1, 24, 3)),
    ],
)
def test_a_choice_leaves_out_what_else_changes(kind, columns, shape, tmp_path):
    dataset = analysis()
    if kind == "memory":
        fields = nfsgeo.from_xarray(dataset, columns=columns)
    else:
        fields = nfsgeo.open(saved(dataset, tmp_path, kind), columns=columns)
    assert fields.component_names == [*np.ravel(columns["field"])]
    assert fields.static_names == ["elev"] and not fields.forcing_names
    assert (fields.num_samples, *fields.coordinates().shape) == shape


def test_no_question_contradicts_a_choice(one_line):
    """Of levels, an axis comes first; of members and lead times what they are."""
    call, dataset = nfsgeo.from_xarray, analysis()
    message = one_line(call, dataset, columns={"field": "temperature"})
    assert "z=level, or --columns sample=level" in message and "field=" not in message
    assert "ignore=" not in message and "msl" not in message
    two = analysis()[["temperature", "msl"]]
    assert "field=msl, or field=temperature" in one_line(call, two)
    members = two[["msl"]].expand_dims(number=[1, 2])
    assert "z=" not in one_line(call, members)
    lead = two[["msl"]].expand_dims(step=np.arange(2).astype("m8[h]").astype("m8[ns]"))
    assert "time=step,sample=time" in one_line(call, lead)
    old = two[["msl"]].expand_dims(expver=[1, 5])
    assert "combine_first" in one_line(call, old)


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ([350, 355, 0, 5, 10], [350, 355, 360, 365, 370]),
        ([170, 175, -180, -175], [170, 175, 180, 185]),
        ([10, 5, 0, 355, 350], [350, 355, 360, 365, 370]),
        ([0, 5, 10, 350, 355], [350, 355, 360, 365, 370]),
        ([0, 10, 20], [0, 10, 20]),
        ([100, 140, 180, -140, -100], [100, 140, 180, 220, 260]),
        ([*range(180, 360, 30), *range(0, 180, 30)], [*range(0, 360, 30)]),
    ],
)
@pytest.mark.parametrize("dims", [("lon",), ("y", "x")])
def test_longitudes_that_go_on(stored, read, dims, caplog):
    """Across Greenwich or the date line, of an axis or of each point; values follow."""
    num, domain = len(stored), None
    if max(read) - min(read) > 180:
        low = min(read)
        domain = Domain((low, 49.0), (low + 360.0, 53.0), (True, False))
        if len(dims) > 1:
            pytest.skip("points over more than half of the globe stay where they are")
    u = np.broadcast_to(np.array(stored, float), (2, 3, num)).copy()
    lat = np.array([50.0, 51, 52])
    lon, name = np.array(stored, float), {"units": "degrees_east"}
    axes = {"time": [0.0, 1.0], "lat": lat, "lon": ("lon", lon, name)}
    data = xarray.Dataset({"u": (("time", "lat", "lon"), u)}, axes)
    if len(dims) > 1:
        x, y = np.meshgrid(lon, lat)
        places = {"lon": (("j", "i"), x, name), "lat": (("j", "i"), y)}
        data = xarray.Dataset(
            {"u": (("time", "j", "i"), u)}, {"time": [0.0, 1], **places}
        )
    fields = nfsgeo.from_xarray(data, domain=domain)
    x = fields.coordinates()[:, 0]
    assert np.unique(x).tolist() == sorted(read)
    np.testing.assert_array_equal(x % 360, values_of(fields)[:, 0] % 360)
    assert ("longitudes are read as" in caplog.text) == ({*stored} != {*read})


@given(start=st.integers(-180, 359), num=st.integers(2, 36), step=st.integers(1, 5))
@settings(max_examples=60)
def test_longitudes_of_a_region_stay_together(start, num, step):
    """In either convention, in any order, a region keeps its extent."""
    whole = start + step * np.arange(num)
    for low in (-180, 0):
        stored = xarray.DataArray((whole - low) % 360 + low).astype(float)
        read = unwrapped("a", stored).values
        assert np.ptp(read) == step * (num - 1)
        np.testing.assert_array_equal((read - stored.values) % 360, 0)


@pytest.mark.parametrize("calendar", ["noleap", "365_day", "all_leap", "360_day"])
@pytest.mark.parametrize(("step", "months"), [(1, False), (30.4375, True)])
def test_calendars_of_climate_models(calendar, step, months, tmp_path, caplog):
    """Days of the calendar are equal steps; months are dates, or 30 days."""
    begins = np.cumsum([0, 31, 28 + (calendar == "all_leap"), 31, 30, 31])
    days = 14.5 + (np.arange(6) * 30 if calendar == "360_day" else begins)
    time = days if months else np.arange(6.0)
    dataset = grid(u=(DIMS, RANDOM.random(SHAPE)))
    about = {"units": "days since 2001-01-01", "calendar": calendar}
    dataset = dataset.assign_coords(time=("time", time, about))
    fields = nfsgeo.open(saved(dataset, tmp_path))
    if months and calendar != "360_day":
        wanted = np.array([f"2001-0{k}-15T12" for k in range(1, 7)], "M8[s]")
        assert fields.times.tolist() == wanted.astype(float).tolist()
    else:
        year = {"360_day": 360, "all_leap": 366}.get(calendar, 365)
        np.testing.assert_allclose(fields.times, 31 * year + time)
        assert fields.time_unit == "days" and calendar in caplog.text


def test_objects_of_cftime():
    cftime = pytest.importorskip("cftime")
    time = cftime.num2date(np.arange(6), "days since 1850-01-01", "noleap")
    dataset = grid(u=(DIMS, RANDOM.random(SHAPE))).assign_coords(time=time)
    assert np.diff(nfsgeo.from_xarray(dataset).times).tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GRIB\0\0\0\2" + bytes(99), "cfgrib"),
        (b"\x0e\x03\x13\x01" + bytes(99), "an HDF4 file"),
    ],
)
def test_files_that_are_taken_for_netcdf(content, words, tmp_path, one_line):
    (tmp_path / "a.nc").write_bytes(content)
    assert words in one_line(nfsgeo.open, tmp_path / "a.nc")


def test_packages_that_files_take(tmp_path, one_line, monkeypatch):
    monkeypatch.setattr("nfsgeo.data.io.netcdf.find_spec", lambda name: None)
    (tmp_path / "a.nc").write_bytes(b"CDF\x05" + bytes(99))
    message = one_line(nfsgeo.open, tmp_path / "a.nc")
    assert "CDF-5" in message and "nccopy -k nc4" in message
    path = saved(grid(u=(DIMS, RANDOM.random(SHAPE))), tmp_path)
    with h5py.File(path, "a") as file:  # as netCDF-C 4.9 compresses
        about = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        about.set_chunk(SHAPE)
        about.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
        space = h5py.h5s.create_simple(SHAPE)
        h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_FLOAT, space, about)
    monkeypatch.setattr("nfsgeo.data.io.array_files.find_spec", lambda name: None)
    message = one_line(nfsgeo.open, path)
    assert "zstd" in message and "pip install hdf5plugin" in message


def test_groups_are_named(tmp_path, one_line):
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.attrs["_NCProperties"] = "version=2"
        file.create_dataset("PRODUCT/no2", data=np.ones(3))
    message = one_line(nfsgeo.open, tmp_path / "a.nc")
    assert 'group="PRODUCT"' in message


@pytest.mark.parametrize("empty", [0, -1])
@pytest.mark.parametrize("land", [0, np.nan])
def test_points_on_land_that_share_a_place(land, empty, tmp_path, caplog):
    """NEMO writes nav_lon and nav_lat of processors on land alone as 0, or as -1."""
    lon, lat = np.meshgrid(np.linspace(5, 15, 6), np.linspace(40, 48, 5))
    about = {"coordinates": "nav_lat nav_lon"}
    east, north = {"units": "degrees_east"}, {"units": "degrees_north"}
    dry, u = np.zeros((5, 6), bool), np.ones((2, 5, 6))
    dry[:2, :3] = True
    u[:, dry] = land
    where = {
        "nav_lon": (("y", "x"), np.where(dry, empty, lon + lat / 10), east),
        "nav_lat": (("y", "x"), np.where(dry, empty, lat), north),
        "time_counter": np.array(["2000-01-01", "2000-01-02"], "M8[ns]"),
    }
    xarray.Dataset({"u": (("time_counter", "y", "x"), u, about)}, where).to_netcdf(
        tmp_path / "a.nc"
    )
    fields = nfsgeo.open(tmp_path / "a.nc")
    assert fields.num_points() == 24 and "6 of 30 points, which share" in caplog.text
    assert (fields.read(0, slice(None)) == 1).all()
    assert fields.coordinates().min() > 8


@pytest.mark.parametrize("form", [2, 3])
def test_fill_values_of_zarr_arrays(form, tmp_path):
    zarr = pytest.importorskip("zarr")
    path, u = tmp_path / "a.zarr", np.arange(6.0).reshape(2, 3)
    times = xarray.Dataset(coords={"time": [0.0, 1.0], "x": [0.0, 1, 2]})
    times.to_zarr(path, zarr_format=form, consolidated=False)
    group = zarr.open_group(path, mode="r+")
    for name, fill in (("u", -999.0), ("v", 0.0)):
        dims = {"dimension_names": ["time", "x"]} if form == 3 else {}
        array = group.create_array(
            name, shape=(2, 3), chunks=(1, 3), dtype="f8", fill_value=fill, **dims
        )
        array[:1] = np.where(u[:1] == 0, fill, u[:1])
        if form == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
    fields, nan = nfsgeo.open(path), np.nan
    u, v = (fields.read_values([name], 0, slice(None))[..., 0] for name in "uv")
    np.testing.assert_array_equal(u, [[nan, nan], [1, nan], [2, nan]])
    np.testing.assert_array_equal(v, [[0, 0], [1, 0], [2, 0]])


def test_a_meridian_at_both_ends(tmp_path, caplog):
    lon, lat = np.arange(-180, 181, 60.0), np.arange(-60, 61, 30.0)
    u = np.cos(np.radians(lon)) * np.ones((2, 5, 1))
    where = {
        "time": [0.0, 1.0],
        "lat": ("lat", lat, {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    dataset = xarray.Dataset({"u": (("time", "lat", "lon"), u)}, where)
    dataset.to_netcdf(tmp_path / "a.nc")
    fields = nfsgeo.open(tmp_path / "a.nc", domain=Domain.sphere())
    assert fields.shape == (6, 5) and "lon 180, which is -180 again" in caplog.text
    domain = Domain((-180, -90), (180, 90), (False, False))
    for place in ((..., -1), (1, 3, -1)):  # also if a later time step alone differs
        other = dataset.copy(deep=True)
        other["u"][place] = 7
        other["small"] = 1e-12 * other["u"]
        for name in ("u", "small"):
            other[[name]].to_netcdf(tmp_path / f"{name}.nc")
            opened = nfsgeo.open(tmp_path / f"{name}.nc", domain=domain)
            assert opened.shape == (7, 5)


def test_advice_about_equal_times_and_two_kinds_of_samples(one_line):
    u = np.arange(8.0).reshape(4, 2)
    dataset = xarray.Dataset(
        {"u": (("time", "x"), u)}, {"time": [0.0, 1, 1, 2], "x": [0.0, 1]}
    )
    said = one_line(nfsgeo.from_xarray, dataset)
    assert "drop_duplicates('time')" in said and "sort" not in said
    once = nfsgeo.from_xarray(dataset.drop_duplicates("time"))
    assert once.times.tolist() == [0, 1, 2]
    members = {"realization": [1, 2], "member_id": ["a", "b", "c"]}
    several = dataset.drop_duplicates("time").expand_dims(members)
    said = one_line(nfsgeo.from_xarray, several)
    assert 'dataset.stack(s=("realization", "member_id"))' in said
    stacked = several.stack(s=("realization", "member_id"))
    assert nfsgeo.from_xarray(stacked, columns={"sample": "s"}).num_samples == 6


@pytest.mark.parametrize("about", [{}, {"units": "degrees_east"}])
def test_longitudes_across_a_meridian_by_name_or_units(about, tmp_path):
    values = RANDOM.random((4, 3, 4))
    where = {"lat": [10.0, 20.0, 30.0], "lon": ("lon", [350.0, 355.0, 0.0, 5.0], about)}
    dataset = xarray.Dataset({"u": (("time", "lat", "lon"), values)}, where)
    dataset = dataset.assign_coords(time=np.arange(4.0))
    dataset.to_netcdf(path := tmp_path / "a.nc")
    with nfsgeo.open(path) as fields:
        assert fields.axes[0].tolist() == [350.0, 355.0, 360.0, 365.0]
