"""The verbs around training."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from nfsgeo.data import open as open_file
from nfsgeo.data.pde import EQUATIONS
from nfsgeo.models import MODELS

Command = Callable[..., Result]


def ok(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    if not result.stdout.startswith(("{", "[")):
        assert max(map(len, result.stdout.splitlines()), default=0) <= 80
    return result


def test_evaluate(nfsgeo: Command, run: Path, waves: Path) -> None:
    result = ok(nfsgeo("evaluate", run, "--unseen", 2, "--repeats", 2))
    assert "relative L1" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "persistence" in result.stdout and "2 x points" in result.stdout
    assert "Training has seen 25" in result.stdout
    assert len((run / "unseen.csv").read_text().splitlines()) == 3
    result = ok(nfsgeo("evaluate", run, "--data", waves, "--json"))
    summary = json.loads(result.stdout)
    names = {"mae", "rmse", "rel_l2", "rel_l1", "rel_l1_last_median"}
    assert set(summary["test"]) == names


def test_predict(nfsgeo: Command, run: Path, waves: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.random.default_rng(0).random((9, 2)))
    options = ("--input", waves, "--output", "o.nc", "--query-points", "q.npy")
    result = ok(nfsgeo("predict", run, *options, "--json"))
    with open_file(json.loads(result.stdout)["output"]) as file:
        assert file.num_points() == 9


def test_predict_with_a_model_that_comes_trained(
    nfsgeo: Command, tmp_path: Path
) -> None:
    ok(
        nfsgeo(
            *[
                "generate",
                "burgers",
                "--out",
                "b.nc",
                "--samples",
                "3",
                "--resolution",
                "64",
            ]
        )
    )
    options = ("--input", "b.nc", "--output", "p.nc")
    ok(nfsgeo("predict", "--model", "burgers-small", "--first", 0, *options))
    with open_file(tmp_path / "p.nc") as file, open_file(tmp_path / "b.nc") as data:
        assert file.num_samples == 3 and file.num_points() == 64
        truth = data.read(2, slice(10, 20))
        assert np.abs(file.read(2, slice(None)) - truth).mean() < 0.05
    shown = ok(nfsgeo("info", "burgers-small")).stdout
    assert "persistence" in shown and "card.md" in shown
    assert "burgers-small" in ok(nfsgeo("models")).stdout


def test_info_of_a_file(nfsgeo: Command, waves: Path) -> None:
    shown = ok(nfsgeo("info", waves)).stdout
    assert "waves" in shown
    facts = json.loads(ok(nfsgeo("info", waves, "--json")).stdout)
    assert facts["grid"] == [16, 16] and facts["records"] == 24
    assert facts["samples"] == {"train": 14, "valid": 2, "test": 4}
    assert facts["components"]["u"]["max"] > 0 > facts["components"]["u"]["min"]


def test_models(nfsgeo: Command) -> None:
    table = ok(nfsgeo("models")).stdout
    # Ours beside the paper's, which has a layer more that is not used.
    assert "nfs" in table and re.search("739,425 +773,217", table)
    rows = json.loads(ok(nfsgeo("models", "--json")).stdout)
    assert [row["name"] for row in rows] == list(MODELS)
    assert set(rows[0]) == {
        "name",
        "points",
        "unseen_meshes",
        "source",
        "parameters_paper",
    }


def test_datasets(nfsgeo: Command) -> None:
    assert "navier-stokes" in ok(nfsgeo("datasets")).stdout
    facts = json.loads(ok(nfsgeo("datasets", "--json")).stdout)
    assert "burgers" in [row["name"] for row in facts["equations"]]


def test_convert_with_columns_and_times(nfsgeo: Command, tmp_path: Path) -> None:
    rows = [f"{p},{t},{p + t}" for p in (3, 4) for t in (0, 1, 2)]
    (tmp_path / "a.csv").write_text("\n".join(["where,frame,u", *rows]))
    columns = ("--columns", "x=where,time=frame", "--times", "0:1:0.5")
    ok(nfsgeo("convert", "a.csv", "--out", "a.nc", *columns))
    with open_file(tmp_path / "a.nc") as file:
        assert file.times.tolist() == [0.0, 0.5, 1.0]
        assert file.read(0, slice(None))[..., 0].tolist() == [[3, 4, 5], [4, 5, 6]]


def test_generate_then_convert(nfsgeo: Command, tmp_path: Path) -> None:
    size = ("--samples", 3, "--resolution", 64, "--records", 4, "--workers", 1)
    made = nfsgeo("generate", "burgers", "--out", "b.nc", *size, "--option", "nu=0.05")
    ok(made)
    with open_file(tmp_path / "b.nc") as file:
        assert (file.num_samples, len(file.times), file.shape) == (3, 4, (64,))
        assert file.provenance["parameters"]["nu"] == 0.05
    ok(nfsgeo("convert", "b.nc", "--out", "c.nc", "--equation", "mine"))
    with open_file(tmp_path / "c.nc") as file:
        assert file.equation == "mine"
    assert "burgers" in ok(nfsgeo("info", "b.nc")).stdout


def test_generate_all(nfsgeo: Command, tmp_path: Path) -> None:
    size = ("--samples", 2, "--resolution", 32, "--records", 3, "--workers", 1)
    shown = ok(nfsgeo("generate", "all", "--out", "sets", *size)).stdout
    assert shown.split()[::2] == ["written"] * len(EQUATIONS)
    (tmp_path / "sets" / "kdv.nc").unlink()
    shown = ok(nfsgeo("generate", "all", "--out", "sets", *size)).stdout
    assert shown.split()[::2] == [
        "written" if name == "kdv" else "kept" for name in EQUATIONS
    ]
    again = ok(nfsgeo("generate", "all", "--out", "sets", "--json", *size))
    for path in json.loads(again.stdout)["output"]:
        with open_file(path) as file:
            assert file.num_samples == 2


def test_datasets_lists_equations_with_sizes_and_options(nfsgeo: Command) -> None:
    shown = nfsgeo("datasets").stdout
    for equation in EQUATIONS.values():
        size = " x ".join(map(str, equation.shape(equation.resolution)))
        assert f"{equation.name}: " in shown and f"{size} points" in shown
        for name, each in type(equation).model_fields.items():
            assert f"--option {name}={each.default}" in shown


def test_plot(nfsgeo: Command, run: Path, waves: Path) -> None:
    (run / "report.html").unlink()
    ok(nfsgeo("plot", run))
    assert (run / "report.html").exists()
    written = json.loads(ok(nfsgeo("plot", waves, "--out", "p", "--json")).stdout)
    assert all(Path(path).suffix == ".png" for path in written["written"])
    for more in ((), ("--animate", "a.gif")):
        refused = nfsgeo("plot", run, "--out", "q", *more)
        assert refused.exit_code == 2 and "--out" in refused.stderr
    assert not Path("q").exists() and not Path("a.gif").exists()


def test_a_defect_is_told_apart(
    nfsgeo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("nfsgeo.data.open", broken)
    result = nfsgeo("info", "file.nc")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_info_tells_dates(nfsgeo: Command, tmp_path: Path) -> None:
    rows = [f"2026-01-0{day}T12:00Z,{x},{x * day}" for day in (1, 2) for x in (0, 1)]
    (tmp_path / "a.csv").write_text("\n".join(["t,x,u", *rows]))
    told = nfsgeo("info", "a.csv").stdout
    assert "2026-01-01 12:00 to 2026-01-02 12:00" in told
