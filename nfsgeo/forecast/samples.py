"""Predictions from arrays, tensors and graphs, in their own kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.times import as_times
from nfsgeo.errors import UserError
from nfsgeo.forecast.checks import check_shapes, check_values
from nfsgeo.models import Task

__all__ = ["predict_samples"]


@torch.no_grad()
def predict_samples(
    forecaster: nn.Module, task: Task, data: Any, pos: Any, known: Mapping[str, Any]
) -> Any:
    """What :meth:`nfsgeo.forecast.Forecaster.predict` returns.

    Args:
        forecaster: its mode, of training or of evaluation, is kept.
        task: what it maps.
        data: fields, ``Data``, a list of either, or a ``Batch``.
        pos: positions of the fields.
        known: ``query_pos``, ``forcing`` and ``times``.

    Raises:
        UserError: something is no array of finite numbers, fields have no positions or
            others than their own, or times do not follow one another.
    """
    if isinstance(data, Batch):
        found = predict_samples(forecaster, task, data.to_data_list(), pos, known)
        if len({each.y.size(1) for each in found}) > 1:
            raise UserError(
                "a Batch whose graphs ask for different numbers of times",
                "as many in all of them",
                "give the graphs as a list",
            )
        return Batch.from_data_list(found)
    several = isinstance(data, list | tuple)
    training = forecaster.training
    forecaster.eval()
    try:
        samples = data if several else [data]
        found = [_predicted(forecaster, task, each, pos, known) for each in samples]
    finally:
        forecaster.train(training)
    return found if several else found[0]


def _predicted(
    forecaster: nn.Module, task: Task, sample: Any, pos: Any, known: Mapping[str, Any]
) -> Any:
    given = {"x": sample, "pos": pos, **known}
    device = next(forecaster.parameters()).device
    if isinstance(sample, Data):
        given = {name: sample.get(name, value) for name, value in known.items()}
        given |= {"x": sample.x, "pos": sample.pos}
        if not task.needs_times:  # the samples of a data set have times for every model
            given["times"] = None
    if given["x"] is None or given["pos"] is None:
        raise UserError(
            "fields without positions" if given["pos"] is None else "positions alone",
            "x [n, n_in, F] and pos [n, d]",
            "give both: forecaster.predict(x, pos), or Data(x=x, pos=pos)",
        )
    arrays = {
        name: _tensor(value, name, device)
        for name, value in given.items()
        if value is not None
    }
    check_shapes(task, 1, arrays)
    static = arrays["x"][..., len(task.components) if task.has_time else 0 :]
    if not bool(((static == static[:, :1]) & static.isfinite()).all()):
        raise UserError(
            "x with a static input that changes in time or is missing",
            "the same finite value at all time steps",
            "repeat the static input, whose components follow those of the field",
        )
    if task.needs_times or "times" not in arrays:
        check_values(task, arrays.get("forcing"), arrays.get("times"))
    out = forecaster(**arrays)
    if isinstance(sample, Data):
        copied = sample.clone()
        copied.y = out.to(sample.x.device)
        return copied
    return out.to(sample.device) if isinstance(sample, Tensor) else out.cpu().numpy()


def _tensor(values: Any, what: str, device: torch.device) -> Tensor:
    """Numbers on a device, all of them finite but for missing values."""
    if what == "times":
        return torch.as_tensor(as_times(values, what), device=device)
    gaps = what in ("x", "forcing")
    numbers = as_real(values, what, gaps=gaps)
    (not_infinite if gaps else finite)(numbers, what)
    given = values if isinstance(values, Tensor) else numbers
    return torch.as_tensor(given, device=device)
