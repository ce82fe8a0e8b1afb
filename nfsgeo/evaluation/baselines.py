"""Predictions that need no learning, as baselines for a model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.meshes import Mesh

__all__ = ["baselines", "linear_extrapolation", "persistence", "training_mean"]

Predictor = Callable[[Batch], Tensor]


def baselines(train: WindowDataset) -> dict[str, Predictor]:
    """Every baseline that applies to the problem, by its name in a summary.

    Persistence needs one observed time step, linear extrapolation two.

    Args:
        train: Training windows, which also give the mean.
    """
    found: dict[str, Predictor] = {}
    components, num_out = train.file.components, train.n_out
    if train.n_in >= 1:
        found["persistence"] = lambda batch: persistence(
            batch.x[..., :components], num_out
        )
    if train.n_in >= 2:
        times = train[0].times
        found["linear_extrapolation"] = lambda batch: linear_extrapolation(
            batch.x[..., :components], times.to(batch.x)
        )
    return found | {"mean": training_mean(train)}


def persistence(u: Tensor, num_out: int) -> Tensor:
    """The last time step of ``u [N, n_in, C]``, repeated: ``[N, num_out, C]``."""
    return u[:, -1:].expand(-1, num_out, -1)


def linear_extrapolation(u: Tensor, times: Tensor) -> Tensor:
    """The straight line through the last two time steps, ``[N, n_out, C]``.

    Args:
        u: Observed fields ``[N, n_in, C]``, at least two time steps.
        times: Times of all time steps ``[n_in + n_out]``.
    """
    before, last = times[u.size(1) - 2 : u.size(1)]
    ahead = (times[u.size(1) :] - last) / (last - before)
    return u[:, -1:] + ahead[:, None] * (u[:, -1:] - u[:, -2:-1])


def training_mean(train: WindowDataset) -> Predictor:
    """The mean of the targets of the training samples.

    It is taken at each point and time step where all samples share one mesh, else at
    each time step over all points.
    """
    shared = isinstance(train.mesh, Mesh)
    total, count = torch.zeros((), dtype=torch.float64), 0
    for item in range(len(train)):
        y = train[item].y.double()
        total = total + (y if shared else y.mean(dim=0, keepdim=True))
        count += 1
    mean = total / count

    def predict(batch: Batch) -> Tensor:
        if shared:
            return mean.to(batch.y).repeat(batch.num_graphs, 1, 1)
        return mean.to(batch.y).expand_as(batch.y)

    return predict
