"""`agcrn`: gated recurrent units on a learned graph, for one mesh alone."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt

from nfsgeo.errors import TooLarge
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import RecurrentOperator
from nfsgeo.models.recurrent_settings import CellSettings, cell_inputs
from nfsgeo.models.supports import LearnedSupports
from nfsgeo.nn import AdaptiveGRU, adjacency_bytes

__all__ = ["AGCRNSettings", "build_agcrn"]

GIB = 2**30


class AGCRNSettings(CellSettings):
    """Settings of `agcrn`, which needs no radius.

    Attributes:
        embedding_size: learned numbers that describe a point.
        max_gib: most memory that the learned graphs may need, in GiB.
    """

    embedding_size: PositiveInt = 2
    max_gib: PositiveFloat = 4.0


def build_agcrn(problem: Problem, settings: AGCRNSettings) -> RecurrentOperator:
    """Adaptive gated recurrent units as encoder and decoder.

    After "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting".

    Raises:
        TooLarge: when the learned graphs would not fit into memory.
    """
    needed = adjacency_bytes(problem.num_points, settings.depth) / GIB
    if needed > settings.max_gib:
        raise TooLarge(
            f"agcrn at {problem.num_points} points, whose learned graphs need "
            f"{needed:.1f} GiB in a training step",
            f"at most max_gib = {settings.max_gib:g} GiB",
            "use fewer points or another model, or raise max_gib if there is room",
        )
    return RecurrentOperator(
        problem,
        cells=[
            AdaptiveGRU(
                problem.num_points,
                channels,
                settings.width,
                settings.order,
                settings.embedding_size,
            )
            for channels in cell_inputs(problem, settings)
        ],
        supports=LearnedSupports(problem.num_points, problem.domain.dim),
        residual=settings.residual,
        sampling_decay=settings.sampling_decay,
    )
