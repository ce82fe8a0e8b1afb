"""Settings of models, and those that older checkpoints have or lack."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from nfsgeo.geometry import GraphBuilder, radius_for
from nfsgeo.models.task import Problem

__all__ = ["ADDED", "PAPER_FOURIER", "RETIRED"]
__all__ += ["GraphSettings", "GridSize", "ModelSettings", "SpectralSettings"]
__all__ += ["Strength"]

GridSize = Annotated[int, Field(ge=2)]  # nodes along an axis
Strength = Annotated[float, Field(ge=0, lt=1)]  # of the map of an axis

# Modes in two and more dimensions, as in the paper, and on a line.
PAPER_MODES, LINE_MODES = 8, 64
# Settings of older versions, which the files of their runs name, at their defaults.
RETIRED = {
    "backend": "auto",
    "inputs": True,
    "quadrature": False,
    "radii": 1,
    "sampling_decay": None,
    "shared_by": 4,
}
# Settings that checkpoints of older versions lack, at the values of their models.
ADDED = {"factorised": False, "skip": False, "graph": "radius"}
PAPER_FOURIER: dict[str, Any] = {"depth": 3, "modes": PAPER_MODES}


class ModelSettings(BaseModel):
    """Base class of the settings of models."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: dict[str, Any]) -> dict[str, Any]:
        missing = object()
        return {k: v for k, v in values.items() if v != RETIRED.get(k, missing)}

    def completed(self, problem: Problem) -> Self:
        """Return the settings with those filled in that depend on the problem."""
        return self


class GraphSettings(ModelSettings):
    """Settings of a radius graph.

    Attributes:
        radius_factor: factor ``c`` of the radius at which every point has ``c log n``
            neighbours among ``n`` points on average.
        radius: radius in the units of the positions, instead of ``radius_factor``.
    """

    radius_factor: PositiveFloat = 2.0
    radius: PositiveFloat | None = None

    def builder(self, problem: Problem, num_ends: int | None = None) -> GraphBuilder:
        """Return a builder of graphs in the normalised domain of ``problem``.

        Args:
            problem: sizes and domain of the fields.
            num_ends: number of points on which the radius depends; ``None`` for the
                observed points.
        """
        domain = problem.domain.normalised
        if self.radius is None:
            ends = num_ends or problem.num_points
            radius = radius_for(ends, domain, self.radius_factor)
        else:
            radius = problem.domain.normalised_length(self.radius)
        return GraphBuilder(domain, radius)


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
        """Return the non-negative frequencies on every space axis."""
        if problem.domain.dim > 1:
            return self.modes or PAPER_MODES
        return self.modes or max(1, min(LINE_MODES, problem.num_points // 2))
