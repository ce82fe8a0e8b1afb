"""The pictures of a run and of a data file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nfsgeo.data import Fields
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.times import EPOCH, dates, time_texts
from nfsgeo.errors import UserError
from nfsgeo.files import safe_name
from nfsgeo.geometry import Domain
from nfsgeo.report.curves import COMPONENTS, curves, error_pictures
from nfsgeo.report.maps import Column, FieldFigure
from nfsgeo.report.run_folder import Predictions, RunFolder
from nfsgeo.report.style import COLOURS, Picture, styled, tolerant
from nfsgeo.report.text import axis_labels, mae_text, with_unit
from nfsgeo.report.views import densest_part
from nfsgeo.training.artifacts import write_bytes

__all__ = ["SAMPLES", "evenly", "plot", "plot_file", "run_pictures", "sample_figure"]

SAMPLES = 2  # test samples shown, each with every component
TIME_STEPS = 4  # time steps shown of each
SAMPLES_STEADY = 4  # samples shown where the problem has no time
SAMPLES_FILE = 3  # samples shown of a data file

OBSERVED = {"color": COLOURS["muted"], "lw": 0.8, "marker": "o", "ms": 1.5}
PREDICTED = {"color": COLOURS["model"], "marker": "o", "ms": 1.5}


def run_pictures(run: RunFolder) -> list[Picture]:
    """List every picture that the files of a run provide, in order."""
    pictures, e = list[Picture](), run.predictions
    parts = [_station_pictures(e), _field_pictures(e)] if e else []
    for part in (*parts, error_pictures(run)):
        with tolerant("a picture"):
            for picture in part:
                pictures.append(picture)
    return pictures


def plot_file(file: Fields, out_dir: Path) -> list[Path]:
    """Draw the first samples of a file at several time steps.

    Args:
        file: The fields.
        out_dir: The folder to write into, which is made if need be.

    Returns:
        The files, ``sample-<number>-<component>.png``.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    written = []
    for sample in range(min(SAMPLES_FILE, file.num_samples)):
        for picture in _pictures_of_sample(file, sample):
            if content := picture.png:
                written.append(out_dir / f"{picture.name}.png")
                write_bytes(written[-1], content)
    return written


def plot(fields: Fields, *, sample: int = 0, name: str | None = None) -> Figure:
    """Draw a sample of fields at several time steps.

    Args:
        fields: The fields, from a file or from memory.
        sample: Number of the sample.
        name: The component or static input to draw; None for the first component.

    Returns:
        A figure of matplotlib, which notebooks show and ``savefig`` writes.

    Raises:
        UserError: There is no such sample or name.
    """
    if not 0 <= sample < fields.num_samples:
        expected = f"a number from 0 to {fields.num_samples - 1}"
        raise UserError(f"sample {sample} of {fields.path}", expected, "change it")
    names = [*fields.component_names, *fields.static_names]
    name = name or names[0]
    if name not in names:
        expected = f"one of {', '.join(names)}"
        raise UserError(f"name {name!r} of {fields.path}", expected, "change it")
    pictures = {
        picture.about: picture for picture in _pictures_of_sample(fields, sample)
    }
    with styled():
        figure: Figure = pictures[name].draw().figure
    return figure


def _pictures_of_sample(file: Fields, sample: int) -> Iterator[Picture]:
    """Yield a picture of each static input and component, in that order.

    Its name is that of its file, ``about`` that of the variable.
    """
    axes = axis_labels(file.domain, [file.units.get(axis, "") for axis in file.space])
    shown = evenly(file.num_observed() or len(file.times), TIME_STEPS)
    times = time_texts(file.times[shown], file.time_unit)
    times = times if len(file.times) > 1 else ["solution"]
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
        draw = partial(FieldFigure, file.domain, pos, columns, labels, **look)
        yield Picture(f"sample-{sample}-{safe_name(name)}", "fields", name, draw)


def _field_pictures(e: Predictions) -> Iterator[Picture]:
    """Draw truth, prediction and error of test samples, also where points are dense."""
    boxes: list[tuple[Domain | None, str, str]] = [(None, "", "")]
    if (near := densest_part(e.domain, e.pos)) is not None:
        boxes.append((near, "-near", ", where points are dense"))
    for c, name in enumerate(e.component_names[:COMPONENTS]):
        if e.steady:
            for box, suffix, where in boxes:
                caption = f"Test samples, {e.quantities[c]}{where}."
                file = f"fields-{safe_name(name)}{suffix}"
                draw = partial(_steady_figure, e, c, box)
                yield Picture(file, "fields", caption, draw)
            continue
        for s, number in enumerate(e.samples[:SAMPLES]):
            which = f"Test sample {number}, {e.quantities[c]}"
            for box, suffix, where in boxes:
                shown = evenly(len(e.times_out), TIME_STEPS)
                file = f"fields-{number}-{safe_name(name)}{suffix}"
                draw = partial(sample_figure, e, s, c, shown, box)
                yield Picture(file, "fields", f"{which}{where}.", draw)
            if e.domain.dim == 1 and len(e.times_out) >= 4:
                file = f"space-time-{number}-{safe_name(name)}"
                caption = f"{which}, over space and time."
                yield Picture(file, "fields", caption, partial(_space_time, e, s, c))


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
        draw = partial(curves, panels, label, "linear")
        yield Picture(f"stations-{safe_name(name)}", "fields", caption, draw)


def sample_figure(
    e: Predictions, s: int, c: int, rows: Sequence[int], box: Domain | None = None
) -> FieldFigure:
    """Draw truth, prediction and error of a test sample.

    Args:
        e: The predictions of a run.
        s: Number of the sample among these.
        c: Number of the component.
        rows: The time steps to show.
        box: Part of the domain to show; None for all of it.
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


def _space_time(e: Predictions, s: int, c: int) -> Figure:
    """Fields over an interval and time, time upwards."""
    columns = sample_figure(e, s, c, [0]).columns
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


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` indices, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})
