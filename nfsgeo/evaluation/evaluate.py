"""The loop behind every evaluation: predict batch by batch, and score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data import Fields
from nfsgeo.data.connected_batches import Connect, batches
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.baselines import baselines
from nfsgeo.forecast import Forecaster, rollout
from nfsgeo.forecast.transforms import Normalise
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training import ErrorByTimeStep, FieldErrors, RunConfig
from nfsgeo.training.metrics import errors_by_sample
from nfsgeo.training.run_data import Observation, RunData, queried

__all__ = [
    "Evaluation",
    "errors_in_parts",
    "evaluate",
    "predictions",
    "scored_windows",
    "unobserved_errors",
]

EXAMPLES = 4
# Query points per sample; more of them tell nothing new.
MAX_QUERIES = 4096


@dataclass(frozen=True)
class Evaluation:
    """Errors of ``"model"`` and of each baseline, in the units of the data.

    Attributes:
        errors: The metrics, by component where there are several.
        by_time_step: Mean absolute error at each predicted time step: ``[n_out]``, or
            ``[n_out, C]`` for several components.
        last: Relative L1 of each window at the last predicted time step, with the mean
            of the training targets removed from each component: ``[S, C]``.
        points: Smallest and largest number of points of a sample.
        examples: The first samples: ``sample`` ``[S]``, ``pos`` ``[n, d]``, ``times``
            ``[n_in + n_out]``, ``x``, ``truth`` and ``prediction`` ``[S, n, ...]``.
    """

    errors: dict[str, FieldErrors]
    by_time_step: dict[str, NDArray[Any]]
    last: dict[str, Tensor]
    points: tuple[int, int]
    examples: dict[str, NDArray[Any]]

    def scores(self) -> dict[str, dict[str, float]]:
        """Errors by method, pooled over components, and the median of the last ones."""
        ends = {name: e.nanquantile(0.5, 0).nanmean() for name, e in self.last.items()}
        return {
            name: metric.compute() | {"rel_l1_last_median": float(ends[name])}
            for name, metric in self.errors.items()
        }


def scored_windows(
    forecaster: Forecaster,
    config: RunConfig,
    file: Fields,
    mesh: Observation,
    part: str = "test",
    *,
    n_out: int | None = None,
    noise: float | None = None,
) -> WindowDataset:
    """Windows as those of training: without points that have no value at all.

    ``noise`` is its standard deviation on the inputs, in those of the training data;
    None for the time steps ``n_out`` and the noise of training.
    """
    absent = forecaster.drops_absent
    found = RunData(config, file).windows(part, mesh, n_out=n_out, drop_absent=absent)
    if noise := config.data.input_noise if noise is None else noise:
        scale = forecaster.find(Normalise)
        assert scale is not None
        found.noise = noise * scale.fields.std.cpu()
    return found


def _new_errors(forecaster: Forecaster) -> FieldErrors:
    return FieldErrors(**forecaster.task.statistics).to(forecaster.device)


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
    """Batches of samples, in order, and their predicted fields ``[M, steps, C]``.

    Args:
        forecaster: On the device to compute on.
        windows: The samples.
        batch_size: Samples per batch.
        connect: Makes the graphs of a sample; the forecaster's own if None.
        steps: Number of time steps of a rollout; None for as many as in training.
        ahead: Times to predict ``[K]``, for a model that can be asked for any; None for
            those of the windows.
    """
    for batch in batches(windows, batch_size, connect or forecaster.connect):
        batch = batch.to(forecaster.device)
        known: dict[str, Any] = forecaster.known_ahead(batch)
        if ahead is not None and (times := known["times"]) is not None:
            asked = ahead.to(times).expand(len(times), -1)
            known["times"] = torch.cat([times[:, : windows.n_in], asked], dim=1)
        known["graphs"] = batch.graphs
        if steps is None:
            yield batch, forecaster(batch.x, **known)
        else:
            yield batch, rollout(forecaster, batch.x, batch.pos, steps, **known)


def errors_in_parts(
    forecaster: Forecaster,
    windows: WindowDataset,
    batch_size: int,
    *,
    num_first: Callable[[int], int] | None = None,
) -> tuple[dict[str, float], ...]:
    """Errors at all predicted points, at the first ones of each sample, at the others.

    ``num_first`` tells the number of these of a sample, which are its observed points
    if None. Errors are NaN where there are no points.
    """
    everywhere, first, others = (_new_errors(forecaster) for _ in range(3))
    for batch, prediction in predictions(forecaster, windows, batch_size):
        graphs, nums = batch.graphs, batch.graphs.sizes
        queried = graphs.query_sizes is not None
        truth, sizes = (
            (batch.query_y, graphs.query_sizes) if queried else (batch.y, nums)
        )
        if num_first is not None:
            nums = tuple(map(num_first, batch.sample.tolist()))
        rank = torch.cat([torch.arange(size) for size in sizes])
        sizes, nums = torch.tensor(sizes), torch.tensor(nums)
        sample = torch.arange(len(sizes)).repeat_interleave(sizes)
        is_first = (rank < nums[sample]).to(truth.device)
        sample = sample.to(truth.device)
        everywhere.update(prediction, truth, sample)
        for errors, points in ((first, is_first), (others, ~is_first)):
            errors.update(prediction[points], truth[points], sample[points])
    return tuple(each.compute() for each in (everywhere, first, others))


@torch.no_grad()
def evaluate(
    forecaster: Forecaster,
    test: WindowDataset,
    train: WindowDataset,
    *,
    batch_size: int = 4,
    steps: int | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Scores the model and the baselines on every sample of ``test``.

    Args:
        forecaster, test, batch_size: As for :func:`predictions`.
        train: Training samples, for the mean that is one of the baselines.
        steps: Number of time steps of the windows' targets, where they are not those of
            training.
        progress: Called with what is being done, how much is done and in all.
    """
    predictors = baselines(train)
    names = ("model", *predictors)
    errors = {name: _new_errors(forecaster) for name in names}
    last: dict[str, list[Tensor]] = {name: [] for name in names}
    by_time_step = {name: ErrorByTimeStep().to(forecaster.device) for name in names}
    examples: list[tuple[Tensor, ...]] = []
    # Samples on meshes of their own do not stack, and windows of one sample differ in
    # their times: only the first is an example.
    alike = len(set(test.samples)) == len(test)
    alike &= isinstance(test.mesh, Mesh) and not test.drop_absent
    wanted, sizes = EXAMPLES if alike else 1, list[int]()
    for batch, prediction in predictions(forecaster, test, batch_size, steps=steps):
        known = batch.clone()
        known.x = forecaster.filled(batch.x, batch.graphs)
        fields = {"model": prediction}
        fields |= {name: predict(known) for name, predict in predictors.items()}
        mean = fields["mean"].double().mean(dim=(0, 1))
        for name, field in fields.items():
            errors[name].update(field, batch.y, batch.batch)
            by_time_step[name].update(field, batch.y)
            ends = field[:, -1:], batch.y[:, -1:], batch.batch
            std = errors[name].std
            of_samples = errors_by_sample(*ends, mean=mean, std=std)
            last[name].append(of_samples["rel_l1"][0])
        if len(examples) < wanted:
            arrays = (batch.pos, batch.x, batch.y, prediction)
            parts = (array.cpu().split(batch.graphs.sizes) for array in arrays)
            examples += zip(batch.sample.cpu(), *parts, strict=True)
        sizes += batch.graphs.sizes
        progress("rollouts" if steps else "test samples", len(sizes), len(test))
    sample, pos, *stacks = zip(*examples[:wanted], strict=True)
    stacked = [torch.stack(each).numpy() for each in (sample, *stacks)]
    shown = dict(zip(("sample", "x", "truth", "prediction"), stacked, strict=True))
    shown |= {"pos": pos[0].numpy(), "times": test[0].times.numpy()}
    by_step = {n: m.compute().cpu().numpy() for n, m in by_time_step.items()}
    ends_of = {name: torch.cat(each).cpu() for name, each in last.items()}
    return Evaluation(errors, by_step, ends_of, (min(sizes), max(sizes)), shown)


def unobserved_errors(
    forecaster: Forecaster, config: RunConfig, file: Fields, mesh: Observation
) -> dict[str, Any]:
    """Errors at points of the file where samples are not observed, ``"unobserved"``.

    Empty for a model that predicts at observed points alone, and where the file has no
    other points.
    """
    if not MODELS[config.model.name].query_points:
        return {}
    # Where all samples share a mesh, its query points and graphs are made once.
    seen = queried(mesh, file, MAX_QUERIES, 0)
    test = scored_windows(forecaster, config, file, seen)
    num = max(len(seen(s).queries or ()) for s in set(test.samples))
    if not num:
        return {}
    errors = errors_in_parts(forecaster, test, config.data.batch_size)[2]
    return {"unobserved": {"num_points": num, **errors}}
