"""The pushforward trick: training windows that start from a prediction."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Batch

if TYPE_CHECKING:
    from nfsgeo.training.steps import TrainingSteps

__all__ = ["pushed"]


def pushed(forecaster: TrainingSteps, batch: Batch, probability: float) -> Batch:
    """A batch that begins, with a probability, with the forecaster's own prediction.

    "Message Passing Neural PDE Solvers", section 3.1: the model predicts a window, and
    from it the next one, whose error alone has a gradient, with respect to the second
    prediction. The distribution of the inputs becomes that of a rollout.

    Args:
        forecaster: Predicts ``n_out`` time steps.
        batch: With ``2 n_out`` target time steps.
        probability: Of the second window; the first is as it came.

    Returns:
        A batch with ``n_out`` target time steps.
    """
    n_in, n_out = batch.x.size(1), forecaster.model.problem.n_out
    first, second = copy(batch), copy(batch)
    for each, start in ((first, 0), (second, n_out)):
        for name in ("y", "query_y"):
            if name in batch:
                each[name] = batch[name][:, start : start + n_out]
        if "forcing" in batch:
            each.forcing = batch.forcing[:, start : start + n_in + n_out]
    if torch.rand(()) >= probability:
        return first
    with torch.no_grad():
        here = _at_observed(forecaster.predict_batch(first), batch)
    fields = torch.cat([batch.x[..., : here.size(-1)], here], dim=1)[:, -n_in:]
    second.x = torch.cat([fields, batch.x[..., here.size(-1) :]], dim=-1)
    return second


def _at_observed(prediction: Tensor, batch: Batch) -> Tensor:
    """What is predicted at the observed points, the first of each sample's queries."""
    if "query_y" not in batch:
        return prediction
    sizes = batch.batch.bincount(minlength=batch.num_graphs).tolist()
    queries = batch.graphs.query_sizes
    parts = zip(prediction.split(queries), sizes, strict=True)
    return torch.cat([part[:size] for part, size in parts])
