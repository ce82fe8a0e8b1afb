"""Forecasters around networks whose predictions are known."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfsgeo.forecast import Forecaster, transforms
from nfsgeo.geometry import Domain
from nfsgeo.models import Task


@pytest.fixture(scope="session")
def everything() -> Forecaster:
    """A small network behind nearly all transforms: gaps, a forcing, residuals.

    From three time steps at 40 points to two; it is not trained.
    """
    names: dict[str, Any] = {"components": ("u",), "static": ("a",), "forcings": ("f",)}
    names |= {"mean": (0.5,), "std": (2.0,), "domain": Domain.unit(2)}
    task = Task(n_in=3, n_out=2, times=(-2, -1, 0, 1, 2), num_points=40, **names)
    scale: dict[str, Any] = {"mean": [0.5, 1.0], "std": [2.0, 3.0]}
    stack = [
        transforms.Normalise(**scale, out_mean=[0.5], out_std=[2.0]),
        transforms.TrainingNoise(std=0.1, components=1),
        transforms.MissingValues(trend=[0.7], indicators=1, gaps=True),
        transforms.Forcings(mean=[1.0], std=[4.0]),
        transforms.Residual(form="residual", mean=[0.1], std=[0.3]),
    ]
    sizes = {"width": 8, "modes": 2, "time_modes": 2, "depth": 1, "hidden": 8}
    torch.manual_seed(0)
    return Forecaster.build("nfs", sizes | {"grid": 8}, task, stack).eval()


class Reached(Exception):
    """Carries the inputs of a network."""


@pytest.fixture(scope="session")
def network_inputs() -> Callable[[Forecaster, Tensor, Tensor], Tensor]:
    """Finds what the network behind the transforms gets of fields at points."""

    def look(forecaster: Forecaster, x: Tensor, pos: Tensor) -> Tensor:
        def stop(model: object, arguments: tuple[Tensor, ...]) -> None:
            raise Reached(arguments[0])

        graphs = forecaster.connect(pos)
        with (
            forecaster.model.register_forward_pre_hook(stop),
            pytest.raises(Reached) as reached,
        ):
            forecaster.predict_batch(Data(x=x, graphs=graphs))
        found: Tensor = reached.value.args[0]
        return found

    return look
