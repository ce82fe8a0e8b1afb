"""The snapshots that a prediction observes, and the times that it predicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.times import (
    later,
    same_steps,
    spacing_text,
    span_text,
    step_text,
    time_text,
)
from nfsgeo.errors import UserError
from nfsgeo.forecast.matching import check_asked, times_of
from nfsgeo.models import Task

__all__ = ["known_steps", "observed_steps", "times_ahead"]


def observed_steps(task: Task, stride: int, file: Fields, first: int | None) -> Indices:
    """Return the numbers of the observed snapshots, the last ones or from a first one.

    They are as far apart in time as in training, or ``stride`` snapshots for a model
    that can be asked for any time.
    """
    n_in, num, usual = task.n_in, file.num_observed(), np.array(task.times[: task.n_in])
    times, _ = times_of(task, file, file.times)
    if first is not None and not (n_in and 0 <= first < len(file.times)):
        raise UserError(
            f"the first observed snapshot {first} of {file.path}",
            f"one of 0 to {len(file.times) - 1} of fields in time",
            "change it or leave it out",
        )
    if not n_in:
        return np.empty(0, np.int64)
    if task.any_time:
        numbers = stride * np.arange(n_in)
        numbers += num - 1 - numbers[-1] if first is None else first
        expected, fits = f"{numbers[-1] - numbers[0] + 1}", numbers[0] >= 0
    else:
        begin = times[num - 1] + usual[0] if first is None else times[first]
        numbers, off = _nearest(times, begin + usual - usual[0])
        step = step_text(task.step, task.units.get("time", ""))
        expected, fits = f"{n_in}, {step} apart", off.max() <= 1e-3 * task.step * n_in
    if not fits or numbers[-1] >= num:
        apart = spacing_text(file.times[first or 0 :], file.time_unit)
        raise UserError(
            f"{file.path} with {num} observed snapshots"
            + f", {apart} apart" * bool(apart)
            + ", and time steps "
            f"{max(0, numbers[0])} to {numbers[-1]} to predict from",
            f"at least {expected}, as in training",
            "use a file with such snapshots at its end, or choose others by the number "
            "of the first, --first",
        )
    return numbers


def times_ahead(
    task: Task,
    file: Fields,
    observed: Indices,
    steps: int | None,
    lead_times: Sequence[float] | None,
) -> Doubles:
    """Return the times to predict, in the file's unit.

    They are those of training, a number of time steps, or lead times after the last
    observed snapshot.
    """
    ahead = np.array(task.times[task.n_in :])
    if lead_times is not None:
        check_asked(task, lead_times, steps)
        ahead = np.array(lead_times, np.float64)
    elif steps is not None and task.has_time:
        ahead = _rolled_out(ahead, steps)
    if task.has_time:
        until = file.times[: observed[-1] + 1]
        ahead = later(ahead, until, times_of(task, file, until)[1])
    return ahead


def _rolled_out(ahead: Doubles, steps: int) -> Doubles:
    """Return lead times as far apart as those of training."""
    apart = np.diff(ahead, prepend=0)
    if steps < 1 or not same_steps(apart, apart[0]).all():
        raise UserError(
            f"--steps {steps} of a model that was trained on time steps of "
            f"{apart.min():g} to {apart.max():g}",
            "1 or more, of equal length",
            "change it, or give the times to predict by --lead-times",
        )
    return apart[0] * np.arange(1, steps + 1)


def known_steps(file: Fields, ahead: Doubles) -> Indices:
    """Return the numbers of predicted time steps at which forcings have to be known."""
    if not file.forcing_names:
        return np.empty(0, np.int64)
    numbers, off = _nearest(file.times, ahead)
    step = min(np.diff(times).min(initial=np.inf) for times in (ahead, file.times))
    if (lacking := ~(off <= 1e-3 * step)).any():
        raise UserError(
            f"{file.path} without {', '.join(file.forcing_names)} at "
            f"{time_text(ahead[lacking][0], file.time_unit)}",
            f"what is known ahead at all {len(ahead)} predicted time steps, "
            f"{span_text(ahead[0], ahead[-1], file.time_unit)}",
            "add these time steps to the file, without values of the fields, or ask "
            "for fewer --steps",
        )
    return numbers


def _nearest(snapshots: Doubles, times: Doubles) -> tuple[Indices, Doubles]:
    """Return the numbers of the nearest snapshots, and their distance in time."""
    off = np.abs(snapshots[:, None] - times)
    return off.argmin(axis=0), off.min(axis=0)
