"""`nfsgeo tune`: settings for a file of one's own."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import refused

from nfsgeo.data.generation import generate
from nfsgeo.training import load_config, read_config
from nfsgeo.training.artifacts import write_json, write_yaml
from nfsgeo.training.trainer import read_history
from nfsgeo_benchmarks.suites.tables import RESULT
from nfsgeo_benchmarks.suites.tuning import Tuning, search_space
from nfsgeo_cli import main

SMALL = {"optimiser.lr": 0.002, "model.settings.width": 6, "model.settings.depth": 1}


@pytest.mark.parametrize(
    ("asked", "space"),
    [
        ({}, {"optimiser.lr": [0.002, 0.004, 0.001, 0.008]}),
        ({"optimiser.lr": [0.002, 0.1]}, {"optimiser.lr": [0.002, 0.1]}),
        ({"optimiser.lr": []}, {}),
        ({"optimiser.lr": [], "data.batch_size": [4, 8]}, {"data.batch_size": [4, 8]}),
    ],
)
def test_values_are_multiples_of_a_models_own_unless_asked_for(asked, space):
    config = load_config(overrides={"model.name": "dse", **SMALL})
    sizes = {"model.settings.width": [6, 9, 3]}  # half a block is none
    assert search_space(config, asked) == sizes | space


def test_no_size_is_searched_that_a_model_does_not_have():
    config = load_config(overrides={"model.name": "deeponet-u", "optimiser.lr": 1.0})
    assert "model.settings.depth" not in search_space(config, {})


def scored(tuning, error):
    """Trials of a search by what they change, each of which has an error at once."""
    found = []
    for batch in tuning.batches():
        found.append([run.trial for run in batch])
        for run in batch:
            folder = tuning.out / "runs" / run.name
            folder.mkdir(parents=True)
            row = {"status": "ok", "valid_rmse": error(run.settings)}
            write_json(folder / RESULT, {"row": row})
            config = load_config(overrides={**SMALL, **run.settings})
            write_yaml(folder / "config.yaml", config.model_dump(mode="json"))
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "b.nc"
    sizes = {"samples": 12, "resolution": 32, "num_steps": 4, "seed": 0, "options": {}}
    generate("burgers", out=path, workers=1, **sizes)
    return path


@pytest.mark.parametrize("num", [1, 3, 7, 30])
def test_each_setting_is_changed_at_the_best_of_the_others(tmp_path, num):
    (data := tmp_path / "d.nc").touch()
    settings = {"data.file": str(data), "model.name": "dse", "model.settings.depth": 1}
    tuning = Tuning(settings, {"data.batch_size": ["8"]}, num, tmp_path)

    def error(settings):
        rate = settings.get("optimiser.lr", 0.002)
        width = settings.get("model.settings.width", 6)
        return abs(rate - 0.004) + abs(width - 9) + settings.get("data.batch_size", 4)

    found = scored(tuning, error)
    rest = "width=6,batch_size=4"
    whole = [
        ["default"],
        [f"lr={rate},{rest}" for rate in (0.004, 0.001, 0.008)],
        [f"lr=0.004,width={width},batch_size=4" for width in (9, 3)],
        ["lr=0.004,width=9,batch_size=8"],
        [f"lr={rate},width=9,batch_size=4" for rate in (0.002, 0.001, 0.008)],
    ]
    assert sum(found, []) == sum(whole, [])[:num]
    best, *others = tuning.rows()
    assert best["valid_rmse"] == min(row["valid_rmse"] for row in tuning.rows())
    assert len(others) == min(num, 10) - 1


def test_files_of_a_pattern_are_one_data_set(tmp_path):
    for name in ("d_0.nc", "d_1.nc"):
        (tmp_path / name).touch()
    settings = {"data.file": str(tmp_path / "d_*.nc"), "model.name": "dse"}

    def problem() -> str:
        return Tuning(settings, {}, 1, tmp_path).problem

    before = problem()
    assert problem() == before
    os.utime(tmp_path / "d_1.nc", (0, 9e9))  # a later version of one of them
    assert problem() != before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--space data.points=8,16", "data.points|data.batch_size"),
        ("--space optimiser.lr", "--space optimiser.lr|KEY=VALUE"),
        ("--space optimiser.lr=1,x", "optimiser.lr='x'"),
        ("--space optimiser.rate=1", "optimiser.rate"),
        ("--model nsf", "the nearest is nfs"),
        ("--epochs 1 --budget 1", "not both"),
        ("--data no.nc", "no.nc"),
    ],
)
def test_user_errors_before_any_trial(tmp_path, options, words):
    (data := tmp_path / "d.nc").touch()
    given = ["tune", "--data", str(data), "--out", "t", *options.split()]
    refused(CliRunner().invoke(main, given), *words.split("|"))
    assert not Path("t").exists()


@pytest.mark.slow
def test_a_killed_search_ends_as_if_nothing_had_happened(file):
    small = [f"--set={key}={value}" for key, value in SMALL.items() if "lr" not in key]
    command = ["tune", "--data", str(file), "--model", "dse", "--model", "nfs", *small]
    command += ["--n-in", "2", "--n-out", "2", "--points", "16", "--trials", "3"]
    command += ["--space", "optimiser.lr=1e-3,1e-2", "--epochs", "8", "--json"]

    def killed(kill):
        """Trials of a search in `killed`, and when those that had ended did so."""
        code = [sys.executable, "-c", "from nfsgeo_cli import main; main()", *command]
        process = subprocess.Popen([*code, "--out", "killed"], start_new_session=True)
        while process.poll() is None and not kill():
            time.sleep(0.05)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        ended = Path("killed").glob("runs/*/result.json")
        return {path: path.stat().st_mtime_ns for path in ended}

    undisturbed = CliRunner().invoke(main, [*command, "--out", "whole"])
    assert undisturbed.exit_code == 0, undisturbed.output
    killed(lambda: [*Path("killed").glob("runs/*/metrics.csv")])  # within a trial
    kept = killed(lambda: len([*Path("killed").glob("runs/*/result.json")]) > 2)
    assert kept
    last = CliRunner().invoke(main, [*command, "--out", "killed"])
    assert last.exit_code == 0, last.output
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())
    content, first = json.loads(last.stdout), json.loads(undisturbed.stdout)
    for row in [*content["trials"], *first["trials"]]:
        del row["seconds"]
    assert content["trials"] == first["trials"]
    errors = [row["valid_rmse"] for row in content["trials"]]
    assert len(errors) == 6 and errors == sorted(errors)
    assert {row["optimiser.lr"] for row in content["trials"]} >= {1e-3, 1e-2}
    # Nothing looks at test samples.
    assert not [*Path("killed").glob("runs/*/summary.json")]
    with open("killed/trials.csv", newline="") as table:
        assert [float(row["valid_rmse"]) for row in csv.DictReader(table)] == errors

    # The command that it prints trains the best of them.
    best = read_config(Path("killed/best.yaml"))
    assert best.optimiser.lr == content["trials"][0]["optimiser.lr"]
    train = content["train"].split()[1:]
    trained = CliRunner().invoke(main, [*train, "--out", "run"])
    assert trained.exit_code == 0, trained.output
    history = read_history(Path("run/metrics.csv"))
    assert min(row["valid_rmse"] for row in history) == pytest.approx(errors[0], 1e-6)


@pytest.mark.slow
def test_trials_that_fail_are_the_last(file):
    command = ["tune", "--data", str(file), "--n-in", "2", "--n-out", "2"]
    command += ["--points", "16", "--budget", "0.001", "--out", "t"]
    none = CliRunner().invoke(main, [*command, "--n-in", "9"])
    line = none.stderr.splitlines()[-1]
    assert line.startswith("Error: ") and "--n-in 9" in line
    assert none.exit_code == 2 and none.stdout == ""
    options = ["--model", "transolver", "--lr", "1e-3", "--trials", "2"]
    options += ["--space", "model.settings.width=6"]  # no multiple of its heads
    done = CliRunner().invoke(main, [*command, *options])
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    rows = [line.split() for line in done.stdout.splitlines()[1:3]]
    assert [row[2] for row in rows] == ["ok", "failed"]
    assert read_config(Path("t/best.yaml")).model.settings["width"] == 64
