"""Settings that models share."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from nfsgeo.geometry import GraphBuilder, radius_for
from nfsgeo.models.task import Problem

__all__ = ["PAPER_FOURIER", "GraphSettings", "ModelSettings", "SpectralSettings"]

# The paper keeps so many modes in any dimension.
PAPER_MODES, LINE_MODES = 8, 64
PAPER_FOURIER: dict[str, Any] = {"depth": 3, "modes": PAPER_MODES}


class ModelSettings(BaseModel):
    """Base of the settings classes of models: typed fields with defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def completed(self, problem: Problem) -> Self:
        """The settings with what they leave to the problem; by default, themselves."""
        return self


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
    backend: Literal["auto", "scipy", "torch_cluster"] = "auto"

    def builder(self, problem: Problem, num_ends: int | None = None) -> GraphBuilder:
        """Builds graphs with this radius, in the normalised domain.

        Args:
            problem: domain and number of points.
            num_ends: the number ``n`` that the radius depends on; ``None`` for that of
                the points.
        """
        domain = problem.domain.normalised
        if self.radius is None:
            ends = num_ends or problem.num_points
            radius = radius_for(ends, domain, self.radius_factor)
        else:
            radius = problem.domain.normalised_length(self.radius)
        return GraphBuilder(domain, radius, backend=self.backend)


class SpectralSettings(ModelSettings):
    """Settings of layers in Fourier space.

    Attributes:
        width: channels.
        depth: number of layers.
        modes: non-negative frequencies kept on every space axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more.
    """

    width: PositiveInt = 32
    depth: PositiveInt = 2
    modes: PositiveInt | None = None

    def modes_of(self, problem: Problem) -> int:
        """Non-negative frequencies on every space axis of ``problem``."""
        if problem.domain.dim > 1:
            return self.modes or PAPER_MODES
        return self.modes or max(1, min(LINE_MODES, problem.num_points // 2))
