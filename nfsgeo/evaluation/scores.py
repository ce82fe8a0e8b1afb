"""Errors of a model and of the references, over all samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data import Fields
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.references import MAX_QUERIES, References
from nfsgeo.evaluation.scored_model import ScoredModel, predictions
from nfsgeo.evaluation.static_references import StaticReferences
from nfsgeo.forecast.matching import check_times
from nfsgeo.forecast.transforms import MissingValues
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training import FieldErrors
from nfsgeo.training.experiment import check_observed
from nfsgeo.training.metrics import errors_by_sample
from nfsgeo.training.run_data import queried

__all__ = ["Scores", "score", "unobserved_errors", "with_given"]

POOLED = (
    "Pooled errors are means over the components: of MAE and RMSE divided by the "
    "component's standard deviation in the training data, and of relative L2 "
    "and L1 with the component's mean removed from the fields."
)
EXAMPLES = 4


@dataclass(frozen=True)
class Scores:
    """Errors of ``"model"`` and of each baseline, in the units of the data."""

    windows: WindowDataset
    std: tuple[float, ...]  # in the training data
    errors: dict[str, FieldErrors]  # by component where there are several
    by_time_step: dict[str, NDArray[Any]]  # mean absolute errors [n_out(, C)]
    # Relative L1 of each window at the last predicted time step, with the mean of the
    # training targets removed from each component [S, C].
    last: dict[str, Tensor]
    # MAE of the model on each window [S], pooled over components. Its mean is that of
    # all, but where a window has no true value of one of several components.
    mae: Tensor
    points: tuple[int, int]  # smallest and largest number of a sample
    # Errors of the model at each node type, by its meaning or number.
    by_type: dict[str, FieldErrors]
    # The first samples: sample [S], pos [n, d], times [n_in + n_out], x, truth and
    # prediction [S, n, ...].
    examples: dict[str, NDArray[Any]]

    def pooled(self) -> dict[str, dict[str, float]]:
        """Errors by method, pooled over components, and the median of the last ones."""
        ends = {name: e.nanquantile(0.5, 0).nanmean() for name, e in self.last.items()}
        return {
            name: metric.compute() | {"rel_l1_last_median": float(ends[name])}
            for name, metric in self.errors.items()
        }

    def summary(self) -> dict[str, Any]:
        """Errors of the model and the baselines, with which ``summary.json`` ends."""
        file, scores, std = self.windows.file, self.pooled(), self.std
        names = file.component_names
        units = [file.units.get(name) for name in names]
        summary: dict[str, Any] = {"test": scores.pop("model"), "baselines": scores}
        if types := {name: each.compute() for name, each in self.by_type.items()}:
            summary["by_node_type"] = types
        each = zip(names, self.errors["model"].without_energy(), strict=False)
        if left := {name: num for name, num in each if num}:
            summary["left_out"] = left
        parts = {name: metric.by_component() for name, metric in self.errors.items()}
        model = parts.pop("model")
        if not model:
            return summary | ({"units": units[0]} if units[0] else {})
        flat = ", ".join(name for name, s in zip(names, std, strict=True) if not s)
        constant = f" They are without {flat}, constant in the training data."
        return summary | {
            "pooled": POOLED + constant * bool(flat),
            "components": {
                name: {"unit": units[c], "std": std[c]}
                | model[c]
                | {"baselines": {each: errors[c] for each, errors in parts.items()}}
                for c, name in enumerate(names)
            },
        }

    def rollout(self) -> dict[str, Any]:
        """Errors of a rollout: ``times`` after the last input, ``errors`` over all of
        these by method, ``mae_by_step``, and ``rel_l1_last_by_sample``, the relative L1
        at the last of them with the mean removed.
        """
        n_in, times = self.windows.n_in, self.windows.times
        by_step, last = self.by_time_step.items(), self.last.items()
        return {
            "times": (times[n_in:] - times[n_in - 1]).tolist(),
            "errors": self.pooled(),
            "mae_by_step": {name: each.tolist() for name, each in by_step},
            "rel_l1_last_by_sample": {n: e.nanmean(-1).tolist() for n, e in last},
        }


@torch.no_grad()
def score(
    scored: ScoredModel,
    references: References,
    *,
    steps: int | None = None,
    progress: Progress = silent,
) -> Scores:
    """Scores the model and the references on every test sample.

    Time steps have to be those of training, but for a rollout of so many ``steps``.
    """
    forecaster, file, task = scored.forecaster, scored.used.file, scored.forecaster.task
    test, predictors = scored.windows(n_out=steps), references.predictors
    if steps is None:
        # Of the file of training, windows of lead times may reach somewhat further.
        if not (task.any_time and task.fingerprint == file.fingerprint()):
            times = (test[item].times.tolist() for item in range(len(test)))
            check_times(task, file, times)
        check_observed("test", test)
    names = ("model", *predictors)
    errors = {name: scored.errors() for name in names}
    last: dict[str, list[Tensor]] = {name: [] for name in names}
    mae, std = list[Tensor](), errors["model"].std
    scale = 1 if std is None else std.masked_fill(std == 0, torch.nan)
    # Sums over points, of each predicted time step and component, and their numbers.
    zero = torch.zeros((), dtype=torch.float64)
    absolute, count = dict.fromkeys(names, zero), zero
    examples: list[tuple[Tensor, ...]] = []
    # Samples on meshes of their own do not stack, and windows of one sample differ in
    # their times: only the first is an example.
    alike = len(set(test.samples)) == len(test)
    alike &= isinstance(test.mesh, Mesh) and not test.drop_absent
    wanted, sizes = EXAMPLES if alike else 1, list[int]()
    by_type, types = dict[int, FieldErrors](), file.node_types
    column = file.input_names.index(types) if types else 0
    column += file.components * task.has_time
    size = scored.used.config.data.batch_size
    for batch, prediction in predictions(forecaster, test, size, steps=steps):
        known = with_given(scored, batch)
        fields = {"model": prediction}
        fields |= {name: predict(known) for name, predict in predictors.items()}
        mean, gaps = fields["mean"].double().mean(dim=(0, 1)), batch.y.isnan()
        count = count + (~gaps).sum(0).cpu()
        for name, field in fields.items():
            errors[name].update(field, batch.y, batch.batch)
            error = (field.double() - batch.y).abs().masked_fill(gaps, 0)
            absolute[name] = absolute[name] + error.sum(0).cpu()
            ends = field[:, -1:], batch.y[:, -1:], batch.batch
            of_samples = errors_by_sample(*ends, mean=mean, std=std)
            last[name].append(of_samples["rel_l1"][0].cpu())
        kinds = batch.x[:, 0, column] if types else batch.x.new_empty(0)
        for kind in map(int, kinds.unique().tolist()):
            at = kinds == kind
            of_kind = by_type.setdefault(kind, scored.errors())
            of_kind.update(prediction[at], batch.y[at], batch.batch[at])
        each = errors_by_sample(prediction, batch.y, batch.batch, mean=mean)["mae"][0]
        mae.append((each / scale).nanmean(1).cpu())
        if len(examples) < wanted:
            arrays = (batch.pos, batch.x, batch.y, prediction)
            parts = (array.cpu().split(batch.graphs.sizes) for array in arrays)
            examples += zip(batch.sample.cpu(), *parts, strict=True)
        sizes += batch.graphs.sizes
        progress("rollouts" if steps else "test samples", len(sizes), len(test))
    sample, pos, *stacks = zip(*examples[:wanted], strict=True)
    stacked = [torch.stack(each).numpy() for each in (sample, *stacks)]
    shown = dict(zip(("sample", "x", "truth", "prediction"), stacked, strict=True))
    return Scores(
        test,
        forecaster.task.std,
        errors,
        {name: (e / count).squeeze(-1).numpy() for name, e in absolute.items()},
        {name: torch.cat(each) for name, each in last.items()},
        torch.cat(mae),
        (min(sizes), max(sizes)),
        _named(file, by_type),
        shown | {"pos": pos[0].numpy(), "times": test[0].times.numpy()},
    )


def _named(file: Fields, by_type: dict[int, FieldErrors]) -> dict[str, FieldErrors]:
    """Errors by the meaning of a node type where it has one, else by its number."""
    meanings = file.categories.get(file.node_types or "", {})
    return {meanings.get(kind, str(kind)): by_type[kind] for kind in sorted(by_type)}


def unobserved_errors(scored: ScoredModel, references: References) -> dict[str, Any]:
    """Errors at points of the file where samples are not observed, ``"unobserved"``.

    Of a single series, those of the references beside them, all followed by kriging; so
    is a model that predicts at observed points alone, which has no errors of other
    data. Of a problem without time, those of the references that predict anywhere.
    Empty where the file has no other points.
    """
    able = MODELS[scored.used.config.model.name].query_points
    if not able and references.series is None:
        return {}
    # Where all samples share a mesh, its query points and graphs are made once.
    seen = queried(scored.used.mesh, scored.used.file, MAX_QUERIES, 0)
    test = scored.windows(mesh=seen)
    num = max(len(seen(s).queries or ()) for s in set(test.samples))
    if not num:
        return {}
    if references.series is None:
        found: dict[str, Any] = {"num_points": num, **scored.errors_in_parts(test)[2]}
        if references.static is not None:
            found["baselines"] = _static_errors(scored, references.static, test)
        return {"unobserved": found}
    names = ("persistence", "mean", *references.series.predictors())
    errors = {name: scored.errors() for name in ("model", *names)}
    connect = scored.forecaster.connect

    def observed(pos: Tensor, query_pos: Tensor, **of: Tensor) -> Graphs:
        return connect(pos, query_pos=query_pos if able else None, **of)

    for batch, prediction in predictions(scored.forecaster, test, 1, connect=observed):
        known = with_given(scored, batch)
        fields = {name: references.predictors[name](known) for name in names}
        fields |= {} if able else {"model": prediction}
        at_all = references.series.at_queries
        fields = {name: at_all(known, field) for name, field in fields.items()}
        for name, field in ({"model": prediction} | fields).items():
            there = slice(len(batch.pos), None)
            errors[name].update(field[there], batch.query_y[there])
    scores = {name: each.compute() for name, each in errors.items()}
    own = scores.pop("model") | {"kriging": not able}
    return {"unobserved": {"num_points": num, **own, "baselines": scores}}


def _static_errors(
    scored: ScoredModel, references: StaticReferences, test: WindowDataset
) -> dict[str, Any]:
    """Errors at the unobserved points of samples, by reference."""
    errors = {name: scored.errors() for name in references.predictors()}
    device = scored.forecaster.device
    for item in range(len(test)):
        sample = test[item]
        truth = sample.query_y[len(sample.pos) :].to(device)
        for name, each in errors.items():
            each.update(references.at_queries(name, sample).to(device), truth)
    return {name: each.compute() for name, each in errors.items()}


def with_given(scored: ScoredModel, batch: Batch) -> Batch:
    """Return the batch with gaps of the inputs filled in, which it keeps as ``given``.

    Args:
        scored: The model whose transform fills them in.
        batch: Windows with the graphs of the model.
    """
    task, x = scored.forecaster.task, batch.x.double()
    missing = scored.forecaster.find(MissingValues)
    assert missing is not None
    mean = x.new_zeros(x.size(-1))
    if task.has_time:  # of the fields, also where the network sees anomalies
        mean[: len(task.mean)] = mean.new_tensor(task.mean)
    known = batch.clone()
    known.given = batch.x
    filled = missing.filled(x - mean, batch.graphs) + mean
    known.x = torch.where(x.isnan(), filled, x)
    return known
