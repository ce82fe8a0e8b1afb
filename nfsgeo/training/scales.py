"""Scales of what a model sees and predicts, from training windows alone."""

from __future__ import annotations

from typing import Any

import torch

from nfsgeo.data.normalisers import FieldNormaliser, mean_and_std
from nfsgeo.data.windows import WindowDataset
from nfsgeo.models import Problem
from nfsgeo.nn.missing_values import fitted_trend
from nfsgeo.training.config import RunConfig
from nfsgeo.training.lead_times import lead_times, with_times

__all__ = ["fitted_scales", "fitted_statistics", "fitted_trends"]

Scales = tuple[FieldNormaliser, FieldNormaliser, FieldNormaliser | None]


def fitted_scales(train: WindowDataset, problem: Problem, config: RunConfig) -> Scales:
    """Scales of the inputs, of what is predicted, and of the forcing if there is any.

    A field that is predicted from itself keeps one scale. That of the rate of change is
    the scale of the change within the standard deviation of the time, which is the last
    forcing of a model of lead times.

    Args:
        train: Training windows, whose targets may go on after those of the model.
        problem: Of the model.
        config: Resolved.
    """
    items = range(len(train))
    inputs = FieldNormaliser.fit(train[item].x for item in items)
    num, leads, forcings = config.data.n_out, config.data.lead_times, None
    if problem.forcings:
        read = (train[item] for item in items)
        forcings = FieldNormaliser.fit(
            with_times(
                each.get("forcing"),
                lead_times(each.times, train.n_in)[None],
                each.x,
            )
            if leads
            else each.forcing
            for each in read
        )
    if not problem.has_time:
        outputs = FieldNormaliser.fit(train[item].y for item in items)
        return inputs, outputs, forcings
    own = slice(problem.out_components)
    if not config.model.is_residual(problem):
        outputs = FieldNormaliser(inputs.mean[own], inputs.std[own])
        return inputs, outputs, forcings

    def change(item: int) -> torch.Tensor:
        window = train[item]
        found: torch.Tensor = window.y[:, :num] - window.x[:, -1:, own]
        if config.model.prediction != "rate" or forcings is None:
            return found
        times = lead_times(window.times, train.n_in)[train.n_in :]
        return found * (forcings.std[-1] / times[:, None]).to(found)

    return inputs, FieldNormaliser.fit(map(change, items)), forcings


def fitted_trends(train: WindowDataset, problem: Problem) -> list[float]:
    """The damped trend of each component in time, empty without time.

    Args:
        train: Training windows.
        problem: Of the model.
    """
    if not problem.has_time:
        return []
    own = slice(problem.out_components)
    items = (train[item] for item in range(len(train)))
    fields = (torch.cat([each.x[..., own], each.y], dim=1) for each in items)
    return fitted_trend(fields).tolist()


def fitted_statistics(train: WindowDataset, problem: Problem) -> dict[str, Any]:
    """Mean and standard deviation of several components in the training data.

    Over all time steps, inputs and targets, of the fields themselves. The standard
    deviation of a constant one is 0.

    Args:
        train: Training windows.
        problem: Of the model.
    """
    if problem.out_components == 1:
        return {}
    windows_read = (train[item] for item in range(len(train)))
    if problem.has_time:
        own = slice(problem.out_components)
        fields = (torch.cat([each.x[..., own], each.y], 1) for each in windows_read)
    else:
        fields = (each.y for each in windows_read)
    mean, std = mean_and_std(fields)
    return {"statistics": {"mean": mean.tolist(), "std": std.tolist()}}
