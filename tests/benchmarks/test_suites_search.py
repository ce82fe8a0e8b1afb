"""Settings that short trials choose, and references that learn nothing."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.history import COLUMNS
from nfsgeo_benchmarks import suites
from nfsgeo_benchmarks.suites import Run, read_suite, runs
from nfsgeo_benchmarks.suites.earlier import RUNS, TRAINED
from nfsgeo_benchmarks.suites.reading import read_scales
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.table import leader, seed_means

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
    path = small / "small.yaml"
    path.write_text(path.read_text() + SEARCH)
    return path


def test_trials_are_short_and_differ_in_their_settings(searched: Path) -> None:
    suite = read_suite(searched)
    scales = read_scales(searched.parent / "scales.yaml")
    trials = suites.trials_of(suite, "tiny", scales)
    names = ["wide@default", "wide@slow", "wide@deep"]
    assert [run.variant for run in trials] == names
    assert all(run.settings["trainer.epochs"] == 1 for run in trials)
    assert trials[1].settings["optimiser.lr"] == 1e-7
    assert not any(run.scored for run in trials)
    whole = runs.runs_of(suite, "tiny", scales)
    assert not {run.name for run in trials} & {run.name for run in whole}

    left_out = searched.read_text().replace(
        "variants: [wide]", "variants: [deep, wide]"
    )
    left_out = left_out.replace(
        "variants:\n  dse: {}", "variants:\n  deep: {model.name: dse}\n  dse: {}"
    ).replace("data: waves\n", "data: waves\n    variants: [dse, wide]\n", 1)
    searched.write_text(left_out)  # a variant that the problem does not have
    trials = suites.trials_of(read_suite(searched), "tiny", scales)
    assert [run.variant for run in trials] == names


def test_what_costs_three_times_as_much_is_not_chosen(
    searched: Path, tmp_path: Path
) -> None:
    suite = read_suite(searched)
    trials = suites.trials_of(
        suite, "tiny", read_scales(searched.parent / "scales.yaml")
    )
    measured = {"default": (1.0, 0.3), "slow": (3.1, 0.1), "deep": (2.9, 0.2)}
    for run in trials:
        folder = tmp_path / RUNS / run.name
        folder.mkdir(parents=True)
        seconds, error = measured[run.variant.split("@")[1]]
        row = dict.fromkeys(COLUMNS, 0.0) | {"seconds": seconds, "valid_rmse": error}
        write_rows(folder / "metrics.csv", COLUMNS, [row | {"epoch": 0}])
        (folder / TRAINED).touch()
    rows = suites.trial_rows(suite, trials, tmp_path)
    assert {row["trial"]: row["chosen"] for row in rows} == {
        "default": 0,
        "slow": 0,
        "deep": 1,
    }


@pytest.mark.slow
def test_the_best_on_validation_samples_is_used_in_every_run(
    searched: Path, bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever the trials cost: the times of runs as short as these mean nothing.
    text = searched.read_text()
    searched.write_text(text.replace("epochs: 0.5", "epochs: 0.5\n  cost: 1000"))
    plan = bench("tune", "small", "--scale", "tiny", "--out", "t", "--dry-run")
    assert [line.split()[:3] for line in plan.stdout.splitlines()] == [
        ["to", "run", "1"]
    ] * 3
    done = bench("tune", "small", "--scale", "tiny", "--out", "t")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    with open("t/tuned.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = [float(row["valid_rmse"]) for row in rows]
    assert [row["chosen"] for row in rows] == [
        str(int(error == min(errors))) for error in errors
    ]
    assert not list(Path("t").glob("runs/*/summary.json"))  # no look at test samples
    again = json.loads(
        bench("tune", "small", "--scale", "tiny", "--out", "t", "--json").stdout
    )
    assert [row["valid_rmse"] for row in again["trials"]] == errors
    # The table alone is enough to go on from.
    shutil.rmtree("t/runs")
    again = bench("tune", "small", "--scale", "tiny", "--out", "t")
    assert again.exit_code == 0 and not Path("t/runs").exists()
    with open("t/tuned.csv", newline="") as file:
        assert list(csv.DictReader(file)) == rows

    choice = Path("results/tiny/small")
    choice.mkdir(parents=True)
    for row in rows:
        row["chosen"] = str(int(row["trial"] == "slow"))
    with open(choice / "tuned.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    monkeypatch.setattr(runs, "SHIPPED", Path("results").absolute())
    found = runs.runs_of(read_suite(searched), "tiny", read_scales(Path("scales.yaml")))
    assert [run.settings["optimiser.lr"] for run in found] == [1e-7, 1e-7]
    for row in rows:
        row["dim"] = "2"  # the problem has one dimension
    with open(choice / "tuned.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    found = runs.runs_of(read_suite(searched), "tiny", read_scales(Path("scales.yaml")))
    assert not any("optimiser.lr" in run.settings for run in found)


@pytest.mark.parametrize("name", ["wider", "dsee"])
def test_a_search_names_variants(searched: Path, name: str) -> None:
    text = searched.read_text().replace("variants: [wide]", f"variants: [{name}]")
    searched.write_text(text)
    with pytest.raises(Exception, match=f"search: {name}"):
        read_suite(searched)


def test_a_suite_without_a_search(bench: Callable[..., Any]) -> None:
    for suite, word in (("small", "without a search"), ("smal", "suite smal")):
        refused = bench("tune", suite, "--scale", "tiny", "--out", "t")
        assert refused.exit_code == 2 and word in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_what_learns_nothing_has_rows_of_its_own(
    small_runs: list[Run], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rows: list[dict[str, Any]] = []
    for number, run in enumerate(small_runs):
        folder = out / "runs" / run.name
        folder.mkdir(parents=True)
        baselines = {
            name: {"mae": 1.0 + number, "rmse": 2.0, "rel_l2": 3.0} for name in TRIVIAL
        }
        (folder / "summary.json").write_text(json.dumps({"baselines": baselines}))
        same = {"problem": run.problem, "variant": run.variant, "seed": run.seed}
        rows.append(
            same
            | {"model": "dse", "equation": "burgers", "n_s": 32, "n_t": 2, "n_t_out": 2}
            | {
                "status": "ok",
                "folder": f"runs/{run.name}",
                "mae": 0.5,
                "message": None,
            }
        )
    rows[0]["status"] = "missing"
    found = suites.with_trivial(rows, out)
    assert found[:2] == rows
    assert [row["variant"] for row in found[2:]] == list(TRIVIAL.values())
    # Those of the run that is finished.
    assert {row["mae"] for row in found[2:]} == {2.0}
    assert {row["model"] for row in found[2:]} == {None}


def test_a_leader_leads_by_two_standard_deviations() -> None:
    def row(variant: str, mae: float, seed: int) -> dict[str, Any]:
        where = {"variant": variant, "problem": "p", "seed": seed, "status": "ok"}
        return where | {"mae": mae}

    def leading(*errors: float) -> str | None:
        rows = [row("a", 1.0, 0), row("a", 1.2, 1)]
        rows += [row("b", error, seed) for seed, error in enumerate(errors)]
        return leader(seed_means(rows), "p", "mae", ("a", "b"))

    assert leading(1.5, 1.6) == "a"  # 1.1 ± 0.14 against 1.55 ± 0.07
    assert leading(1.3, 1.4) is None
    assert leading(1.0, 2.2) is None
    assert leading(0.5, 0.5) == "b"
    assert leading(9.0) is None  # one seed has no standard deviation
