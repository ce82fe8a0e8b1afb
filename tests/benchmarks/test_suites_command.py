"""`nfsgeo bench SUITE`."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nfsgeo.training.history import COLUMNS
from nfsgeo.training.processes import only_here
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import Run, expected_seconds
from nfsgeo_cli.bench_suite import _tables

Bench = Callable[..., Any]


def fail(run: Run, folder: Path, *_: Any) -> None:
    """In place of what the process of a run does."""
    suites.worker.record_failure(folder, "failed", "out of luck")


@pytest.mark.slow
def test_the_command(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench("--list").stdout.splitlines()[0].split()[0] == "small"
    options = ("small", "--scale", "tiny", "--out", "o")
    plan = bench(*options, "--dry-run", "--jobs", "2").stdout.splitlines()
    assert [line.split()[:3] for line in plan[:2]] == [["to", "run", "unknown"]] * 2
    assert "2 of 2 runs not counted" in plan[-1]
    assert not (tmp_path / "o").exists()
    half = bench(*options, "--only", "wide")
    assert half.exit_code == 0, half.output
    assert max(map(len, half.stdout.splitlines())) <= 80
    with open("o/results.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows if row["model"]] == ["missing", "ok"]
    assert [row["variant"] for row in rows if not row["model"]] == [
        "persistence",
        "linear-extrapolation",
        "training-mean",
    ]
    page = Path("o/report.html").read_text()
    assert "1 of 2 runs finished" in page and "not known yet" in page
    assert "more epochs" not in page
    assert page.count("missing</td>") == 4 and page.count("<img") == 3
    whole = json.loads(bench(*options, "--json").stdout)["results"]
    assert [row["status"] for row in whole if row["model"]] == ["ok", "ok"]
    hopeless = ("--only", "wide", "--out", "p")
    monkeypatch.setattr("nfsgeo_benchmarks.suites.runner.work", fail)
    failed = bench(*options[:3], *hopeless)
    assert failed.exit_code == 1 and "out of luck" in failed.output
    page = Path("o/report.html").read_text()
    assert page.count("<img") == 3 and "missing</td>" not in page
    assert "does not hold" in page and "more epochs" in page
    assert "2 of 2 runs finished" in page and "nfsgeo bench small --scale tiny" in page
    assert "http://" not in page and "https://" not in page and "<script" not in page
    # The table alone is enough to go on from.
    shutil.rmtree("o/runs")
    plan = bench(*options, "--dry-run").stdout.splitlines()
    assert [line.split()[0] for line in plan[:2]] == ["finished"] * 2
    table = Path("o/results.csv").read_text()
    again = json.loads(bench(*options, "--json").stdout)["results"]
    assert again == whole and Path("o/results.csv").read_text() == table
    assert page.count("Trained alike: ") == 1 and "data.batch_size=" in page
    page = Path("o/report.html").read_text()
    assert page.count("<img") == 1 and page.count("Trained alike: ") == 1


def test_two_commands_on_one_folder(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "o"
    folder.mkdir()
    with only_here(folder, "a suite"):
        refused = bench("small", "--scale", "tiny", "--out", "o")
    assert refused.exit_code == 2
    assert "a suite that no other process works on" in refused.output
    assert not list(folder.iterdir())


def test_wrong_options(bench: Bench, tmp_path: Path) -> None:
    for options, word in (
        (("small", "--scale", "tini", "--out", "o"), "tiny"),
        (("small", "--scale", "tiny", "--out", "o", "--only", "dsee"), "dse"),
        (("smal", "--scale", "tiny", "--out", "o"), "smal"),
        (("small", "--scale", "tiny", "--out", "o", "--jobs", "0"), "jobs"),
    ):
        result = bench(*options)
        assert result.exit_code == 2 and word in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_every_suite_at_once_needs_a_folder(bench: Bench) -> None:
    result = bench("--scale", "tiny")
    assert result.exit_code == 2 and "--out" in result.stderr


def test_the_time_to_come_is_that_of_a_run_like_it(
    small_runs: list[Run], tmp_path: Path
) -> None:
    """Two epochs, of which one may have been trained already."""
    run = small_runs[0]
    row = {"problem": "waves", "variant": "dse", "seconds_per_epoch": "3.5"}
    rows = [row | {"status": "failed"}, row | {"status": "ok"}]
    assert expected_seconds(run, tmp_path, rows) == 7
    assert expected_seconds(run, tmp_path, rows[:1]) is None
    assert expected_seconds(small_runs[1], tmp_path, rows) is None
    begun = tmp_path / "runs" / run.name / "metrics.csv"
    begun.parent.mkdir(parents=True)
    row_of_epoch = ",".join("0" for _ in COLUMNS)
    begun.write_text(f"{','.join(COLUMNS)}\n{row_of_epoch}\n")
    assert expected_seconds(run, tmp_path, rows) == 3.5


def test_the_plan_counts_on_results_that_come_along(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "results" / "tiny" / "small" / "results.csv"
    shipped.parent.mkdir(parents=True)
    lines = ("problem,variant,status,seconds_per_epoch", "waves,dse,ok,30")
    shipped.write_text("\n".join(lines))
    monkeypatch.setattr(suites.results, "SHIPPED", tmp_path / "results")
    plan = bench("small", "--scale", "tiny", "--out", "o", "--dry-run", "--jobs", "2")
    first, second, total, rest = plan.stdout.splitlines()
    assert "60 s" in first and "unknown" in second
    assert "30 s" in total and "1 of 2 runs" in rest


def test_a_suite_of_ones_own_runs_by_the_name_of_its_file(
    bench: Bench, small: Path
) -> None:
    (small / "own.yaml").write_text((small / "small.yaml").read_text())
    options = ("--scale", "tiny", "--dry-run", "--out", "o")
    assert bench("own.yaml", *options).stdout == bench("small", *options).stdout
    text = (small / "small.yaml").read_text()
    (small / "own.yaml").write_text(text.replace("data.batch_size", "data.batch_sice"))
    wrong = bench("own.yaml", *options)
    assert wrong.exit_code == 2 and len(wrong.stderr.splitlines()) == 1
    for word in ("own.yaml", "problems.waves", "batch_sice", "data.batch_size"):
        assert word in wrong.stderr


def test_tables_fit_a_terminal() -> None:
    names = [
        f"navier-stokes-{n_in}-to-{n_out}" for n_in in (1, 10) for n_out in (10, 40)
    ]
    rows = [
        {"problem": problem, "variant": variant, "status": "ok", "mae": 1.5e-3}
        for problem in (*names, "darcy-1024", "kdv-10-to-10")
        for variant in ("nfs-gaussian-no-norm", "nfs-equispaced")
    ]
    console = Console(width=80, file=io.StringIO())
    for table in _tables(rows, ("nfs-equispaced",)):
        console.print(table)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    for problem in {row["problem"] for row in rows}:
        assert text.count(problem) == 1
    assert text.count("1.500e-03") == len(rows)
