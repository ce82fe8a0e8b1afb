"""The loop behind every evaluation: predict batch by batch, and score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data import Fields
from nfsgeo.data.connected_batches import Connect, batches
from nfsgeo.data.windows import WindowDataset
from nfsgeo.models import MODELS
from nfsgeo.training import Forecaster, RunConfig
from nfsgeo.training.datamodule import windows
from nfsgeo.training.observation import Observation
from nfsgeo.training.rollout import rollout

__all__ = ["errors_in_parts", "predictions", "scored_windows"]


def scored_windows(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
    part: str = "test",
    *,
    n_out: int | None = None,
) -> WindowDataset:
    """Windows as those of training: without points that have no value at all.

    Args:
        forecaster: The model.
        config: Configuration of the run.
        file: The data.
        mesh: Where the samples are observed.
        part: Which samples, ``test`` or ``train``.
        n_out: Time steps to predict; those of training if None.
    """
    info = MODELS[config.model.name]
    return windows(
        config.data,
        file,
        mesh,
        part,
        n_out=n_out,
        drop_absent=forecaster.missing and info.any_mesh,
        inputs=forecaster.inputs,
    )


@torch.no_grad()
def predictions(
    forecaster: Forecaster,
    windows: WindowDataset,
    batch_size: int,
    *,
    connect: Connect | None = None,
    steps: int | None = None,
    ahead: Tensor | None = None,
) -> Iterator[tuple[Batch, Tensor]]:
    """Batches of samples, in order, with the fields that are predicted for each.

    Args:
        forecaster: On the device to compute on.
        windows: The samples.
        batch_size: Samples per batch.
        connect: Makes the graphs of a sample; the forecaster's own if None.
        steps: Number of time steps to predict, see :func:`~nfsgeo.training.rollout`;
            None for as many as in training.
        ahead: For a model of lead times, the times to predict ``[K]``; None for those
            of the windows.

    Yields:
        A batch and its prediction ``[M, steps, C]``, in the units of the data.
    """
    for batch in batches(windows, batch_size, connect or forecaster.connect):
        batch = batch.to(forecaster.device)
        given, known = (batch.x, batch.pos), forecaster.known_ahead(batch)
        if ahead is not None and (times := known["times"]) is not None:
            asked = ahead.to(times).expand(len(times), -1)
            known["times"] = torch.cat([times[:, : windows.n_in], asked], dim=1)
        more: dict[str, Any] = {"graphs": batch.graphs, **known}
        if steps is None:
            yield batch, forecaster(*given, **more)
        else:
            yield batch, rollout(forecaster, *given, steps, **more)


def errors_in_parts(
    forecaster: Forecaster,
    windows: WindowDataset,
    batch_size: int,
    *,
    num_first: Callable[[int], int] | None = None,
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Errors at all predicted points, at the first ones of each sample, at the others.

    Args:
        forecaster, windows, batch_size: As for :func:`predictions`.
        num_first: Number of first points of a sample; its observed points if None.

    Returns:
        Three times the errors of :class:`~nfsgeo.training.FieldErrors`, NaN where
        there are no points.
    """
    everywhere, first, others = (forecaster.new_errors() for _ in range(3))
    for batch, prediction in predictions(forecaster, windows, batch_size):
        graphs = batch.graphs
        truth = batch.y if graphs.query_sizes is None else batch.query_y
        sample = torch.zeros_like(truth[:, 0, 0], dtype=torch.long)
        if graphs.query_batch is not None:
            sample = graphs.query_batch
        everywhere.update(prediction, truth, sample)
        nums = graphs.sizes
        if num_first is not None:
            nums = tuple(map(num_first, batch.sample.tolist()))
        sizes = graphs.query_sizes or graphs.sizes
        is_first = torch.cat(
            [torch.arange(n) < k for n, k in zip(sizes, nums, strict=True)]
        ).to(forecaster.device)
        for errors, points in ((first, is_first), (others, ~is_first)):
            errors.update(prediction[points], truth[points], sample[points])
    return everywhere.compute(), first.compute(), others.compute()
