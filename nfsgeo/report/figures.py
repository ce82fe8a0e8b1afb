"""The pictures of a run and of a data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nfsgeo.data import Fields
from nfsgeo.data.times import EPOCH, dates, time_texts
from nfsgeo.errors import UserError
from nfsgeo.files import safe_name
from nfsgeo.geometry import Domain
from nfsgeo.report.curves import COMPONENTS, curves, error_pictures
from nfsgeo.report.maps import Column, FieldFigure, points_in
from nfsgeo.report.run_folder import Example, Predictions, RunFolder
from nfsgeo.report.style import COLOURS, Picture, styled, tolerant
from nfsgeo.report.text import axis_labels, mae_text, with_unit
from nfsgeo.report.views import densest_part
from nfsgeo.training.artifacts import write_bytes

__all__ = ["SAMPLES", "compared_fields", "evenly", "plot", "plot_file"]
__all__ += ["run_pictures", "times_figure"]

SAMPLES = 3  # test samples shown, each with every component
TIME_STEPS = 4  # time steps shown of one
TIMES_COMPARED = 2  # time steps shown of each run
INPUTS = 3  # inputs shown of a problem without time
SAMPLES_FILE = 3  # samples shown of a data file

OBSERVED = {"color": COLOURS["muted"], "lw": 0.8, "marker": "o", "ms": 2.5}
PREDICTED = {"color": COLOURS["model"], "marker": "o", "ms": 2}


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
        for picture in _sample_pictures(file, sample):
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
    pictures = {picture.about: picture for picture in _sample_pictures(fields, sample)}
    with styled():
        figure: Figure = pictures[name].draw().figure
    return figure


def _sample_pictures(file: Fields, sample: int) -> Iterator[Picture]:
    """Yield a picture of each static input and component, in that order.

    Its name is that of its file, ``about`` that of the variable.
    """
    axes = axis_labels(file.domain, [file.units.get(axis, "") for axis in file.space])
    shown = evenly(file.num_observed() or len(file.times), TIME_STEPS)
    times = time_texts(file.times[shown], file.time_unit)
    times = times if len(file.times) > 1 else ["solution"]
    look: dict[str, Any] = {"axes": axes}
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
        unit = file.units.get(name, "")
        columns = [Column(title, rows, name, unit=unit) for title, rows in pairs]
        if name in file.categories and file.domain.dim > 1:
            columns = [
                column.of_categories(file.categories[name]) for column in columns
            ]
        pos = [file.coordinates(sample)] * len(labels)
        look["triangles"] = [file.triangles(sample)] * len(labels)
        draw = partial(FieldFigure, file.domain, pos, columns, labels, **look)
        yield Picture(f"sample-{sample}-{safe_name(name)}", "fields", name, draw)


def _field_pictures(e: Predictions) -> Iterator[Picture]:
    """Draw truth, prediction and error of test samples, also where points are dense."""
    boxes: list[tuple[Domain | None, str, str]] = [(None, "", "")]
    every = np.concatenate([example.pos for example in e.examples])
    if (near := densest_part(e.domain, every)) is not None:
        boxes.append((near, "-near", " where points are dense"))
    examples = e.examples[:SAMPLES]
    typical = examples[(len(examples) - 1) // 2]
    rows = evenly(len(typical.when), TIME_STEPS)
    at = f" at the last of {len(typical.when)} time steps. Each MAE is over all of them"
    at *= e.moving
    inputs = _inputs(e)
    for box, suffix, where in boxes if inputs and not _beside(e, inputs) else ():
        caption = f"The rows show inputs of test samples{where}."
        draw = partial(_inputs_figure, e, inputs, box)
        yield Picture(f"inputs{suffix}", "fields", caption, draw)
    for c, name in enumerate(map(safe_name, e.component_names[:COMPONENTS])):
        quantity = e.quantities[c]
        one = f"{quantity} of test {typical.name}"
        for box, suffix, where in boxes:
            caption = f"The rows show {quantity} of test samples{where}{at}."
            caption += _ranking(e, quantity, where)
            draw = partial(_samples_figure, e, c, box)
            yield Picture(f"fields-{name}{suffix}", "fields", caption, draw)
        if not e.moving:
            continue
        for box, suffix, where in boxes:
            caption = f"The rows show {one}{where} over time."
            draw = partial(times_figure, e, typical, c, rows, box)
            yield Picture(f"times-{name}{suffix}", "fields", caption, draw)
        if e.domain.dim == 1 and len(typical.when) >= 4:
            caption = f"The maps show {one} over space and time."
            plane = partial(_space_time, e, typical, c)
            yield Picture(f"space-time-{name}", "fields", caption, plane)


def _ranking(e: Predictions, quantity: str, where: str) -> str:
    """Say which error ranks the samples, where it is another than the one they show."""
    several = len(e.quantities) > 1
    if not e.examples[0].rank or not (where or several):
        return ""
    ranked = " pooled over all components" * several + " at all points" * bool(where)
    shown = f" of {quantity}" * several + where
    return f" Samples are ranked by their MAE{ranked}; each row has the MAE{shown}."


def _station_pictures(e: Predictions) -> Iterator[Picture]:
    """Observed and predicted values at stations over time."""
    if not e.stations:
        return
    names, times, truth, prediction = e.stations
    at, n_out = dates(times, e.time_unit), len(e.leads[0])
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
        caption = f"The panels show {e.quantities[c]} at stations at the end of the "
        caption += (
            f"test part, in predictions of {n_out} time step{'s'[: n_out - 1]} each."
        )
        draw = partial(curves, panels, label, "linear")
        yield Picture(f"stations-{safe_name(name)}", "fields", caption, draw)


def _samples_figure(e: Predictions, c: int, box: Domain | None) -> FieldFigure:
    """The input, truth, prediction and error of samples at their last time step."""
    examples = e.examples[:SAMPLES]
    names, inputs = _names(examples), _inputs(e)
    if not e.steady:
        shown = [_observed(examples, c, e.units[c])]
    else:
        shown = inputs * _beside(e, inputs)
    labels = [f"{n}\n{_mae(x, c, box)}" for n, x in zip(names, examples, strict=True)]
    last = [-1] * len(examples)
    return _compared(e, examples, c, last, labels, *shown, box=box)


def _names(examples: Sequence[Example]) -> list[str]:
    return [f"{x.rank}\n{x.name}".strip().replace(", ", "\n") for x in examples]


def _inputs(e: Predictions) -> list[Column]:
    """Inputs of a problem without time, continuous ones before categories.

    Those that are the same at all points of each sample are left out.
    """
    examples, columns = e.examples[:SAMPLES], list[Column]()
    num = examples[0].x.shape[-1] if e.steady and e.domain.dim > 1 else 0
    for k, name in enumerate([*e.input_names, *[""] * num][:num]):
        values, unit = [x.x[:, -1, k] for x in examples], e.input_units.get(name, "")
        if any(np.ptp(field) > 0 for field in values):
            column = Column(name or "input", values, f"input {k}", unit=unit)
            if name in e.categories:
                column = column.of_categories(e.categories[name])
            columns.append(column)
    most = INPUTS - any(column.names for column in columns)
    plain = [column for column in columns if not column.names][:most]
    return [*plain, *(column for column in columns if column.names)][:INPUTS]


def _beside(e: Predictions, inputs: Sequence[Column]) -> bool:
    """Whether inputs are shown beside the fields: one beside the only component."""
    return len(inputs) == len(e.quantities) == 1


def _inputs_figure(
    e: Predictions, inputs: Sequence[Column], box: Domain | None
) -> FieldFigure:
    """Inputs of samples, a column for each."""
    examples = e.examples[:SAMPLES]
    return _figure(e, examples, inputs, _names(examples), box)


def times_figure(
    e: Predictions,
    example: Example,
    c: int,
    rows: Sequence[int],
    box: Domain | None = None,
    *,
    observed: bool = False,
    **look: Any,
) -> FieldFigure:
    """Draw truth, prediction and error of a component at time steps of a test sample.

    The last input is beside them if it is to be ``observed``, and all of the domain is
    shown unless there is a ``box``.
    """
    steps, same = range(len(example.when)), [example] * len(example.when)
    names = example.when if e.moving else [example.name]
    labels = [f"{names[k]}\n{_mae(example, c, box, k)}" for k in steps]
    inputs = [_observed(same, c, e.units[c])] if observed else []
    return _compared(e, same, c, steps, labels, *inputs, box=box, rows=rows, **look)


def _observed(examples: Sequence[Example], c: int, unit: str) -> Column:
    values = [example.x[:, -1, c] for example in examples]
    return Column("observed\nlast input", values, "field", dots=True, unit=unit)


def _mae(
    example: Example, c: int, box: Domain | None, steps: int | slice = slice(None)
) -> str:
    """The MAE of a component in a box, over time steps."""
    error = (example.prediction - example.truth)[:, steps, c]
    return mae_text(error[points_in(box, example.pos)] if box else error)


def _compared(
    e: Predictions,
    examples: Sequence[Example],
    c: int,
    steps: Sequence[int],
    labels: Sequence[str],
    *inputs: Column,
    box: Domain | None,
    **look: Any,
) -> FieldFigure:
    """Truth, prediction and error at a time step of each row, beside inputs."""
    pairs = [*zip(examples, steps, strict=True)]
    truth = [example.truth[:, k, c] for example, k in pairs]
    prediction = [example.prediction[:, k, c] for example, k in pairs]
    error = list(map(np.subtract, prediction, truth))
    title = "error" if inputs else "prediction − truth"
    columns = [
        *inputs,
        Column("truth", truth, "field", unit=e.units[c]),
        Column("prediction", prediction, "field", predicted=True, unit=e.units[c]),
        Column(title, error, "error", unit=e.units[c]),
    ]
    return _figure(e, examples, columns, labels, box, **look)


def _figure(
    e: Predictions,
    examples: Sequence[Example],
    columns: Sequence[Column],
    labels: Sequence[str],
    box: Domain | None,
    **look: Any,
) -> FieldFigure:
    """Columns of fields at the points of an example for each row."""
    pos = [example.pos for example in examples]
    look |= {"axes": e.axes, "triangles": [example.triangles for example in examples]}
    look["mesh_pos"] = [example.mesh_pos for example in examples]
    return FieldFigure(box or e.domain, pos, columns, labels, **look)


def compared_fields(runs: Mapping[str, RunFolder]) -> dict[str, list[Picture]]:
    """Draw the first test sample as each run predicts it, in the same colours."""
    given = {name: e for name, run in runs.items() if (e := run.predictions)}
    alike = {(e.first.key, *e.first.when, *e.quantities) for e in given.values()}
    every = [e.first.prediction - e.first.truth for e in given.values()]
    pictures: dict[str, list[Picture]] = {name: [] for name in runs}
    for name, e in given.items() if len(alike) == 1 else ():
        x, rows = e.first, evenly(len(e.first.when), TIMES_COMPARED)
        for c, quantity in enumerate(e.quantities[:COMPONENTS]):
            errors = [error[..., c].ravel() for error in every]
            about = (
                f"The rows show {quantity} of test {x.name}{' over time' * e.moving}."
            )
            arguments = e, x, c, rows
            draw = partial(times_figure, *arguments, errors=np.concatenate(errors))
            number = f"{[*given].index(name)}-{c}"
            pictures[name].append(Picture(f"fields-{number}", "fields", about, draw))
    return pictures


def _space_time(e: Predictions, example: Example, c: int) -> Figure:
    """Fields over an interval and time, time upwards."""
    columns = times_figure(e, example, c, [0]).columns
    times, label = e.leads
    (low,), (high,), (periodic,) = e.domain.lower, e.domain.upper, e.domain.periodic
    plane = Domain((low, times[0]), (high, times[-1]), (periodic, False))
    pos = np.stack(np.meshgrid(example.pos[:, 0], times), axis=-1).reshape(-1, 2)
    flat = [replace(c, values=[np.concatenate(c.values)]) for c in columns]
    axes = e.axes[0], label.replace(" after", "\nafter")
    return FieldFigure(plane, [pos], flat, [""], axes=axes, slope=1.2).figure


def evenly(count: int, most: int) -> list[int]:
    """Up to ``most`` of ``count`` indices, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(most, count))})
