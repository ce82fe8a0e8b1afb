"""Structs of MATLAB 5 and 7.3, and what holds no numbers."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

import nfsgeo
from nfsgeo.data.io import ARRAYS, FileProbe
from nfsgeo.data.io.described_arrays import fit_arrays

N, P, T = 4, 5, 3
U = np.random.default_rng(0).random((N, P, T))
POINTS, TIMES = np.random.default_rng(1).random((P, 2)), np.arange(3.0)
INSIDE = {"u": U, "xy": POINTS, "t": TIMES, "about": {"re": 7.0, "title": "a flow"}}
COLUMNS = {"field": "data.u:npt", "points": "data.xy", "time": "data.t"}


def save_hdf5(path: Path, content: dict[str, Any]) -> None:
    """Write structs, text and lists, which are cell arrays, as MATLAB 7.3 does."""

    def add(group: h5py.Group, name: str, value: Any) -> None:
        if isinstance(value, dict):
            item = group.create_group(name)
            kind = "struct"
            for key, inner in value.items():
                add(item, key, inner)
        elif isinstance(value, list):
            cells, kind = group.file.require_group("#refs#"), "cell"
            names = [f"{name}{k}" for k in range(len(value))]
            for key, inner in zip(names, value, strict=True):
                add(cells, key, inner)
            links = [[cells[key].ref] for key in names]
            item = group.create_dataset(name, data=links, dtype=h5py.ref_dtype)
        elif isinstance(value, str):
            item, kind = (
                group.create_dataset(name, data=[[ord(c)] for c in value]),
                "char",
            )
        else:
            item, kind = (
                group.create_dataset(name, data=np.atleast_2d(value).T),
                "double",
            )
        item.attrs["MATLAB_class"] = np.bytes_(kind)

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in content.items():
            add(file, name, value)
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file")


def save_packed(path: Path, content: dict[str, Any]) -> None:
    cells = {}
    for name, value in content.items():
        cells[name] = value
        if isinstance(value, list):
            cells[name] = np.empty((1, len(value)), object)
            cells[name][0] = value
    scipy.io.savemat(path, cells, do_compression=True)


SAVES = pytest.mark.parametrize("save", [save_packed, save_hdf5])


@SAVES
def test_fields_of_structs_are_found_by_dotted_names(save, tmp_path, one_line):
    save(path := tmp_path / "a.mat", {"data": INSIDE, "other": {"u": 2 * U}})
    line = one_line(nfsgeo.open, path)
    assert "data.u [4, 5, 3]" in line or "data.xy [5, 2]" in line
    columns = COLUMNS | {"static": "data.about.re"}
    with nfsgeo.open(path, columns=columns, known=["re"]) as fields:
        assert fields.component_names == ["u"] and fields.scalar_names == ["re"]
        for n in range(N):
            np.testing.assert_array_equal(fields.read(n, slice(None))[..., 0], U[n])
    columns = COLUMNS | {"field": ["data.u:npt", "other.u:npt"]}
    with nfsgeo.open(path, columns=columns) as fields:
        assert fields.component_names == ["data.u", "other.u"]
        found = fields.read(1, slice(None))
        np.testing.assert_array_equal(found[..., 1], 2 * found[..., 0])
    columns = COLUMNS | {"field": "data.about.title:np"}
    assert "data.about.title (text)" in one_line(nfsgeo.open, path, columns=columns)


def test_structs_are_read_once_and_again_when_the_file_changes(tmp_path, one_line):
    save_packed(path := tmp_path / "a.mat", {"data": INSIDE})
    calls, load = [], scipy.io.loadmat
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "nfsgeo.data.io.matlab_files.loadmat",
            lambda *a, **k: calls.append(a) or load(*a, **k),
        )
        other = COLUMNS | {"field": "data.v:npt"}
        assert fit_arrays(path, COLUMNS) and not fit_arrays(path, other)
        first = nfsgeo.open(path, columns=COLUMNS)
        assert "data.v" in one_line(nfsgeo.open, path, columns=other)
    assert len(calls) == 1
    values = first.read(0, slice(None))
    values[:] = 0  # of a copy
    again = nfsgeo.open(path, columns=COLUMNS)
    np.testing.assert_array_equal(again.read(0, slice(None))[..., 0], U[0])
    save_packed(path, {"data": INSIDE | {"u": 2 * U}})
    changed = nfsgeo.open(path, columns=COLUMNS)
    np.testing.assert_array_equal(changed.read(0, slice(None))[..., 0], 2 * U[0])


def test_arrays_fit_where_a_file_has_them_with_these_axes(tmp_path):
    save_packed(path := tmp_path / "a.mat", {"data": INSIDE, "v": U})
    for field in ("data.u:npt", "v:npt"):
        assert fit_arrays(path, {"field": field})
    for field in ("data.w:npt", "v:np", "v:nnt", "v", "data.about.title:n"):
        assert not fit_arrays(path, {"field": field})
    torch.save([torch.zeros(3)], other := tmp_path / "a.pt")
    assert not fit_arrays(other, {"field": "v:npt"})


@SAVES
def test_cells_and_text_are_named(save, tmp_path, one_line):
    content = {"runs": [U[0], U[1]], "title": "a flow"}
    save(path := tmp_path / "a.mat", content)
    line = one_line(nfsgeo.open, path)
    assert "runs (a cell array), title (text): expected arrays of numbers" in line
    assert line.endswith("u = cat(3, runs{:})")
    assert not ARRAYS.recognises(FileProbe(path))
    save(path, content | {"u": U})
    assert FileProbe(path).shapes == {"u": U.shape}
    line = one_line(nfsgeo.open, path, columns={"field": "runs:npt"})
    assert "with runs (a cell array): expected" in line


def test_arrays_of_structs_sparse_matrices_and_empty_files(tmp_path, one_line):
    path, runs = tmp_path / "a.mat", np.zeros((1, 2), [("u", object)])
    runs["u"][0] = [U[0], U[1]]
    scipy.io.savemat(path, {"runs": runs, "s": scipy.sparse.eye(3).tocsc()})
    line = one_line(nfsgeo.open, path)
    assert "with s (a sparse matrix), runs (an array of structs)" in line
    scipy.io.savemat(path, {"runs": runs, "u": U})
    line = one_line(nfsgeo.open, path, columns={"field": "runs.u:np"})
    assert "as by u = cat(3, runs.FIELD)" in line
    scipy.io.savemat(path, {})
    assert "a.mat with no variables: expected" in one_line(nfsgeo.open, path)


def test_structs_that_unpack_to_too_much_are_refused(tmp_path, one_line):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"s": {"u": np.zeros((1000, 1000))}}, do_compression=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nfsgeo.data.other_files.SMALL", 0)
        patch.setattr("nfsgeo.data.other_files.RATIO", 100)
        columns = {"field": "s.u:np", "points": "s.u"}
        assert "GB of values" in one_line(nfsgeo.open, path, columns=columns)
