"""`nfsgeo bench SUITE` and `nfsgeo bench report`."""

import csv
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from commands import refused

from nfsgeo.files import only_here
from nfsgeo_benchmarks.suites import read_suite, shipped_suites
from nfsgeo_benchmarks.suites.suite import shipped_results

OPTIONS = ("small", "--scale", "tiny", "--out", "o")


@pytest.mark.slow
def test_a_suite_ends_as_tables_and_a_report(bench, small):
    assert bench("--list").stdout.splitlines()[0].split()[0] == "small"
    plan = bench(*OPTIONS, "--dry-run").stdout.splitlines()
    assert [line.split()[:2] for line in plan[:2]] == [["to", "run"]] * 2
    assert len(plan) == 2 and not Path("o").exists()
    half = bench(*OPTIONS, "--only", "wide")
    assert half.exit_code == 0, half.output
    assert max(map(len, half.stdout.splitlines())) <= 80
    with open("o/results.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows if row["model"]] == ["missing", "ok"]
    references = [row["variant"] for row in rows if not row["model"]]
    assert references == ["persistence", "linear-extrapolation", "training-mean"]
    page = Path("o/report.html").read_text()
    assert "1 of 2 runs finished" in page and page.count("missing</td>") == 4
    assert page.count("<img") == 2  # the course of training, and a prediction
    whole = json.loads(bench(*OPTIONS, "--json").stdout)["results"]
    assert [row["status"] for row in whole if row["model"]] == ["ok", "ok"]
    page = Path("o/report.html").read_text()
    assert page.count("<img") == 3 and "missing</td>" not in page
    assert "2 of 2 runs finished" in page and "nfsgeo bench small --scale tiny" in page
    assert "http://" not in page and "https://" not in page and "<script" not in page
    assert page.count("Trained alike: ") == 1 and "data.batch_size=2" in page
    samples = Path("o/samples.csv").read_text()
    errors = pd.read_csv("o/samples.csv", index_col="folder").mean(axis=1)
    mae = {row["folder"]: row["mae"] for row in whole if row["model"]}
    assert errors.to_dict() == pytest.approx(mae, rel=1e-3)
    assert re.search(r">[0-9.]+ \([0-9.]+ to [0-9.]+\)<", page)
    # The tables alone are enough to go on from, and to draw the report again.
    shutil.rmtree("o/runs")
    plan = bench(*OPTIONS, "--dry-run").stdout.splitlines()
    assert [line.split()[0] for line in plan[:2]] == ["finished"] * 2
    table = Path("o/results.csv").read_text()
    again = json.loads(bench(*OPTIONS, "--json").stdout)["results"]
    assert again == whole and Path("o/results.csv").read_text() == table
    assert Path("o/samples.csv").read_text() == samples
    Path("o/report.html").unlink()
    assert bench("report", "o").exit_code == 0
    page = Path("o/report.html").read_text()
    assert page.count("<img") == 1 and page.count("Trained alike: ") == 1


def test_help_says_what_each_suite_is(bench):
    listed, page = bench("--list").stdout, " ".join(bench("--help").stdout.split())
    for name, path in shipped_suites().items():
        title = read_suite(path).title
        assert f"{name:<21}{title}\n" in listed and page.count(title) == 1
        assert f" {title}. " in " ".join(bench(name, "--help").stdout.split())


@pytest.mark.slow
def test_a_run_that_fails_is_recorded(bench, small):
    text = small.read_text().replace("dse: {}", "agcrn: {model.settings.max_gib: 1e-9}")
    small.write_text(text)
    assert bench(*OPTIONS, "--only", "agcrn").exit_code == 0  # OOM is a result
    with open("o/results.csv") as file:
        assert next(csv.DictReader(file))["status"] == "OOM"
    assert "max_gib" in Path("o/report.html").read_text()


def test_two_commands_on_one_folder(bench, small):
    Path("o").mkdir()
    with only_here(Path("o"), "a suite"):
        refused(bench(*OPTIONS), "no other process")
    assert not list(Path("o").iterdir())


def test_wrong_options(bench, small):
    for options, word in (
        (("small", "--scale", "tini", "--out", "o"), "tiny"),
        ((*OPTIONS, "--only", "dsee"), "dse"),
        (("smal", "--scale", "tiny", "--out", "o"), "smal"),
        ((*OPTIONS, "--jobs", "0"), "jobs"),
        (("report", "o"), "results.csv"),
    ):
        refused(bench(*options), word)
    assert not Path("o").exists()


def test_a_suite_of_ones_own_runs_by_the_name_of_its_file(bench, small):
    own = Path("own.yaml")
    own.write_text(small.read_text())
    options = ("--scale", "tiny", "--dry-run", "--out", "o")
    shown = bench("small", *options).stdout
    assert bench("own.yaml", *options).stdout == shown
    states = json.loads(bench("own.yaml", *options, "--json").stdout)["runs"]
    assert [f"{of:<10}{name}" for name, of in states.items()] == shown.splitlines()
    own.write_text(small.read_text().replace("data.batch_size", "data.batch_sice"))
    words = "own.yaml", "problems.waves", "batch_sice", "data.batch_size"
    refused(bench("own.yaml", *options), *words)


@pytest.mark.parametrize("name", ["accuracy", "ablations"])
def test_committed_runs_count_as_finished(bench, name):
    Path("o").mkdir()
    shutil.copy(shipped_results(name, "cpu") / "results.csv", "o")
    lines = bench(name, "--scale", "cpu", "--dry-run", "--out", "o").stdout.splitlines()
    finished = {line.split()[1] for line in lines if line.startswith("finished")}
    with open("o/results.csv") as file:
        folders = {row["folder"] for row in csv.DictReader(file) if row["folder"]}
    assert {f"runs/{name}" for name in finished} == folders
