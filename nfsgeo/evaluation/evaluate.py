"""Errors of a model and of the baselines on samples it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from nfsgeo.data import Fields
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.baselines import baselines
from nfsgeo.evaluation.scoring import errors_in_parts, predictions, scored_windows
from nfsgeo.models import MODELS
from nfsgeo.training import ErrorByTimeStep, Forecaster, RunConfig
from nfsgeo.training.metrics import errors_by_sample
from nfsgeo.training.observation import Observation, mesh_of, queried

__all__ = ["Evaluation", "evaluate", "unobserved_errors"]

EXAMPLES = 4
# Query points per sample; more of them tell nothing new.
MAX_QUERIES = 4096


@dataclass(frozen=True)
class Evaluation:
    """Errors on some samples, in the units of the data.

    Attributes:
        errors: ``mae``, ``rmse``, ``rel_l2`` and ``rel_l1`` of ``"model"`` and of each
            baseline, pooled where there are several components, see
            :class:`~nfsgeo.training.FieldErrors`, and ``rel_l1_last_median``: of the
            relative L1 at the last predicted time step, with the mean of the training
            targets removed from each component, the median over samples, and its mean
            over components.
        components: The first four for each of several components; empty for one.
        without_energy: How many samples have no relative error, of each component.
        by_time_step: Mean absolute error at each predicted time step, by method:
            ``[n_out]``, or ``[n_out, C]`` for several components.
        last_by_sample: Relative L1 of each window at the last predicted time step,
            the mean of the training targets removed, by method: ``[S, C]``.
        points: Smallest and largest number of points of a sample.
        examples: The first samples: ``sample`` ``[S]``, ``pos`` ``[n, d]``, ``times``
            ``[n_in + n_out]``, ``x``, ``truth`` and ``prediction`` ``[S, n, ...]``.
    """

    errors: dict[str, dict[str, float]]
    components: dict[str, list[dict[str, float]]]
    without_energy: list[int]
    by_time_step: dict[str, NDArray[Any]]
    last_by_sample: dict[str, NDArray[Any]]
    points: tuple[int, int]
    examples: dict[str, NDArray[Any]]


@torch.no_grad()
def evaluate(
    forecaster: Forecaster,
    test: WindowDataset,
    train: WindowDataset,
    *,
    batch_size: int = 4,
    steps: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Scores the model and the baselines on every sample.

    Args:
        forecaster: On the device to compute on.
        test: The samples.
        train: Training samples, for the mean that is one of the baselines.
        batch_size: Samples per batch.
        steps: Number of time steps of the windows' targets, where they are more than in
            training.
        progress: Called with the number of samples done and in all.
    """
    predictors = baselines(train)
    names = ("model", *predictors)
    errors = {name: forecaster.new_errors() for name in names}
    last: dict[str, list[Tensor]] = {name: [] for name in names}
    by_time_step = {
        name: ErrorByTimeStep(test.n_out, test.file.components).to(forecaster.device)
        for name in names
    }
    examples: list[tuple[Tensor, ...]] = []
    # Samples on meshes of their own do not stack, and windows of one sample differ in
    # their times: only the first is an example.
    alike = len(set(test.samples)) == len(test)
    alike &= isinstance(test.mesh, Mesh) and not test.drop_absent
    wanted = EXAMPLES if alike else 1
    sizes: list[int] = []
    for batch, prediction in predictions(forecaster, test, batch_size, steps=steps):
        known = batch.clone()
        known.x = forecaster.filled(batch.x, batch.graphs)
        fields = {name: predict(known) for name, predict in predictors.items()}
        mean = fields["mean"].double().mean(dim=(0, 1))
        for name, field in {"model": prediction, **fields}.items():
            errors[name].update(field, batch.y, batch.batch)
            by_time_step[name].update(field, batch.y)
            ends = field[:, -1:], batch.y[:, -1:], batch.batch
            std = errors[name].statistics(batch.y.device)[1]
            last[name].append(errors_by_sample(*ends, mean=mean, std=std)["rel_l1"])
        if len(examples) < wanted:
            arrays = (batch.pos, batch.x, batch.y, prediction)
            parts = (array.cpu().split(batch.graphs.sizes) for array in arrays)
            examples += zip(batch.sample.cpu(), *parts, strict=True)
        sizes += batch.graphs.sizes
        if progress is not None:
            progress(len(sizes), len(test))
    sample, pos, *stacks = zip(*examples[:wanted], strict=True)
    stacked = [torch.stack(each).numpy() for each in (sample, *stacks)]
    return Evaluation(
        errors={
            name: metric.compute()
            | {
                "rel_l1_last_median": float(
                    torch.cat(last[name]).nanquantile(0.5, 0).nanmean()
                )
            }
            for name, metric in errors.items()
        },
        components={name: metric.by_component() for name, metric in errors.items()},
        without_energy=errors["model"].without_energy(),
        by_time_step={n: m.compute().cpu().numpy() for n, m in by_time_step.items()},
        last_by_sample={n: torch.cat(each).cpu().numpy() for n, each in last.items()},
        points=(min(sizes), max(sizes)),
        examples={
            **dict(zip(("sample", "x", "truth", "prediction"), stacked, strict=True)),
            "pos": pos[0].numpy(),
            "times": test[0].times.numpy(),
        },
    )


def unobserved_errors(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
) -> dict[str, Any]:
    """Errors at points of the file where samples are not observed.

    Args:
        forecaster: On the device to compute on.
        config: Configuration of the run.
        file: The data.
        mesh: Where the samples are observed.

    Returns:
        ``{"unobserved": {"num_points", "mae", "rmse", "rel_l2", "rel_l1"}}``, in the
        units of the data; empty for a model that predicts at observed points alone,
        and where the file has no other points.
    """
    if not MODELS[config.model.name].query_points:
        return {}
    # Where all samples share a mesh, its query points and graphs are made once.
    seen = queried(mesh, file, MAX_QUERIES, 0)
    test = scored_windows(forecaster, config, file, seen)
    num = max(len(mesh_of(seen, s).queries or ()) for s in set(test.samples))
    if not num:
        return {}
    *_, errors = errors_in_parts(forecaster, test, config.data.batch_size)
    return {"unobserved": {"num_points": num, **errors}}
