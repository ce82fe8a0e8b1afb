"""Inputs known ahead: named in every kind of file, and put where windows need them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import nfsgeo
import nfsgeo.data
from nfsgeo.data import PointWriter, WindowDataset
from nfsgeo.data.meshes import MeshOfFile, every_point
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def station_file(folder: Path, ahead: int = 0, **changes: Any) -> Path:
    """Two samples of five stations at twelve time steps, the last ones to come."""
    rng = np.random.default_rng(0)
    path = folder / "stations.h5"
    options: dict[str, Any] = {
        "equation": "weather",
        "domain": Domain.unit(2, periodic=False),
        "times": np.arange(12.0),
        "component_names": ["p", "q"],
        "static_names": ["height"],
        "static_role": "coefficient",
        "forcing_names": ["sun", "tide"],
        "scalar_names": ["nu"],
    }
    with PointWriter(path, **(options | changes)) as writer:
        mesh = writer.add_mesh(rng.random((5, 2)))
        for sample in range(2):
            u, f = rng.normal(size=(5, 12, 2)), rng.normal(size=(5, 12, 2))
            u[:, 12 - ahead :] = np.nan
            numbers = {"nu": sample + 0.5, "dt": 0.1}
            writer.write(u, mesh, rng.normal(size=(5, 1)), numbers, forcing=f)
    return path


def test_the_native_file_tells_what_is_known(tmp_path: Path) -> None:
    path = station_file(tmp_path, ahead=3)
    with nfsgeo.open(path) as file, h5py.File(path) as inside:
        assert file.component_names == ["p", "q"]
        assert file.forcing_names == ["sun", "tide"]
        assert file.scalar_names == ["nu"] and set(file.parameters) == {"nu", "dt"}
        assert file.input_names == ["height", "nu"]
        assert file.num_observed() == 9
        both = file.read_all(1, slice(2, 10, 3), np.array([3, 1]))
        u, f = inside["points/u"][5:], inside["points/f"][5:]
        np.testing.assert_array_equal(both[..., :2], u[[3, 1], 2:10:3])
        np.testing.assert_array_equal(both[..., 2:], f[[3, 1], 2:10:3])
        inputs = file.read_inputs(1, np.array([4]))
        assert inputs.tolist() == [[file.read_static(1)[4, 0], 1.5]]
        again = copy.copy(file)
        assert again.forcing_names == ["sun", "tide"]


@settings(max_examples=20, deadline=None)
@given(
    ahead=st.integers(0, 12),
    sample=st.integers(0, 1),
    steps=st.sampled_from([3, 5, 64]),
    forcings=st.booleans(),
)
def test_the_last_observed_time_step(
    ahead: int, sample: int, steps: int, forcings: bool
) -> None:
    """Of whichever sample is observed longest, in however large pieces it is read."""
    u = np.ones((2, 3, 12))
    u[:, :, 12 - ahead :] = np.nan
    u[1 - sample, :, 4:] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nfsgeo.data.fields.STEPS", steps)
        f = np.ones_like(u) if forcings else None
        file = nfsgeo.from_arrays(u, np.eye(3)[:, :2], np.arange(12.0), forcing=f)
        seen = 12 - ahead if ahead < 8 else min(4, 12 - ahead)
        assert file.num_observed() == max(12 - ahead, seen)


def test_fields_become_forcings_by_name(tmp_path: Path) -> None:
    path = station_file(tmp_path)
    csv = nfsgeo.data.convert(path, tmp_path / "a.csv")
    assert csv.read_text().splitlines()[0].split(",")[4:] == [
        "p",
        "q",
        "forcing_sun",
        "forcing_tide",
        "a_height",
    ]
    with nfsgeo.open(csv) as file, nfsgeo.open(path) as first:
        assert file.forcing_names == ["sun", "tide"]
        order = np.lexsort(first.coordinates(0).T[::-1])
        np.testing.assert_array_equal(
            file.read_all(0, slice(None)), first.read_all(0, slice(None))[order]
        )
        file.know(["q"])
        assert file.component_names == ["p"]
        assert file.forcing_names == ["sun", "tide", "q"]
        told = file.read(0, slice(None))
        np.testing.assert_array_equal(told, first.read(0, slice(None), order)[..., :1])
        back = nfsgeo.data.export(file, tmp_path / "back.h5")
    with nfsgeo.open(back) as file:
        assert file.component_names == ["p"]
        assert file.forcing_names == ["sun", "tide", "q"]
        np.testing.assert_array_equal(file.read(0, slice(None)), told)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["rain"], "rain, to be known ahead.*one of p, q, sun, tide, dt, nu"),
        (["p", "q"], "a field to predict"),
    ],
)
def test_names_that_are_not_there(
    tmp_path: Path, names: list[str], message: str
) -> None:
    path = station_file(tmp_path)
    with nfsgeo.open(path) as file, pytest.raises(UserError, match=message):
        file.know(names)
    with pytest.raises(UserError, match=message):
        nfsgeo.data.convert(path, tmp_path / "out.h5", known=names)
    assert not (tmp_path / "out.h5").exists()


def test_writers_refuse_what_was_not_announced(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for changes, message in (
        ({"forcing_names": ()}, "forcings must come"),
        ({"forcing_names": ("p", "q")}, "names that differ"),
        ({"component_names": ("p", "p")}, "a file with the name 'p' given 2 times"),
        ({"static_names": ("k", "k")}, "a file with the name 'k' given 2 times"),
        ({"scalar_names": ("re",)}, "no parameters"),
    ):
        with pytest.raises(ValueError, match=message):
            station_file(tmp_path, **changes)
    writer = PointWriter(
        tmp_path / "a.h5",
        equation="",
        domain=Domain.unit(1),
        times=[0.0],
        component_names=["u"],
        forcing_names=["sun"],
    )
    with writer:
        mesh = writer.add_mesh([[0.5]])
        missing = np.full((1, 1, 1), np.nan)
        message = one_line(writer.write, missing, mesh, forcing=missing)
        assert "f of sample 0" in message
        writer.write(missing, mesh, forcing=np.zeros((1, 1, 1)))


def test_a_file_without_forcings_has_no_trace_of_them(tmp_path: Path) -> None:
    with PointWriter(
        tmp_path / "a.h5",
        equation="",
        domain=Domain.unit(1),
        times=[0.0],
        component_names=["u"],
    ) as writer:
        mesh = writer.add_mesh([[0.5]])
        writer.write(np.zeros((1, 1, 1)), mesh, None, {"nu": 1.0})
    with h5py.File(tmp_path / "a.h5") as file:
        assert "f" not in file["points"] and not file["params/nu"].attrs


def test_arrays_data_sets_and_graphs_name_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u, f = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3, 2))
    pos, t = rng.random((4, 2)), np.arange(3.0)
    known = {"forcing": f, "forcing_names": ["sun", "tide"], "scalars": {"nu": [1, 2]}}
    file = nfsgeo.from_arrays(u, pos, t, **known)
    assert file.forcing_names == ["sun", "tide"] and file.input_names == ["nu"]
    np.testing.assert_array_equal(
        file.read_all(1, slice(None))[..., 1:], f[1].astype("f4")
    )
    assert file.read_inputs(1).tolist() == [[2.0]] * 4
    other = nfsgeo.from_arrays(u, pos, t, **{**known, "scalars": {"nu": [1, 3]}})
    assert other.path != file.path
    for changes, message in (
        ({"forcing": f[:1]}, "forcing of 1 samples and u of 2"),
        ({"forcing": f[:, :, :2]}, "the same points and time steps"),
        ({"forcing_names": ["u", "tide"]}, "names that differ"),
        ({"scalars": {"nu": 1.0}}, "a number for each of 2 samples"),
    ):
        with pytest.raises(UserError, match=message):
            nfsgeo.from_arrays(u, pos, t, **(known | changes))
    dims = ("sample", "time", "x")
    dataset = xarray.Dataset(
        {
            "p": (dims, u.swapaxes(1, 2)),
            "sun": (("time", "x"), u[0].T),
            "nu": ("sample", [1.0, 2.0]),
        },
        {"time": t, "x": np.arange(4.0)},
    )
    file = nfsgeo.from_xarray(dataset, known=["sun", "nu"])
    assert (file.component_names, list(file.forcing_names)) == (["p"], ["sun"])
    for sample in range(2):
        read = file.read_all(sample, slice(None))
        np.testing.assert_array_equal(read[..., 1], u[0].astype("f4"))
    assert file.input_names == ["nu"]
    graphs = [
        Data(
            pos=torch.tensor(pos),
            x=torch.tensor(u[i, :, :2, None]),
            y=torch.tensor(u[i, :, 2:, None]),
            forcing=torch.tensor(f[i]),
            t=torch.tensor(t),
            nu=float(i),
        )
        for i in range(2)
    ]
    file = nfsgeo.from_pyg(graphs, known=["nu"])
    assert file.component_names == ["u"] and file.forcing_names == ["f_0", "f_1"]
    np.testing.assert_array_equal(
        file.read_all(0, slice(None))[..., 1:], f[0].astype("f4")
    )
    assert file.read_inputs(1).tolist() == [[1.0]] * 4
    graphs[1].forcing = graphs[1].forcing[:, :2]
    with pytest.raises(UserError, match="forcing of shape .4, 2, 2. in graph 1"):
        nfsgeo.from_pyg(graphs)


def test_masked_arrays_are_missing_values() -> None:
    u = np.ma.masked_greater(np.arange(24.0).reshape(2, 4, 3), 20)
    file = nfsgeo.from_arrays(u, np.random.rand(4, 2), np.arange(3.0))
    read = [file.read(sample, slice(None))[..., 0] for sample in range(2)]
    np.testing.assert_array_equal(np.isnan(read), u.mask)


@settings(max_examples=25, deadline=None)
@given(
    n_in=st.integers(1, 4),
    n_out=st.integers(1, 4),
    first=st.integers(0, 3),
    stride=st.integers(1, 2),
    drop=st.booleans(),
)
def test_windows_have_the_values_of_their_own_time_steps(
    tmp_path_factory: pytest.TempPathFactory,
    n_in: int,
    n_out: int,
    first: int,
    stride: int,
    drop: bool,
) -> None:
    path = station_file(tmp_path_factory.mktemp("windows"))
    with nfsgeo.open(path) as file:
        if first + stride * (n_in + n_out - 1) >= 12:
            return
        data = WindowDataset(
            file,
            [1, 0],
            n_in,
            n_out,
            every_point(file),
            first_step=first,
            time_stride=stride,
            drop_absent=drop,
        )
        data.noise = torch.zeros(4)
        numbers = first + stride * np.arange(n_in + n_out)
        for number, sample in enumerate((1, 0)):
            item, both = data[number], file.read_all(sample, slice(None))[:, numbers]
            same = np.concatenate(
                [file.read_static(sample), np.full((5, 1), sample + 0.5)], axis=1
            )
            assert item.x.shape == (5, n_in, 4)
            np.testing.assert_array_equal(item.x[..., :2], both[:, :n_in, :2])
            np.testing.assert_array_equal(
                item.x[..., 2:], np.repeat(same[:, None], n_in, 1).astype("f4")
            )
            np.testing.assert_array_equal(item.y, both[:, n_in:, :2])
            np.testing.assert_array_equal(item.forcing, both[..., 2:])
            assert item.forcing.is_contiguous()


def test_a_forcing_has_to_be_known(tmp_path: Path) -> None:
    lines = [f"{x},{t},{x + t},{t}" for x in range(3) for t in range(4)]
    lines[6] = "1,2,3,"
    (tmp_path / "a.csv").write_text("\n".join(["x,t,u,forcing_sun", *lines]))
    with nfsgeo.open(tmp_path / "a.csv") as file:
        data = WindowDataset(file, [0], 1, 1, MeshOfFile(file), first_step=1)
        with pytest.raises(UserError, match="of the forcing sun at t = 2"):
            data[0]
        with pytest.raises(UserError, match="no input time steps.*forcings sun"):
            WindowDataset(file, [0], 0, 1, MeshOfFile(file))


def test_points_that_are_absent_take_their_forcing_with_them(tmp_path: Path) -> None:
    u, f = np.ones((1, 4, 3, 1)), np.arange(12.0).reshape(1, 4, 3, 1)
    u[0, 2] = np.nan
    file = nfsgeo.from_arrays(u, np.random.rand(4, 2), np.arange(3.0), forcing=f)
    data = WindowDataset(file, [0], 2, 1, every_point(file), drop_absent=True)
    item = data[0]
    assert len(item.pos) == len(item.forcing) == 3
    assert item.forcing[2, :, 0].tolist() == [9, 10, 11]


def test_several_files_are_one(tmp_path: Path) -> None:
    first, second = (station_file(folder) for folder in _folders(tmp_path))
    out = nfsgeo.data.convert([first, second], tmp_path / "both.h5")
    with nfsgeo.open(out) as file, nfsgeo.open(first) as one:
        assert file.forcing_names == ["sun", "tide"] and file.input_names[1] == "nu"
        np.testing.assert_array_equal(
            file.read_all(3, slice(None)), one.read_all(1, slice(None))
        )
        assert file.read_inputs(3)[0, 1] == 1.5


def _folders(folder: Path) -> list[Path]:
    found = [folder / name for name in "ab"]
    for each in found:
        each.mkdir()
    return found


def test_info_names_them(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from nfsgeo_cli import main

    path = station_file(tmp_path, ahead=2)
    facts = json.loads(CliRunner().invoke(main, ["info", str(path), "--json"]).stdout)
    assert list(facts["components"]) == ["p", "q"]
    assert list(facts["forcings"]) == ["sun", "tide"]
    assert facts["scalars"] == {"nu": [0.5, 1.5]} and facts["observed"] == 10
    assert facts["components"]["p"]["missing"] == 0
    shown = CliRunner().invoke(main, ["info", str(path)]).stdout
    assert "sun" in shown and "nu  0.5 to 1.5" in shown
    assert "10 of them observed" in shown
    path.unlink()
    path, out = station_file(tmp_path), str(tmp_path / "out.h5")
    options = ["convert", str(path), "--out", out, "--known", "q,dt"]
    assert CliRunner().invoke(main, options).exit_code == 0
    facts = json.loads(CliRunner().invoke(main, ["info", out, "--json"]).stdout)
    assert list(facts["forcings"]) == ["sun", "tide", "q"]
    assert set(facts["scalars"]) == {"nu", "dt"}


def test_without_time_nothing_is_known_ahead(tmp_path: Path) -> None:
    rows = [f"{k},{x},{y},{x + k},{k * y}" for k in (1, 2) for x, y in ((0, 1), (1, 0))]
    path = tmp_path / "steady.csv"
    path.write_text("\n".join(["sample,x,y,p,q", *rows]))
    with pytest.raises(UserError, match="one time step and q known.*name them a_q"):
        nfsgeo.data.convert(path, tmp_path / "o.h5", known=["q"])
    assert not (tmp_path / "o.h5").exists()
