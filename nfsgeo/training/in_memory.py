"""Predictions from arrays, tensors and graphs, in their own kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.times import as_times
from nfsgeo.errors import UserError
from nfsgeo.training.lead_times import check_order, check_times

if TYPE_CHECKING:
    from nfsgeo.training.module import Forecaster

__all__ = ["predict_in_memory"]


@torch.no_grad()
def predict_in_memory(
    forecaster: Forecaster,
    data: Any,
    pos: Any,
    query_pos: Any,
    forcing: Any = None,
    times: Any = None,
) -> Any:
    """What :meth:`nfsgeo.training.Forecaster.predict` returns.

    Args:
        forecaster: Its mode, of training or of evaluation, is kept.
        data: Fields, ``Data``, a list of either, or a ``Batch``.
        pos: Positions of the fields.
        query_pos: Where to predict.
        forcing: What is known ahead.
        times: Of the inputs and of what is asked for.

    Raises:
        UserError: Something is no array of finite numbers, fields have no positions or
            others than their own, or times do not follow one another.
    """
    if isinstance(data, Batch):
        samples = data.to_data_list()
        found = predict_in_memory(forecaster, samples, pos, query_pos, forcing, times)
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
        found = [
            _predicted(forecaster, each, pos, query_pos, forcing, times)
            for each in (data if several else [data])
        ]
    finally:
        forecaster.train(training)
    return found if several else found[0]


def _predicted(
    forecaster: Forecaster,
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
        if forecaster.lead_times:
            times = sample.get("times", times)
    if x is None or pos is None:
        raise UserError(
            "fields without positions" if pos is None else "positions alone",
            "x [n, n_in, F] and pos [n, d]",
            "give both: forecaster.predict(x, pos), or Data(x=x, pos=pos)",
        )
    device, problem = forecaster.device, forecaster.model.problem
    x, pos = _tensor(x, "x", device, gaps=True), _tensor(pos, "pos", device)
    if query_pos is not None:
        query_pos = _tensor(query_pos, "query_pos", device)
    _check_points(x, pos, query_pos, problem.domain.dim)
    _check_static(x[..., problem.out_components if problem.has_time else 0 :])
    if forcing is not None:
        forcing = _tensor(forcing, "forcing", device, gaps=True)
    if times is not None:
        times = torch.as_tensor(as_times(times, "times"), device=device)
    check_times(times, None, None, problem, forecaster.description)
    if times is not None:
        check_order(times, problem.n_in, forecaster.description)
    out = forecaster(x, pos, query_pos=query_pos, forcing=forcing, times=times)
    if isinstance(sample, Data):
        copied = sample.clone()
        copied.y = out.to(sample.x.device)
        return copied
    return out.to(sample.device) if isinstance(sample, Tensor) else out.cpu().numpy()


def _tensor(
    values: Any, what: str, device: torch.device, *, gaps: bool = False
) -> Tensor:
    """Numbers on a device, all of them finite but for gaps."""
    numbers = as_real(values, what, gaps=gaps)
    (not_infinite if gaps else finite)(numbers, what)
    given = values if isinstance(values, Tensor) else numbers
    return torch.as_tensor(given, device=device)


def _check_static(static: Tensor) -> None:
    """Inputs that do not change in time, ``[n, n_in, F]`` without the fields."""
    if not bool(((static == static[:, :1]) & static.isfinite()).all()):
        raise UserError(
            "x with a static input that changes in time or is missing",
            "the same finite value at all time steps",
            "repeat the static input, whose components follow those of the field",
        )


def _check_points(x: Tensor, pos: Tensor, query_pos: Tensor | None, dim: int) -> None:
    given = f"x of shape {list(x.shape)} and pos of shape {list(pos.shape)}"
    expected = f"[n, n_in, F] and [n, {dim}] of the same points"
    fits = pos.ndim == 2 and pos.size(1) == dim and x.ndim == 3 and len(x) == len(pos)
    if fits and query_pos is not None:
        given = f"query_pos of shape {list(query_pos.shape)}"
        expected = f"[m, {dim}]"
        fits = query_pos.ndim == 2 and query_pos.size(1) == dim and len(query_pos) > 0
    if not fits:
        raise UserError(given, expected, "reshape them")
