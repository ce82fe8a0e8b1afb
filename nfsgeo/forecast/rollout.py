"""Predictions further ahead than training, by autoregressive rollout."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.forecast.forecaster import Forecaster
from nfsgeo.geometry import Graphs

__all__ = ["rollout"]


@torch.no_grad()
def rollout(
    forecaster: Forecaster,
    x: Tensor,
    pos: Tensor,
    steps: int,
    batch: Tensor | None = None,
    *,
    graphs: Graphs | None = None,
    forcing: Tensor | None = None,
    times: Tensor | None = None,
    query_static: Tensor | None = None,
) -> Tensor:
    """Predict fields ``[M, steps, C]`` further ahead than the model was trained for.

    The last ``n_in`` time steps of inputs and predictions at the observed points are
    the fields of the next window; static inputs stay. Each window has the forcing of
    its own time steps; where it is not known that far, its last value is held.

    Args:
        forecaster: Model of windows of ``n_in`` and ``n_out`` time steps.
        x: Fields and static inputs ``[N, n_in, F]`` in the units of the data.
        pos: Positions ``[N, d]``.
        steps: Number of time steps to predict.
        batch: Sample of each point ``[N]``, sorted; ``None`` for one sample.
        graphs: Result of ``forecaster.connect``, with the query points if any.
        forcing: Forcing ``[N, n_in + steps, C_f]``.
        times: Times ``[n_in + steps]``, or ``[S, n_in + steps]`` of each sample.
        query_static: Static inputs at the query points ``[M, C_s]``.

    Raises:
        UserError: The model has no time.
    """
    task = forecaster.task
    if not task.has_time:
        raise UserError(
            f"{steps} time steps of a problem without time",
            "a model that was trained on fields in time",
            "leave the number of time steps out",
        )
    graphs = graphs or forecaster.connect(pos, batch)
    observed = graphs
    if graphs.query_pos is not None:
        observed = forecaster.connect(pos, graphs.batch)
    fields, num = len(task.components), task.n_in + task.n_out
    window, predictions, done = x, list[Tensor](), 0
    if times is not None and not task.any_time:  # the last window may end later
        step = times[..., -1:] - times[..., -2:-1]
        later = times[..., -1:] + step * torch.arange(1, num + 1).to(step)
        times = torch.cat([times, later], dim=-1)
    while True:
        ahead, size = {"forcing": forcing, "times": None}, num
        if times is not None:
            ahead["times"] = asked = times[..., done : done + num]
            size = asked.size(-1)
        if forcing is not None:
            index = torch.arange(done, done + size).clamp(max=forcing.size(1) - 1)
            ahead["forcing"] = forcing[:, index.to(forcing.device)]
        u = forecaster(window, graphs=graphs, query_static=query_static, **ahead)
        predictions.append(u)
        done += u.size(1)
        if done >= steps:
            return torch.cat(predictions, dim=1)[:, :steps]
        if graphs is not observed:
            u = forecaster(window, graphs=observed, **ahead)
        joint = torch.cat([window[..., :fields], u], dim=1)[:, -x.size(1) :]
        window = torch.cat([joint, x[..., fields:]], dim=-1)
