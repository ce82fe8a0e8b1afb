"""`gcgru`: gated recurrent units with Chebyshev convolutions, on any points."""

from __future__ import annotations

from nfsgeo.models.graph_settings import point_graphs
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import RecurrentOperator
from nfsgeo.models.recurrent_settings import RecurrentSettings, cell_inputs
from nfsgeo.models.supports import RadiusSupports
from nfsgeo.nn import ChebConvGRU, chebyshev_support

__all__ = ["build_gcgru"]


def build_gcgru(problem: Problem, settings: RecurrentSettings) -> RecurrentOperator:
    """Chebyshev gated recurrent units as encoder and decoder.

    After "Structured Sequence Modeling with Graph Convolutional Recurrent Networks".
    """
    return RecurrentOperator(
        problem,
        name="gcgru",
        cells=[
            ChebConvGRU(channels, settings.width, settings.order)
            for channels in cell_inputs(problem, settings)
        ],
        supports=RadiusSupports(point_graphs(problem, settings), chebyshev_support),
        residual=settings.residual,
        sampling_decay=settings.sampling_decay,
    )
