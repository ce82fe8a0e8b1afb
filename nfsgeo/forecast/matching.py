"""The task of a file, and whether another file or times are those of a task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_names, with_boundary
from nfsgeo.data.conventions import Doubles, listed
from nfsgeo.data.io.labelled import numbered
from nfsgeo.data.times import EPOCH, MONTHS, clock, same_steps, step_text
from nfsgeo.errors import UserError
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.geometry import Domain
from nfsgeo.models import Task

__all__ = ["check_asked", "check_lead", "check_times", "matched", "same_names"]
__all__ += ["task_of", "times_of"]


def task_of(
    file: Fields,
    times: Sequence[float],
    statistics: Statistics,
    num_points: int,
    grid_shape: tuple[int, ...] | None = None,
    *,
    seasonal: bool = False,
    boundary: tuple[int, ...] | None = None,
    cells: bool = False,
) -> Task:
    """What a model is to map that is trained on a file.

    With the times of a window and the statistics of all of them, the number of points
    of the first sample and their shape where they form a grid. The prediction may be
    ``seasonal``: depend on the times themselves. The file has the inputs of a
    ``boundary`` already. With ``cells``, their edges are the graphs of the model.
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
        mean=tuple(statistics.fields.mean.tolist()),
        std=tuple(statistics.fields.std.tolist()),
        n_in=n_in,
        n_out=len(times) - n_in,
        times=tuple((at - last).tolist()),
        any_time=statistics.any_time,
        seasonal=seasonal,
        longest_lead=statistics.longest_lead,
        num_points=num_points,
        grid_shape=grid_shape,
        cells=cells,
        fingerprint=file.fingerprint(),
    )


def matched(file: Fields, task: Task) -> Fields:
    """What a task asks for of a file, in its order; all else is left out.

    Components, static inputs, forcings and scalars are found by name. Where the names
    of either side are made up, ``u_0``, ``u_1``, as for formats that hold none, the
    order alone counts. A file that tells no domain has that of the task if it holds the
    points.

    Raises:
        UserError: the ``file`` lacks a component or an input of the ``task``, or has
            another domain or other units; everything that differs is named.
    """
    there = {*file.component_names, *file.forcing_names, *file.parameters}
    known, wrong = [*task.forcings, *task.scalars], dict[str, tuple[str, str]]()
    if lacking := ", ".join(name for name in known if name not in there):
        wrong[f"no {lacking}"] = f"{lacking}, known ahead", "add it to the file"
    else:
        file = file.with_known(known)
    if not file.domain_is_known:
        with contextlib.suppress(UserError):
            file = file.with_domain(task.domain)
    made: list[str] = []
    if task.boundary is not None:
        made = boundary_names(task.domain, task.boundary)
        source = "node_type" if task.boundary else "cells"
        told = file.node_types is not None
        if not task.boundary:
            told = all(file.cells(sample) for sample in range(file.num_samples))
        if not told:
            advice = "add it to the file, or train without data.boundary_inputs"
            wrong[f"no {source}"] = f"{source}, that tells the boundary", advice
    asked_static = [name for name in task.static if name not in made]
    fields = _found(task.components, file.component_names, "u")
    static = _found(asked_static, file.static_names, "a")
    for what, found, given, asked in (
        ("component", fields, file.component_names, task.components),
        ("static input", static, file.static_names, asked_static),
    ):
        if found is None:
            advice = (
                "use data of the kind that the model was trained on, or rename them"
            )
            wrong[_counted(what, given)] = _counted(what, asked), advice
    for name in sorted(task.units.keys() & file.units.keys()):
        units = (file.units[name], task.units[name])
        one, other = ("s" if unit == EPOCH else unit for unit in units)
        if name == "time" and other == MONTHS and file.time_unit == EPOCH:
            continue  # whose steps are compared, see check_times
        if one != other:
            advice = "convert the values, or correct the unit in the file"
            wrong[f"{name} in {one}"] = f"{name} in {other}", advice
    if file.domain.to_dict() != task.domain.to_dict():
        advice = "use data on that domain, or set it by nfsgeo convert --axis, "
        advice += "--sphere, --obstacles or --region"
        wrong[f"the domain {_box(file.domain)}"] = _box(task.domain), advice
    if wrong:
        wanted, advices = zip(*wrong.values(), strict=True)
        raise UserError(
            f"{file.path} with {', and '.join(wrong)}",
            f"{', and '.join(wanted)}, as in training",
            "; ".join(dict.fromkeys(advices)),
        )
    assert fields is not None and static is not None
    if task.boundary is not None:
        file = with_boundary(file, task.boundary)
    return file.select([*fields, *static, *made, *known])


def check_times(task: Task, file: Fields, windows: Iterable[Sequence[float]]) -> None:
    """Refuses time steps that are longer or shorter than those of training.

    A model of lead times takes any steps that do not reach further than in training.
    Of others, the first of the times of ``windows`` alone are looked at.
    """
    if task.any_time:
        for times in windows:
            ahead = float(times[-1] - times[task.n_in - 1])
            check_lead(task, ahead, f"{file.path} with a window of which")
        return
    at, unit = times_of(task, file, np.array(next(iter(windows))))
    found, usual = np.diff(at), np.diff(task.times)
    if not same_steps(found, usual).all():
        raise UserError(
            f"{file.path} with time steps of {step_text(found.mean(), unit)}",
            f"time steps of {step_text(usual.mean(), task.units.get('time', ''))}, as "
            "in training",
            "use data with the same time steps",
        )


def check_lead(task: Task, ahead: float, what: str) -> None:
    """Refuses a time ``ahead`` of the last input that is longer than in training."""
    if ahead > task.longest_lead * (1 + 1e-3):
        raise UserError(
            f"{what} the last time is {ahead:g} after the last input",
            f"at most {task.longest_lead:g}, the longest lead time in training",
            "ask for earlier times, or train with a larger --n-out",
        )


def check_asked(task: Task, lead_times: Sequence[float], steps: int | None) -> None:
    """Refuses times after the last input that a model cannot be asked for."""
    given = f"lead times {', '.join(f'{time:g}' for time in lead_times)}"
    if not task.any_time or steps is not None:
        raise UserError(
            f"{given} with {'this model' if steps is None else 'a number of steps'}",
            "a model that was trained for lead times, and no number of steps",
            "leave one out, or train with --set data.lead_times=true",
        )
    if not len(lead_times) or not (np.diff([0.0, *lead_times]) > 0).all():
        raise UserError(given, "positive times that increase", "change them")
    check_lead(task, lead_times[-1], f"{given}, of which")


def times_of(task: Task, file: Fields, times: Doubles) -> tuple[Doubles, str]:
    """Times of a file as a task counts them, in months where its steps are, and their
    unit.
    """
    unit = file.time_unit
    return clock(times, unit) if task.units.get("time") == MONTHS else (times, unit)


def same_names(one: Sequence[str], other: Sequence[str], stem: str) -> bool:
    """Whether names are the same, or those of one side made up of the ``stem``."""
    made_up = numbered(stem, len(one))  # of formats that hold no names
    made = [*one] == made_up or [*other] == made_up
    return [*one] == [*other] or (made and len(one) == len(other))


def _found(trained: Sequence[str], there: Sequence[str], stem: str) -> list[str] | None:
    """Names in a file of what a model was trained with, None where some are lacking."""
    if set(trained) <= set(there):
        return list(trained)
    return list(there) if same_names(trained, there, stem) else None


def _counted(what: str, names: Sequence[str]) -> str:
    if not names:
        return f"no {what}"
    return f"{len(names)} {what}{'s' * (len(names) > 1)} ({listed(names)})"


def _box(domain: Domain) -> str:
    """A domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain.lower, domain.upper, strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    axes = ", ".join(compress("xyz", domain.periodic))
    text += f", {f'periodic along {axes}' if axes else 'not periodic'}"
    text += ", a sphere" * domain.curved
    if domain.region is not None:
        text += f", a region with {len(domain.region.facets)} facets"
    return text
