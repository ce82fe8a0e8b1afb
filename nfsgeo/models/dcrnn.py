"""`dcrnn`: gated recurrent units with diffusion convolutions, on any points."""

from __future__ import annotations

from nfsgeo.models.graph_settings import point_graphs
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import RecurrentOperator
from nfsgeo.models.recurrent_settings import RecurrentSettings, cell_inputs
from nfsgeo.models.supports import RadiusSupports
from nfsgeo.nn import DiffusionGRU, diffusion_supports

__all__ = ["build_dcrnn"]


def build_dcrnn(problem: Problem, settings: RecurrentSettings) -> RecurrentOperator:
    """Diffusion gated recurrent units as encoder and decoder.

    After "Diffusion Convolutional Recurrent Neural Network: Data-Driven Traffic
    Forecasting".
    """
    return RecurrentOperator(
        problem,
        name="dcrnn",
        cells=[
            DiffusionGRU(channels, settings.width, settings.order)
            for channels in cell_inputs(problem, settings)
        ],
        supports=RadiusSupports(point_graphs(problem, settings), diffusion_supports),
        residual=settings.residual,
        sampling_decay=settings.sampling_decay,
    )
