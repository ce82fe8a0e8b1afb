"""Distance and direction to the nearest boundary as inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem

__all__ = ["BoundaryInputs"]


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
        return replace(given, features=(*given.features, boundary))
