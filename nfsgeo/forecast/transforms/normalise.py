"""Normalisation: fields of mean zero and standard deviation one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted

__all__ = ["Normalise"]


class Normalise(Transform):
    """Scales inputs and outputs to mean zero and standard deviation one.

    Per component, the same at every point, in double precision. The output of a problem
    in time has the scale of its fields.

    Args:
        mean: mean of the ``F`` components of the input.
        std: their standard deviations.
        out_mean: mean of the ``C`` components of the output.
        out_std: their standard deviations.
    """

    def __init__(
        self,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        out_mean: Sequence[float],
        out_std: Sequence[float],
    ) -> None:
        super().__init__(mean=mean, std=std, out_mean=out_mean, out_std=out_std)
        self.fields = FieldNormaliser(_doubles(mean), _doubles(std))
        self.results = FieldNormaliser(_doubles(out_mean), _doubles(out_std))

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        inputs, results = statistics.inputs, statistics.fields
        mean, std = inputs.mean.tolist(), inputs.scale.tolist()
        out_mean, out_std = results.mean.tolist(), results.scale.tolist()
        if statistics.n_in:  # a field that is predicted from itself keeps one scale
            if wanted.series is not None:  # of anomalies
                own = wanted.series.std.tolist()
                mean[: len(own)], std[: len(own)] = [0.0] * len(own), own
            out_mean, out_std = mean[: len(out_mean)], std[: len(out_std)]
        return cls(mean=mean, std=std, out_mean=out_mean, out_std=out_std)

    def inputs(self, given: Given) -> Given:
        return replace(given, x=self.fields.normalise(given.x))

    def outputs(self, prediction: Tensor, given: Given) -> Tensor:
        return self.results.denormalise(prediction)


def _doubles(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
