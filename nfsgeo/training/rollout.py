"""Predictions further ahead than a model was trained for, window by window."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import Graphs
from nfsgeo.training.module import Forecaster

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
) -> Tensor:
    """Predicted fields at as many time steps as asked for, autoregressively.

    The predictions at the observed points are the inputs of the next window, together
    with as many of the last inputs as it takes; coefficients stay. Each window has the
    forcing of its own time steps, or the last one that is known where it reaches
    further.

    Args:
        forecaster: Trained on windows of ``n_in`` and ``n_out`` time steps.
        x: Fields ``[N, n_in, F]``, in the units of the data.
        pos: Positions ``[N, d]``.
        steps: Number of time steps to predict.
        batch: Sample of each point ``[N]``; None for one sample.
        graphs: From ``forecaster.connect``, with the query points if there are any.
        forcing: What is known ahead, ``[N, n_in + steps, C_f]``; None where the model
            was trained without.
        times: For a model of lead times, of the inputs and of what is predicted,
            ``[n_in + steps]`` or those of each sample. A window has as many time steps
            as in training.

    Returns:
        ``[M, steps, C]``, at the query points or else at the observed ones.

    Raises:
        UserError: The model has no time.
    """
    if not forecaster.model.problem.has_time:
        raise UserError(
            f"{steps} time steps of a problem without time",
            "a model that was trained on fields in time",
            "leave the number of time steps out",
        )
    graphs = graphs or forecaster.connect(pos, batch)
    observed = graphs
    if graphs.query_pos is not None:
        observed = forecaster.connect(pos, graphs.batch)
    fields = len(forecaster.outputs.mean)
    window, found, done = x, [], 0
    while True:
        known = _window(forecaster, forcing, times, done)
        found.append(forecaster(window, pos, batch, graphs=graphs, **known))
        done += found[-1].size(1)
        if done >= steps:
            return torch.cat(found, dim=1)[:, :steps]
        here = found[-1]
        if graphs is not observed:
            here = forecaster(window, pos, batch, graphs=observed, **known)
        last = torch.cat([window[..., :fields], here], dim=1)[:, -x.size(1) :]
        window = torch.cat([last, x[..., fields:]], dim=-1)


def _window(
    forecaster: Forecaster, forcing: Tensor | None, times: Tensor | None, start: int
) -> dict[str, Tensor | None]:
    """What is known of the window whose input begins at a time step of the first."""
    problem = forecaster.model.problem
    num = problem.n_in + problem.n_out
    if times is not None:
        times = times[..., start : start + len(forecaster.description["times"])]
        num = times.size(-1)
    if forcing is not None:
        steps = torch.arange(start, start + num).clamp(max=forcing.size(1) - 1)
        forcing = forcing[:, steps.to(forcing.device)]
    return {"forcing": forcing, "times": times}
