"""Curves of the training, of the error over time, and over unseen meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nfsgeo.data.fields import Doubles
from nfsgeo.report.style import COLOURS, WIDTH, legend_above
from nfsgeo.report.times import after_input

__all__ = [
    "curves_of_runs",
    "error_in_time",
    "mean_and_spread",
    "training_curves",
    "unseen_curve",
]

MAE = "mean absolute error"
# Colours of runs: Okabe and Ito's, of which the first three are those of the style.
RUNS = [COLOURS[name] for name in ("model", "second", "third")]
RUNS += ["#cc79a7", "#e69f00", "#56b4e9", COLOURS["ink"]]
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "model": ("model", {"color": COLOURS["model"], "marker": "o", "ms": 3}),
    "linear_extrapolation": (
        "linear extrapolation",
        {"color": COLOURS["second"], "ls": (0, (5, 2))},
    ),
    "persistence": ("persistence", {"color": COLOURS["muted"], "ls": (0, (1, 1.5))}),
}


def training_curves(metrics: dict[str, Doubles]) -> Figure:
    """Losses on a logarithmic axis, and the learning rate below.

    Args:
        metrics: Columns of ``metrics.csv``; at least ``epoch`` and ``train_loss``.
    """
    epoch = metrics["epoch"] + 1  # as the terminal counts
    marker = "o" if len(epoch) < 30 else None
    figure = Figure((WIDTH, 3.3), layout="constrained")
    if "learning_rate" in metrics:
        losses, rate = figure.subplots(2, 1, sharex=True, height_ratios=[3.4, 1])
        rates = metrics["learning_rate"]
        rate.plot(epoch, rates, color=COLOURS["muted"], marker=marker, ms=2.5)
        rate.set(ylabel="learning rate", ylim=(0, None))
        rate.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        lowest = rate
    else:
        losses = lowest = figure.subplots()
    for name, label, colour in (
        ("train_loss", "training loss", COLOURS["muted"]),
        ("valid_loss", "validation loss", COLOURS["model"]),
    ):
        if name in metrics:
            losses.plot(
                epoch, metrics[name], label=label, color=colour, marker=marker, ms=2.5
            )
    losses.set_yscale("log")
    # The best model has the smallest validation RMSE, not the smallest loss.
    scores = metrics.get("valid_rmse", np.array([]))
    if np.isfinite(scores).any() and "valid_loss" in metrics:
        at = int(np.nanargmin(scores))
        losses.plot(
            epoch[at],
            metrics["valid_loss"][at],
            ls="",
            marker="o",
            ms=8,
            mfc="none",
            color=COLOURS["second"],
            label=f"best, epoch {epoch[at]:.0f}",
        )
    lowest.set_xlabel("epoch")
    lowest.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    _finish(losses, "loss")
    return figure


def error_in_time(
    leads: Doubles,
    errors: dict[str, Doubles],
    components: Sequence[str] = (),
    unit: str = "",
) -> Figure:
    """Mean absolute error at each predicted time step, by method.

    Args:
        leads: Times of the predicted time steps after the last input ``[n_out]``.
        errors: Errors by method, ``[n_out]``, or ``[n_out, C]`` for one panel per
            component.
        components: Names of these components, with their units.
        unit: Of the times.
    """
    leads, label_of_time = after_input(leads, unit)
    num = max(1, len(components))
    figure = Figure((WIDTH, 1.2 + 1.5 * num), layout="constrained")
    panels = figure.subplots(num, 1, sharex=True, squeeze=False)[:, 0]
    for c, ax in enumerate(panels):
        here = {k: v.reshape(len(leads), -1)[:, c] for k, v in errors.items()}
        for name, (label, look) in METHODS.items():
            if name in here:
                ax.plot(leads, here[name], label=label, **look)
        if all((values > 0).any() for values in here.values()):
            ax.set_yscale("log")
        # About as many letters as a panel is high.
        ax.set_ylabel(fill(f"MAE of {components[c]}", 20) if components else MAE)
        ax.grid(True, axis="y")
    panels[-1].set_xlabel(label_of_time)
    legend_above(panels[0])
    return figure


def curves_of_runs(
    lines: Mapping[str, tuple[Doubles, Doubles]], xlabel: str, ylabel: str
) -> Figure | None:
    """A curve of each run, on a logarithmic axis; None without any.

    Args:
        lines: Abscissae and positive ordinates by the name of the run.
        xlabel: What the abscissae are.
        ylabel: What the ordinates are.
    """
    if not lines:
        return None
    figure = Figure((WIDTH, 2.9 + 0.16 * len(lines)), layout="constrained")
    ax = figure.subplots()
    for number, (name, (x, y)) in enumerate(lines.items()):
        colour = RUNS[number % len(RUNS)]
        dash = ("-", "--", ":", "-.")[number // len(RUNS) % 4]
        marker = "o" if len(x) < 30 else None
        ax.plot(x, y, c=colour, ls=dash, marker=marker, ms=2.5, label=name)
    if all((np.asarray(y) > 0).any() for _, y in lines.values()):
        ax.set_yscale("log")
    if all((np.asarray(x) % 1 == 0).all() for x, _ in lines.values()):  # epochs
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(True, axis="y")
    # Names of runs may be long.
    figure.legend(loc="outside upper left", ncols=1)
    return figure


def unseen_curve(
    unseen: dict[str, Doubles], seen_mae: float | None, *, pooled: bool = False
) -> Figure:
    """Error on unseen meshes, against their size.

    Args:
        unseen: Columns of ``unseen.csv``.
        seen_mae: Error on the training mesh, drawn as a line; may be absent.
        pooled: Whether errors are means over several components.
    """
    figure = Figure((WIDTH, 2.9), layout="constrained")
    ax = figure.subplots()
    for name, label, look in (
        (
            "mae_seen",
            "at training points",
            (COLOURS["third"], "s", "--"),
        ),
        ("mae_unseen", "at unseen points", (COLOURS["second"], "^", "-.")),
        ("mae", "all points", (COLOURS["model"], "o", "-")),
    ):
        if name in unseen and np.isfinite(unseen[name]).any():
            factor, mean, spread = mean_and_spread(unseen, name)
            colour, marker, dash = look
            ax.plot(factor, mean, c=colour, marker=marker, ls=dash, ms=3.5, label=label)
            band = (mean - spread, mean + spread)
            ax.fill_between(factor, *band, color=colour, alpha=0.18, lw=0)
    if seen_mae is not None:
        ax.axhline(seen_mae, color=COLOURS["muted"], lw=0.8, ls=":")
        ax.text(
            1.0,
            seen_mae,
            "training mesh",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="bottom",
            color=COLOURS["muted"],
            fontsize=7.5,
        )
    ax.set_ylim(0, 1.15 * ax.dataLim.ymax)  # room for that text
    ax.set_xlabel("points, as a multiple of the training mesh")
    _finish(ax, f"pooled {MAE}" if pooled else MAE)
    return figure


def mean_and_spread(
    unseen: dict[str, Doubles], name: str
) -> tuple[Doubles, Doubles, Doubles]:
    """Factors, and mean and standard deviation of a column of ``unseen.csv``."""
    factors = np.unique(unseen["factor"])
    groups = [unseen[name][unseen["factor"] == factor] for factor in factors]
    mean = np.array([group.mean() for group in groups])
    spread = np.array([group.std() for group in groups])
    return factors, mean, spread


def _finish(ax: Axes, ylabel: str) -> None:
    ax.set_ylabel(ylabel)
    ax.grid(True, axis="y")
    legend_above(ax)
