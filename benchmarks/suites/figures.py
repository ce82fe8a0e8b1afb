"""Pictures of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator

from nfsgeo.report.style import COLOURS
from nfsgeo_benchmarks.suites.table import Cell

__all__ = ["SIZE", "error_against_cost", "error_against_setting", "learning_curves"]

SIZE = (4.4, 3.0)  # inches; text large enough for a phone
LINE = 9.5  # points from one label to the next
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
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    for variant, point in found.items():
        colour = COLOURS["model" if variant == leading else "muted"]
        ax.plot(*point, "o", ms=6, color=colour)
    minutes, errors = zip(*found.values(), strict=True)
    ax.set(xlabel="minutes of training", ylabel="MAE")
    ax.set(xscale=_scale(minutes), yscale=_scale(errors))
    # Plain numbers of minutes, 2 and 6 among them.
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    ax.margins(x=0.25, y=0.15)
    ax.grid(True)
    _label(ax, found, leading, aside=6)
    return figure


def error_against_setting(
    cells: Cells, problem: str, abscissae: Mapping[str, float], label: str
) -> Figure | None:
    """Error over a setting of the variants; a level for those that do not have it.

    Args:
        cells: Of the suite.
        problem: Which column.
        abscissae: The setting's value by variant.
        label: What it is.

    Returns:
        None without two values to compare.
    """
    here = {
        variant: cell
        for (variant, where), cell in cells.items()
        if where == problem and cell.values
    }
    along = sorted((abscissae[name], name) for name in here if name in abscissae)
    if len(along) < 2:
        return None
    values = [value for value, _ in along]
    errors = [here[name].values["mae"] for _, name in along]
    spread = [here[name].spread["mae"] for _, name in along]
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    ax.errorbar(values, errors, spread, fmt="o-", ms=5, color=COLOURS["model"])
    levels = {n: cell.values["mae"] for n, cell in here.items() if n not in abscissae}
    for name, level in levels.items():
        ax.axhline(level, color=COLOURS["muted"], lw=1, ls="--")
        ax.annotate(
            name,
            (values[-1], level),
            xytext=(0, 3),
            textcoords="offset points",
            color=COLOURS["muted"],
            fontsize=8,
            ha="right",
        )
    ax.set(xlabel=label, ylabel="MAE", xscale=_scale(values))
    ax.set_yscale(_scale([*errors, *levels.values()]))
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()
    ax.margins(x=0.08, y=0.2)
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
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    for variant, rows in curves.items():
        colour = COLOURS["model" if variant == leading else "pale"]
        epochs = [row["epoch"] + 1 for row in rows]
        errors = [row["valid_mae"] for row in rows]
        marker = "o" if len(epochs) < 30 else None
        front = 2 + (variant == leading)
        ax.plot(epochs, errors, color=colour, marker=marker, ms=2.5, zorder=front)
    ax.set(yscale="log", xlabel="epoch", ylabel="validation MAE")
    ax.margins(x=0.05)
    ax.set_xlim(right=1.3 * max(rows[-1]["epoch"] + 1 for rows in curves.values()))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.grid(True)
    ends = {
        name: (rows[-1]["epoch"] + 1, rows[-1]["valid_mae"])
        for name, rows in curves.items()
    }
    _label(ax, ends, leading, aside=4)
    return figure


def _scale(values: Sequence[float]) -> str:
    """Logarithmic but for values close together, whose ticks would run together."""
    return "log" if max(values) > 3 * min(values) > 0 else "linear"


def _label(
    ax: Axes, points: Mapping[str, tuple[float, float]], leading: str, aside: float
) -> None:
    """Names to the right of points, moved up where they would cover each other."""
    taken: list[tuple[float, float, float]] = []
    ax.autoscale_view()  # else limits are still those of an empty plot
    shown = ax.transData.transform(list(points.values())) * 72 / ax.figure.dpi
    order = sorted(zip(points, shown.tolist(), strict=True), key=lambda at: at[1][1])
    for name, (x, y) in order:
        right = x + aside + 5 * len(name)
        height = y
        for start, end, other in taken:
            if x < end and start < right and height < other + LINE:
                height = other + LINE
        taken.append((x, right, height))
        ax.annotate(
            name,
            points[name],
            xytext=(aside, height - y - 3),
            textcoords="offset points",
            color=COLOURS["model" if name == leading else "muted"],
            fontsize=8,
        )
