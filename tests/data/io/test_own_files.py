"""nfsgeo's own file gives back what was written, or says in a line what is wrong."""

import shutil

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.data import Fields

TIMES = np.arange(50.0)
relaxed = settings(max_examples=20)


@pytest.mark.slow
@relaxed
@given(data=st.data())
def test_every_layout_comes_back(any_fields, contents, tmp_path, data):
    fields, samples = data.draw(any_fields)
    path, once, again = (tmp_path / f"{name}.nc" for name in "abc")
    for each in (path, once, again):
        each.unlink(missing_ok=True)
    told: list[tuple[str, int, int]] = []
    expected = contents(fields)
    fields.write(path, progress=lambda *report: told.append(report))
    assert told[-1] == ("writing samples", len(samples), len(samples))
    with nfsgeo.data.open(path) as found:
        assert contents(found) == expected
        assert found.domain_is_known == fields.domain_is_known
        assert found.reopens and set(found.dataset) >= set(fields.dataset)
        for name in ("u0", "start"):
            assert found.dataset[name].dtype == fields.dataset[name].dtype
        found.write(once)
        found.with_known(["u1"]).write(again)
    assert contents(once) == expected
    with nfsgeo.data.open(again) as found:
        assert sorted(found.forcing_names) == ["sun", "u1"]


def test_names_of_stations_of_each_sample_come_back(tmp_path):
    points = [np.arange(2.0)[:, None], np.arange(3.0)[:, None]]
    u = [np.zeros((2, 1)), np.zeros((3, 1))]
    names = ["Ost", "Süd", "Ost", "West", "Süd"]
    fields = build(tmp_path, [Array(u, "pc", ["u"])], points=points, stations=names)
    path = fields.write(tmp_path / "a.nc")
    opened = [nfsgeo.data.open(path), nfsgeo.from_xarray(xarray.open_dataset(path))]
    for i, found in enumerate(opened):
        again = nfsgeo.data.open(found.write(tmp_path / f"{i}.npz"))
        for each in (found, again):
            assert [*each.stations(0), *each.stations(1)] == names


def test_chunks_are_small_and_have_checksums(tmp_path):
    u = np.zeros((2, 600, 1000), "f4")
    axes, path = [np.arange(1000.0)], tmp_path / "a.nc"
    fields = build(path, [Array(u, "ntx", ["u"])], axes=axes, times=np.arange(600))
    fields.write(path)
    with h5py.File(path) as file:
        found = file["u"]
        assert found.fletcher32 and file["x"].fletcher32 and file["time"].fletcher32
        assert found.chunks[0] == 1 and 1e5 < 4 * np.prod(found.chunks) <= 2**19
    assert path.stat().st_size < 1.05 * u.nbytes


@relaxed
@given(share=st.floats(0, 1, exclude_max=True))
@pytest.mark.parametrize("kind", ["grid_case", "point_case"])
def test_truncated_files_are_refused(request, tmp_path, one_line, kind, share):
    raw = request.getfixturevalue(kind).path.read_bytes()
    (other := tmp_path / "broken.nc").write_bytes(raw[: int(share * len(raw))])
    assert "broken.nc" in one_line(nfsgeo.data.open, other)


def test_values_that_have_changed_are_refused(grid_case, contents, one_line):
    with h5py.File(grid_case.path) as file:
        place = file["u"].id.get_chunk_info(0).byte_offset
    raw = bytearray(grid_case.path.read_bytes())
    raw[place] ^= 1
    grid_case.path.write_bytes(raw)
    one_line(contents, grid_case.path)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["x"].write_direct(np.arange(6.0)[::-1].copy()),
        lambda f: f.attrs.update(nfsgeo_layout=5),
        lambda f: f.attrs.update(nfsgeo_layout="x"),
        lambda f: f["u"].attrs.__delitem__("role"),
    ],
)
def test_contradictions_are_found(grid_case, one_line, change):
    with h5py.File(grid_case.path, "r+") as file:
        change(file)
    assert str(grid_case.path) in one_line(nfsgeo.data.open, grid_case.path)


def test_other_files_are_refused(tmp_path, one_line):
    path = tmp_path / "other.h5"
    for content in (b"", b"not fields", b"\x89HDF\r\n\x1a\n"):
        path.write_bytes(content)
        one_line(nfsgeo.data.open, path)
    one_line(nfsgeo.data.open, tmp_path / "nowhere")
    for text in ("nfsgeo", b"nfsgeo"):  # before files were NetCDF
        with h5py.File(path, "w") as file:
            file.attrs["format"] = text
            file["fields/u"] = np.zeros((2, 3, 4, 1))
        assert "an older nfsgeo" in one_line(nfsgeo.data.open, path)


def test_names_that_are_not_free(grid_case, tmp_path, one_line):
    taken = tmp_path / "taken.nc"
    taken.write_text("mine")
    fields = grid_case.make()
    one_line(fields.write, taken)
    assert taken.read_text() == "mine"
    one_line(fields.write, tmp_path / "no" / "a.nc")
    message = one_line(fields.write, tmp_path / "out.words")
    assert ".nc" in message and "out.words" in message
    assert {each.name for each in tmp_path.iterdir()} == {"grid.nc", "taken.nc"}


def test_a_disk_that_fills_up(mounted, one_line):
    folder, axes = mounted("4m"), [np.arange(1000.0)]
    u = np.random.default_rng(0).random((40, 50, 1000))

    def fields(samples: int) -> Fields:
        return build(folder, [Array(u[:samples], "ntx", ["u"])], axes=axes, times=TIMES)

    def fill(*_: object) -> None:
        free = shutil.disk_usage(folder).free
        (folder / "other").write_bytes(b"0" * free)

    assert "16.0 MB" in one_line(fields(40).write, folder / "a.nc")
    assert not list(folder.iterdir())
    message = one_line(fields(5).write, folder / "a.nc", progress=fill)
    assert "disk is full" in message
    assert [each.name for each in folder.iterdir()] == ["other"]
    (folder / "other").unlink()
    assert fields(5).write(folder / "a.nc").exists()


def test_what_xarray_packed_and_counts_in_other_units_is_read_as_it_is(tmp_path):
    days = np.datetime64("2001-01-01") + np.arange(6)
    u = np.random.default_rng(0).random((2, 5, 6)).round(3)
    given = nfsgeo.from_arrays(u, np.random.default_rng(1).random((5, 2)), days)
    path = tmp_path / "again.nc"
    with xarray.open_dataset(given.write(tmp_path / "once.nc")) as found:
        encoding = {"u": {"dtype": "i4", "scale_factor": 0.001, "add_offset": 0.5}}
        encoding["time"] = {"units": "hours since 1900-01-01", "dtype": "f8"}
        found.drop_encoding().to_netcdf(path, encoding=encoding, engine="h5netcdf")
    with nfsgeo.open(path) as again:
        np.testing.assert_allclose(again.read(1, slice(None))[..., 0], u[1], atol=1e-9)
        assert again.times.tolist() == given.times.tolist()
        assert again.units == given.units
