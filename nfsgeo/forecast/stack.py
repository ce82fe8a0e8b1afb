"""The transforms of a run, fitted to its training data."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms import (
    BoundaryInputs,
    Forcings,
    LeadTimes,
    MissingValues,
    Normalise,
    Residual,
    TrainingNoise,
    Transform,
)
from nfsgeo.nn.kriging import StationaryCovariance

__all__ = ["Form", "fitted_transforms"]

Form = Literal["residual", "damped", "rate", "direct"]


def fitted_transforms(
    statistics: Statistics,
    *,
    prediction: Form,
    gaps: bool,
    boundary: bool,
    training_noise: float = 0.0,
    covariance: StationaryCovariance | None = None,
) -> list[Transform]:
    """The stack of transforms that a run asks for, from the data to the network.

    Args:
        statistics: of the training windows.
        prediction: the form of residual prediction, or ``direct``.
        gaps: whether data have missing values.
        boundary: whether distance and direction to the boundary are inputs.
        training_noise: standard deviation of the noise on the inputs in training, in
            those of the data.
        covariance: of the fields in the units of the data, where the last time step is
            better had at query points by kriging than by a spline.
    """
    components = len(statistics.fields.mean)
    in_time = statistics.n_in > 0
    own = slice(components) if in_time else slice(None)
    inputs, results = statistics.inputs, statistics.fields
    mean, std = inputs.mean.tolist(), inputs.scale.tolist()
    if in_time:  # a field that is predicted from itself keeps one scale
        out = mean[own], std[own]
    else:
        out = results.mean.tolist(), results.scale.tolist()
    stack: list[Transform] = [
        Normalise(mean=mean, std=std, out_mean=out[0], out_std=out[1])
    ]
    if training_noise:
        noisy = components if in_time else len(mean)
        stack.append(TrainingNoise(std=training_noise, components=noisy))
    trend = statistics.trend if gaps else []
    indicators = components if gaps and in_time else 0
    stack.append(MissingValues(trend=trend, indicators=indicators, gaps=gaps))
    known = statistics.forcings
    if statistics.any_time:
        stack.append(LeadTimes())
    if known.mean.ndim:
        scales = known.mean.tolist(), known.scale.tolist()
        stack.append(Forcings(mean=scales[0], std=scales[1]))
    if boundary:
        stack.append(BoundaryInputs())
    if in_time and prediction != "direct":
        changes = _changes(statistics, prediction, inputs.scale[own])
        krige = None
        if covariance is not None:
            expected = (covariance.expected - inputs.mean[own]) / inputs.scale[own]
            krige = {"parameters": covariance.fitted.tolist()}
            krige["expected"] = expected.tolist()
        stack.append(Residual(**changes, covariance=krige))
    return stack


def _changes(statistics: Statistics, form: Form, unit: Tensor) -> dict[str, Any]:
    """Mean and standard deviation of what the network predicts, in those of fields."""
    lead_std = statistics.forcings.scale[-1] if statistics.any_time else None
    moments = statistics.changes
    mean, std = moments.mean / unit, moments.scale / unit
    if form == "rate":
        assert lead_std is not None
        moments = statistics.rates
        mean, std = moments.mean * lead_std / unit, moments.scale * lead_std / unit
    lead = None if lead_std is None else float(lead_std)
    return {
        "form": form,
        "mean": mean.tolist(),
        "std": std.tolist(),
        "lead_std": lead,
    }
