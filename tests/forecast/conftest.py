"""Forecasters around networks whose predictions are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import (
    Forcings,
    MissingValues,
    Normalise,
    Residual,
    TrainingNoise,
)
from nfsgeo.geometry import Domain
from nfsgeo.models import Task


@pytest.fixture(scope="session")
def everything() -> Forecaster:
    """A small network behind nearly all transforms: gaps, a forcing, residuals.

    From three time steps at 40 points to two; it is not trained.
    """
    task = Task(
        domain=Domain.unit(2),
        components=("u",),
        static=("a",),
        forcings=("f",),
        mean=(0.5,),
        std=(2.0,),
        n_in=3,
        n_out=2,
        times=(-2, -1, 0, 1, 2),
        num_points=40,
    )
    scale: dict[str, Any] = {"mean": [0.5, 1.0], "std": [2.0, 3.0]}
    transforms = [
        Normalise(**scale, out_mean=[0.5], out_std=[2.0]),
        TrainingNoise(std=0.1, components=1),
        MissingValues(trend=[0.7], indicators=1, gaps=True),
        Forcings(mean=[1.0], std=[4.0]),
        Residual(form="residual", mean=[0.1], std=[0.3]),
    ]
    sizes = {"width": 8, "modes": 2, "time_modes": 2, "depth": 1, "hidden": 8}
    torch.manual_seed(0)
    settings = sizes | {"grid": 8}
    return Forecaster.build("nfs", settings, task, transforms).eval()
