"""What is added to the inputs: noise, the boundary, what is known ahead, times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem

__all__ = ["BoundaryInputs", "Forcings", "LeadTimes", "TrainingNoise"]


class TrainingNoise(Transform):
    """Adds Gaussian noise to the fields of the input, in training alone.

    Args:
        std: standard deviation, in those of the training data.
        components: how many components of the input are fields; the static inputs
            behind them have no noise.
    """

    def __init__(self, *, std: float, components: int) -> None:
        super().__init__(std=std, components=components)
        self.std, self.components = std, components

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        noisy = statistics.fields if statistics.n_in else statistics.inputs
        std, num = wanted.training_noise, len(noisy.mean)
        return cls(std=std, components=num) if std else None

    def inputs(self, given: Given) -> Given:
        if not self.training:
            return given
        fields, static = given.x.tensor_split([self.components], dim=-1)
        noisy = fields + self.std * torch.randn_like(fields)
        return replace(given, x=torch.cat([noisy, static], dim=-1))


class BoundaryInputs(Transform):
    """Adds distance and direction from each point to the boundary, ``1 + d`` inputs."""

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        return cls() if wanted.boundary else None

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        num = problem.in_components + 1 + problem.domain.dim
        return replace(problem, in_components=num)

    def connect(self, graphs: Graphs) -> Graphs:
        return replace(graphs, boundary=self.domain.to_boundary(graphs.pos))

    def inputs(self, given: Given) -> Given:
        assert given.graphs.boundary is not None
        boundary = given.graphs.boundary.to(given.x)[:, None]
        boundary = boundary.expand(-1, given.x.size(1), -1)
        return given.with_feature(boundary)


class LeadTimes(Transform):
    """Predicts each time that is asked for by itself, with the times as an input.

    The times of the inputs and of the prediction, relative to the last input, become
    the last of what is known ahead.
    """

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        return cls() if statistics.any_time else None

    def sizes(self, problem: Problem) -> Problem:
        return replace(problem, n_out=1)

    def forward(self, given: Given, predict: Callable[[Given], Tensor]) -> Tensor:
        assert given.times is not None
        n_in, graphs = given.x.size(1), given.graphs
        leads = given.times - given.times[:, n_in - 1 : n_in]
        leads = leads.expand(graphs.num_samples, -1)
        at_points = leads if graphs.batch is None else leads[graphs.batch]
        known = at_points.to(given.x)[..., None].expand(given.x.size(0), -1, -1)
        if given.known is not None:
            known = torch.cat([given.known.to(known), known], dim=-1)
        found = []
        for step in range(n_in, leads.size(1)):
            here = torch.cat([known[:, :n_in], known[:, step : step + 1]], dim=1)
            found.append(predict(replace(given, known=here, lead=leads[:, step])))
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)


class Forcings(Transform):
    """Normalises what is known at all time steps, those of the prediction included.

    The network has it in its input, see :meth:`nfsgeo.models.Problem.with_forcing`.

    Args:
        mean: mean of each of the ``C_f`` components, the lead time the last.
        std: their standard deviations.
    """

    def __init__(self, *, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean=mean, std=std)
        self.scale = FieldNormaliser(mean, std)

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        known = statistics.forcings
        if not known.mean.ndim:
            return None
        return cls(mean=known.mean.tolist(), std=known.scale.tolist())

    def sizes(self, problem: Problem) -> Problem:
        problem = replace(problem, forcings=len(self.scale.mean))
        known = problem.folds * problem.forcings
        return replace(problem, in_components=problem.in_components + known)

    def inputs(self, given: Given) -> Given:
        assert given.known is not None
        return replace(given, known=self.scale.normalise(given.known))
