"""Further inputs of a network: noise, boundary distances, forcings and lead times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.forecast.transforms.values import FieldNormaliser
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem

__all__ = ["BoundaryInputs", "Forcings", "LeadTimes", "TrainingNoise"]


class TrainingNoise(Transform):
    """Adds Gaussian noise to the fields of the input, in training only.

    Args:
        std: Standard deviation, in that of the training data.
        components: Number of components of the input that are fields; the static inputs
            after them have no noise.
    """

    def __init__(self, *, std: float, components: int) -> None:
        super().__init__(std=std, components=components)
        self.std, self.components = std, components

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        noisy = statistics.fields if statistics.n_in else statistics.inputs
        std, num = options.training_noise, len(noisy.mean)
        return cls(std=std, components=num) if std else None

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        if not self.training:
            return batch
        fields, static = batch.x.tensor_split([self.components], dim=-1)
        noisy = fields + self.std * torch.randn_like(fields)
        return replace(batch, x=torch.cat([noisy, static], dim=-1))


class BoundaryInputs(Transform):
    """Adds distance and direction from each point to the boundary, ``1 + d`` inputs."""

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        return cls() if options.boundary else None

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        num = problem.in_components + 1 + problem.domain.dim
        return replace(problem, in_components=num)

    def connect(self, graphs: Graphs) -> Graphs:
        return replace(graphs, boundary=self.domain.to_boundary(graphs.pos))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        assert batch.graphs.boundary is not None
        boundary = batch.graphs.boundary.to(batch.x)[:, None]
        return batch.with_feature(boundary.expand(-1, batch.x.size(1), -1))


class LeadTimes(Transform):
    """Makes the lead time an input, with one call of the network per predicted time.

    The times of the inputs and of the prediction, relative to the last input, become
    the last component of the forcing.
    """

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        return cls() if statistics.any_time else None

    def sizes(self, problem: Problem) -> Problem:
        return replace(problem, n_out=1)

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        assert batch.times is not None
        n_in, graphs = batch.x.size(1), batch.graphs
        leads = batch.times - batch.times[:, n_in - 1 : n_in]
        leads = leads.expand(graphs.num_samples, -1)
        at_points = leads if graphs.batch is None else leads[graphs.batch]
        forcing = at_points.to(batch.x)[..., None].expand(batch.x.size(0), -1, -1)
        if batch.forcing is not None:
            forcing = torch.cat([batch.forcing.to(forcing), forcing], dim=-1)
        return replace(batch, forcing=forcing, lead=leads[:, -1])


class Forcings(Transform):
    """Normalises forcings, which are known at all time steps including predicted ones.

    Args:
        mean: Mean of each of the ``C_f`` components, the lead time the last.
        std: Their standard deviations.
    """

    def __init__(self, *, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean=mean, std=std)
        self.scale = FieldNormaliser(mean, std)

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        moments = statistics.forcings
        if not moments.mean.ndim:
            return None
        return cls(mean=moments.mean.tolist(), std=moments.scale.tolist())

    def sizes(self, problem: Problem) -> Problem:
        return replace(problem, forcings=len(self.scale.mean))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        assert batch.forcing is not None
        return replace(batch, forcing=self.scale.normalise(batch.forcing))
