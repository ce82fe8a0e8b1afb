"""Rows of results: from the folders of runs, or else from the tables in their folder.

So a suite goes on from its tables: on another machine, or without the folders of its
runs, which hold checkpoints and predictions.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from nfsgeo.data.pde import find_equation
from nfsgeo.evaluation import GridStates, deviation, kept_states
from nfsgeo.training import RunPaths, load_config, read_config
from nfsgeo.training.artifacts import write_json, write_rows
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.suites.runs import Run, trials_by_name
from nfsgeo_benchmarks.suites.suite import TRIVIAL, Suite
from nfsgeo_benchmarks.suites.tables import (
    ABOUT,
    CHOICES,
    CURVES,
    RESULTS,
    Row,
    learns,
    read_table,
)
from nfsgeo_benchmarks.suites.work import MEMORY, STATES, has_folder, read_failure

COLUMNS = (
    "problem",
    "variant",
    "model",
    "equation",
    "n_s",
    "n_t",
    "n_t_out",
    "epochs",
    "seed",
    "mae",
    "rmse",
    "rel_l2",
    "rel_l1",
    "rel_l1_last_median",
    "parameters",
    "seconds_per_epoch",
    "peak_memory_bytes",
    "status",
    "message",
    "folder",
)
# Settings of training that are not the model's, of which each has a column, too.
SETTINGS = (
    "model.prediction",
    "data.point_sets",
    "data.query_points",
    "data.batch_size",
    "loss.name",
    "loss.weighting",
    "optimiser.name",
    "optimiser.lr",
    "optimiser.weight_decay",
    "optimiser.schedule",
    "trainer.epochs",
)
OF_SUMMARY = COLUMNS[4:8] + COLUMNS[14:17]
CURVE_COLUMNS = ("problem", "variant", "epoch", "minutes", "valid_mae")


def collect(runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """A row for each run, and after those of a problem and seed what learns nothing.

    Columns are :data:`COLUMNS` and :data:`SETTINGS`, with a gap for what is not known.
    Errors on larger meshes come in further ones, ``mae_4`` on four times as many
    points, and those on meshes of other kinds, ``mae_half``; where states are kept, so
    do their deviations from those of other variants, and where it is measured, the
    memory of interpolations, ``kernel_bytes``. The references are on the points of the
    first finished run. ``status`` is ``ok``, ``failed``, ``OOM`` or ``missing``.
    """
    table = read_table(folder / RESULTS)
    earlier = {row["folder"]: row for row in table if row["status"] == "ok"}
    rows: list[dict[str, Any]] = []
    for place, group in groupby(runs, key=lambda run: (run.problem, run.seed)):
        here = [_row(run, folder, earlier, runs) for run in group]
        trivial = [
            row
            for row in table
            if (row["problem"], row["seed"]) == place and not learns(row["variant"])
        ]
        rows += here + (_trivial(here, folder) or trivial)
    return rows


def _row(
    run: Run, folder: Path, earlier: Mapping[str, Row], runs: Sequence[Run]
) -> dict[str, Any]:
    paths = RunPaths(folder / "runs" / run.name)
    row: dict[str, Any] = dict.fromkeys((*COLUMNS, *SETTINGS)) | {
        "problem": run.problem,
        "variant": run.variant,
        "model": run.settings["model.name"],
        "equation": run.data.equation,
        "seed": run.seed,
        "folder": f"runs/{run.name}",
        "status": "missing",
    }
    if has_folder(run, folder):
        config = read_config(paths.config).model_dump(mode="json")
        for name in SETTINGS:
            section, key = name.split(".")
            row[name] = config[section][key]
        summary = json.loads(paths.summary.read_text())
        row |= {name: summary[name] for name in OF_SUMMARY} | summary["test"]
        for factor, errors in summary.get("unseen", {}).items():
            row[f"mae_{factor}"] = errors["mae"]["mean"]
        if run.meshes:
            for mesh in csv.DictReader(paths.meshes.read_text().splitlines()):
                row[f"mae_{mesh['mesh']}"] = float(mesh["mae_observed"])
                row[f"mae_unobserved_{mesh['mesh']}"] = float(mesh["mae_unobserved"])
        if run.memory:
            memory = json.loads((paths.root / MEMORY).read_text())
            row |= {f"{part}_bytes": size for part, size in memory.items()}
        if run.states:
            row |= _differences(run, runs, folder)
        row["status"] = "ok"
    elif known := earlier.get(row["folder"]):
        row |= known
    elif failure := read_failure(paths.root):
        row |= failure
    return row


def _trivial(rows: Sequence[Row], folder: Path) -> list[dict[str, Any]]:
    """Rows of the references, from the first run that has a folder."""
    kept = ("problem", "equation", "n_s", "n_t", "n_t_out", "seed", "status")
    for row in rows:
        summary = RunPaths(folder / row["folder"]).summary
        if row["status"] == "ok" and summary.exists():
            same = dict.fromkeys(row) | {name: row[name] for name in kept}
            same |= {"epochs": 0, "parameters": 0}
            errors = json.loads(summary.read_text())["baselines"].items()
            return [{**same, "variant": TRIVIAL[name], **e} for name, e in errors]
    return []


def write_tables(rows: Sequence[Row], folder: Path, about: Mapping[str, str]) -> None:
    """Writes ``results.csv`` and ``curves.csv``, from which the report is drawn.

    ``curves.csv`` has the errors of the first seed's runs in the course of training:
    ``minutes`` are those up to the end of the epoch, ``valid_mae`` is the MAE on
    validation samples. Of runs without a folder the rows stay as they are.
    ``suite.json`` says what the tables are of.

    Args:
        rows: From :func:`collect`.
        folder: Of the suite.
        about: Name or file of the ``suite``, the ``scale``, the ``command`` that makes
            them again.
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    write_rows(folder / RESULTS, list(columns), rows)
    write_json(folder / ABOUT, about)
    of = itemgetter("problem", "variant")
    earlier, curves = read_table(folder / CURVES), []
    for row in rows:
        if row["seed"] != 0 or not learns(row["variant"]) or row["status"] != "ok":
            continue
        history, minutes = read_history(RunPaths(folder / row["folder"]).metrics), 0.0
        if not history:
            curves += [each for each in earlier if of(each) == of(row)]
        for epoch in history:
            minutes += epoch["seconds"] / 60
            numbers = f"{minutes:.4g}", f"{epoch['valid_mae']:.4g}"
            values = (*of(row), epoch["epoch"], *numbers)
            curves.append(dict(zip(CURVE_COLUMNS, values, strict=True)))
    write_rows(folder / CURVES, CURVE_COLUMNS, curves)


def _differences(run: Run, runs: Sequence[Run], folder: Path) -> dict[str, float]:
    """How far the states of a run are from those of all other finished variants.

    Before training and after it, before the blocks and after them; the mean over runs
    is the paper's Diff.
    """
    alike = [
        other
        for other in runs
        if (other.problem, other.seed) == (run.problem, run.seed)
        and other.variant != run.variant
        and has_folder(other, folder)
    ]
    if not alike:
        return {}
    kept = [kept_states(folder / "runs" / r.name / STATES) for r in (run, *alike)]
    epochs = set.intersection(*map(set, kept))
    found = {}
    for when, epoch in (("_0", min(epochs)), ("", max(epochs))):
        own, *others = (GridStates.read(each[epoch]) for each in kept)
        for place in ("begin", "end"):
            states = [getattr(each, place) for each in others]
            found[f"diff_{place}{when}"] = deviation(getattr(own, place), states)
    return found


def expected_seconds(run: Run, folder: Path, rows: Sequence[Row]) -> float | None:
    """How long the remaining epochs of a run will take.

    The first finished row of the same problem and variant gives the time per epoch;
    None where there is none.
    """
    wanted = (run.problem, run.variant, "ok")
    for row in rows:
        if (row["problem"], row["variant"], row["status"]) == wanted:
            epochs = load_config(overrides=run.settings).trainer.epochs
            trained = len(read_history(RunPaths(folder / "runs" / run.name).metrics))
            return float(row["seconds_per_epoch"]) * max(0, epochs - trained)
    return None


def write_choices(
    suite: Suite, runs: Sequence[Run], folder: Path
) -> list[dict[str, Any]]:
    """Writes ``tuned.csv``: a row for each trial, and which of them are chosen.

    The smallest validation RMSE of the epochs counts. The best finished trial of a
    variant on a problem is its choice for all problems in as many space dimensions,
    among those that take at most ``search.cost`` times as long as the one that changes
    nothing. Returns the rows of the file.
    """
    assert suite.search is not None
    earlier = {row["folder"]: row for row in read_table(folder / CHOICES)}
    rows: list[dict[str, Any]] = []
    for place, group in groupby(runs, key=lambda run: (run.problem, run.variant)):
        here = []
        for run in group:
            name = f"runs/{run.name}"
            row = {
                "dim": find_equation(run.data.equation).dim,
                **dict(zip(("problem", "variant"), place, strict=True)),
                "trial": run.trial,
                "settings": json.dumps(trials_by_name(suite, run.variant)[run.trial]),
                **dict.fromkeys(("epochs", "seconds", "valid_rmse")),
                **{"chosen": 0, "folder": name},
            }
            if has_folder(run, folder):
                history = read_history(RunPaths(folder / name).metrics)
                row["epochs"] = len(history)
                row["seconds"] = sum(each["seconds"] for each in history)
                row["valid_rmse"] = min(each["valid_rmse"] for each in history)
            elif name in earlier:
                row |= earlier[name] | {"chosen": 0}
            here.append(row)
        done = [row for row in here if row["valid_rmse"] is not None]
        plain = [row["seconds"] for row in done if row["settings"] == "{}"]
        most = suite.search.cost * min(plain, default=float("inf"))
        cheap = [row for row in done if row["seconds"] <= most]
        if cheap:
            min(cheap, key=lambda row: row["valid_rmse"])["chosen"] = 1
        rows += here
    write_rows(folder / CHOICES, list(rows[0]), rows)
    return rows
