"""Errors in the course of training, which stay when the folders of runs are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.history import read_history
from nfsgeo_benchmarks.suites.earlier import read_table

__all__ = ["CURVES", "collect_curves", "write_curves"]

CURVES = "curves.csv"
COLUMNS = ("problem", "variant", "epoch", "minutes", "valid_mae", "folder")


def collect_curves(
    rows: Sequence[Mapping[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """A row for each epoch of the first seed's finished runs.

    ``minutes`` are those of training up to the end of the epoch, ``valid_mae`` is the
    MAE on validation samples. Of runs without a folder the rows are those of the table
    that is there.

    Args:
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        folder: Of the suite.
    """
    earlier = read_table(folder / CURVES)
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["seed"] != 0 or not row["model"] or row["status"] != "ok":
            continue
        history = read_history(RunPaths(folder / row["folder"]).metrics)
        if not history:
            found += [each for each in earlier if each["folder"] == row["folder"]]
        same = {name: row[name] for name in ("problem", "variant", "folder")}
        minutes = accumulate(epoch["seconds"] / 60 for epoch in history)
        found += [
            same
            | {"epoch": epoch["epoch"], "minutes": f"{time:.4g}"}
            | {"valid_mae": f"{epoch['valid_mae']:.4g}"}
            for epoch, time in zip(history, minutes, strict=True)
        ]
    return found


def write_curves(curves: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Writes ``curves.csv`` into the folder of the suite, and returns its path."""
    path = folder / CURVES
    write_rows(path, COLUMNS, curves)
    return path
