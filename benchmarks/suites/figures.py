"""Pictures of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from nfsgeo.report.maps import Column, FieldMaps, profiles, space_time
from nfsgeo.report.run_folder import Predictions, read_run_folder
from nfsgeo.report.style import COLOURS
from nfsgeo_benchmarks.suites.table import Means

SIZE = (4.4, 3.0)  # inches; text large enough for a phone
LINE = 9.5  # points from one label to the next


def error_against_setting(
    means: Means, problem: str, abscissae: Mapping[str, float], label: str
) -> Figure | None:
    """MAE against a setting of the variants, with horizontal lines for the others.

    Args:
        means: Means of the suite.
        problem: Name of the problem.
        abscissae: Value of the setting by variant.
        label: Label of the setting.

    Returns:
        None without two values to compare.
    """
    here = {
        variant: mean
        for (variant, where), mean in means.items()
        if where == problem and mean.values
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
    levels = {n: mean.values["mae"] for n, mean in here.items() if n not in abscissae}
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


def error_against_time(
    curves: Sequence[Mapping[str, Any]], leading: str
) -> Figure | None:
    """Validation MAE against minutes of training, that of ``leading`` in colour.

    Args:
        curves: Rows of one problem, see
            :func:`~nfsgeo_benchmarks.suites.curves.collect_curves`.
        leading: The variant to show in colour.

    Returns:
        None without any rows.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for row in curves:
        point = float(row["minutes"]), float(row["valid_mae"])
        found.setdefault(row["variant"], []).append(point)
    if not found:
        return None
    figure = Figure(SIZE, layout="constrained")
    ax = figure.subplots()
    for variant, points in found.items():
        front = variant == leading
        colour = COLOURS["model" if front else "pale"]
        marker = "o" if len(points) < 30 else None
        ax.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=2.5)
        ax.lines[-1].set_zorder(2 + front)
    minutes = [time for points in found.values() for time, _ in points]
    ax.set(xlabel="minutes of training", ylabel="validation MAE", yscale="log")
    ax.set_xscale(_scale(minutes))
    if ax.get_xscale() == "log":
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.margins(x=0.05)
    ax.set_xlim(right=max(minutes) * (3 if ax.get_xscale() == "log" else 1.3))
    ax.grid(True)
    _label(ax, {n: points[-1] for n, points in found.items()}, leading, aside=4)
    return figure


def _scale(values: Sequence[float]) -> str:
    """Logarithmic, except for close values, whose tick labels would overlap."""
    return "log" if max(values) > 3 * min(values) > 0 else "linear"


def _label(
    ax: Axes, points: Mapping[str, tuple[float, float]], leading: str, aside: float
) -> None:
    """Names to the right of points, moved up where they would overlap."""
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


def field_figures(
    folder: Path, rows: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Figure]]:
    """Captions and figures: a test sample predicted by the two best variants.

    Args:
        folder: Folder of the suite.
        rows: Results of one problem and seed.

    Returns:
        An empty list without a finished run.
    """
    done = sorted((row for row in rows if row["status"] == "ok"), key=_error)
    found = {
        row["variant"]: found_there
        for row in done[:2]
        if (found_there := read_run_folder(folder / row["folder"]).predictions)
    }
    if not found:
        return []
    first, *others = found.values()
    if others and not np.array_equal(first.pos, others[0].pos):
        found.popitem()  # on points of its own, no truth is common to both
    title = f"Test sample {int(first.samples[0])}"
    if not first.steady:
        title += f" at {first.when(-1)}, the last time step"
    names = " and ".join(found)
    caption = f"{title}, by {names}: the smallest errors among runs in the folder."
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
        maps = FieldMaps(
            first.domain, first.pos, columns, labels, first.axes, first.triangles
        )
        return [(caption, maps.figure)]
    lines = {"truth": truth, "prediction": prediction}
    figures = [(caption, profiles(first.domain, first.pos, lines, labels))]
    if first.truth.shape[2] > 1:
        same = "The same over space and time: truth, and prediction − truth."
        figures.append((same, _over_time(first, found)))
    return figures


def _over_time(first: Predictions, found: Mapping[str, Predictions]) -> Figure:
    columns = [Column("truth", first.truth[0, :, :, 0].T, "field")]
    for name, e in found.items():
        error = (e.prediction - e.truth)[0, :, :, 0].T
        columns.append(Column(f"error of {name}", error, "error"))
    return space_time(first.domain, first.pos, first.times_out, columns)


def _last(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first component of the first sample at its last time step."""
    return values[0, :, -1, 0]


def _error(row: Mapping[str, Any]) -> float:
    return float(row["mae"])
