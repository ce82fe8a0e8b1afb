"""Pictures of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo_benchmarks.suites.table import Cell

__all__ = ["error_against_cost", "learning_curves"]

Cells = Mapping[tuple[str, str], Cell]


def error_against_cost(cells: Cells, problem: str, leading: str) -> Figure | None:
    """Error over the time of training, a point for each variant.

    Args:
        cells: Of the suite.
        problem: Which column.
        leading: The variant to stand out.

    Returns:
        None without two points to compare.
    """
    found = {
        variant: (
            cell.values["seconds_per_epoch"] * float(cell.first["epochs"]) / 60,
            cell.values["mae"],
        )
        for (variant, where), cell in cells.items()
        if where == problem and cell.values
    }
    if len(found) < 2:
        return None
    figure = Figure((WIDTH, 3.2), layout="constrained")
    ax = figure.subplots()
    for variant, (minutes, error) in found.items():
        colour = COLOURS["model" if variant == leading else "muted"]
        ax.plot(minutes, error, "o", ms=6, color=colour)
        ax.annotate(
            variant,
            (minutes, error),
            xytext=(6, 4),
            textcoords="offset points",
            color=colour,
            fontsize=8,
        )
    ax.set(xscale="log", yscale="log", xlabel="minutes of training", ylabel="MAE")
    ax.margins(x=0.2, y=0.15)
    ax.grid(True)
    return figure


def learning_curves(
    histories: Mapping[str, Sequence[Mapping[str, float]]], leading: str
) -> Figure | None:
    """Validation errors over the epochs.

    Args:
        histories: Rows of ``metrics.csv`` by variant.
        leading: The variant to stand out.

    Returns:
        None without any.
    """
    curves = {name: rows for name, rows in histories.items() if rows}
    if not curves:
        return None
    figure = Figure((WIDTH, 3.2), layout="constrained")
    ax = figure.subplots()
    for variant, rows in curves.items():
        colour = COLOURS["model" if variant == leading else "pale"]
        epochs = [row["epoch"] + 1 for row in rows]
        errors = [row["valid_mae"] for row in rows]
        marker = "o" if len(epochs) < 30 else None
        front = 2 + (variant == leading)
        ax.plot(epochs, errors, color=colour, marker=marker, ms=2.5, zorder=front)
        ax.annotate(
            variant,
            (epochs[-1], errors[-1]),
            xytext=(4, -2),
            textcoords="offset points",
            color=COLOURS["model" if variant == leading else "muted"],
            fontsize=8,
        )
    ax.set(yscale="log", xlabel="epoch", ylabel="validation MAE")
    ax.margins(x=0.14)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.grid(True)
    return figure
