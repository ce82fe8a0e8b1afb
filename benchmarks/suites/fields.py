"""Pictures of fields as the variants of a suite predict them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nfsgeo.report.lines import profiles, space_time
from nfsgeo.report.maps import field_maps
from nfsgeo.report.run_folder import Evaluation, read_run_folder
from nfsgeo.report.scales import Column

__all__ = ["field_figures"]


def field_figures(
    folder: Path, rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Figure]]:
    """The best prediction of a test sample beside the second best, with captions.

    Args:
        folder: Of the suite.
        rows: Of one problem and seed; those without predictions are left out.

    Returns:
        Captions and figures, none without a finished run.
    """
    done = sorted((row for row in rows if row["status"] == "ok"), key=_error)
    found = {
        row["variant"]: evaluation
        for row in done[:2]
        if (evaluation := read_run_folder(folder / row["folder"]).evaluation)
    }
    if not found:
        return []
    first, *others = found.values()
    if others and not np.array_equal(first.pos, others[0].pos):
        found.popitem()  # on points of its own, no truth is common to both
    title = f"Test sample {int(first.samples[0])}"
    if not first.steady:
        title += f" at t = {first.times[-1]:.4g}, the last record"
    others_too = " and the second best" if len(found) > 1 else ""
    caption = f"{title}, by the best of the variants{others_too}."
    labels = [
        f"{name}\nMAE {np.abs(_last(e.prediction - e.truth)).mean():#.2g}"
        for name, e in found.items()
    ]
    truth = np.stack([_last(e.truth) for e in found.values()])
    prediction = np.stack([_last(e.prediction) for e in found.values()])
    if first.domain.dim > 1:
        columns = [
            Column("truth", truth, "field"),
            Column("prediction", prediction, "field"),
            Column("prediction − truth", prediction - truth, "error"),
        ]
        figure = field_maps(first.domain, first.pos, columns, labels)
        return [(caption, figure)]
    lines = {"truth": truth, "prediction": prediction}
    figures = [(caption, profiles(first.domain, first.pos, lines, labels))]
    if first.truth.shape[2] > 1:
        same = "The same over space and time: truth, and prediction − truth."
        figures.append((same, _over_time(first, found)))
    return figures


def _over_time(first: Evaluation, found: Mapping[str, Evaluation]) -> Figure:
    columns = [Column("truth", first.truth[0, :, :, 0].T, "field")]
    for name, e in found.items():
        error = (e.prediction - e.truth)[0, :, :, 0].T
        columns.append(Column(f"error of {name}", error, "error"))
    return space_time(first.domain, first.pos, first.times_out, columns)


def _last(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first component of the first sample in its last record."""
    return values[0, :, -1, 0]


def _error(row: Mapping[str, Any]) -> float:
    return float(row["mae"])
