"""Forcings: what is known ahead of time is an input of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted
from nfsgeo.models import Problem

__all__ = ["Forcings"]


class Forcings(Transform):
    """Normalises what is known at all time steps, those of the prediction included.

    The network has it in its input, see :meth:`nfsgeo.models.Problem.with_forcing`.

    Args:
        mean: mean of each of the ``C_f`` components, the lead time the last.
        std: their standard deviations.
    """

    def __init__(self, *, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean=mean, std=std)
        double = torch.float64
        scale = torch.tensor(mean, dtype=double), torch.tensor(std, dtype=double)
        self.scale = FieldNormaliser(*scale)

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
