"""Settings of the radius graph that graph models pass messages on."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat

from nfsgeo.geometry import GraphBuilder, radius_for
from nfsgeo.models.base import ModelSettings
from nfsgeo.models.problem import Problem

__all__ = ["PAPER_RADIUS", "GraphSettings", "graph_builder", "radius_of"]

# The paper's radius on the unit box, whatever the number of points.
PAPER_RADIUS = 0.05


class GraphSettings(ModelSettings):
    """Settings of the radius graph.

    Attributes:
        radius_factor: the factor ``c`` of the radius at which every point has
            ``c log n`` neighbours among ``n`` points on average.
        radius: the radius itself, in the units of the positions, in place of
            ``radius_factor``.
        backend: of the radius search.
    """

    radius_factor: PositiveFloat = 2.0
    radius: PositiveFloat | None = None
    backend: Literal["auto", "scipy", "cell_list", "torch_cluster"] = "auto"


def radius_of(
    problem: Problem, settings: GraphSettings, num_ends: int | None = None
) -> float:
    """The radius in the normalised domain.

    Args:
        problem: domain and number of points.
        settings: of the radius.
        num_ends: the number ``n`` that it depends on; ``None`` for that of the points.
    """
    if settings.radius is not None:
        return problem.normalised_length(settings.radius)
    num_ends = num_ends or problem.num_points
    return radius_for(num_ends, problem.domain.normalised, settings.radius_factor)


def graph_builder(
    problem: Problem, settings: GraphSettings, num_ends: int | None = None
) -> GraphBuilder:
    """Builds graphs with the radius of :func:`radius_of`, in the normalised domain."""
    radius = radius_of(problem, settings, num_ends)
    return GraphBuilder(problem.domain.normalised, radius, backend=settings.backend)
