"""Settings that short trials choose."""

import csv
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml
from commands import refused

import nfsgeo_benchmarks
from nfsgeo.errors import UserError
from nfsgeo.training.artifacts import write_json, write_rows
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import read_suite, runs_of, trials_of
from nfsgeo_benchmarks.suites.tables import RESULT

SEARCH = """
search:
  problems: [waves]
  epochs: 0.5
  variants: [wide]
  same: {dse: wide}
  trials:
    default: {}
    slow: {optimiser.lr: 1.0e-7}
  models:
    dse:
      deep: {model.settings.depth: 2}
"""


@pytest.fixture
def searched(small: Path) -> Path:
    """The suite with a search."""
    small.write_text(small.read_text() + SEARCH)
    return small


def test_trials_are_short_and_differ_in_their_settings(searched):
    suite = read_suite(searched)
    trials = trials_of(suite, "tiny")
    names = [("wide", "default"), ("wide", "slow"), ("wide", "deep")]
    assert [(run.variant, run.trial) for run in trials] == names
    assert all(run.settings["trainer.epochs"] == 1 for run in trials)
    assert trials[1].settings["optimiser.lr"] == 1e-7
    whole = runs_of(suite, "tiny")
    assert not {run.name for run in trials} & {run.name for run in whole}


def test_the_smallest_validation_error_is_chosen(searched, tmp_path):
    suite = read_suite(searched)
    trials = trials_of(suite, "tiny")
    measured = {"default": 0.3, "slow": 0.1, "deep": 0.2}
    for run in trials:
        folder = tmp_path / "runs" / run.name
        folder.mkdir(parents=True)
        row = {"status": "ok", "epochs": 1, "seconds": 1.0}
        row["valid_rmse"] = measured[run.trial]
        write_json(folder / RESULT, {"row": row})
    rows = suites.write_choices(suite, trials, tmp_path)
    chosen = {row["trial"]: row["chosen"] for row in rows}
    assert chosen == {"default": 0, "slow": 1, "deep": 0}


def test_a_problem_takes_the_choices_of_the_one_it_is_like(searched):
    content = yaml.safe_load(searched.read_text())
    waves = content["problems"]["waves"]
    for name, more in (("others", {}), ("alike", {"like": "others"})):
        content["problems"][name] = waves | more
    content["search"]["problems"] = ["waves", "others"]
    searched.write_text(yaml.safe_dump(content, sort_keys=False))
    choice = Path(nfsgeo_benchmarks.FOLDER) / "results/tiny/small"
    choice.mkdir(parents=True)
    row = {"dim": 1, "variant": "wide", "chosen": 1}
    rates = {"waves": 1e-3, "others": 1e-2}
    rows = [
        row | {"problem": name, "settings": json.dumps({"optimiser.lr": rate})}
        for name, rate in rates.items()
    ]
    write_rows(choice / "tuned.csv", list(rows[0]), rows)
    found = runs_of(read_suite(searched), "tiny")
    rate = {run.problem: run.settings["optimiser.lr"] for run in found}
    assert rate == rates | {"alike": 1e-2}
    content["problems"]["alike"]["like"] = "wave"
    searched.write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.raises(UserError, match="like: wave"):
        read_suite(searched)


def test_trials_have_the_budget_of_a_run(searched):
    content = yaml.safe_load(searched.read_text())
    content["problems"]["waves"]["at"]["tiny"]["trainer.budget"] = 2.0
    searched.write_text(yaml.safe_dump(content, sort_keys=False))
    for run in trials_of(read_suite(searched), "tiny"):
        assert run.settings["trainer.budget"] == 2
        assert "trainer.epochs" not in run.settings


@pytest.mark.slow
def test_the_best_on_validation_samples_is_used_in_every_run(searched, bench):
    tune = partial(bench, "tune", "small", "--scale", "tiny", "--out", "t")
    plan = tune("--dry-run").stdout.splitlines()
    assert [line.split()[:2] for line in plan] == [["to", "run"]] * 3
    done = tune()
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    with open("t/tuned.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = [float(row["valid_rmse"]) for row in rows]
    best = [str(int(error == min(errors))) for error in errors]
    assert [row["chosen"] for row in rows] == best
    assert not list(Path("t").glob("runs/*/summary.json"))  # no look at test samples
    again = json.loads(tune("--json").stdout)
    assert [row["valid_rmse"] for row in again["trials"]] == errors
    # The table alone is enough to go on from.
    shutil.rmtree("t/runs")
    again = tune()
    assert again.exit_code == 0 and not Path("t/runs").exists()
    with open("t/tuned.csv", newline="") as file:
        assert list(csv.DictReader(file)) == rows

    choice = Path("results/tiny/small")
    choice.mkdir(parents=True)
    for dim, rates in (("1", [1e-7, 1e-7]), ("2", [None, None])):  # it has one
        for row in rows:
            row |= {"chosen": int(row["trial"] == "slow"), "dim": dim}
            row["problem"] = "ripples"  # so that the number of dimensions decides
        write_rows(choice / "tuned.csv", list(rows[0]), rows)
        found = runs_of(read_suite(searched), "tiny")
        assert [run.settings.get("optimiser.lr") for run in found] == rates


def test_a_suite_without_a_search(bench, small):
    for suite, word in (("small", "without a search"), ("smal", "suite smal")):
        refused(bench("tune", suite, "--scale", "tiny", "--out", "t"), word)
