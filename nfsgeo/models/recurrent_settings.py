"""Settings of the recurrent graph models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from nfsgeo.models.graph_settings import GraphSettings
from nfsgeo.models.problem import Problem

__all__ = ["CellSettings", "RecurrentSettings", "cell_inputs"]


class CellSettings(BaseModel):
    """Settings of recurrent cells, as encoder and decoder.

    Attributes:
        width: hidden channels.
        depth: number of cells on top of each other.
        order: terms of every graph convolution, one more than its hops.
        residual: whether the cells predict the change since the last input record, not
            the record itself, where there is time.
        sampling_decay: steps over which scheduled sampling gives up the true records
            that it feeds to the decoder; ``None`` feeds it its own from the start.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: PositiveInt = 64
    depth: PositiveInt = 2
    order: PositiveInt = 2
    residual: bool = True
    sampling_decay: PositiveFloat | None = None


class RecurrentSettings(CellSettings, GraphSettings):
    """Settings of recurrent cells on a radius graph."""


def cell_inputs(problem: Problem, settings: CellSettings) -> list[int]:
    """Input channels of each cell."""
    return [problem.in_components] + [settings.width] * (settings.depth - 1)
