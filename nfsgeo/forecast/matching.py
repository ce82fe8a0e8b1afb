"""The task of a training file, and checks of other files against it."""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_names, with_boundary
from nfsgeo.data.constant_inputs import as_scalar, as_static
from nfsgeo.data.conventions import Doubles, listed
from nfsgeo.data.flat_axes import with_flat_axes
from nfsgeo.data.io.labelled import numbered
from nfsgeo.data.times import EPOCH, MONTHS, clock, same_steps, step_text
from nfsgeo.errors import UserError, option
from nfsgeo.forecast.statistics import Moments, Statistics
from nfsgeo.geometry import Domain
from nfsgeo.models import Task

__all__ = ["check_asked", "check_lead", "check_times", "matched", "same_names"]
__all__ += ["task_of", "times_of"]

logger = logging.getLogger(__name__)

# The roles that a variable of a file has, or should have.
FIELD, FORCING = "a field", "a forcing"
STATIC, SCALAR = "a static input", "a number for each sample"


def task_of(
    file: Fields,
    times: Sequence[float],
    statistics: Statistics,
    fields: Moments,
    num_points: int,
    grid_shape: tuple[int, ...] | None = None,
    *,
    seasonal: bool = False,
    boundary: tuple[int, ...] | None = None,
    cells: bool = False,
    graph: bool = False,
) -> Task:
    """Return the task of a model that is trained on a file.

    Args:
        file: The training data, with boundary inputs if the run has them.
        times: Times of the inputs and targets of a window.
        statistics: Statistics of the training windows.
        fields: Moments of the fields that errors refer to.
        num_points: Number of points of the first sample.
        grid_shape: Shape of the grid that they form, if any.
        seasonal: Whether predictions depend on absolute times.
        boundary: Node types of the boundary inputs, see
            :attr:`nfsgeo.models.Task.boundary`.
        cells: Whether the graphs are edges of cells.
        graph: Whether they are edges that the data have.
    """
    n_in, units = statistics.n_in, file.units
    at, unit = np.array(times), file.time_unit
    if len(at) > 1 and not statistics.any_time:
        at, unit = clock(at, unit)
        units = units | ({"time": unit} if unit else {})
    last = at[n_in - 1] if n_in else 0.0
    static = file.input_names[: len(file.input_names) - len(file.scalar_names)]
    return Task(
        domain=file.domain,
        components=tuple(file.component_names),
        static=tuple(static),
        scalars=tuple(file.scalar_names),
        forcings=tuple(file.forcing_names),
        boundary=boundary,
        units=units,
        mean=tuple(fields.mean.tolist()),
        std=tuple(fields.std.tolist()),
        n_in=n_in,
        n_out=len(times) - n_in,
        times=tuple((at - last).tolist()),
        any_time=statistics.any_time,
        seasonal=seasonal,
        longest_lead=statistics.longest_lead,
        num_points=num_points,
        grid_shape=grid_shape,
        cells=cells,
        graph=graph,
        fingerprint=file.fingerprint(),
    )


def matched(file: Fields, task: Task) -> Fields:
    """Select the fields of a file that a task needs, in its order.

    Components, static inputs, forcings and scalars are found by name. If the names of
    the file or of the task are the default ones of formats without names (``u_0``,
    ``u_1``), only the order counts. Inputs that are constant in each sample may be
    scalars in one and static inputs in the other. A file without a domain gets that of
    the task if it holds the points.

    Args:
        file: The file.
        task: The task.

    Raises:
        UserError: The file lacks a component or an input, or has another domain or
            other units; everything that differs is named.
    """
    file = _with_roles_of(task, file)
    known, roles = [*task.forcings, *task.scalars], _roles(file)
    wrong: dict[str, tuple[str, str]] = {}
    if lacking := ", ".join(name for name in known if name not in roles):
        wrong[f"no {lacking}"] = f"{lacking}, known ahead", "add it to the file"
    for name in (name for name in known if name in roles):
        wanted = SCALAR if name in task.scalars else FORCING
        if wanted != roles[name] and (wanted, roles[name]) != (FORCING, FIELD):
            advice = f"give {name} at each time step, or train without it"
            if wanted == SCALAR:
                advice = f"give {name} one value in each sample"
                if roles[name] != STATIC:
                    advice += f", and say {option('columns', f'static={name}')}"
            wrong[f"{name} as {roles[name]}"] = f"{name} as {wanted}", advice
    file = file if wrong else file.with_known(known)
    if not file.domain_is_known:
        if len(file.space) < task.domain.dim:  # the samples may all lie in one plane
            file = with_flat_axes(file)
        with contextlib.suppress(UserError):
            file = file.with_domain(task.domain)
    if task.graph and not file.has_graph:
        advice = (
            "add it: edges= or edge_index in Python, or nfsgeo convert "
            f"{shlex.quote(str(file.path))} --out NEW.nc --graph EDGES.csv"
        )
        wrong["no graph"] = "the graph of its points", advice
    made: list[str] = []
    if task.boundary is not None:
        made = boundary_names(task.domain, task.boundary)
        source = "node_type" if task.boundary else "cells"
        has_source = file.node_types is not None
        if not task.boundary:
            has_source = all(file.cells(sample) for sample in range(file.num_samples))
        if not has_source:
            advice = "add it to the file, or train without data.boundary_inputs"
            wrong[f"no {source}"] = f"{source}, that tells the boundary", advice
    asked_static = [name for name in task.static if name not in made]
    fields = _matching_names(task.components, file.component_names, "u")
    static = _matching_names(asked_static, file.static_names, "a")
    for kind, matching, came, asked in (
        ("component", fields, file.component_names, task.components),
        ("static input", static, file.static_names, asked_static),
    ):
        if matching is None:
            advice = "use data of the kind that the model was trained on"
            if lost := [name for name in asked if name not in came]:
                advice = f"add {', '.join(lost)} to the file, or rename what it has"
                if asked is asked_static and roles.keys() >= {*lost}:
                    columns = ",".join(f"static={name}" for name in lost)
                    advice = f"say so, {option('columns', columns)}"
            wrong[_counted(kind, came)] = _counted(kind, asked), advice
    for name in sorted(task.units.keys() & file.units.keys()):
        units = (file.units[name], task.units[name])
        one, other = ("s" if unit == EPOCH else unit for unit in units)
        if name == "time" and other == MONTHS and file.time_unit == EPOCH:
            continue  # whose steps are compared, see check_times
        if one != other:
            advice = "convert the values, or correct the unit in the file"
            wrong[f"{name} in {one}"] = f"{name} in {other}", advice
    if file.domain.to_dict() != task.domain.to_dict():
        advice = (
            "use data on that domain, or set it by nfsgeo convert --axis, --sphere, "
            "--obstacles or --region"
        )
        wrong[f"the domain {_box(file.domain)}"] = _box(task.domain), advice
    if wrong:
        expected, advices = zip(*wrong.values(), strict=True)
        raise UserError(
            f"{file.path} with {', and '.join(wrong)}",
            f"{', and '.join(expected)}, as in training",
            "; ".join(dict.fromkeys(advices)),
        )
    assert fields is not None and static is not None
    if len(fields) > 1 and (*fields,) != task.components:
        pair = listed(fields), listed(task.components)
        logger.warning("%s: %s are taken for %s, in this order", file.path, *pair)
    if task.boundary is not None:
        file = with_boundary(file, task.boundary)
    return file.select([*fields, *static, *made, *known])


def _roles(file: Fields) -> dict[str, str]:
    """Return the role of each variable of a file."""
    numbers = (n for n, v in file.parameters.items() if v.ndim == 1)
    return {
        **dict.fromkeys(numbers, SCALAR),
        **dict.fromkeys(file.static_names, STATIC),
        **dict.fromkeys(file.forcing_names, FORCING),
        **dict.fromkeys(file.component_names, FIELD),
    }


def _with_roles_of(task: Task, file: Fields) -> Fields:
    """The file with inputs that are constant in each sample as the task has them."""
    roles = _roles(file)
    for name in (name for name in task.scalars if roles.get(name) == STATIC):
        file = as_scalar(file, name) or file
    for name in (name for name in task.static if roles.get(name) == SCALAR):
        file = as_static(file, name)
    return file


def check_times(task: Task, file: Fields, windows: Iterable[Sequence[float]]) -> None:
    """Refuse time steps that are longer or shorter than those of training.

    A model of lead times takes any steps up to the longest lead time of training.

    Args:
        task: Task of the model.
        file: The file, for its unit of time.
        windows: Times of each window; without lead times only the first one is checked.

    Raises:
        UserError: The time steps differ, or a lead time is too long.
    """
    if task.any_time:
        for times in windows:
            ahead = float(times[-1] - times[task.n_in - 1])
            check_lead(task, ahead, f"{file.path} with a window of which")
        return
    at, unit = times_of(task, file, np.array(next(iter(windows))))
    steps, usual = np.diff(at), np.diff(task.times)
    if not same_steps(steps, usual).all():
        raise UserError(
            f"{file.path} with time steps of {step_text(steps.mean(), unit)}",
            f"time steps of {step_text(usual.mean(), task.units.get('time', ''))}, as "
            "in training",
            "use data with the same time steps",
        )


def check_lead(task: Task, ahead: float, what: str) -> None:
    """Refuse a lead time that is longer than in training.

    Args:
        task: Task of the model.
        ahead: Time from the last input to the last prediction.
        what: Name of the value, for the message.

    Raises:
        UserError: It is longer.
    """
    if ahead > task.longest_lead * (1 + 1e-3):
        raise UserError(
            f"{what} the last time is {ahead:g} after the last input",
            f"at most {task.longest_lead:g}, the longest lead time in training",
            f"ask for earlier times, or train on more, {option('n_out', 'N')}",
        )


def check_asked(task: Task, lead_times: Sequence[float], steps: int | None) -> None:
    """Refuse lead times that a model cannot predict.

    Args:
        task: Task of the model.
        lead_times: Times after the last input.
        steps: Number of time steps that was asked for as well, or ``None``.

    Raises:
        UserError: The model has no lead times, or the times do not increase, are not
            positive or are longer than in training.
    """
    asked = f"lead times {', '.join(f'{time:g}' for time in lead_times)}"
    if not task.any_time or steps is not None:
        raise UserError(
            f"{asked} with {'this model' if steps is None else 'a number of steps'}",
            "a model that was trained for lead times, and no number of steps",
            f"leave one out, or train for them, {option('data.lead_times', 'true')}",
        )
    if not len(lead_times) or not (np.diff([0.0, *lead_times]) > 0).all():
        raise UserError(asked, "positive times that increase", "change them")
    check_lead(task, lead_times[-1], f"{asked}, of which")


def times_of(task: Task, file: Fields, times: Doubles) -> tuple[Doubles, str]:
    """Return times of a file in the unit of a task, and that unit.

    Args:
        task: Task of the model; its time steps may be months.
        file: The file.
        times: The times in the unit of the file.
    """
    unit = file.time_unit
    return clock(times, unit) if task.units.get("time") == MONTHS else (times, unit)


def same_names(one: Sequence[str], other: Sequence[str], stem: str) -> bool:
    """Return whether names are the same, or one side has default names.

    Args:
        one: Names.
        other: Other names.
        stem: Beginning of the default names, which formats without names have.
    """
    default = numbered(stem, len(one))
    unnamed = [*one] == default or [*other] == default
    return [*one] == [*other] or (unnamed and len(one) == len(other))


def _matching_names(
    trained: Sequence[str], names: Sequence[str], stem: str
) -> list[str] | None:
    """Return the names in a file of trained ones, or ``None`` if some are missing."""
    if set(trained) <= set(names):
        return list(trained)
    return list(names) if same_names(trained, names, stem) else None


def _counted(what: str, names: Sequence[str]) -> str:
    if not names:
        return f"no {what}"
    return f"{len(names)} {what}{'s' * (len(names) > 1)} ({listed(names)})"


def _box(domain: Domain) -> str:
    """Describe a domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain.lower, domain.upper, strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    axes = ", ".join(compress("xyz", domain.periodic))
    text += f", {f'periodic along {axes}' if axes else 'not periodic'}"
    text += ", a sphere" * domain.curved
    if domain.region is not None:
        text += f", a region with {len(domain.region.facets)} facets"
    return text
