"""The verbs around training."""

import json
import os
import re
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from commands import refused

from nfsgeo import from_arrays
from nfsgeo.data import open as open_file
from nfsgeo.data.pde import EQUATIONS
from nfsgeo.models import MODELS


def ok(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    if not result.stdout.startswith(("{", "[")):
        assert max(map(len, result.stdout.splitlines()), default=0) <= 80
    return result


def test_predict_with_a_model_that_comes_trained(nfsgeo):
    size = ("--samples", 3, "--resolution", 64)
    ok(nfsgeo("generate", "burgers", "--out", "b.nc", *size))
    options = ("--input", "b.nc", "--output", "p.nc")
    ok(nfsgeo("predict", "--model", "burgers-small", "--first", 0, *options))
    with open_file(Path("p.nc")) as file, open_file(Path("b.nc")) as data:
        assert file.num_samples == 3 and file.num_points() == 64
        truth = data.read(2, slice(10, 20))
        assert np.abs(file.read(2, slice(None)) - truth).mean() < 0.05
    shown = ok(nfsgeo("info", "burgers-small")).stdout
    assert "persistence" in shown and "card.md" in shown
    assert "burgers-small" in ok(nfsgeo("models")).stdout


@pytest.mark.parametrize(("times", "words"), [(None, ""), ([3.0], ", t = 3 to 3")])
def test_predicted_steady_fields_have_no_times(times, words, nfsgeo, monkeypatch):
    random = np.random.default_rng(0)
    fields = from_arrays(random.random((3, 9, 1)), random.random((9, 2)), times)
    monkeypatch.setattr("nfsgeo.evaluation.predict", lambda *_, **__: fields)
    shown = ok(nfsgeo("predict", "r", "--input", "a.nc", "--output", "p.nc")).stdout
    assert shown == f"written  p.nc{words}\n"


def test_info_of_a_file(nfsgeo, waves):
    shown = ok(nfsgeo("info", waves)).stdout
    assert "waves" in shown
    facts = json.loads(ok(nfsgeo("info", waves, "--json")).stdout)
    assert facts["grid"] == [16, 16] and facts["records"] == 24
    assert facts["samples"] == {"train": 14, "valid": 2, "test": 4}
    assert facts["components"]["u"]["max"] > 0 > facts["components"]["u"]["min"]


def test_info_counts_files_cells_and_series_that_time_splits(nfsgeo):
    """The parts of few series are those that training makes of their time steps."""
    t, pos, nodes = np.arange(30.0), np.eye(3)[:, :2], [[0, 1, 2]]
    for k in range(3):
        u, cells = np.full((1, 3, 30), float(k)), {"triangle": nodes * (k + 1)}
        from_arrays(u, pos + k, t, cells=cells).write(Path(f"s_{k}.nc"))
    one = ok(nfsgeo("info", "s_1.nc")).stdout
    assert "samples: 1 series, split by time" in one and "files" not in one
    assert "cells: {triangle: 2}" in one
    told = ok(nfsgeo("info", "s_*.nc")).stdout
    assert "files: 3, from s_0.nc to s_2.nc" in told
    assert "samples: 3, in training by default 1 train + 1 valid + 1 test" in told
    assert "cells: {triangle: 1 to 3}" in told
    steady = from_arrays(u[..., :1], pos, cells=cells)
    assert "samples: 1\n" in ok(nfsgeo("info", steady.write(Path("f.nc")))).stdout
    split, scalars = {"train": [0, 2], "valid": [1], "test": []}, {"speed": [1, 2, 3.0]}
    parts = from_arrays(
        np.zeros((3, 3, 1)), pos, split=split, scalars=scalars, units={"speed": "m/s"}
    )
    told = ok(nfsgeo("info", parts.write(Path("parts.nc")))).stdout
    assert "samples: {train: 2, valid: 1, test: 0}" in told
    assert "units: {speed: m/s}" in told


def test_info_tells_times_and_units_as_a_reader_writes_them(nfsgeo):
    """Dates, percent and numbers without quotation marks; times to their steps."""
    random = np.random.default_rng(0)
    u, pos = random.random((3, 9, 5, 3)), random.random((9, 2))
    units = {"x": "mm", "y": "mm", "time": "h", "h": "%"}
    names, times = ["h", "q", "k: a"], 2451.23 + 0.01 * np.arange(5)
    options: dict[str, Any] = {"component_names": names, "units": units}
    from_arrays(u, pos, times, **options, equation="- a: 1").write("a.nc")
    shown = ok(nfsgeo("info", "a.nc")).stdout
    assert "times: t = 2451.23 h to 2451.27 h" in shown
    assert "units: {x: mm, y: mm}" in shown and "equation: - a: 1" in shown
    assert "h: {unit: %," in shown
    assert not {*shown} & {*"'\""} and "None" not in shown
    facts = json.loads(ok(nfsgeo("info", "a.nc", "--json")).stdout)
    assert facts["units"] == {"x": "mm", "y": "mm"}


def test_a_long_path_is_not_broken(nfsgeo, waves):
    path = shutil.copy(waves, f"{'waves_' * 20}.nc")
    assert nfsgeo("info", path).stdout.startswith(f"file: {path}\n")


def test_models(nfsgeo):
    table = ok(nfsgeo("models")).stdout
    # Ours beside the paper's, which has a layer more that is not used.
    assert "nfs" in table and re.search("739,425 +773,217", table)
    above, heads = table.splitlines()[:2]
    assert above.split()[0] == "parameters," and "paper's setting" in above
    assert heads.split()[-2:] == ["nfsgeo's", "paper's"] and len(above) == len(heads)
    rows = json.loads(ok(nfsgeo("models", "--json")).stdout)
    assert [row["name"] for row in rows] == list(MODELS)
    told = {"name", "points", "unseen_meshes", "source", "parameters_paper"}
    assert set(rows[0]) == told


def test_models_without_an_extra(nfsgeo, monkeypatch):
    monkeypatch.setitem(sys.modules, "neuralop", None)
    assert "nfsgeo[gino]" in ok(nfsgeo("models")).stdout


def test_a_terminated_command_leaves_nothing(nfsgeo, waves, monkeypatch):
    """A scheduler's SIGTERM, while the file is written."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end = partial(os.kill, os.getpid(), signal.SIGTERM)
    monkeypatch.setattr(os, "fsync", lambda _: end())
    try:
        assert nfsgeo("convert", waves, "--out", "a.nc").exit_code == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not [*Path().glob("a.nc*")]


def test_names_of_any_bytes(nfsgeo, waves):
    ok(nfsgeo("convert", waves, "--out", os.fsdecode(b"\xff.nc")))


def test_convert_with_columns_and_times(nfsgeo):
    rows = [f"{p},{t},{p + t}" for p in (3, 4) for t in (0, 1, 2)]
    Path("a.csv").write_text("\n".join(["where,frame,u", *rows]))
    columns = ("--columns", "x=where,time=frame", "--times", "0:1:0.5")
    ok(nfsgeo("convert", "a.csv", "--out", "a.nc", *columns))
    with open_file(Path("a.nc")) as file:
        assert file.times.tolist() == [0.0, 0.5, 1.0]
        assert file.read(0, slice(None))[..., 0].tolist() == [[3, 4, 5], [4, 5, 6]]


def test_generate_then_convert(nfsgeo):
    size = ("--samples", 3, "--resolution", 64, "--records", 4, "--workers", 1)
    made = nfsgeo("generate", "burgers", "--out", "b.nc", *size, "--option", "nu=0.05")
    ok(made)
    with open_file(Path("b.nc")) as file:
        assert (file.num_samples, len(file.times), file.shape) == (3, 4, (64,))
        assert file.provenance["parameters"]["nu"] == 0.05
    ok(nfsgeo("convert", "b.nc", "--out", "c.nc", "--equation", "mine"))
    with open_file(Path("c.nc")) as file:
        assert file.equation == "mine"
    assert "burgers" in ok(nfsgeo("info", "b.nc")).stdout


@pytest.mark.slow
def test_generate_all(nfsgeo):
    size = ("--samples", 2, "--resolution", 32, "--records", 3, "--workers", 1)
    shown = ok(nfsgeo("generate", "all", "--out", "sets", *size)).stdout
    assert shown.split()[::2] == ["written"] * len(EQUATIONS)
    (Path("sets") / "kdv.nc").unlink()
    shown = ok(nfsgeo("generate", "all", "--out", "sets", *size)).stdout
    expected = ["written" if name == "kdv" else "kept" for name in EQUATIONS]
    assert shown.split()[::2] == expected
    again = ok(nfsgeo("generate", "all", "--out", "sets", "--json", *size))
    for path in json.loads(again.stdout)["output"]:
        with open_file(path) as file:
            assert file.num_samples == 2


def test_datasets_lists_equations_with_sizes_and_options(nfsgeo):
    facts = json.loads(ok(nfsgeo("datasets", "--json")).stdout)
    assert [row["name"] for row in facts["equations"]] == list(EQUATIONS)
    shown = ok(nfsgeo("datasets")).stdout
    for equation in EQUATIONS.values():
        size = " x ".join(map(str, equation.shape(equation.resolution)))
        assert f"{equation.name}: " in shown and f"{size} points" in shown
        for name, each in type(equation).model_fields.items():
            assert f"--option {name}={each.default}" in shown


@pytest.mark.slow
def test_plot(nfsgeo, run, waves):
    (run / "report.html").unlink()
    ok(nfsgeo("plot", run))
    assert (run / "report.html").exists()
    written = json.loads(ok(nfsgeo("plot", waves, "--out", "p", "--json")).stdout)
    assert all(Path(path).suffix == ".png" for path in written["written"])
    for more in ((), ("--animate", "a.gif")):
        refused(nfsgeo("plot", run, "--out", "q", *more), "--out")
    refused(nfsgeo("plot", waves, "--animate", "a.gif"), "the folder of a run")
    assert not Path("q").exists() and not Path("a.gif").exists()


def test_a_defect_is_told_apart(nfsgeo, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("nfsgeo.data.open", broken)
    result = nfsgeo("info", "file.nc")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_a_run_is_shown_alone(nfsgeo, run, waves):
    for verb in ("info", "plot"):
        for more in ([str(waves)], ["--series", "samples"]):
            refused(nfsgeo(verb, str(run), *more), more[0])


def test_info_tells_dates(nfsgeo):
    rows = [f"2026-01-0{day}T12:00Z,{x},{x * day}" for day in (1, 2) for x in (0, 1)]
    Path("a.csv").write_text("\n".join(["t,x,u", *rows]))
    told = nfsgeo("info", "a.csv").stdout
    assert "2026-01-01 12:00 to 2026-01-02 12:00" in told


def test_info_and_plot_take_what_open_takes(nfsgeo):
    """Folders and several files, and what has to be said of them."""
    Path("rain").mkdir()
    names = [f"rain/s_{k}.csv" for k in (1, 2)]
    for name in names:
        rows = [f"{k},{k % 5},{k // 5 % 3},{k // 15}" for k in range(30)]
        Path(name).write_text("\n".join(["u,east,north,when", *rows]))
    told = ("--columns", "x=east,y=north,time=when", "--series", "samples", "--json")
    for sources in (["rain"], names):
        facts = json.loads(ok(nfsgeo("info", *sources, *told)).stdout)
        assert facts["samples"] and facts["points"] == 15 and facts["observed"] == 2
    written = json.loads(ok(nfsgeo("plot", "rain", *told)).stdout)["written"]
    assert written and Path(written[0]).parent == Path("rain-figures")
