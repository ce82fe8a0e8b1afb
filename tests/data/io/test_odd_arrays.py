"""Arrays that hold no plain numbers, and others than the format knows: named, with a
remedy that works as it is written."""

import datetime
import os
import pickle
import re
import shlex

import click
import h5py
import numpy as np
import pandas
import pytest
import torch

import nfsgeo
from nfsgeo_cli.terminal import COLUMNS

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.random((5, 2))
RECORDS = np.zeros(5, [("x", "f8"), ("y", "f8"), ("T", "f4")])
RECORDS["x"], RECORDS["y"], RECORDS["T"] = *POINTS.T, RANDOM.random(5)


def save_h5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5"])
def test_records_become_a_table(name, tmp_path, one_line):
    path = tmp_path / name
    save = {".npy": np.save, ".npz": lambda p, r: np.savez(p, table=r)}
    save.get(path.suffix, lambda p, r: save_h5(p, table=r))(path, RECORDS)
    message = one_line(nfsgeo.open, path)
    assert "structured array with the fields x, y, T" in message
    call = re.search(r"pandas\.DataFrame\(.*", message)
    call = call[0].replace("NAME.csv", str(tmp_path / "NAME.csv"))
    eval(call, {"pandas": pandas, "numpy": np, "h5py": h5py})
    with nfsgeo.open(tmp_path / "NAME.csv") as fields:
        at = np.lexsort(POINTS.T[::-1])
        np.testing.assert_allclose(fields.read(0, slice(1))[:, 0, 0], RECORDS["T"][at])


@pytest.mark.parametrize("beside", ["coords", "xy"])
def test_ragged_arrays_of_objects_are_named(beside, tmp_path, one_line):
    ragged = np.array([RANDOM.random((n, 3)) for n in (4, 5)], object)
    arrays = {"u": ragged, beside: POINTS}
    np.savez(tmp_path / "a.npz", **arrays)
    columns = {"field": "u:npt", "points": beside}
    for told in (None, columns):
        message = one_line(nfsgeo.open, tmp_path / "a.npz", columns=told)
        assert "u (objects of Python)" in message
    np.save(tmp_path / "b.npy", {"u": 1})
    assert "objects of Python" in one_line(nfsgeo.open, tmp_path / "b.npy")


@pytest.mark.parametrize("space", ["points", "grid"])
@pytest.mark.parametrize("extra", ["dt", "Re"])
def test_further_arrays_beside_those_of_the_format(space, extra, tmp_path, one_line):
    other = {"dt": np.float64(0.1), "Re": np.arange(4.0)}[extra]
    grid = {"x": np.arange(5.0), "y": np.arange(3.0), "t": np.arange(6.0)}
    u = RANDOM.random((4, 6, 5, 3, 1))
    if space == "points":
        u, grid = u[..., 0, :].swapaxes(1, 2), {"coords": POINTS, "t": np.arange(6.0)}
    np.savez(tmp_path / "plain.npz", u=u, **grid)
    np.savez(tmp_path / "a.npz", u=u, **grid, **{extra: other})
    message = one_line(nfsgeo.open, tmp_path / "a.npz")
    assert extra in message
    said = shlex.split(message.partition("--columns ")[2])[0]
    columns = COLUMNS.convert(said, click.Option(["--columns"]), None)
    read = nfsgeo.open(tmp_path / "a.npz", columns=columns).read(2, slice(None))
    plain = nfsgeo.open(tmp_path / "plain.npz").read(2, slice(None))
    np.testing.assert_array_equal(read, plain)


def test_a_tensor_alone_is_called_as_its_file(tmp_path):
    values = torch.rand(3, 5, 2, 4)
    torch.save(values, tmp_path / "pressure.pt")
    np.save(tmp_path / "pressure.npy", values.numpy())
    columns = {"field": "pressure:nxyt", "x": "0:1", "y": "0:1"}
    for name in ("pressure.pt", "pressure.npy"):
        fields = nfsgeo.open(tmp_path / name, columns=columns, times=range(4))
        np.testing.assert_array_equal(
            fields.read(1, slice(None))[..., 0], values[1].reshape(10, 4).numpy()
        )


def test_other_objects_in_a_pickle_are_named(tmp_path, one_line):
    content = {"u": np.zeros(3), "day": datetime.date(2026, 1, 1)}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(content))
    message = one_line(nfsgeo.open, tmp_path / "a.pkl")
    assert "datetime.date" in message and "numpy.savez" in message


@pytest.mark.parametrize("save", ["h5", "npz"])
def test_complex_numbers_are_refused_with_a_remedy(save, tmp_path, one_line):
    arrays = {"h": RANDOM.random((4, 5, 6)) * 1j, "xy": POINTS}
    path = tmp_path / f"a.{save}"
    (np.savez if save == "npz" else save_h5)(path, **arrays)
    columns = {"field": "h:npt", "points": "xy"}
    message = one_line(nfsgeo.open, path, columns=columns, times=range(6))
    assert "two components" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ((torch.zeros(2, 3), torch.zeros(3, 2)), "torch.save({'u'"),
        ([torch.zeros(2, 3)], "torch.save({'u'"),
        (torch.nn.Linear(2, 2), "torch.save({'u'"),
        (torch.nn.Linear(2, 2).state_dict(), "weights of a model"),
    ],
)
def test_what_pytorch_saved_besides_arrays(content, words, tmp_path, one_line):
    torch.save(content, tmp_path / "a.pt")
    message = one_line(nfsgeo.open, tmp_path / "a.pt")
    assert words in message and "undamaged" not in message


@pytest.mark.parametrize("content", [[1.0, 2.0], pandas.DataFrame({"x": [1.0]})])
def test_pickles_of_other_objects(content, tmp_path, one_line):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(content))
    message = one_line(nfsgeo.open, tmp_path / "a.pkl")
    assert "read_pickle" in message and "undamaged" not in message


def test_groups_of_samples_become_files(tmp_path, one_line, monkeypatch):
    """The lines of the message do work."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        for k in range(2):
            file[f"sim_{k}/u"] = np.arange(12.0).reshape(3, 4) + k
            file[f"sim_{k}/xy"] = np.random.default_rng(k).random((4, 2))
            file[f"sim_{k}/t"] = np.arange(3.0)
    message = one_line(nfsgeo.open, "a.h5")
    lines = message.split("in Python: ")[1]
    exec(lines, {"os": os, "numpy": np, "h5py": h5py, "nfsgeo": nfsgeo})
    fields = nfsgeo.open("groups.nc")
    assert fields.num_samples == 2 and fields.read(1, slice(None))[0, 0, 0] == 1
