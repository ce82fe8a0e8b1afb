"""Files that would keep a reader busy, or fill memory: one line in a few seconds."""

import gzip
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import torch
import xarray
from click.testing import CliRunner

import nfsgeo
from nfsgeo.config.bounded_yaml import parse_yaml
from nfsgeo.data.domains import read_region
from nfsgeo.errors import UserError
from nfsgeo.evaluation import read_points
from nfsgeo.geometry import Domain
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo.training import RunPaths, load_config
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.loading import parse_settings
from nfsgeo_cli import main

SECONDS, LONG = 20, 2_000_000
VTU = '<VTKFile type="UnstructuredGrid">{}</VTKFile>'
VTM = '<VTKFile type="vtkMultiBlockDataSet"><vtkMultiBlockDataSet>{}'
VTM += "</vtkMultiBlockDataSet></VTKFile>"
MSH = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
CASE = "FORMAT\ntype: ensight gold\n"
ROWS = "".join(f"{x},{t},2\n" for x in range(3) for t in range(4))


@pytest.fixture(autouse=True)
def in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it hangs")

    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


FAST = {"self.vtm", "stars.case", "views.msh", "deep.json", "time.csv"}
FAST |= {"spaces.csv", "swept.csv", "lists", "keys", "merged", "itself", "digits"}


def marked(names: Iterable[str]) -> list[Any]:
    """All but the fast ones marked as slow."""
    slow = pytest.mark.slow
    return [pytest.param(n, marks=[slow] * (n not in FAST)) for n in names]


def repeated(unit: str, length: int = LONG) -> str:
    return (unit * (length // len(unit) + 1))[:length]


TEXTS: dict[str, Callable[[], str]] = {
    "tags.vtu": lambda: VTU.format(repeated("<DataArray ")),
    "word.vtu": lambda: VTU.format(f"<Piece {repeated('a')}>"),
    "equals.vtu": lambda: VTU.format(f"<Piece {repeated('a=')}>"),
    "spaces.vtu": lambda: VTU.format(f"<Piece {repeated(' ')}>"),
    "deep.vtm": lambda: VTM.format("<Block>" * 10**5 + "</Block>" * 10**5),
    "self.vtm": lambda: VTM.format('<DataSet file="self.vtm"/>'),
    "names.case": lambda: CASE + " ".join(f"a{k}" for k in range(200_000)),
    "word.case": lambda: CASE + repeated("a "),
    "stars.case": lambda: CASE + "GEOMETRY\nmodel: *" + "*a" * 1000,
    "views.msh": lambda: (
        MSH + "".join(f'$NodeData\n1\n"{k}"\n1\n0\n' for k in range(50_000))
    ),
    "nodes.msh": lambda: MSH + "$Nodes\n99999999999\n",
    "deep.json": lambda: repeated("["),
    "million.csv": lambda: ",".join(f"c{k}" for k in range(10**6)) + "\n1,2",
    "ones.csv": lambda: repeated("1,"),
    "wide.csv": lambda: ",".join(f"c{k}" for k in range(100_000)) + "\n1,2",
    "spaces.csv": lambda: f'x,time,"u{repeated(" ", 100_000)}b"\n{ROWS}',
    "brackets.csv": lambda: f'x,time,"u{repeated("(", 100_000)}b"\n{ROWS}',
    "swept.csv": lambda: f'x,time,"u @ {repeated(" ", 100_000)}b"\n{ROWS}',
    "time.csv": lambda: f"x,time,u\n{ROWS * 50}1,{repeated(':1 ')}!,2\n",
    "cells.csv": lambda: f"x,time,u\n{repeated('1,', 2**25)}\n",
    "quotes.csv": lambda: f"x,time,u\n{repeated(chr(34))}\n",
}


@pytest.mark.parametrize("name", marked(TEXTS))
def test_texts_that_keep_a_reader_busy(name, one_line):
    Path(name).write_text(TEXTS[name]())
    assert name in one_line(nfsgeo.open, name)


@pytest.mark.parametrize("kind", ["vtm", "pvd"])
def test_lists_of_lists(kind, one_line):
    pvd = '<VTKFile type="Collection"><Collection>{}</Collection></VTKFile>'
    for k in range(40):
        entries = f'<DataSet timestep="{{}}" file="{k + 1}.{kind}"/>'
        twice = entries.format(0) + entries.format(1)
        Path(f"{k}.{kind}").write_text({"vtm": VTM, "pvd": pvd}[kind].format(twice))
    assert kind in one_line(nfsgeo.open, f"0.{kind}")
    Path(f"1.{kind}").write_text(Path(f"0.{kind}").read_text().replace("1.", "0."))
    assert one_line(nfsgeo.open, f"0.{kind}")


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives may hold 2 MiB whatever their size, instead of 1 GiB."""
    monkeypatch.setattr("nfsgeo.data.other_files.SMALL", 2**21)


def test_archives_of_zeros(tmp_path, one_line, bound):
    zeros, path = np.zeros((1, 1, 2**21, 1)), tmp_path / "a.npz"
    np.savez_compressed(path, u=zeros, x=zeros[0, 0, :, 0])
    assert "a.npz" in one_line(nfsgeo.open, path)
    assert "a.npz" in one_line(read_region, path)
    assert "a.npz" in one_line(read_points, path, Domain.unit(2))
    assert "a.npz" in one_line(read_checkpoint, path)
    (run := tmp_path / "run").mkdir()
    (run / "config.yaml").write_text("{}")
    path.rename(run / "evaluation.npz")
    assert "evaluation.npz" in one_line(read_run_folder, run)


def hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (10**11,), "f8", chunks=(1000,)).make_scale("x")
        file.create_dataset("u", (10**11,), "f8", chunks=(1000,))
        file["u"].dims[0].attach_scale(file["x"])


def hdf5_chunk(path: Path) -> None:
    with h5py.File(path, "w") as file:
        shapes = {"maxshape": (None,), "chunks": (2**28,), "compression": "gzip"}
        file.create_dataset("u", (8,), "f8", **shapes)


def zarr(path: Path) -> None:
    pytest.importorskip("zarr")
    xarray.Dataset({"u": ("x", np.ones(4))}, {"x": np.arange(4.0)}).to_zarr(
        path, zarr_format=2
    )
    for name in "ux":
        about = json.loads((path / name / ".zarray").read_text())
        about |= {"shape": [10**11], "chunks": [1000]}
        (path / name / ".zarray").write_text(json.dumps(about))


def tensors(path: Path) -> None:
    torch.save({"x": torch.zeros(1).expand(10**6, 10**6)}, path)


def matlab(path: Path) -> None:
    scipy.io.savemat(path, {"u": np.zeros((2**10, 2**11))}, do_compression=True)


def table(path: Path) -> None:
    with gzip.open(path, "wb") as stream:
        stream.write(b"x,time,u\n")
        stream.write(b"0,0,0\n" * 2**22)


CLAIMS = {"a.nc": hdf5, "b.h5": hdf5_chunk, "a.zarr": zarr, "a.pt": tensors}
CLAIMS |= {"a.mat": matlab, "a.csv.gz": table}


@pytest.mark.parametrize("name", CLAIMS)
def test_files_that_claim_more_than_they_hold(name, tmp_path, one_line, bound):
    CLAIMS[name](tmp_path / name)
    line = one_line(nfsgeo.open, tmp_path / name)
    assert name in line and "times as many bytes" in line


def doubled(first: str, more: str) -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{k + 1}: &a{k + 1} {more.format(k)}" for k in range(40)]
    return "\n".join(lines)


YAML = {
    "lists": doubled("[x, x]", "[*a{0}, *a{0}]"),
    "keys": doubled("{x: 1}", "{{b: *a{0}, c: *a{0}}}"),
    "merged": doubled("{x: 1}", "{{<<: [*a{0}, *a{0}]}}"),
    "itself": "a: &a [*a]",
    "deep": "a: " + "[" * 10**4,
    "digits": "a: " + "1" * 10**5,
    "sixties": "a: 1" + ":59" * 10**5,
    "long": "a: " + "b" * LONG,
}


@pytest.mark.parametrize("name", marked(YAML))
def test_yaml(name, one_line):
    Path("a.yaml").write_text(YAML[name])
    assert "a.yaml" in one_line(load_config, Path("a.yaml"))
    assert one_line(parse_settings, [f"x={{{YAML[name]}}}"])


def test_yaml_of_honest_aliases():
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}")["b"] == {"x": 1, "y": 2}
    assert parse_yaml("") is None and parse_yaml("1e3") == "1e3"


def test_pipes_and_devices(tmp_path, one_line):
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, Path("/dev/zero"), Path("/dev/stdin")):
        for read in (nfsgeo.open, read_region, load_config, read_checkpoint):
            assert str(path) in one_line(read, path)
        assert one_line(read_points, path, Domain.unit(2))
    columns = {"points": str(pipe)}
    Path("a.csv").write_text("time,a,b\n0,1,2\n1,2,3\n")
    assert str(pipe) in one_line(nfsgeo.open, "a.csv", columns=columns)
    with pytest.raises(UserError):
        nfsgeo.open(tmp_path)  # a folder of tables and pipes


@pytest.mark.slow
def test_pipes_in_lists_runs_and_suites(tmp_path, one_line, trained, waves):
    os.mkfifo("2")
    Path("x.case").write_text(f"{CASE}GEOMETRY\nmodel: 2\n")
    assert "2" in one_line(nfsgeo.open, "x.case")
    os.mkfifo("suite.yaml")
    assert CliRunner().invoke(main, ["bench", "suite.yaml", "--help"]).exit_code == 0
    for name in ("belongings", "metrics", "summary"):
        run = RunPaths(Path(shutil.copytree(trained.root, name)))
        getattr(run, name).unlink()
        os.mkfifo(getattr(run, name))
        nfsgeo.evaluate(run)


def test_groups_and_sections_without_end(one_line):
    with h5py.File("deep.nc", "w") as file:
        file.create_group("g/" * 500)
    assert one_line(nfsgeo.open, "deep.nc")
    data = '$ElementData\n{}\n"u"\n1\n0\n3\n0\n1\n1\n1 1.5\n$EndElementData\n'
    for text in (
        "$Elements\n1 2 1 2\n2 1 2 -1\n$EndElements\n" + data.format(1),
        data.format(99999999999),
    ):
        Path("a.msh").write_text(MSH.replace("2.2", "4.1") + text)
        assert one_line(nfsgeo.open, "a.msh")
