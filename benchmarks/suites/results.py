"""Rows of results: from the folders of runs, or else from the tables in their folder.

So a suite goes on from its tables: on another machine, or without the folders of its
runs, which hold checkpoints and predictions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from nfsgeo.data.pde import find_equation
from nfsgeo.evaluation import deviation, kept_states
from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.artifacts import write_json, write_rows
from nfsgeo.training.trainer import read_history
from nfsgeo_benchmarks.suites.runs import Run, trials_by_name
from nfsgeo_benchmarks.suites.suite import TRIVIAL, UNOBSERVED, Suite
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

OF_SUMMARY = (
    *("n_s", "n_t", "n_t_out", "epochs"),
    *("parameters", "seconds_per_epoch", "peak_memory_bytes"),
)
ERRORS = ("mae", "rmse", "rel_l2", "rel_l1", "rel_l1_last_median")
COLUMNS = (
    *("problem", "variant", "model", "equation", *OF_SUMMARY[:4], "seed", *ERRORS),
    *(*OF_SUMMARY[4:], "status", "message", "folder"),
)
# Settings of training that are not the model's, of which each has a column, too.
SETTINGS = {
    "model": ("prediction",),
    "data": ("point_sets", "query_points", "batch_size"),
    "loss": ("name", "weighting"),
    "optimiser": ("name", "lr", "weight_decay", "schedule"),
    "trainer": ("epochs",),
}
SETTINGS_COLUMNS = [f"{part}.{key}" for part, keys in SETTINGS.items() for key in keys]
CURVE_COLUMNS = ("problem", "variant", "epoch", "minutes", "valid_mae")


def collect(runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """A row for each run, and after those of a problem and seed what learns nothing.

    Columns are :data:`COLUMNS` and :data:`SETTINGS_COLUMNS`, with a gap for what is not
    known. Errors on larger meshes come in further ones, ``mae_4`` on four times as many
    points, and those on meshes of other kinds, ``mae_half``; where states are kept, so
    do their deviations from those of other variants, and where it is measured, the
    memory of interpolations, ``kernel_bytes``. Of single series, ``mae_unobserved`` and
    ``rmse_unobserved`` are errors at points of the file that are not observed. The
    references are on the points of the first finished run. ``status`` is ``ok``,
    ``failed``, ``OOM`` or ``missing``.
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
    row: dict[str, Any] = dict.fromkeys((*COLUMNS, *SETTINGS_COLUMNS)) | {
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
        for part, keys in SETTINGS.items():
            row |= {f"{part}.{key}": config[part][key] for key in keys}
        summary = json.loads(paths.summary.read_text())
        row |= {name: summary[name] for name in OF_SUMMARY} | summary["test"]
        if run.stations:
            row |= _unobserved(summary.get("unobserved", {}))
        for factor, errors in summary.get("unseen", {}).items():
            row[f"mae_{factor}"] = errors["mae"]["mean"]
        if run.meshes:
            for mesh in read_table(paths.meshes):
                row[f"mae_{mesh['mesh']}"] = mesh["mae_observed"]
                row[f"mae_unobserved_{mesh['mesh']}"] = mesh["mae_unobserved"]
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
    """Rows of the references, from the first run of those with the most of them."""
    kept = ("problem", "equation", "n_s", "n_t", "n_t_out", "seed", "status")
    found: list[dict[str, Any]] = []
    for row in rows:
        summary = RunPaths(folder / row["folder"]).summary
        if row["status"] == "ok" and summary.exists():
            same = dict.fromkeys(row) | {name: row[name] for name in kept}
            same |= {"epochs": 0, "parameters": 0}
            content = json.loads(summary.read_text())
            away = content.get("unobserved", {}).get("baselines", {})
            here = [
                {
                    **same,
                    "variant": TRIVIAL[name],
                    **e,
                    **(_unobserved(away.get(name, {})) if name in away else {}),
                }
                for name, e in content["baselines"].items()
            ]
            found = max(found, here, key=len)
    return found


def _unobserved(errors: Mapping[str, Any]) -> dict[str, Any]:
    """Errors at unobserved points, by the names of their columns."""
    return {name: errors.get(name.partition("_")[0]) for name in UNOBSERVED}


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
        if row["seed"] == 0 and learns(row["variant"]) and row["status"] == "ok":
            history = read_history(RunPaths(folder / row["folder"]).metrics)
            minutes = accumulate(epoch["seconds"] / 60 for epoch in history)
            curves += [
                [*of(row), each["epoch"], f"{time:.4g}", f"{each['valid_mae']:.4g}"]
                for each, time in zip(history, minutes, strict=True)
            ] or [[*each.values()] for each in earlier if of(each) == of(row)]
    lines = [dict(zip(CURVE_COLUMNS, each, strict=True)) for each in curves]
    write_rows(folder / CURVES, CURVE_COLUMNS, lines)


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
        own, *others = (each[epoch] for each in kept)
        for place in ("begin", "end"):
            states = [each[place] for each in others]
            found[f"diff_{place}{when}"] = deviation(own[place], states)
    return found


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
    for _, group in groupby(runs, key=lambda run: (run.problem, run.variant)):
        here = []
        for run in group:
            name = f"runs/{run.name}"
            row: dict[str, Any] = {
                "dim": find_equation(run.data.equation).domain.dim,
                "problem": run.problem,
                "variant": run.variant,
                "trial": run.trial,
                "settings": json.dumps(trials_by_name(suite, run.variant)[run.trial]),
                **dict.fromkeys(("epochs", "seconds", "valid_rmse")),
                **earlier.get(name, {}),
                **{"chosen": 0, "folder": name},
            }
            if has_folder(run, folder):
                history = pd.DataFrame(read_history(RunPaths(folder / name).metrics))
                row["epochs"] = len(history)
                row["seconds"] = float(history["seconds"].sum())
                row["valid_rmse"] = float(history["valid_rmse"].min())
            here.append(row)
        done = [row for row in here if row["valid_rmse"] is not None]
        plain = [row["seconds"] for row in done if row["settings"] == "{}"]
        most = suite.search.cost * min(plain, default=float("inf"))
        cheap = [row for row in done if row["seconds"] <= most]
        if cheap:
            min(cheap, key=itemgetter("valid_rmse"))["chosen"] = 1
        rows += here
    write_rows(folder / CHOICES, list(rows[0]), rows)
    return rows
