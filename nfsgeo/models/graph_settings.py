"""Settings of the radius graph that graph models pass messages on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat

from nfsgeo.geometry import GraphBuilder, radius_for
from nfsgeo.models.problem import Problem

__all__ = ["GraphSettings", "graph_builder"]


class GraphSettings(BaseModel):
    """Settings of the radius graph.

    Attributes:
        radius_factor: the radius is that which gives every point ``c log n`` neighbours
            among ``n`` points on average; this is ``c``.
        radius: the radius itself, in the units of the positions, in place of
            ``radius_factor``.
        backend: of the radius search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    radius_factor: PositiveFloat = 2.0
    radius: PositiveFloat | None = None
    backend: Literal["auto", "scipy", "cell_list", "torch_cluster"] = "auto"


def graph_builder(problem: Problem, settings: GraphSettings) -> GraphBuilder:
    """Graphs from the points of a sample to themselves, in the normalised domain."""
    domain = problem.domain.normalised
    if settings.radius is not None:
        radius = problem.normalised_length(settings.radius)
    else:
        radius = radius_for(problem.num_points, domain, settings.radius_factor)
    return GraphBuilder(domain, radius, backend=settings.backend)
