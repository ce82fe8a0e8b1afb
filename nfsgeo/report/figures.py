"""The pictures of a run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nfsgeo.data.times import time_text
from nfsgeo.report.curves import error_in_time, training_curves, unseen_curve
from nfsgeo.report.lines import profiles, space_time
from nfsgeo.report.maps import FieldMaps, points_and_field
from nfsgeo.report.numbers import mae_text, positive
from nfsgeo.report.panels import Column
from nfsgeo.report.run_folder import Predictions, RunFolder
from nfsgeo.report.style import Picture, styled

__all__ = [
    "COMPONENTS",
    "SAMPLES",
    "evenly",
    "run_pictures",
    "sample_columns",
    "slug",
]

SAMPLES = 2  # test samples shown, each with every component
TIME_STEPS = 4  # time steps shown of each
SAMPLES_STEADY = 4  # samples shown where the problem has no time
COMPONENTS = 3


def run_pictures(run: RunFolder) -> list[Picture]:
    """Every picture that the files of a run provide for, in the order of the report."""
    with styled():
        pictures = list(_field_pictures(run.predictions)) if run.predictions else []
        pictures += _curves(run)
    return pictures


def _field_pictures(e: Predictions) -> Iterator[Picture]:
    """Truth, prediction and error of a few test samples."""
    for c in range(min(COMPONENTS, len(e.component_names))):
        if e.steady:
            yield _steady_picture(e, c)
            continue
        for s in range(min(SAMPLES, len(e.samples))):
            yield from _sample_pictures(e, s, c)


def _sample_pictures(e: Predictions, s: int, c: int) -> Iterator[Picture]:
    """One sample at a few time steps, and in one dimension over space and time."""
    shown = evenly(e.truth.shape[2], TIME_STEPS)
    columns = sample_columns(e, s, c)
    error = columns[-1].values
    rows = [Column(k.title, k.values[shown], k.scale) for k in columns]
    labels = [f"{e.when(r)}\n{mae_text(error[r])}" for r in shown]
    suffix = f"{int(e.samples[s])}-{slug(e.component_names[c])}"
    which = f"Test sample {int(e.samples[s])}, {e.quantities[c]}"
    yield _fields(e, suffix, which, rows, labels)
    if e.domain.dim == 1 and len(error) >= 4:
        figure = space_time(
            e.domain, e.pos, e.times_out, columns, e.axes[0], e.time_unit
        )
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


def _steady_picture(e: Predictions, c: int) -> Picture:
    """A few samples of a problem without time."""
    rows = slice(0, SAMPLES_STEADY)
    truth, prediction = (a[rows, :, -1, c] for a in (e.truth, e.prediction))
    error = prediction - truth
    columns = [
        Column(_input_title(e), e.x[rows, :, -1, 0], "input"),
        Column("truth", truth, "field"),
        Column("prediction", prediction, "field"),
        Column("error", error, "error"),
    ]
    labels = [
        f"sample {int(number)}\n{mae_text(row)}"
        for number, row in zip(e.samples[rows], error, strict=True)
    ]
    which = f"Test samples, {e.quantities[c]}"
    return _fields(e, slug(e.component_names[c]), which, columns, labels)


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
    """The observed points, and an input on them."""
    first, last = e.x[0, :, 0, 0], e.x[0, :, -1, 0]
    title = (
        _input_title(e)
        if e.steady
        else f"observed, {time_text(e.times[e.x.shape[2] - 1], e.time_unit)}"
    )
    if e.domain.dim == 1:
        lines = {"last observed time step": last[None]}
        if not e.steady:
            lines = {"first observed time step": first[None], **lines}
        figure = profiles(e.domain, e.pos, lines, [f"{len(e.pos)} points"], e.axes[0])
    else:
        figure = points_and_field(e.domain, e.pos, last, title, e.axes, e.triangles)
    caption = f"Observed points and input of the model, test sample {int(e.samples[0])}"
    if not e.steady and len(e.quantities) > 1:
        caption += f", {e.quantities[0]}"
    return Picture("mesh", "training", f"{caption}.", figure)


def _curves(run: RunFolder) -> Iterator[Picture]:
    e = run.predictions
    if e and len(e.times_out) > 1 and not e.steady and "model" in e.error_by_time_step:
        several = e.quantities[:COMPONENTS] if len(e.quantities) > 1 else []
        figure = error_in_time(e.leads, e.error_by_time_step, several, e.time_unit)
        caption = "Error at each predicted time step, mean over the test set."
        if len(several) < len(e.quantities) > 1:
            caption += f" The first {COMPONENTS} of {len(e.quantities)} components."
        yield Picture("error-in-time", "errors", caption, figure)
    if {"epoch", "train_loss"} <= run.metrics.keys():
        caption = "Losses in normalised units, and the learning rate."
        yield Picture("training", "training", caption, training_curves(run.metrics))
    if e:
        yield _mesh_picture(e)
    if {"factor", "mae"} <= run.unseen.keys():
        seen = positive((run.summary.get("test") or {}).get("mae"))
        caption = (
            "Error on larger meshes that contain the training mesh; bands are one "
            "standard deviation over the repeats."
        )
        pooled = bool(run.summary.get("components"))
        figure = unseen_curve(run.unseen, seen, pooled=pooled)
        yield Picture("unseen-meshes", "unseen", caption, figure)


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` indices, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})


def slug(name: str) -> str:
    """A name that is safe as part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name) or "field"
