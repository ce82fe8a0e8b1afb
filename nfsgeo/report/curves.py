"""Curves of errors and losses, over time, epochs and sizes of meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from nfsgeo.report.run_folder import RunFolder
from nfsgeo.report.style import COLOURS, WIDTH, Picture

__all__ = ["COMPONENTS", "Curve", "curves", "error_pictures"]

COMPONENTS = 3  # components shown

Curve = tuple[Any, Any, Mapping[str, Any]]  # abscissae, ordinates, look
METHODS: dict[str, dict[str, Any]] = {
    "model": {"color": COLOURS["model"], "marker": "o", "ms": 3},
    "extrapolation": {"color": COLOURS["second"], "ls": "--"},
    "persistence": {"color": COLOURS["muted"], "ls": ":"},
}
BEST = {"ls": "", "marker": "o", "ms": 8, "mfc": "none", "color": COLOURS["second"]}
LOSSES = {
    "train_loss": ("training loss", {"color": COLOURS["muted"]}),
    "valid_loss": ("validation loss", {"color": COLOURS["model"]}),
}
UNSEEN = {
    "mae_seen": ("at training points", {"color": COLOURS["third"], "ls": "--"}),
    "mae_unseen": ("at unseen points", {"color": COLOURS["second"], "ls": "-."}),
    "mae": ("all points", {"color": COLOURS["model"]}),
}


def error_pictures(run: RunFolder) -> Iterator[Picture]:
    """Draw errors in time and by sample, error bands, losses, and unseen meshes."""
    e = run.predictions
    if e and (maes := np.sort(e.mae[np.isfinite(e.mae)])).size > 1:
        pooled = "pooled " * (len(e.quantities) > 1)
        noun = "windows" if "windows" in run.summary.get("scored", {}) else "samples"
        caption = f"The curve shows the share of test {noun} up to each error."
        look, share = {"color": COLOURS["model"]}, np.arange(1, len(maes) + 1)
        lines: dict[str, Curve] = {noun: (maes, share / len(e.mae), look)}
        draw = partial(curves, {f"share of {noun}": lines}, f"{pooled}MAE", "linear")
        yield Picture("errors-by-sample", "errors", caption, draw)
    if e and e.moving and "model" in e.error_by_time_step:
        caption = "The MAE at each predicted time step is the mean over the test set."
        (leads, label), errors = e.leads, e.error_by_time_step
        # The report shows the extrapolation with the smallest error.
        fits = [name for name in errors if name.endswith("extrapolation")]
        best = [min(fits, key=lambda name: np.nansum(errors[name]))] if fits else []
        shown: dict[str, str] = {n: n for n in ("model", "persistence") if n in errors}
        shown |= dict.fromkeys(best, "extrapolation")
        panels = {
            f"MAE of {quantity}": {
                name.replace("_", " "): (leads, errors[name][:, c], METHODS[look])
                for name, look in shown.items()
            }
            for c, quantity in enumerate(e.quantities[:COMPONENTS])
            if np.isfinite(errors["model"][:, c]).any()
        }
        draw = partial(curves, panels, label)
        yield Picture("error-in-time", "errors", caption, draw)
    if bands := run.summary.get("bands"):
        by_level, steps = bands["reliability"], bands["by_time_step"]
        caption = "The curve shows which share of the true values lies in the error "
        caption += f"bands of each level. At the level {bands['level']:g} the share is "
        caption += f"{min(steps):.2f} to {max(steps):.2f} at the time steps."
        shares = {
            "model": (by_level["levels"], by_level["coverage"], METHODS["model"]),
            "level": (by_level["levels"], by_level["levels"], METHODS["persistence"]),
        }
        panels = {"share of values": shares}
        draw = partial(curves, panels, "level of the bands", "linear")
        yield Picture("bands", "errors", caption, draw)
    if {"epoch", "train_loss"} <= set(run.metrics):
        caption = "The curves show the losses in normalised units, and below them "
        caption += "the learning rate."
        draw = partial(_training_curves, run.metrics)
        yield Picture("training", "training", caption, draw)
    if {"factor", "mae"} <= set(run.unseen):
        caption = (
            "The curves show the error on larger meshes that contain the training "
            "mesh. Bars are one standard deviation over the repeats."
        )
        yield Picture("unseen-meshes", "unseen", caption, partial(_unseen_curves, run))


def curves(
    panels: Mapping[str, Mapping[str, Curve]], xlabel: str, scale: str = "log"
) -> Figure:
    """Draw curves, a panel for each quantity.

    Args:
        panels: Curves by their name, for each quantity.
        xlabel: Label of the abscissae.
        scale: Scale of ordinates that are positive.
    """
    names = list(next(iter(panels.values())))
    ncols = min(3, max(1, 85 // (6 + max(map(len, names)))))
    height = 0.9 + 1.7 * len(panels) + 0.16 * len(names) / ncols
    figure = Figure((WIDTH, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (quantity, lines) in zip(axes, panels.items(), strict=True):
        for name, (x, y, look) in lines.items():
            marker = "o" if len(x) < 30 else None
            ax.errorbar(x, y, label=name, **{"marker": marker, "ms": 2.5, **look})
        ordinates = np.concatenate([np.asarray(y, float) for _, y, _ in lines.values()])
        ordinates = ordinates[np.isfinite(ordinates) & (ordinates > 0)]
        if all((np.asarray(y) > 0).any() for _, y, _ in lines.values()):
            ax.set_yscale(scale if ordinates.max() > 5 * ordinates.min() else "linear")
        if ax.get_yscale() == "log":
            # Matplotlib's own labels are formulas, which the style does not allow.
            subs = (1, 2, 5) if ordinates.max() < 100 * ordinates.min() else (1,)
            ax.yaxis.set_major_locator(LogLocator(subs=subs))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter("")
        ax.set_ylabel(fill(quantity, 20))  # about as many letters as a panel is high
        ax.grid(True, axis="y")
    along = np.concatenate([x for line in panels.values() for x, *_ in line.values()])
    if along.dtype.kind == "M":
        locator = AutoDateLocator()
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif not np.any(along % 1):
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[-1].set_xlabel(xlabel)
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper left", ncols=ncols)
    return figure


def _training_curves(metrics: pd.DataFrame) -> Figure:
    """Losses and the learning rate over epochs, and the epoch of the best model."""
    epoch = metrics["epoch"] + 1  # as the terminal counts
    losses: dict[str, Curve] = {
        label: (epoch, metrics[name], look)
        for name, (label, look) in LOSSES.items()
        if name in metrics
    }
    # The best model has the smallest validation RMSE, not the smallest loss.
    rmse = metrics.get("valid_rmse", pd.Series(dtype=float)).dropna()
    if "valid_loss" in metrics and len(rmse):
        best = metrics.loc[[rmse.idxmin()]]
        label = f"best, epoch {best['epoch'].item() + 1:.0f}"
        losses[label] = best["epoch"] + 1, best["valid_loss"], BEST
    panels = {"loss": losses}
    if "learning_rate" in metrics:
        curve = epoch, metrics["learning_rate"], {"color": COLOURS["muted"]}
        panels["learning rate"] = {"learning rate": curve}
    return curves(panels, "epoch")


def _unseen_curves(run: RunFolder) -> Figure:
    """Error on unseen meshes against their size, and that on the training mesh."""
    by_size = run.unseen.groupby("factor")
    mean, spread = by_size.mean(), by_size.std(ddof=0)
    lines: dict[str, Curve] = {
        label: (mean.index, mean[column], {**look, "yerr": spread[column]})
        for column, (label, look) in UNSEEN.items()
        if column in mean and mean[column].notna().any()
    }
    if seen := (run.summary.get("test") or {}).get("mae"):
        look = {"color": COLOURS["muted"], "ls": ":", "marker": ""}
        lines["training mesh"] = (mean.index, np.full(len(mean), seen), look)
    name = "pooled MAE" if run.summary.get("components") else "MAE"
    figure = curves(
        {name: lines}, "points, as a multiple of the training mesh", "linear"
    )
    figure.axes[0].set_ylim(bottom=0)
    return figure
