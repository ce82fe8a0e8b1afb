"""The pictures of a run and of a data file: fields, and curves of errors and losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nfsgeo.data import Fields
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.times import EPOCH, dates, time_texts
from nfsgeo.geometry import Domain
from nfsgeo.report.maps import Column, FieldFigure, densest_part
from nfsgeo.report.run_folder import Predictions, RunFolder
from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.report.text import axis_labels, mae_text, with_unit
from nfsgeo.training.artifacts import write_bytes

__all__ = ["COMPONENTS", "SAMPLES", "Curve", "curves", "evenly", "plot_file"]
__all__ += ["run_pictures", "sample_figure"]

SAMPLES = 2  # test samples shown, each with every component
TIME_STEPS = 4  # time steps shown of each
SAMPLES_STEADY = 4  # samples shown where the problem has no time
SAMPLES_FILE = 3  # samples shown of a data file
COMPONENTS = 3

Curve = tuple[Any, Any, Mapping[str, Any]]  # abscissae, ordinates, look
METHODS: dict[str, dict[str, Any]] = {
    "model": {"color": COLOURS["model"], "marker": "o", "ms": 3},
    "linear_extrapolation": {"color": COLOURS["second"], "ls": "--"},
    "persistence": {"color": COLOURS["muted"], "ls": ":"},
}
OBSERVED = {"color": COLOURS["muted"], "lw": 0.8, "marker": "o", "ms": 1.5}
PREDICTED = {"color": COLOURS["model"], "marker": "o", "ms": 1.5}
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
        e = run.predictions
        pictures = [*_station_pictures(e), *_field_pictures(e)] if e else []
        return [*pictures, *_curves(run)]


def plot_file(file: Fields, out_dir: Path) -> list[Path]:
    """Draws the first samples of a ``file`` at several time steps.

    Returns the files written into the folder ``out_dir``, which is made if need be:
    ``sample-<number>-<component>.png``.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    written = []
    axes = axis_labels(file.domain, [file.units.get(axis, "") for axis in file.space])
    shown = evenly(file.num_observed() or len(file.times), TIME_STEPS)
    times = time_texts(file.times[shown], file.time_unit)
    times = times if len(file.times) > 1 else ["solution"]
    for sample in range(min(SAMPLES_FILE, file.num_samples)):
        look: dict[str, Any] = {"axes": axes, "triangles": file.triangles(sample)}
        steps = [file.read(sample, slice(k, k + 1))[:, 0] for k in shown]
        static = file.read_static(sample).T if file.static_names else ()
        panels = {
            name: {"static input": values}
            for name, values in zip(file.static_names, static, strict=False)
        }
        for c, name in enumerate(file.component_names):
            timed = zip(times, steps, strict=True)
            panels[name] = {title: values[:, c] for title, values in timed}
        for name, fields in panels.items():
            labels, titles = [with_unit(name, file.units.get(name))], list(fields)
            u = np.stack(list(fields.values()))[:, None].astype(np.float64)
            if file.domain.dim == 1:  # curves, one below the other
                labels, titles, u = titles, labels, u.swapaxes(0, 1)
            pairs = zip(titles, u, strict=True)
            columns = [Column(title, rows, name) for title, rows in pairs]
            pos = file.coordinates(sample)
            written.append(out_dir / f"sample-{sample}-{_slug(name)}.png")
            with styled():
                figure = FieldFigure(file.domain, pos, columns, labels, **look).figure
            picture = Picture(written[-1].stem, "fields", name, figure)
            write_bytes(written[-1], picture.png)
    return written


def _field_pictures(e: Predictions) -> Iterator[Picture]:
    """Truth, prediction and error of test samples, also where points are dense."""
    closer: list[tuple[Domain | None, str]] = [(None, "")]
    if (near := densest_part(e.domain, e.pos)) is not None:
        closer.append((near, ", where points are dense"))
    for c, name in enumerate(e.component_names[:COMPONENTS]):
        if e.steady:
            for near, where in closer:
                figure = _steady_figure(e, c, near)
                caption = f"Test samples, {e.quantities[c]}{where}. {figure.note}"
                file = f"fields-{_slug(name)}" + "-near" * bool(where)
                yield Picture(file, "fields", caption, figure.figure)
            continue
        for s, number in enumerate(e.samples[:SAMPLES]):
            suffix = f"{number}-{_slug(name)}"
            which = f"Test sample {number}, {e.quantities[c]}"
            for near, where in closer:
                shown = evenly(len(e.times_out), TIME_STEPS)
                figure = sample_figure(e, s, c, shown, near)
                caption = f"{which}{where}. {figure.note}"
                file = f"fields-{suffix}" + "-near" * bool(where)
                yield Picture(file, "fields", caption, figure.figure)
            if e.domain.dim == 1 and len(e.times_out) >= 4:
                made = _space_time(e, figure.columns)
                caption = f"{which}, over space and time."
                yield Picture(f"space-time-{suffix}", "fields", caption, made)


def _station_pictures(e: Predictions) -> Iterator[Picture]:
    """Observed and predicted values at stations over time."""
    if not e.stations:
        return
    names, times, truth, prediction = e.stations
    at, n_out = dates(times, e.time_unit), len(e.times_out)
    # A line for each prediction; single time steps are dots.
    breaks = range(n_out, len(times), n_out) if n_out > 1 else []
    apart = np.insert(at, breaks, at[[*breaks]])
    prediction = np.insert(prediction, breaks, np.nan, axis=1)
    label = with_unit("time", e.time_unit if e.time_unit != EPOCH else "")
    for c, name in enumerate(e.component_names[:COMPONENTS]):
        panels = {
            str(station): {
                "observed": (at, truth[k, :, c], OBSERVED),
                "predicted": (apart, prediction[k, :, c], PREDICTED),
            }
            for k, station in enumerate(names)
        }
        caption = f"{e.quantities[c]} at stations, at the end of the test part. "
        caption += f"Predictions of {n_out} time steps follow each other."
        figure = curves(panels, label, "linear")
        yield Picture(f"stations-{_slug(name)}", "fields", caption, figure)


def sample_figure(
    e: Predictions, s: int, c: int, rows: Sequence[int], box: Domain | None = None
) -> FieldFigure:
    """Truth, prediction and error of sample ``s`` and component ``c``, at some time
    steps, ``rows``, in the domain or a ``box`` of it.
    """
    truth, prediction = e.truth[s, :, :, c].T, e.prediction[s, :, :, c].T
    return _compared(e, truth, prediction, e.when, rows=rows, box=box)


def _compared(
    e: Predictions,
    truth: Doubles,
    prediction: Doubles,
    names: Sequence[str],
    *inputs: Column,
    rows: Sequence[int] | None = None,
    box: Domain | None = None,
) -> FieldFigure:
    """Truth, prediction and error ``[rows, n]`` beside columns of inputs."""
    error = prediction - truth
    shown = error
    if box is not None:
        inside = (e.pos >= box.lower) & (e.pos <= box.upper)
        shown = error[:, inside.all(axis=1)]
    columns = [
        *inputs,
        Column("truth", truth, "field"),
        Column("prediction", prediction, "field"),
        Column("error" if inputs else "prediction − truth", error, "error"),
    ]
    pairs = zip(names, shown, strict=True)
    labels = [f"{name}\n{mae_text(field)}" for name, field in pairs]
    look: dict[str, Any] = {"rows": rows, "axes": e.axes, "triangles": e.triangles}
    return FieldFigure(box or e.domain, e.pos, columns, labels, **look)


def _space_time(e: Predictions, columns: Sequence[Column]) -> Figure:
    """Fields over an interval and time, time upwards."""
    times, label = e.leads
    (low,), (high,), (periodic,) = e.domain.lower, e.domain.upper, e.domain.periodic
    plane = Domain((low, times[0]), (high, times[-1]), (periodic, False))
    pos = np.stack(np.meshgrid(e.pos[:, 0], times), axis=-1).reshape(-1, 2)
    flat = [replace(c, values=c.values.reshape(1, -1)) for c in columns]
    axes = e.axes[0], label.replace(" after", "\nafter")
    return FieldFigure(plane, pos, flat, [""], axes=axes, slope=1.2).figure


def _steady_figure(e: Predictions, c: int, box: Domain | None) -> FieldFigure:
    """Input, truth, prediction and error of samples of a problem without time."""
    fields = e.x[..., -1, 0], e.truth[..., -1, c], e.prediction[..., -1, c]
    x, truth, prediction = (values[:SAMPLES_STEADY] for values in fields)
    num = e.x.shape[-1]  # of several inputs the first is shown
    title = "input" if num == 1 else f"input 1 of {num}"
    column = Column("\n".join([title, *e.input_names[:1]]), x, "input")
    names = [f"sample {number}" for number in e.samples[:SAMPLES_STEADY]]
    # An input has other units than curves beside it.
    inputs = [column] * (e.domain.dim > 1)
    return _compared(e, truth, prediction, names, *inputs, box=box)


def _curves(run: RunFolder) -> Iterator[Picture]:
    e = run.predictions
    if e and e.moving and "model" in e.error_by_time_step:
        caption = "Error at each predicted time step, mean over the test set."
        if len(e.quantities) > COMPONENTS:
            caption += f" The first {COMPONENTS} of {len(e.quantities)} components."
        (leads, label), errors = e.leads, e.error_by_time_step
        panels = {
            f"MAE of {quantity}": {
                name.replace("_", " "): (leads, errors[name][:, c], look)
                for name, look in METHODS.items()
                if name in errors
            }
            for c, quantity in enumerate(e.quantities[:COMPONENTS])
        }
        yield Picture("error-in-time", "errors", caption, curves(panels, label))
    if bands := run.summary.get("bands"):
        by_level, steps = bands["reliability"], bands["by_time_step"]
        caption = "Share of values in error bands of each level. Of level "
        caption += f"{bands['level']:g} it is {min(steps):.2f} to {max(steps):.2f} "
        caption += "at the time steps."
        shares = {
            "model": (by_level["levels"], by_level["coverage"], METHODS["model"]),
            "level": (by_level["levels"], by_level["levels"], METHODS["persistence"]),
        }
        figure = curves({"coverage": shares}, "level", "linear")
        yield Picture("bands", "errors", caption, figure)
    if {"epoch", "train_loss"} <= set(run.metrics):
        caption = "Losses in normalised units, and the learning rate."
        yield Picture("training", "training", caption, _training_curves(run.metrics))
    if {"factor", "mae"} <= set(run.unseen):
        caption = (
            "Error on larger meshes that contain the training mesh; bars are one "
            "standard deviation over the repeats."
        )
        yield Picture("unseen-meshes", "unseen", caption, _unseen_curves(run))


def curves(
    panels: Mapping[str, Mapping[str, Curve]], xlabel: str, scale: str = "log"
) -> Figure:
    """Curves by their name, a panel for each quantity.

    The ``scale`` is that of ordinates that are positive.
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
        if all((np.asarray(y) > 0).any() for _, y, _ in lines.values()):
            ax.set_yscale(scale)
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


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` indices, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})


def _slug(name: str) -> str:
    """Return a name that is safe as part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name) or "field"
