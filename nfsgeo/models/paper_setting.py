"""The setting of the paper's complexity table, and the models' sizes there."""

from __future__ import annotations

import torch

from nfsgeo.geometry import Domain
from nfsgeo.models.catalogue import MODELS, build_model, num_parameters
from nfsgeo.models.problem import Problem

__all__ = ["PAPER_PROBLEM", "parameters_at_paper_setting"]

# Navier-Stokes, r = 64, n_t = 10, n'_t = 40.
PAPER_PROBLEM = Problem(
    domain=Domain.unit(2),
    in_components=1,
    out_components=1,
    n_in=10,
    n_out=40,
    num_points=64**2,
    grid_shape=(64, 64),
    has_time=True,
)


def parameters_at_paper_setting(name: str) -> int:
    """Number of parameters of the model ``name`` as the paper sets it.

    To hold beside :attr:`ModelInfo.parameters_paper`, which for the four models on
    patches counts a layer more, 33,792 parameters that the authors make and never
    use. Nothing is allocated.
    """
    with torch.device("meta"):
        return num_parameters(build_model(name, PAPER_PROBLEM, MODELS[name].paper))
