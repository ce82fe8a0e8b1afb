"""Lead times: a model that is asked for any time after its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted
from nfsgeo.models import Problem

__all__ = ["LeadTimes"]


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
        time = at_points.to(given.x)[..., None].expand(given.x.size(0), -1, -1)
        known = time
        if given.known is not None:
            known = torch.cat([given.known.to(time), time], dim=-1)
        found = []
        for step in range(n_in, leads.size(1)):
            here = torch.cat([known[:, :n_in], known[:, step : step + 1]], dim=1)
            found.append(predict(replace(given, known=here, lead=leads[:, step])))
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)
