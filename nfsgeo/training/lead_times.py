"""Models that are asked for any time after their inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem

__all__ = [
    "check_lead",
    "check_order",
    "check_times",
    "each_time",
    "lead_times",
    "with_times",
]


def lead_times(times: Tensor, n_in: int) -> Tensor:
    """Times relative to the last input.

    Args:
        times: Of the inputs and of what is predicted, ``[..., n_in + K]``.
        n_in: Number of input time steps.
    """
    return times - times[..., n_in - 1 : n_in]


def with_times(forcing: Tensor | None, times: Tensor, like: Tensor) -> Tensor:
    """The forcing, and behind it the time.

    Args:
        forcing: What else is known ahead ``[N, n_in + K, C_f]``, or None.
        times: ``[1 or N, n_in + K]``.
        like: Fields ``[N, ...]`` of the type and device that is wanted.
    """
    time = times.to(like)[..., None].expand(len(like), -1, -1)
    return time if forcing is None else torch.cat([forcing.to(time), time], dim=-1)


def each_time(
    forcing: Tensor | None, times: Tensor | None, x: Tensor, graphs: Graphs
) -> Iterator[tuple[Tensor | None, Tensor | None]]:
    """What is known at the inputs and at one time that is asked for, time by time.

    Args:
        forcing: What else is known ahead ``[N, n_in + K, C_f]``, or None.
        times: ``[n_in + K]``, or those of each sample; None for a model that predicts
            all of its time steps at once.
        x: Fields ``[N, n_in, F]``.
        graphs: Of the samples.

    Yields:
        The forcing with the time ``[N, n_in + 1, C_f + 1]``, and the lead time of each
        sample ``[S]``; without times the forcing as it is, and None.
    """
    if times is None:
        yield forcing, None
        return
    n_in, num = x.size(1), graphs.num_samples
    leads = lead_times(torch.atleast_2d(times), n_in).expand(num, -1)
    at_points = leads if graphs.batch is None else leads[graphs.batch]
    known = with_times(forcing, at_points, x)
    for step in range(n_in, leads.size(1)):
        here = torch.cat([known[:, :n_in], known[:, step : step + 1]], dim=1)
        yield here, leads[:, step]


def check_times(
    times: Tensor | None,
    graphs: Graphs | None,
    batch: Tensor | None,
    problem: Problem,
    description: dict[str, Any],
) -> None:
    """Makes sure that times come if and only if the model was trained with them.

    Args:
        times: As they came.
        graphs: Of the samples, if they are made already.
        batch: Sample of each point, None for one sample.
        problem: That the model was trained for.
        description: Of the forecaster.

    Raises:
        UserError: They do not, or have another shape.
    """
    trained = "longest_lead" in description
    n_in, fits = problem.n_in, times is None and not trained
    if trained and times is not None and times.ndim:
        if graphs is not None:
            samples = graphs.num_samples
        else:  # waits for the device
            samples = 1 if batch is None else int(batch[-1]) + 1
        fits = times.size(-1) > n_in and times.shape[:-1] in ((), (1,), (samples,))
    if not fits:
        raise UserError(
            "no times" if times is None else f"times of shape {list(times.shape)}",
            f"times of the {n_in} inputs and of all that is asked for, [{n_in} + K]"
            if trained
            else "none, for a model that was trained without data.lead_times",
            "give them as times=" if trained else "leave them out",
        )


def check_order(times: Tensor, n_in: int, description: dict[str, Any]) -> None:
    """Makes sure that times follow one another, not later than in training.

    Unlike :func:`check_times` it looks at their values, which waits for the device.

    Args:
        times: Of the inputs and of all that is asked for ``[..., n_in + K]``.
        n_in: Number of input time steps.
        description: Of the forecaster.

    Raises:
        UserError: They do not.
    """
    if not bool((times.diff() > 0).all()):
        raise UserError(
            f"times {', '.join(f'{time:g}' for time in times.flatten().tolist())}",
            f"the {n_in} times of the inputs and later ones, each after the one before",
            "sort them, and leave none out",
        )
    ahead = float(lead_times(times, n_in).max())
    check_lead(description, ahead, "times of which")


def check_lead(description: dict[str, Any], ahead: float, what: str) -> None:
    """Refuses times that are further ahead than any in training.

    Args:
        description: Of a model of lead times.
        ahead: Time after the last input.
        what: Where it comes from, for the message.

    Raises:
        UserError: It is longer.
    """
    longest = description["longest_lead"]
    if ahead > longest * (1 + 1e-3):
        raise UserError(
            f"{what} the last time is {ahead:g} after the last input",
            f"at most {longest:g}, the longest lead time in training",
            "ask for earlier times, or train with a larger --n-out",
        )
