"""The task of a file, and whether another file has the task of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.build import numbered
from nfsgeo.data.fields import Doubles
from nfsgeo.data.formats.columns import listed
from nfsgeo.data.times import EPOCH, MONTHS, clock, same_steps, step_text
from nfsgeo.errors import UserError
from nfsgeo.forecast.checks import check_lead
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.geometry import Domain
from nfsgeo.models import Task

__all__ = ["check_times", "matched", "task_of", "times_of"]


def task_of(
    file: Fields,
    times: Sequence[float],
    statistics: Statistics,
    num_points: int,
    grid_shape: tuple[int, ...] | None = None,
    *,
    seasonal: bool = False,
) -> Task:
    """What a model is to map that is trained on a file.

    Args:
        file: the training data.
        times: of the inputs and targets of a window.
        statistics: of the training windows.
        num_points: number of points of the first training sample.
        grid_shape: of its points, where they form a grid.
        seasonal: whether the prediction depends on the times themselves.
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
        units=units,
        mean=tuple(statistics.fields.mean.tolist()),
        std=tuple(statistics.fields.std.tolist()),
        n_in=n_in,
        n_out=len(times) - n_in,
        times=tuple(float(time - last) for time in at),
        any_time=statistics.any_time,
        seasonal=seasonal,
        longest_lead=statistics.longest_lead,
        num_points=num_points,
        grid_shape=grid_shape,
        fingerprint=file.fingerprint(),
    )


def matched(file: Fields, task: Task) -> Fields:
    """What a task asks for of a file, in its order; all else is left out.

    Components, static inputs, forcings and scalars are found by name. Where the names
    of either side are made up, ``u_0``, ``u_1``, as for formats that hold none, the
    order alone counts. A file that tells no domain has that of the task if it holds the
    points.

    Args:
        file: another file than that of training, or the same.
        task: of the model.

    Raises:
        UserError: the file lacks a component or an input, or has another domain or
            other units; everything that differs is named.
    """
    there = {*file.component_names, *file.forcing_names, *file.parameters}
    wrong: list[tuple[str, str, str]] = []
    lacking = [name for name in (*task.forcings, *task.scalars) if name not in there]
    if lacking:
        names = ", ".join(lacking)
        wrong.append((f"no {names}", f"{names}, known ahead", "add it to the file"))
    else:
        file = file.with_known([*task.forcings, *task.scalars])
    fields = _found(task.components, file.component_names, "u")
    static = _found(task.static, file.static_names, "a")
    for what, names_found, given, asked in (
        ("component", fields, file.component_names, task.components),
        ("static input", static, file.static_names, task.static),
    ):
        if names_found is None:
            kind = "use data of the kind that the model was trained on, or rename them"
            wrong.append((_counted(what, given), _counted(what, asked), kind))
    for name in sorted(task.units.keys() & file.units.keys()):
        one, other = (_unit(units[name]) for units in (file.units, task.units))
        if name == "time" and other == MONTHS and file.time_unit == EPOCH:
            continue  # whose steps are compared, see check_times
        if one != other:
            advice = "convert the values, or correct the unit in the file"
            wrong.append((f"{name} in {one}", f"{name} in {other}", advice))
    if not file.domain_is_known:
        with contextlib.suppress(UserError):
            file = file.with_domain(task.domain)
    if file.domain.to_dict() != task.domain.to_dict():
        advice = "use data on that domain, or set it by nfsgeo convert --axis, "
        advice += "--sphere, --obstacles or --region"
        wrong.append((f"the domain {_box(file.domain)}", _box(task.domain), advice))
    if wrong:
        given_, wanted, advice_ = (
            list(dict.fromkeys(each)) for each in zip(*wrong, strict=True)
        )
        raise UserError(
            f"{file.path} with {', and '.join(given_)}",
            f"{', and '.join(wanted)}, as in training",
            "; ".join(advice_),
        )
    assert fields is not None and static is not None
    return file.select([*fields, *static, *task.forcings, *task.scalars])


def check_times(task: Task, file: Fields, windows: Iterable[Sequence[float]]) -> None:
    """Refuses time steps that are longer or shorter than those of training.

    A model of lead times takes any steps that do not reach further than in training.

    Args:
        task: of the model.
        file: for the message.
        windows: times of the inputs and targets of windows; of all but a model of lead
            times, the first alone is looked at.

    Raises:
        UserError: they are.
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


def times_of(task: Task, file: Fields, times: Doubles) -> tuple[Doubles, str]:
    """Times as a task counts them, in months where its steps are, and their unit.

    Args:
        task: of the model.
        file: whose unit the times have.
        times: increasing.
    """
    unit = file.time_unit
    return clock(times, unit) if task.units.get("time") == MONTHS else (times, unit)


def _found(trained: Sequence[str], there: Sequence[str], stem: str) -> list[str] | None:
    """Names in a file of what a model was trained with, None where some are lacking."""
    if trained and set(trained) <= set(there):
        return list(trained)
    made_up = numbered(stem, len(trained))  # of formats that hold no names
    alike = len(there) == len(trained)
    if alike and (list(trained) == made_up or list(there) == made_up):
        return list(there)
    return None if trained else []


def _counted(what: str, names: Sequence[str]) -> str:
    if not names:
        return f"no {what}"
    return f"{len(names)} {what}{'s' * (len(names) > 1)} ({listed(names)})"


def _unit(unit: str) -> str:
    return "s" if unit == EPOCH else unit


def _box(domain: Domain) -> str:
    """A domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain.lower, domain.upper, strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    axes = ", ".join(compress("xyz", domain.periodic))
    text += f", {f'periodic along {axes}' if axes else 'not periodic'}"
    if domain.curved:
        text += ", a sphere"
    if domain.region is not None:
        text += f", a region with {len(domain.region.facets)} facets"
    return text
