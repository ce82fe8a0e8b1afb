"""Whether arrays are those that a task asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.models import Task

__all__ = ["check_asked", "check_lead", "check_shapes", "check_values", "example"]


def check_shapes(task: Task, num_samples: int, arrays: Mapping[str, Tensor]) -> None:
    """Makes sure that arrays have the shapes of one another and of training.

    Args:
        task: of the model.
        num_samples: how many samples they are of, for ``times`` of each.
        arrays: ``x``, which is always there, ``pos``, ``query_pos``, ``forcing`` and
            ``times``.

    Raises:
        UserError: one has not; the message has all shapes.
    """
    x, n_in, known = arrays["x"], max(1, task.n_in), len(task.forcings)
    names = [*task.components] * task.has_time + [*task.static, *task.scalars]
    wanted = [f"x [points, {n_in}, {task.num_inputs}] ({', '.join(names)})"]
    fits = x.ndim == 3 and tuple(x.shape[1:]) == (n_in, task.num_inputs)
    for name, points in (("pos", "points"), ("query_pos", "queries")):
        if name in arrays:
            wanted.append(f"{name} [{points}, {task.domain.dim}]")
            pos = arrays[name]
            fits &= pos.ndim == 2 and pos.size(-1) == task.domain.dim and len(pos) > 0
            fits &= name == "query_pos" or pos.size(0) == x.size(0)
    times, steps, asked = arrays.get("times"), n_in + task.n_out, str(task.n_out)
    fits &= (times is not None) == task.needs_times
    if task.needs_times:
        asked = "K" if task.any_time else asked
        wanted.append(
            f"times of the inputs and of what is asked for [{n_in} + {asked}]"
        )
        if times is not None and fits:
            num = times.size(-1) if times.ndim else 0
            fits = num > n_in if task.any_time else num == steps
            fits &= times.shape[:-1] in ((), (1,), (num_samples,))
            steps = num
    forcing = arrays.get("forcing")
    fits &= (forcing is not None) == bool(known)
    if known:
        names = [*task.forcings]
        wanted.append(
            f"forcing [points, {n_in} + {asked}, {known}] ({', '.join(names)})"
        )
    if forcing is not None:
        fits &= tuple(forcing.shape) == (x.size(0), steps, known)
    if not fits:
        shapes = (f"{name} of shape {[*each.shape]}" for name, each in arrays.items())
        raise UserError(
            " and ".join(shapes),
            " and ".join(wanted) + ", as in training",
            "give these, with static inputs repeated over the time steps",
        )


def check_values(task: Task, forcing: Tensor | None, times: Tensor | None) -> None:
    """Makes sure that values fit as well, which waits for the device.

    Raises:
        UserError: a forcing has no value somewhere, or times do not follow one another
            or are later than any in training.
    """
    if forcing is not None and not bool(forcing.isfinite().all()):
        raise UserError(
            f"a forcing ({', '.join(task.forcings)}) with missing values",
            "a value at every point and time step",
            "give them all",
        )
    if times is None:
        return
    if not bool((times.diff() > 0).all()):
        raise UserError(
            f"times {', '.join(f'{time:g}' for time in times.flatten().tolist())}",
            f"the {task.n_in} times of the inputs and later ones, each after the one "
            "before",
            "sort them, and leave none out",
        )
    if not task.any_time:
        return
    ahead = (times[..., -1] - times[..., task.n_in - 1]).max()
    check_lead(task, float(ahead), "times of which")


def check_lead(task: Task, ahead: float, what: str) -> None:
    """Refuses a time ``ahead`` of the last input that is longer than any in training.

    Raises:
        UserError: it is longer; the message begins with ``what``.
    """
    if ahead > task.longest_lead * (1 + 1e-3):
        raise UserError(
            f"{what} the last time is {ahead:g} after the last input",
            f"at most {task.longest_lead:g}, the longest lead time in training",
            "ask for earlier times, or train with a larger --n-out",
        )


def check_asked(task: Task, lead_times: Sequence[float], steps: int | None) -> None:
    """Refuses times after the last input that a model cannot be asked for.

    Args:
        task: of the model.
        lead_times: the times.
        steps: a number of time steps, in whose place they are.

    Raises:
        UserError: another model, both are given, or times do not increase or are too
            far ahead.
    """
    given = f"lead times {', '.join(f'{time:g}' for time in lead_times)}"
    if not task.any_time or steps is not None:
        raise UserError(
            f"{given} with {'this model' if steps is None else 'a number of steps'}",
            "a model that was trained for lead times, and no number of steps",
            "leave one out, or train with --set data.lead_times=true",
        )
    times = [0.0, *lead_times]
    later = [early < late for early, late in zip(times, times[1:], strict=False)]
    if not (later and all(later)):
        raise UserError(given, "positive times that increase", "change them")
    check_lead(task, times[-1], f"{given}, of which")


def example(task: Task, num_points: int) -> dict[str, Tensor]:
    """Arrays of the shapes that a task asks for, by the names of a forecaster.

    Args:
        task: of the model; of one of lead times, a single time is asked for.
        num_points: number of points.
    """
    steps = max(1, task.n_in)
    found = {"x": torch.zeros(num_points, steps, task.num_inputs)}
    steps += 1 if task.any_time else task.n_out
    if task.any_time:
        found["times"] = torch.linspace(0, task.longest_lead, steps).double()
    elif task.seasonal:
        found["times"] = torch.tensor(task.times, dtype=torch.float64)
    if task.forcings:
        found["forcing"] = torch.zeros(num_points, steps, len(task.forcings))
    return found
