"""Normalisation of inputs and outputs, and the filling in of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.missing_values import fill_in_space, fill_in_time, neighbour_graph

__all__ = ["FieldNormaliser", "MissingValues", "Normalise"]


class FieldNormaliser(nn.Module):
    """Shifts and scales each component of a field, the same at every point.

    A statistic per point would belong to one mesh; these hold on any mesh. Scaling is
    in double precision, so that small changes of a large value keep their digits.

    Args:
        mean: Mean of each component, ``[F]``.
        std: Standard deviation of each component, ``[F]``. If it is 0, every value
            denormalises to the mean.

    Raises:
        ValueError: Their lengths differ, or a standard deviation is negative.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, mean: Tensor | Sequence[float], std: Tensor | Sequence[float]
    ) -> None:
        super().__init__()
        mean = torch.as_tensor(mean, dtype=torch.float64)
        std = torch.as_tensor(std, dtype=torch.float64)
        if mean.shape != std.shape or mean.ndim != 1 or not bool((std >= 0).all()):
            raise ValueError(
                f"mean {tuple(mean.shape)} and std {tuple(std.shape)}: expected two "
                "vectors of one length, std not negative"
            )
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def normalise(self, x: Tensor) -> Tensor:
        """Subtract the mean and divide by the standard deviation, in float64.

        Args:
            x: Field ``[..., F]``.
        """
        return (x - self.mean) / self.std.where(self.std > 0, 1)

    def denormalise(self, y: Tensor) -> Tensor:
        """Return a field in the units of the data, in float64.

        Args:
            y: Normalised field ``[..., F]``.
        """
        return y * self.std + self.mean

    def extra_repr(self) -> str:
        return f"mean={self.mean.tolist()}, std={self.std.tolist()}"


class Normalise(Transform):
    """Scales inputs and outputs to mean zero and standard deviation one.

    Per component, the same at every point, in double precision. The output of a problem
    in time has the scale of its fields.

    Args:
        mean: mean of the ``F`` components of the input.
        std: their standard deviations.
        out_mean: mean of the ``C`` components of the output.
        out_std: their standard deviations; 0 of a component that never changes in
            training, which direct prediction sets to its mean.
        observed: standard deviations of the input in the training data, in which noise
            is measured; unlike ``std`` never those of anomalies or of another run.
    """

    fitted = "mean", "std", "out_mean", "out_std"

    def __init__(
        self,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        out_mean: Sequence[float],
        out_std: Sequence[float],
        observed: Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            mean=mean, std=std, out_mean=out_mean, out_std=out_std, observed=observed
        )
        observed = std if observed is None else observed
        self.observed = torch.tensor(observed, dtype=torch.float64)
        self.fields = FieldNormaliser(mean, std)
        self.results = FieldNormaliser(out_mean, out_std)
        self.all_vary = all(std > 0 for std in out_std)

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        inputs, results = statistics.inputs, statistics.fields
        mean, std = inputs.mean.tolist(), inputs.scale.tolist()
        out_mean, out_std = results.mean.tolist(), results.scale.tolist()
        if statistics.n_in:  # a field that is predicted from itself keeps one scale
            if options.base_forecast is not None:  # of anomalies
                scale = options.base_forecast.std.tolist()
                mean[: len(scale)], std[: len(scale)] = [0.0] * len(scale), scale
            out_mean, out_std = mean[: len(out_mean)], std[: len(out_std)]
        if options.prediction == "direct" or not statistics.n_in:
            varies = (results.std > 0).tolist()
            out_std = [s * v for s, v in zip(out_std, varies, strict=True)]
        observed = inputs.scale.tolist()
        for column in statistics.categories:  # which have neither a size nor noise
            mean[column], std[column], observed[column] = 0.0, 1.0, 0.0
        return cls(
            mean=mean, std=std, out_mean=out_mean, out_std=out_std, observed=observed
        )

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        x, query_x = self.fields.normalise(batch.x), batch.query_x
        if query_x is not None:
            query_x = self.fields.normalise(query_x)
        batch = replace(batch, x=x, query_x=query_x)
        if self.all_vary:
            return batch
        return replace(batch, factor=(self.results.std > 0).double())

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        return self.results.normalise(target)

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        return self.results.denormalise(prediction)


class MissingValues(Transform):
    """Fills in missing values, NaN, and adds an indicator of each component.

    Values come from the time steps before and after at the same point, otherwise from
    observed neighbours, see :mod:`nfsgeo.nn.missing_values`. A model whose training
    data were complete has no indicators, but its missing inputs are filled in, too.

    Args:
        trend: damped trend of each component; empty if training data are complete.
        indicators: number of components with an indicator, which is 1 where the
            component is observed and 0 where it is filled in.
        gaps: whether training data have missing values.
    """

    def __init__(self, *, trend: Sequence[float], indicators: int, gaps: bool) -> None:
        super().__init__(trend=trend, indicators=indicators, gaps=gaps)
        self.trend, self.indicators, self.gaps = tuple(trend), indicators, gaps

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        gaps, trend = options.gaps, statistics.trend
        if options.base_forecast is not None:  # which was fitted to held values
            trend = [0.0] * len(trend)
        return cls(trend=trend if gaps else [], indicators=len(trend) * gaps, gaps=gaps)

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        num = problem.in_components + self.indicators
        return replace(problem, in_components=num)

    def connect(self, graphs: Graphs) -> Graphs:
        return self._with_neighbours(graphs) if self.gaps else graphs

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        filled = self.filled(batch.x, batch.graphs)
        if not self.indicators:
            return replace(batch, x=filled)
        observed = (~batch.x[..., : self.indicators].isnan()).to(filled)
        return replace(batch, x=filled).with_feature(observed)

    def filled(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Fill in the missing values of normalised fields.

        Args:
            x: Fields ``[N, n_in, F]``, NaN where a value is missing.
            graphs: Result of :meth:`connect`.
        """
        if not self.gaps:
            # Training data are known to be complete; asking would wait for the device.
            complete = self.training or torch.compiler.is_compiling()
            if complete or not bool(x.isnan().any()):
                return x
        if "neighbours" not in graphs.edges:
            graphs = self._with_neighbours(graphs)
        trend = x.new_zeros(x.size(-1))
        trend[: len(self.trend)] = x.new_tensor(self.trend)
        return fill_in_space(fill_in_time(x, trend), graphs.edges["neighbours"])

    def _with_neighbours(self, graphs: Graphs) -> Graphs:
        return graphs.with_edges(
            "neighbours", lambda pos, _: neighbour_graph(pos, self.domain)
        )
