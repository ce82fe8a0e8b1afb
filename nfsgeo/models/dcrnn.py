"""`dcrnn`: gated recurrent units with diffusion convolutions, on any points."""

from __future__ import annotations

from nfsgeo.models.graph_settings import graph_builder
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import RecurrentOperator
from nfsgeo.models.recurrent_settings import RecurrentSettings, cell_inputs
from nfsgeo.models.supports import DiffusionSupports
from nfsgeo.nn import DiffusionGRU

__all__ = ["build_dcrnn"]


def build_dcrnn(problem: Problem, settings: RecurrentSettings) -> RecurrentOperator:
    """Diffusion gated recurrent units as encoder and decoder.

    After "Diffusion Convolutional Recurrent Neural Network: Data-Driven Traffic
    Forecasting".
    """
    return RecurrentOperator(
        problem,
        cells=[
            DiffusionGRU(channels, settings.width, settings.order)
            for channels in cell_inputs(problem, settings)
        ],
        supports=DiffusionSupports(graph_builder(problem, settings)),
        residual=settings.residual,
        sampling_decay=settings.sampling_decay,
    )
