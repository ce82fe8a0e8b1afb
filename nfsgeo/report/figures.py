"""The pictures of a run: fields of test samples, and curves of errors and losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nfsgeo.data.times import time_text
from nfsgeo.report.maps import Column, FieldMaps, profiles, space_time
from nfsgeo.report.run_folder import Predictions, RunFolder
from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.report.text import finite, mae_text, time_axis

__all__ = [
    "COMPONENTS",
    "SAMPLES",
    "Curve",
    "curves",
    "evenly",
    "run_pictures",
    "sample_columns",
    "slug",
    "training_curves",
    "unseen_curve",
]

SAMPLES = 2  # test samples shown, each with every component
TIME_STEPS = 4  # time steps shown of each
SAMPLES_STEADY = 4  # samples shown where the problem has no time
COMPONENTS = 3

Curve = tuple[Any, Any, Mapping[str, Any]]  # abscissae, ordinates, look
METHODS: dict[str, dict[str, Any]] = {
    "model": {"color": COLOURS["model"], "marker": "o", "ms": 3},
    "linear_extrapolation": {"color": COLOURS["second"], "ls": "--"},
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


def run_pictures(run: RunFolder) -> list[Picture]:
    """Every picture that the files of a run provide for, in the order of the report."""
    with styled():
        pictures = list(_field_pictures(run.predictions)) if run.predictions else []
        pictures += _curves(run)
    return pictures


def _field_pictures(e: Predictions) -> Iterator[Picture]:
    """Truth, prediction and error of a few test samples."""
    for c, name in enumerate(e.component_names[:COMPONENTS]):
        if e.steady:
            columns = _steady_columns(e, c)
            errors = zip(e.samples, columns[-1].values, strict=False)
            labels = [f"sample {number}\n{mae_text(error)}" for number, error in errors]
            yield _fields(
                e, slug(name), f"Test samples, {e.quantities[c]}", columns, labels
            )
            continue
        for s, number in enumerate(e.samples[:SAMPLES]):
            suffix = f"{number}-{slug(name)}"
            which = f"Test sample {number}, {e.quantities[c]}"
            shown = evenly(e.truth.shape[2], TIME_STEPS)
            columns = sample_columns(e, s, c)
            error = columns[-1].values
            labels = [f"{e.when(r)}\n{mae_text(error[r])}" for r in shown]
            rows = [replace(column, values=column.values[shown]) for column in columns]
            yield _fields(e, suffix, which, rows, labels)
            if e.domain.dim == 1 and len(error) >= 4:
                axes = e.axes[0], e.time_unit
                figure = space_time(e.domain, e.pos, e.times_out, columns, *axes)
                caption = f"{which}, over space and time."
                yield Picture(f"space-time-{suffix}", "fields", caption, figure)


def sample_columns(e: Predictions, s: int, c: int) -> list[Column]:
    """Truth, prediction and error of a sample at all time steps, ``[T, n]`` each."""
    truth, prediction = (a[s, :, :, c].T for a in (e.truth, e.prediction))
    return [
        Column("truth", truth, "field"),
        Column("prediction", prediction, "field"),
        Column("prediction − truth", prediction - truth, "error"),
    ]


def _steady_columns(e: Predictions, c: int) -> list[Column]:
    """Input, truth, prediction and error of samples of a problem without time."""
    x, truth, prediction = (
        a[:SAMPLES_STEADY, :, -1] for a in (e.x, e.truth, e.prediction)
    )
    return [
        Column(_input_title(e), x[..., 0], "input"),
        Column("truth", truth[..., c], "field"),
        Column("prediction", prediction[..., c], "field"),
        Column("error", (prediction - truth)[..., c], "error"),
    ]


def _fields(
    e: Predictions, suffix: str, which: str, columns: list[Column], labels: list[str]
) -> Picture:
    """Maps of the columns, or in one dimension profiles of truth and prediction."""
    if e.domain.dim > 1:
        maps = FieldMaps(e.domain, e.pos, columns, labels, e.axes, e.triangles)
        figure, caption = maps.figure, f"{which}. {maps.note}"
    else:
        lines = {k.title: k.values for k in columns if k.scale == "field"}
        figure = profiles(e.domain, e.pos, lines, labels, e.axes[0])
        caption = f"{which}." if e.steady else f"{which}, at several times."
    return Picture(f"fields-{suffix}", "fields", caption, figure)


def _input_title(e: Predictions) -> str:
    """Of the first component of a coefficient, which is shown of several."""
    num = e.x.shape[-1]
    title = "input" if num == 1 else f"input 1 of {num}"
    return f"{title}\n{e.input_names[0]}" if e.input_names else title


def _mesh_picture(e: Predictions) -> Picture:
    """An input of the model on the observed points."""
    last = e.x[:1, :, -1, 0]
    when = time_text(e.times[e.x.shape[2] - 1], e.time_unit) if not e.steady else ""
    caption = f"Input of the model at its {len(e.pos)} points, sample {e.samples[0]}"
    if when:
        caption += f", {e.quantities[0]} at the last observed time step"
    if e.domain.dim == 1:
        figure = profiles(e.domain, e.pos, {"input": last}, [when], e.axes[0])
    else:
        columns = [Column(_input_title(e) if e.steady else when, last, "input")]
        labels = [f"{len(e.pos)} points"]
        maps = FieldMaps(e.domain, e.pos, columns, labels, e.axes, e.triangles)
        figure = maps.figure
    return Picture("mesh", "training", f"{caption}.", figure)


def _curves(run: RunFolder) -> Iterator[Picture]:
    e = run.predictions
    if e and len(e.times_out) > 1 and not e.steady and "model" in e.error_by_time_step:
        caption = "Error at each predicted time step, mean over the test set."
        if len(e.quantities) > COMPONENTS:
            caption += f" The first {COMPONENTS} of {len(e.quantities)} components."
        yield Picture("error-in-time", "errors", caption, _error_in_time(e))
    if {"epoch", "train_loss"} <= set(run.metrics):
        caption = "Losses in normalised units, and the learning rate."
        yield Picture("training", "training", caption, training_curves(run.metrics))
    if e:
        yield _mesh_picture(e)
    if {"factor", "mae"} <= set(run.unseen):
        seen = finite((run.summary.get("test") or {}).get("mae"))
        caption = (
            "Error on larger meshes that contain the training mesh; bars are one "
            "standard deviation over the repeats."
        )
        name = "pooled MAE" if run.summary.get("components") else "MAE"
        yield Picture(
            "unseen-meshes", "unseen", caption, unseen_curve(run.unseen, seen, name)
        )


def curves(
    panels: Mapping[str, Mapping[str, Curve]], xlabel: str, scale: str = "log"
) -> Figure:
    """Curves by their name, a panel for each quantity.

    Args:
        panels: Abscissae, ordinates and look of each curve, by quantity and name.
        xlabel: What the abscissae are.
        scale: Of ordinates that are positive.
    """
    names = list(next(iter(panels.values())))
    ncols = 3 if sum(map(len, names)) < 60 else 1
    height = 0.9 + 1.7 * len(panels) + 0.16 * len(names) / ncols
    figure = Figure((WIDTH, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (quantity, lines) in zip(axes, panels.items(), strict=True):
        for name, (x, y, look) in lines.items():
            marker = "o" if len(x) < 30 else None
            ax.errorbar(x, y, label=name, **{"marker": marker, "ms": 2.5, **look})
        if all((np.asarray(y) > 0).any() for _, y, _ in lines.values()):
            ax.set_yscale(scale)
        ax.set_ylabel(fill(quantity, 20))  # about as many letters as a panel is high
        ax.grid(True, axis="y")
    if xlabel == "epoch":
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[-1].set_xlabel(xlabel)
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper left", ncols=ncols)
    return figure


def _error_in_time(e: Predictions) -> Figure:
    """Mean absolute error at each predicted time step, by method."""
    leads, label = time_axis(e.leads, e.time_unit, leads=True)
    errors = {k: v.reshape(len(leads), -1) for k, v in e.error_by_time_step.items()}
    panels = {
        f"MAE of {quantity}": {
            name.replace("_", " "): (leads, errors[name][:, c], look)
            for name, look in METHODS.items()
            if name in errors
        }
        for c, quantity in enumerate(e.quantities[:COMPONENTS])
    }
    return curves(panels, label)


def training_curves(metrics: pd.DataFrame) -> Figure:
    """Losses and the learning rate over epochs, and the epoch of the best model.

    Args:
        metrics: ``metrics.csv``; at least ``epoch`` and ``train_loss``.
    """
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


def unseen_curve(
    unseen: pd.DataFrame, seen_mae: float | None, name: str = "MAE"
) -> Figure:
    """Error on unseen meshes, against their size.

    Args:
        unseen: ``unseen.csv``.
        seen_mae: Error on the training mesh, drawn as a line; may be absent.
        name: Of the error.
    """
    by_size = unseen.groupby("factor")
    mean, spread = by_size.mean(), by_size.std(ddof=0)
    lines: dict[str, Curve] = {
        label: (mean.index, mean[column], {**look, "yerr": spread[column]})
        for column, (label, look) in UNSEEN.items()
        if column in mean and mean[column].notna().any()
    }
    if seen_mae is not None:
        look = {"color": COLOURS["muted"], "ls": ":", "marker": ""}
        lines["training mesh"] = (mean.index, np.full(len(mean), seen_mae), look)
    figure = curves(
        {name: lines}, "points, as a multiple of the training mesh", "linear"
    )
    figure.axes[0].set_ylim(bottom=0)
    return figure


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` indices, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})


def slug(name: str) -> str:
    """A name that is safe as part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name) or "field"
