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
    """Predicted fields ``[M, steps, C]``, further ahead than the model was trained for.

    The predictions at the observed points are the inputs of the next window, together
    with as many of the last inputs as it takes; static inputs stay. Each window has the
    forcing of its own time steps, or the last one that is known where it reaches
    further.

    Args:
        forecaster: trained on windows of ``n_in`` and ``n_out`` time steps.
        x: fields ``[N, n_in, F]`` in the units of the data.
        pos: positions ``[N, d]``.
        batch: sample of each point ``[N]``, sorted; ``None`` for one sample.
        steps: number of time steps to predict.
        graphs: from ``forecaster.connect``, with the query points if there are any.
        forcing: what is known ahead, ``[N, n_in + steps, C_f]``.
        times: ``[n_in + steps]`` or those of each sample.
        query_static: static inputs at the query points ``[M, C_s]``.

    Raises:
        UserError: the model has no time.
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
    window, found, done = x, [], 0
    if times is not None and not task.any_time:  # the last window may end later
        step = times[..., -1:] - times[..., -2:-1]
        later = times[..., -1:] + step * torch.arange(1, num + 1).to(step)
        times = torch.cat([times, later], dim=-1)
    while True:
        known: dict[str, Tensor | None] = {"forcing": None, "times": None}
        if times is not None:
            known["times"] = times[..., done : done + num]
        if forcing is not None:
            here = num if times is None else known["times"].size(-1)  # type: ignore[union-attr]
            last = torch.arange(done, done + here).clamp(max=forcing.size(1) - 1)
            known["forcing"] = forcing[:, last.to(forcing.device)]
        asked = {"graphs": graphs, "query_static": query_static}
        found.append(forecaster(window, **asked, **known))
        done += found[-1].size(1)
        if done >= steps:
            return torch.cat(found, dim=1)[:, :steps]
        at_points = found[-1]
        if graphs is not observed:
            at_points = forecaster(window, graphs=observed, **known)
        joint = torch.cat([window[..., :fields], at_points], dim=1)[:, -x.size(1) :]
        window = torch.cat([joint, x[..., fields:]], dim=-1)
