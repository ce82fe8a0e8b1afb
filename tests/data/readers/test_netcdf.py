"""NetCDF and Zarr as the CF conventions have them: values in place, or one line."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.data.readers import READERS
from nfsgeo.data.readers.netcdf import fields_of
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

xarray = pytest.importorskip("xarray")

FAST = settings(max_examples=15, deadline=None)
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
    return xarray.Dataset(
        {
            "temp": (("time", "lat", "lon"), random.normal(size=(steps, lat, lon))),
            "elev": (("lat", "lon"), random.normal(size=(lat, lon))),
        },
        {
            "time": days,
            "lat": 60.0 - 2 * np.arange(lat),
            "lon": 3.0 * np.arange(lon) - 9,
        },
    )


def check_grid(file: nfsgeo.data.FieldFile, dataset: Any) -> None:
    dataset = dataset.sortby("lat").transpose("time", "lon", "lat")
    assert file.shape == (dataset.sizes["lon"], dataset.sizes["lat"])
    for axis, name in zip(file.axes or (), ("lon", "lat"), strict=True):
        np.testing.assert_array_equal(axis, dataset[name])
    seconds = dataset.time.values.astype("M8[s]").astype(float)
    np.testing.assert_array_equal(file.times, seconds)
    u = file.read(0, slice(None))[..., 0].T.reshape(dataset.temp.shape)
    np.testing.assert_array_equal(u, dataset.temp.values.astype(np.float32))
    a = file.read_static(0).reshape(file.shape)
    np.testing.assert_array_equal(a, dataset.elev.values.astype(np.float32))
    assert (file.component_names, file.static_names) == (["temp"], ["elev"])


@FAST
@given(
    kind=st.sampled_from(KINDS),
    size=st.tuples(*[st.integers(2, 5)] * 2, st.integers(1, 4), st.integers(0, 99)),
)
def test_grids_are_read(kind: str, size: tuple[int, int, int, int]) -> None:
    dataset = weather(*size)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(dataset, Path(folder) / kind)
        assert sum(reader.recognise(path) for reader in READERS) == 1
        with copy.deepcopy(nfsgeo.data.open(path)) as file:
            check_grid(file, dataset)
            last = file.num_points() - 1
            some = file.read(0, slice(0, 1), np.array([last, 0]))
            np.testing.assert_array_equal(some, file.read(0, slice(0, 1))[[last, 0]])
        out = nfsgeo.data.convert(path, Path(folder) / "out.h5")
        with nfsgeo.data.open(out) as file:
            check_grid(file, dataset)


def test_packed_values_and_fill_values(tmp_path: Path) -> None:
    dataset = weather()
    dataset["temp"] = dataset.temp.round(1)
    dataset.temp[1, 2, 3] = np.nan
    how = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -999}
    path = saved(dataset, tmp_path / "a.nc", temp=how)
    with nfsgeo.data.open(path) as file:
        u = file.read(0, slice(None))[..., 0].T.reshape(3, 5, 4)
        wanted = dataset.temp.sortby("lat").transpose("time", "lon", "lat")
        np.testing.assert_allclose(u, wanted, atol=1e-6)
        assert np.isnan(u).sum() == 1
    nfsgeo.data.convert(path, tmp_path / "out.h5")
    with nfsgeo.data.open(tmp_path / "out.h5") as file:
        assert np.isnan(file.read(0, slice(None))).sum() == 1


@pytest.mark.parametrize("stations", [False, True])
@pytest.mark.parametrize("mark", ["_FillValue", "missing_value"])
def test_values_that_are_not_decoded(mark: str, stations: bool) -> None:
    dataset = weather()
    dataset["temp"] = (100 * dataset.temp).astype("i2")
    dataset.temp[1, 2, 3] = -999
    dataset.temp.attrs[mark] = -999
    if stations:
        dataset = dataset.stack(station=("lat", "lon")).reset_index("station")
    with fields_of(Path("a"), dataset) as file:
        values = file.read(0, slice(None))
        assert np.isnan(values).sum() == 1 and np.nanmin(values) > -999
    packed = dataset.assign(temp=dataset.temp.assign_attrs(scale_factor=0.01))
    with pytest.raises(UserError, match=r"temp as stored, .* mask_and_scale=True"):
        fields_of(Path("a"), packed)
    with pytest.raises(UserError, match="a with temp of type complex128"):
        fields_of(Path("a"), dataset.assign(temp=1j * dataset.temp))


@pytest.mark.parametrize(
    ("units", "seconds"),
    [
        ("hours since 1970-01-01", [0, 3600, 7200]),
        ("days since 1970-01-02 12:00", [129600, 216000, 302400]),
        ("s", [0, 1, 2]),
        ("hours", [0, 1, 2]),
        (None, [0, 1, 2]),
    ],
)
def test_units_of_time(units: str | None, seconds: list[int], tmp_path: Path) -> None:
    dataset = weather().assign_coords(time=np.arange(3))
    dataset.time.attrs = {} if units is None else {"units": units}
    with nfsgeo.data.open(saved(dataset, tmp_path / "a.nc")) as file:
        assert file.times.tolist() == seconds
        unit = file.provenance.get("units", {}).get("time")
        assert unit == ("seconds since 1970-01-01" if seconds[1] > 1 else units)


@pytest.mark.parametrize(
    "attrs",
    [
        {"units": "days since 2000-01-01", "calendar": "noleap"},
        {"units": "years since the flood"},
    ],
)
def test_times_that_are_not_clear_have_to_be_given(
    attrs: dict[str, str], tmp_path: Path, one_line: Callable[..., str]
) -> None:
    dataset = weather().assign_coords(time=np.arange(3))
    dataset.time.attrs = attrs
    path = saved(dataset, tmp_path / "a.nc")
    message = one_line(nfsgeo.data.open, path)
    assert "3 time steps and no times" in message and "--times" in message
    with open_sources(path, times=[0.0, 1.0, 5.0]) as file:
        assert file.times.tolist() == [0.0, 1.0, 5.0]


def test_spans_of_time_are_fields() -> None:
    """As xarray decodes fields in seconds, hours or days."""
    dataset = weather()
    (name,) = list(dataset.data_vars)[:1]
    period = np.round(np.abs(dataset[name].values) * 1e9).astype("m8[ns]")
    dataset["period"] = (dataset[name].dims, period)
    file = fields_of(Path("a"), dataset)
    assert "period" in file.component_names and file.units["period"] == "s"
    at = file.component_names.index("period")
    other = file.component_names.index(str(name))
    u = file.read(0, slice(None))
    np.testing.assert_allclose(u[..., at], np.abs(u[..., other]), rtol=1e-5)


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


@FAST
@given(num=st.integers(2, 9), seed=st.integers(0, 99), kind=st.sampled_from(KINDS[:3]))
def test_stations_are_read(num: int, seed: int, kind: str) -> None:
    dataset = stations(num, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(dataset, Path(folder) / kind)
        with copy.deepcopy(nfsgeo.data.open(path)) as file:
            points = np.c_[dataset.lon, dataset.lat]
            np.testing.assert_array_equal(file.coordinates(), points)
            u = dataset.level.values.astype(np.float32)
            np.testing.assert_array_equal(file.read(0, slice(None))[..., 0], u)
            np.testing.assert_array_equal(file.read(0, slice(1, 2))[..., 0], u[:, 1:2])
            assert file.units == {"level": "m"} and not file.domain_is_known
            units = [dataset[name].attrs.get("units", "") for name in ("lon", "lat")]
            assert file.axis_units == units


def test_curvilinear_grids_are_points(tmp_path: Path) -> None:
    dataset = weather().rename(lat="j", lon="i").drop_vars(["i", "j"])
    random = np.random.default_rng(0)
    for name in ("lon", "lat"):
        units = {"lon": "degrees_east", "lat": "degrees_north"}[name]
        dataset["nav_" + name] = ("j", "i"), random.random((4, 5)), {"units": units}
    with nfsgeo.data.open(saved(dataset, tmp_path / "a.nc")) as file:
        assert file.num_points() == 20 and file.component_names == ["temp"]
        np.testing.assert_array_equal(
            file.coordinates()[:, 0], dataset.nav_lon.values.ravel()
        )
        u = dataset.temp.values.reshape(3, 20).T.astype(np.float32)
        np.testing.assert_array_equal(file.read(0, slice(None))[..., 0], u)
        a = dataset.elev.values.reshape(20, 1).astype(np.float32)
        np.testing.assert_array_equal(file.read_static(0), a)


def test_samples_and_their_parameters(tmp_path: Path) -> None:
    parts = [weather(seed=0).assign_coords(time=DAYS) + k for k in range(4)]
    dataset = xarray.concat(parts, "member")
    dataset["elev"] = dataset.elev[0]
    dataset["viscosity"] = "member", np.arange(4.0)
    path = saved(dataset, tmp_path / "a.nc")
    with open_sources(path, columns={"sample": "member"}) as file:
        assert file.num_samples == 4
        np.testing.assert_array_equal(file.parameters["viscosity"], np.arange(4.0))
        for sample, part in enumerate(parts):
            check_values = part.temp.sortby("lat").transpose("lon", "lat", "time")
            u = file.read(sample, slice(None))[..., 0].reshape(5, 4, 3)
            np.testing.assert_array_equal(u, check_values.values.astype(np.float32))


@pytest.mark.parametrize("kind", ["grid", "stations"])
def test_longitudes_around_the_globe_need_a_domain(
    kind: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    dataset = weather(lon=8) if kind == "grid" else stations()
    dataset = dataset.assign_coords(
        lon=dataset.lon * 0 + np.linspace(0, 350, dataset.lon.size)
    )
    path, out = saved(dataset, tmp_path / "a.nc"), tmp_path / "a.h5"
    for call in (nfsgeo.data.open, lambda path: nfsgeo.data.convert(path, out)):
        message = one_line(call, path)
        assert "350 degrees" in message and "--axis 0:360:periodic" in message
    globe = Domain((0.0, -90.0), (360.0, 90.0), (True, False))
    with nfsgeo.data.open(nfsgeo.data.convert(path, out, domain=globe)) as file:
        assert file.domain == globe


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.assign_coords(date=("time", [0.0, 1, 2])), None),
        (lambda d: d.expand_dims(level=3), "along level, of 3"),
        (lambda d: d.expand_dims(level=1), None),
        (lambda d: d.rename(lat="row").assign_coords(row=range(4)), "along row, of 4"),
        (lambda d: d.drop_vars(["temp", "elev"]), "no field"),
        (
            lambda d: d.assign_coords(
                x2=(("lat", "lon"), np.ones((4, 5)), {"units": "degrees_east"})
            ),
            "lon and x2, each of which may be coordinate x",
        ),
        (
            lambda d: d.rename(time="t0").assign_coords(
                t0=range(3), date=("t0", [0, 1, 2]), timestamp=("t0", [0, 1, 2])
            ),
            "date and timestamp, each of which may be the time",
        ),
    ],
)
def test_what_can_be_read_in_two_ways(
    tmp_path: Path,
    one_line: Callable[..., str],
    change: Callable[[Any], Any],
    words: str | None,
) -> None:
    path = saved(change(weather()), tmp_path / "a.nc")
    if words is None:
        with nfsgeo.data.open(path) as file:
            assert file.shape == (5, 4)
    else:
        assert words in one_line(nfsgeo.data.open, path)


def test_names_of_static_inputs_that_vary_in_time(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    name = next(n for n, v in weather().data_vars.items() if "time" in v.dims)
    dataset = weather().assign(a_q=weather()[name])
    message = one_line(nfsgeo.data.open, saved(dataset, tmp_path / "a.nc"))
    assert "a_q, which changes in time" in message
    single = dataset.isel(time=slice(1))
    points = single.stack(station=("lat", "lon")).reset_index("station")
    for kind, case in (("grid.nc", single), ("points.nc", points)):
        with nfsgeo.data.open(saved(case, tmp_path / kind)) as file:
            assert "a_q" in file.static_names and name in file.component_names
            c = list(file.static_names).index("a_q")
            np.testing.assert_array_equal(
                file.read_static(0)[:, c], file.read(0, slice(None))[:, 0, 0]
            )
    alone = saved(dataset[["a_q"]].isel(time=slice(1)), tmp_path / "alone.nc")
    assert "no field but a_q" in one_line(nfsgeo.data.open, alone)


def test_axes_tell_more_than_names(tmp_path: Path) -> None:
    dataset = weather().rename(lon="u", lat="v", time="w")
    for name, axis in (("u", "X"), ("v", "Y"), ("w", "T")):
        dataset[name].attrs["axis"] = axis
    with nfsgeo.data.open(saved(dataset, tmp_path / "a.nc")) as file:
        assert file.shape == (5, 4) and len(file.times) == 3
    plain = weather().rename(lon="u", lat="v", time="w")
    columns = {"x": "u", "y": "v", "time": "w"}
    with open_sources(saved(plain, tmp_path / "b.nc"), columns=columns) as file:
        assert file.shape == (5, 4) and len(file.times) == 3


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), kind=st.sampled_from(["a.nc", "classic.nc"]))
def test_damage_gives_one_line(tmp_path: Path, data: st.DataObject, kind: str) -> None:
    path = tmp_path / kind
    if not path.exists():
        saved(weather(), path)
    raw = path.read_bytes()
    place = data.draw(st.integers(0, len(raw) - 1))
    noise = data.draw(st.binary(min_size=0, max_size=16))
    rest = raw[place + len(noise) :] if noise else b""
    other = tmp_path / f"broken_{kind}"
    other.write_bytes(raw[:place] + noise + rest)
    try:
        with nfsgeo.data.open(other) as file:
            file.read(0, slice(None))
            file.read_static(0)
    except UserError as error:
        assert "\n" not in str(error)


def test_damaged_stores_give_one_line(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    whole = saved(weather(), tmp_path / "a.zarr")
    for path in sorted(each for each in whole.rglob("*") if each.is_file()):
        for content in (b"", b"{", path.read_bytes()[: path.stat().st_size // 2]):
            broken = tmp_path / "broken.zarr"
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(whole, broken)
            (broken / path.relative_to(whole)).write_bytes(content)
            try:
                with nfsgeo.data.open(broken) as file:
                    file.read(0, slice(None))
                    file.read_static(0)
            except UserError as error:
                assert "\n" not in str(error)
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "empty.zarr" / "zarr.json").write_text("{}")
    one_line(nfsgeo.data.open, tmp_path / "empty.zarr")


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_missing_extras_are_named(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    one_line: Callable[..., str],
) -> None:
    saved(weather(), tmp_path / name)
    monkeypatch.setitem(sys.modules, "xarray", None)
    assert "nfsgeo[formats]" in one_line(nfsgeo.data.open, tmp_path / name)


@pytest.mark.slow
def test_nothing_of_this_is_imported_at_the_start() -> None:
    # PyTorch Geometric itself imports pandas, and pandas pyarrow, where they are.
    names = ["xarray", "zarr", "h5netcdf", "meshio"]
    code = f"import nfsgeo.data, sys; assert not set({names}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
