"""Results of the runs of a suite, one row each, and what they tell of further runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.evaluation.invariance import mesh_columns
from nfsgeo.training import RunPaths, load_config
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.suites.earlier import (
    RESULTS,
    RUNS,
    earlier_row,
    has_folder,
    read_table,
)
from nfsgeo_benchmarks.suites.invariance import errors_on_meshes
from nfsgeo_benchmarks.suites.runs import SHIPPED, Run
from nfsgeo_benchmarks.suites.states import differences
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.worker import MEMORY, read_failure

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
OF_SUMMARY = (
    "n_s",
    "n_t",
    "n_t_out",
    "epochs",
    "parameters",
    "seconds_per_epoch",
    "peak_memory_bytes",
)


def collect(runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """A row of :data:`COLUMNS` for each run, with a gap for what is not known.

    Errors on larger meshes come in further columns, ``mae_4`` on four times as many
    points, and those on meshes of other kinds, ``mae_half``; where states are kept, so
    do their deviations from those of other variants, and where it is measured, the
    memory of interpolations, ``kernel_bytes``.

    Args:
        runs: Of the suite.
        folder: Of the suite.

    Returns:
        Rows; ``status`` is ``ok``, ``failed``, ``OOM`` or ``missing``.
    """
    rows = [_row(run, folder) for run in runs]
    for row, run in zip(rows, runs, strict=True):
        if run.states:
            row |= differences(run, runs, folder)
    return rows


def with_trivial(rows: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Rows of runs, and after those of a problem and seed the references without any.

    These are what predicts without learning, :data:`TRIVIAL`, on the points of the
    first finished run; from the table where that run has no folder any more.

    Args:
        rows: From :func:`collect`.
        folder: Of the suite.
    """
    found = []
    for number, row in enumerate(rows):
        found.append(row)
        here = (row["problem"], row["seed"])
        following = rows[number + 1] if number + 1 < len(rows) else None
        if following and (following["problem"], following["seed"]) == here:
            continue
        done = [
            each
            for each in rows
            if (each["problem"], each["seed"]) == here and each["status"] == "ok"
        ]
        there = [row for row in done if _summary(row, folder).exists()]
        if there:
            found += _trivial(there[0], folder)
        elif done:
            found += [
                earlier
                for earlier in read_table(folder / RESULTS)
                if (earlier["problem"], earlier["seed"]) == here
                and earlier["variant"] in TRIVIAL.values()
            ]
    return found


def _summary(row: Mapping[str, Any], folder: Path) -> Path:
    return RunPaths(folder / row["folder"]).summary


def _trivial(row: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    summary = json.loads(_summary(row, folder).read_text())
    kept = ("problem", "equation", "n_s", "n_t", "n_t_out", "seed", "status")
    same = dict.fromkeys(row) | {name: row[name] for name in kept}
    return [
        {**same, "variant": TRIVIAL[name], **errors, "epochs": 0, "parameters": 0}
        for name, errors in summary["baselines"].items()
    ]


def memory_column(part: str) -> str:
    """Column of the memory of a part of interpolations, in bytes."""
    return f"{part}_bytes"


def write_results(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Writes ``results.csv`` into the folder of the suite, and returns its path."""
    path = folder / RESULTS
    more = [name for name in rows[0] if name not in COLUMNS] if rows else []
    write_rows(path, [*COLUMNS, *more], rows)
    return path


def _row(run: Run, folder: Path) -> dict[str, Any]:
    paths = RunPaths(folder / RUNS / run.name)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "problem": run.problem,
        "variant": run.variant,
        "model": run.settings["model.name"],
        "equation": run.data.equation,
        "seed": run.seed,
        "folder": f"{RUNS}/{run.name}",
        "status": "missing",
    } | {f"mae_{factor:g}": None for factor in run.unseen}
    if run.meshes:
        row |= dict.fromkeys(mesh_columns(run.meshes))
    if run.memory:
        row |= dict.fromkeys(map(memory_column, PARTS))
    if has_folder(run, folder):
        summary = json.loads(paths.summary.read_text())
        row |= {name: summary[name] for name in OF_SUMMARY} | summary["test"]
        for factor, errors in summary.get("unseen", {}).items():
            row[f"mae_{factor}"] = errors["mae"]["mean"]
        if run.meshes:
            row |= errors_on_meshes(paths)
        if run.memory:
            memory = json.loads((paths.root / MEMORY).read_text())
            row |= {memory_column(part): size for part, size in memory.items()}
        row["status"] = "ok"
    elif earlier := earlier_row(run, folder):
        row |= earlier
    elif failure := read_failure(paths.root):
        row |= failure
    return row


def shipped_rows(suite: str, scale: str) -> list[dict[str, str]]:
    """Rows of the committed results of a suite, empty without any."""
    path = SHIPPED / scale / suite / RESULTS
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def expected_seconds(
    run: Run, folder: Path, rows: Sequence[Mapping[str, Any]]
) -> float | None:
    """How long the remaining epochs of a run will take.

    Args:
        run: The run.
        folder: Folder of the suite.
        rows: Results; the first finished one of the same problem and variant gives the
            time per epoch.

    Returns:
        None where there is no such row.
    """
    wanted = (run.problem, run.variant, "ok")
    for row in rows:
        if (row["problem"], row["variant"], row["status"]) == wanted:
            epochs = load_config(overrides=run.settings).trainer.epochs
            trained = len(read_history(RunPaths(folder / RUNS / run.name).metrics))
            return float(row["seconds_per_epoch"]) * max(0, epochs - trained)
    return None
