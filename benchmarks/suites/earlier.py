"""Results that a folder has in its table alone, without the folders of their runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from nfsgeo.training import RunPaths
from nfsgeo_benchmarks.suites.runs import CHOICES, Run

__all__ = ["RESULTS", "RUNS", "TRAINED", "earlier_row", "has_folder", "is_finished"]

RUNS = "runs"
RESULTS = "results.csv"
TRAINED = "trained"  # marks the end of a run whose test samples are not scored


def is_finished(run: Run, folder: Path) -> bool:
    """Whether a run has all its results; ``folder`` is that of the suite."""
    return has_folder(run, folder) or earlier_row(run, folder) is not None


def has_folder(run: Run, folder: Path) -> bool:
    """Whether the folder of a run is there, with all its results."""
    paths = RunPaths(folder / RUNS / run.name)
    return (paths.report if run.scored else paths.root / TRAINED).exists()


def earlier_row(run: Run, folder: Path) -> dict[str, Any] | None:
    """The row of a finished run in the table of its suite or search.

    So a suite goes on from its table: on another machine, or without the folders of its
    runs, which hold checkpoints and predictions. None for runs of which more than a row
    is needed, states or errors on further meshes.
    """
    if run.states or run.meshes:
        return None
    measured = "mae" if run.scored else "valid_rmse"
    for row in read_table(folder / (RESULTS if run.scored else CHOICES)):
        if row.get("folder") == f"{RUNS}/{run.name}" and row[measured] is not None:
            return row
    return None


def read_table(path: Path) -> list[dict[str, Any]]:
    """Rows of a table with their numbers as numbers, None where a cell is empty."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: _value(text) for name, text in row.items()} for row in rows]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
