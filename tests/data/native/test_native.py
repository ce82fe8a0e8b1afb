"""The native file gives back what was written, or says in a line what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import nfsgeo.data
from nfsgeo.data import GridWriter, NativeFile
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
relaxed = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_grid_file_reads_what_was_written(grid_case: Any) -> None:
    with nfsgeo.data.open(grid_case.path) as file:
        assert isinstance(file, NativeFile)
        assert (file.num_samples, file.shape) == (7, (6, 4))
        assert file.provenance == grid_case.options["provenance"]
        assert file.domain == grid_case.options["domain"]
        assert file.static_role == "coefficient" and file.static_names == ["k"]
        np.testing.assert_array_equal(file.parameters["nu"], np.arange(7) / 10)
        whole = file.read(4, slice(1, 4)).reshape(6, 4, 3, 2)
        np.testing.assert_array_equal(whole, grid_case.u[4, 1:4].transpose(1, 2, 0, 3))
        chosen = np.array([23, 0, 9])
        some = file.read(2, slice(0, 5, 2), chosen)
        expected = grid_case.u[2, ::2].reshape(3, 24, 2)[:, chosen].swapaxes(0, 1)
        np.testing.assert_array_equal(some, expected)
        np.testing.assert_array_equal(
            file.read_static(5, chosen), grid_case.a[5].reshape(24, 1)[chosen]
        )
        pos = file.coordinates()
        np.testing.assert_array_equal(pos[4 * 3 + 1], [1.5, -1 + 2 / 3])
        assert len(file.split["train"]) == 5


def test_storage_follows_the_layout(grid_case: Any) -> None:
    with h5py.File(grid_case.path) as file:
        u = file["fields/u"]
        assert u.dtype == np.float32 and u.shape == (7, 5, 6, 4, 2)
        assert (u.compression, u.compression_opts) == ("gzip", 4)
        assert u.shuffle and u.fletcher32 and u.chunks == (1, 5, 6, 4, 2)
        assert file["coords/t"].dtype == file["coords/y"].dtype == np.float64
        assert file.attrs["boundary"] == b'["periodic", "bounded"]'
        assert file.attrs["end_point"] == b"[false, true]"
        assert sorted(file["split"]) == ["test", "train", "valid"]


def test_chunks_are_about_a_mebibyte(tmp_path: Path) -> None:
    u = np.zeros((1, 40, 96, 64, 1), np.float32)
    axes = [np.arange(96) / 96, np.arange(64) / 64]
    options = {"equation": "x", "domain": Domain.unit(2), "component_names": ["u"]}
    options |= {"times": np.arange(40.0), "num_samples": 1, "axes": axes}
    with GridWriter(tmp_path / "a.h5", **options) as writer:
        writer.write(0, u)
    with h5py.File(tmp_path / "a.h5") as file:
        size = 4 * np.prod(file["fields/u"].chunks)
    assert 2**19 < size <= 2**20


@relaxed
@given(st.data())
def test_grid_round_trip_is_bit_for_bit(tmp_path: Path, data: st.DataObject) -> None:
    dim = data.draw(st.integers(1, 3))
    grid = tuple(data.draw(st.lists(st.integers(1, 4), min_size=dim, max_size=dim)))
    num, records, width = (data.draw(st.integers(1, 3)) for _ in range(3))
    shape = (num, records, *grid, width)
    u = data.draw(arrays(np.float32, shape, elements=finite))
    path = tmp_path / "round.h5"
    path.unlink(missing_ok=True)
    with GridWriter(
        path,
        equation="any",
        domain=Domain.unit(dim),
        axes=[np.arange(n) / n for n in grid],
        times=np.arange(records),
        num_samples=num,
        component_names=[f"c{i}" for i in range(width)],
    ) as writer:
        for sample in reversed(range(num)):
            writer.write(sample, u[sample : sample + 1])
    with NativeFile(path) as file:
        for sample in range(num):
            found = file.read(sample, slice(None)).swapaxes(0, 1)
            assert found.tobytes() == u[sample].tobytes()


def test_point_file_reads_what_was_written(point_case: Any) -> None:
    with copy.copy(nfsgeo.data.open(point_case.path)) as file:
        assert file.shape is None and file.num_samples == 3
        for sample, mesh in enumerate(point_case.sample_mesh):
            assert file.mesh_id(sample) == mesh
            assert file.num_points(sample) == len(point_case.meshes[mesh])
            pos = file.coordinates(sample)
            np.testing.assert_array_equal(pos, point_case.meshes[mesh])
            u = file.read(sample, slice(1, 3))
            np.testing.assert_array_equal(u, point_case.u[sample][:, 1:])
        triangles = file.cells(0)["triangle"]
        np.testing.assert_array_equal(triangles, point_case.cells["triangle"])
        assert file.cells(1) == {}
        np.testing.assert_array_equal(file.parameters["re"], [8, 5, 8])


@relaxed
@given(data=st.data(), kind=st.sampled_from(["grid_case", "point_case"]))
def test_damage_is_found(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    contents: Callable[..., Any],
    data: st.DataObject,
    kind: str,
) -> None:
    path = request.getfixturevalue(kind).path
    good, raw = contents(path), path.read_bytes()
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        broken = raw[:place]
    else:
        noise = data.draw(st.binary(min_size=1, max_size=16))
        broken = raw[:place] + noise + raw[place + len(noise) :]
    other = tmp_path / "broken.h5"
    other.write_bytes(broken)
    try:
        found = contents(other)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert found == good


def edit(case: Any, change: Callable[[h5py.File], None]) -> None:
    with h5py.File(case.path, "r+") as file:
        change(file)


def replace(file: h5py.File, name: str, values: np.ndarray) -> None:
    attrs = dict(file[name].attrs)
    del file[name]
    file[name] = values
    file[name].attrs.update(attrs)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: replace(f, "fields/u", f["fields/u"][:].swapaxes(2, 3)),
        lambda f: replace(f, "fields/u", f["fields/u"][:].swapaxes(0, 1)),
        lambda f: replace(f, "fields/u", f["fields/u"][:].astype("f8")),
        lambda f: replace(f, "fields/a", f["fields/a"][:5]),
        lambda f: replace(f, "coords/x", f["coords/x"][:][::-1]),
        lambda f: replace(f, "coords/y", f["coords/y"][:] * 2),
        lambda f: replace(f, "coords/t", f["coords/t"][:4]),
        lambda f: replace(f, "split/test", np.array([0])),
        lambda f: replace(f, "split/test", np.array([7])),
        lambda f: replace(f, "params/nu", np.zeros(3)),
        lambda f: f.attrs.update(version=2),
        lambda f: f.attrs.update(domain="{}"),
        lambda f: f.__delitem__("split"),
    ],
)
def test_contradictions_are_found(
    grid_case: Any, one_line: Callable[..., str], change: Callable[[h5py.File], None]
) -> None:
    edit(grid_case, change)
    assert str(grid_case.path) in one_line(nfsgeo.data.open, grid_case.path)


@pytest.mark.parametrize("name", ["mesh_offsets", "sample_mesh", "sample_offsets"])
def test_contradicting_offsets_are_found(
    point_case: Any, one_line: Callable[..., str], name: str
) -> None:
    edit(
        point_case,
        lambda f: replace(f, f"points/{name}", f[f"points/{name}"][:][::-1] + 1),
    )
    one_line(nfsgeo.data.open, point_case.path)


@pytest.mark.parametrize("content", [b"", b"not fields", b"\x89HDF\r\n\x1a\n"])
def test_other_files_are_refused(
    tmp_path: Path, one_line: Callable[..., str], content: bytes
) -> None:
    (tmp_path / "other").write_bytes(content)
    one_line(nfsgeo.data.open, tmp_path / "other")
    one_line(NativeFile, tmp_path / "other")
    one_line(nfsgeo.data.open, tmp_path / "missing")


def test_what_does_not_exist_is_refused(
    grid_case: Any, one_line: Callable[..., str]
) -> None:
    with NativeFile(grid_case.path) as file:
        one_line(file.read, 7, slice(0, 1))
        one_line(file.read, 0, slice(0, 6))
        one_line(file.read, 0, slice(3, 3))
        one_line(file.coordinates, -1)
        one_line(file.read, 0, slice(0, 1), np.array([24]))
