"""Errors of a model and of the baselines on samples it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch_geometric.data import Batch

from nfsgeo.data.connected_batches import batches
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.meshes import Mesh
from nfsgeo.evaluation.baselines import baselines
from nfsgeo.training import ErrorByTimeStep, Forecaster

__all__ = ["Evaluation", "evaluate"]

EXAMPLES = 4


@dataclass(frozen=True)
class Evaluation:
    """What a pass over samples finds, in the units of the data.

    Attributes:
        errors: ``mae``, ``rmse`` and ``rel_l2``; of ``"model"`` and each baseline.
            Pooled where there are several components, see
            :class:`~nfsgeo.training.FieldErrors`.
        components: Errors of each of several components, likewise; empty for one.
        by_record: Mean absolute error at each predicted time step, likewise:
            ``[n_out]``, of each of several components ``[n_out, C]``.
        points: Smallest and largest number of points of a sample.
        examples: A few samples whole: ``sample`` ``[S]``, ``pos`` ``[n, d]``, ``times``
            ``[n_in + n_out]``, ``x``, ``truth`` and ``prediction`` ``[S, n, ...]``.
    """

    errors: dict[str, dict[str, float]]
    components: dict[str, list[dict[str, float]]]
    by_record: dict[str, NDArray[Any]]
    points: tuple[int, int]
    examples: dict[str, NDArray[Any]]


@torch.no_grad()
def evaluate(
    forecaster: Forecaster,
    test: WindowDataset,
    train: WindowDataset,
    *,
    batch_size: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Predicts every sample once, batch by batch.

    Args:
        forecaster: On the device to compute on.
        test: The samples.
        train: Training samples, for the mean that is one of the baselines.
        batch_size: Samples of a batch.
        progress: Called with the number of samples done and in all.
    """
    predictors = {
        "model": lambda batch: forecaster(batch.x, batch.pos, graphs=batch.graphs)
    }
    predictors |= baselines(train)
    errors = {name: forecaster.new_errors() for name in predictors}
    by_record = {
        name: ErrorByTimeStep(test.n_out, test.file.components).to(forecaster.device)
        for name in predictors
    }
    examples: list[dict[str, torch.Tensor]] = []
    # Samples on meshes of their own do not stack; one of them has to do.
    wanted = EXAMPLES if isinstance(test.mesh, Mesh) else 1
    done = 0
    sizes: set[int] = set()
    for batch in batches(test, batch_size, forecaster.connect):
        batch = batch.to(forecaster.device)
        for name, predict in predictors.items():
            prediction = predict(batch)
            errors[name].update(prediction, batch.y, batch.batch)
            by_record[name].update(prediction, batch.y)
            if name == "model" and len(examples) < wanted:
                examples += _split(batch, prediction)
        done += batch.num_graphs
        sizes.update(batch.ptr.diff().tolist())
        if progress is not None:
            progress(done, len(test))
    return Evaluation(
        errors={name: metric.compute() for name, metric in errors.items()},
        components={name: metric.by_component() for name, metric in errors.items()},
        by_record={
            name: metric.compute().cpu().numpy() for name, metric in by_record.items()
        },
        points=(min(sizes), max(sizes)),
        examples=_stacked(examples[:wanted], test),
    )


def _split(batch: Batch, prediction: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    fields = {"x": batch.x, "truth": batch.y, "prediction": prediction}
    fields |= {"pos": batch.pos}
    ends = batch.ptr.tolist()
    return [
        {name: field[start:stop].cpu() for name, field in fields.items()}
        | {"sample": batch.sample[number].cpu()}
        for number, (start, stop) in enumerate(zip(ends, ends[1:], strict=False))
    ]


def _stacked(
    examples: list[dict[str, torch.Tensor]], test: WindowDataset
) -> dict[str, NDArray[Any]]:
    names = ("sample", "x", "truth", "prediction")
    stacked = {
        name: torch.stack([each[name] for each in examples]).numpy() for name in names
    }
    return stacked | {"pos": examples[0]["pos"].numpy(), "times": test[0].times.numpy()}
