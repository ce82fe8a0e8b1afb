"""Predictions from arrays, tensors and graphs, in their own kind."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch_geometric.data import Data

from nfsgeo.errors import UserError

__all__ = ["predict_in_memory"]


@torch.no_grad()
def predict_in_memory(
    module: LightningModule,
    data: Any,
    pos: Any,
    query_pos: Any,
    forcing: Any = None,
    times: Any = None,
) -> Any:
    """What :meth:`nfsgeo.training.Forecaster.predict` returns.

    Args:
        module: The forecaster; its mode, of training or of evaluation, is kept.
        data: Fields, ``Data``, or a list of either.
        pos: Positions of the fields.
        query_pos: Where to predict.
        forcing: What is known ahead.
        times: Of the inputs and of what is asked for.

    Raises:
        UserError: Fields have no positions.
    """
    several = isinstance(data, list | tuple)
    training = module.training
    module.eval()
    try:
        found = [
            _predicted(module, each, pos, query_pos, forcing, times)
            for each in (data if several else [data])
        ]
    finally:
        module.train(training)
    return found if several else found[0]


def _predicted(
    module: LightningModule,
    sample: Any,
    pos: Any,
    query_pos: Any,
    forcing: Any,
    times: Any,
) -> Any:
    x = sample
    if isinstance(sample, Data):
        x, pos = sample.x, sample.pos
        query_pos = sample.get("query_pos", query_pos)
        forcing = sample.get("forcing", forcing)
        # The samples of a data set have times for every model.
        if module.lead_times:
            times = sample.get("times", times)
    if x is None or pos is None:
        raise UserError(
            "fields without positions" if pos is None else "positions alone",
            "x [n, n_in, F] and pos [n, d]",
            "give both: forecaster.predict(x, pos), or Data(x=x, pos=pos)",
        )
    x, pos, query_pos, forcing, times = (
        None if each is None else torch.as_tensor(each, device=module.device)
        for each in (x, pos, query_pos, forcing, times)
    )
    out = module(x, pos, query_pos=query_pos, forcing=forcing, times=times)
    if isinstance(sample, Data):
        copied = sample.clone()
        copied.y = out.to(sample.x.device)
        return copied
    return out.to(sample.device) if isinstance(sample, Tensor) else out.cpu().numpy()
