"""`gcgru`: gated recurrent units with Chebyshev convolutions, on any points."""

from __future__ import annotations

from nfsgeo.models.graph_settings import graph_builder
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import RecurrentOperator
from nfsgeo.models.recurrent_settings import RecurrentSettings, cell_inputs
from nfsgeo.models.supports import ChebyshevSupports
from nfsgeo.nn import ChebConvGRU

__all__ = ["build_gcgru"]


def build_gcgru(problem: Problem, settings: RecurrentSettings) -> RecurrentOperator:
    """Chebyshev gated recurrent units as encoder and decoder.

    After "Structured Sequence Modeling with Graph Convolutional Recurrent Networks".
    """
    return RecurrentOperator(
        problem,
        cells=[
            ChebConvGRU(channels, settings.width, settings.order)
            for channels in cell_inputs(problem, settings)
        ],
        supports=ChebyshevSupports(graph_builder(problem, settings)),
        residual=settings.residual,
        sampling_decay=settings.sampling_decay,
    )
