"""How long runs will take, from how long runs like them took."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.training import RunPaths, load_config
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.suites.runner import RUNS
from nfsgeo_benchmarks.suites.runs import Run

__all__ = ["expected_seconds", "shipped_rows"]

SHIPPED = Path(__file__).parents[1] / "results"


def shipped_rows(suite: str, scale: str) -> list[dict[str, str]]:
    """Rows of the results that come along, none where there are none."""
    path = SHIPPED / scale / suite / "results.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def expected_seconds(
    run: Run, folder: Path, rows: Sequence[Mapping[str, Any]]
) -> float | None:
    """What the epochs of a run that are still to train will take.

    Args:
        run: Not finished.
        folder: Of the suite.
        rows: Of results; the first that is finished on the same problem with the same
            variant tells how long an epoch takes.

    Returns:
        None where there is no such row.
    """
    for row in rows:
        same = (row["problem"], row["variant"]) == (run.problem, run.variant)
        if same and row["status"] == "ok":
            break
    else:
        return None
    epochs = load_config(overrides=run.settings).trainer.epochs
    trained = len(read_history(RunPaths(folder / RUNS / run.name).metrics))
    return float(row["seconds_per_epoch"]) * max(0, epochs - trained)
