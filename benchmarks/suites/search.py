"""Settings of each variant of a suite, chosen by short trials on validation samples."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from nfsgeo.data.equations import find_equation
from nfsgeo.training import RunPaths, load_config
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.suites.earlier import RUNS, earlier_row, has_folder
from nfsgeo_benchmarks.suites.reading import in_file
from nfsgeo_benchmarks.suites.runs import CHOICES, Run, settings_of
from nfsgeo_benchmarks.suites.suite import Scale, Suite

__all__ = ["TRIAL_COLUMNS", "trial_rows", "trials_of", "write_choices"]

TRIAL_COLUMNS = (
    "dim",
    "problem",
    "variant",
    "trial",
    "settings",
    "epochs",
    "seconds",
    "valid_rmse",
    "chosen",
    "folder",
)


def trials_of(suite: Suite, scale_name: str, scales: Mapping[str, Scale]) -> list[Run]:
    """All trials of a suite's search, which train for a fraction of the epochs.

    Args:
        suite: The suite; without a search there are no trials.
        scale_name: A key of ``scales``.
        scales: Scales by name.

    Raises:
        UserError: A name or a setting is wrong.
    """
    search, scale = suite.search, scales[scale_name]
    runs: list[Run] = []
    if search is None:
        return runs
    for problem_name in search.problems:
        problem = suite.problems[problem_name]
        for variant in search.variants:
            if not suite.runs_on(variant, problem_name):
                continue
            model = suite.variants[variant].get("model.name", variant)
            for trial, changes in search.trials_of(model).items():
                with in_file(suite.path):
                    settings = settings_of(
                        suite, problem_name, variant, 0, scale_name, scale, changes
                    )
                epochs = load_config(overrides=settings).trainer.epochs
                settings["trainer.epochs"] = max(1, round(search.epochs * epochs))
                runs.append(
                    Run(
                        problem_name,
                        f"{variant}@{trial}",
                        0,
                        scale.data[problem.data],
                        settings,
                        scored=False,
                    )
                )
    return runs


def trial_rows(suite: Suite, runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """A row of :data:`TRIAL_COLUMNS` for each trial.

    The smallest validation RMSE of the epochs counts. The best finished trial of a
    variant on a problem is its choice for all problems in as many space dimensions,
    among those that take at most ``search.cost`` times as long as the one that changes
    nothing.

    Args:
        suite: The suite.
        runs: From :func:`trials_of`.
        folder: Of the search.
    """
    assert suite.search is not None
    rows = []
    of = itemgetter("problem", "variant")
    for run in runs:
        variant, trial = run.variant.split("@")
        trials = suite.search.trials_of(run.settings["model.name"])
        row: dict[str, Any] = dict.fromkeys(TRIAL_COLUMNS) | {
            "dim": find_equation(run.data.equation).dim,
            "problem": run.problem,
            "variant": variant,
            "trial": trial,
            "settings": json.dumps(trials[trial]),
            "chosen": 0,
            "folder": f"{RUNS}/{run.name}",
        }
        if has_folder(run, folder):
            history = read_history(RunPaths(folder / RUNS / run.name).metrics)
            row["epochs"] = len(history)
            row["seconds"] = sum(each["seconds"] for each in history)
            row["valid_rmse"] = min(each["valid_rmse"] for each in history)
        elif earlier := earlier_row(run, folder):
            row |= {name: earlier[name] for name in ("epochs", "seconds", "valid_rmse")}
        rows.append(row)
    done = [row for row in rows if row["valid_rmse"] is not None]
    plain = {of(row): row["seconds"] for row in done if row["settings"] == "{}"}
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(done, key=lambda row: row["valid_rmse"]):
        if row["seconds"] <= suite.search.cost * plain.get(of(row), math.inf):
            best.setdefault(of(row), row)
    for row in best.values():
        row["chosen"] = 1
    return rows


def write_choices(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Writes ``tuned.csv`` into the folder of the search, and returns its path."""
    path = folder / CHOICES
    write_rows(path, TRIAL_COLUMNS, rows)
    return path
