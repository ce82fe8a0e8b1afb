"""Errors of a model and of the references, over all samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data import Fields
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.not_finite import NotFinite
from nfsgeo.evaluation.references import MAX_QUERIES, References
from nfsgeo.evaluation.scored_model import ScoredModel, points_of, predictions
from nfsgeo.forecast.matching import check_times
from nfsgeo.forecast.transforms import MissingValues
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent
from nfsgeo.training import FieldErrors
from nfsgeo.training.metrics import errors_by_sample
from nfsgeo.training.reading import check_observed
from nfsgeo.training.run_data import queried

__all__ = ["Scores", "score", "unobserved_errors", "with_given"]

POOLED = (
    "Pooled errors are means over the components: of MAE and RMSE divided by the "
    "component's standard deviation in the training data, and of relative L2 "
    "and L1 with the component's mean removed from the fields."
)


class MethodErrors:
    """Errors of the model or of a reference, added up batch by batch.

    Args:
        metric: Errors as means over samples, by component where there are several.
    """

    def __init__(self, metric: FieldErrors) -> None:
        self.metric, self._last = metric, list[Tensor]()
        self._absolute, self._count = torch.zeros(2, dtype=torch.float64)

    def add(self, field: Tensor, batch: Batch, mean: Tensor) -> None:
        """Add a prediction of a batch; the mean is that of the training targets."""
        self.metric.update(field, batch.y, batch.batch)
        error = (field.double() - batch.y).abs()
        self._absolute = self._absolute + error.nansum(0).cpu()
        self._count = self._count + (~error.isnan()).sum(0).cpu()
        ends = field[:, -1:], batch.y[:, -1:], batch.batch
        errors = errors_by_sample(*ends, mean=mean, std=self.metric.std)
        self._last.append(errors["rel_l1"][0].cpu())

    @property
    def by_time_step(self) -> NDArray[Any]:
        """Mean absolute errors over all points ``[n_out(, C)]``."""
        return (self._absolute / self._count).squeeze(-1).numpy()

    @property
    def last(self) -> Tensor:
        """Relative L1 of each window at the last time step ``[S, C]``."""
        return torch.cat(self._last)

    def pooled(self) -> dict[str, float]:
        """Errors pooled over components, and the median of the last ones."""
        median = float(self.last.nanquantile(0.5, 0).nanmean())
        return self.metric.compute() | {"rel_l1_last_median": median}


@dataclass(frozen=True)
class Scores:
    """Errors of ``"model"`` and of each baseline, in the units of the data.

    Attributes:
        windows: The windows that were scored.
        std: Standard deviation of each component in the training data.
        methods: Errors of the model and of each reference.
        mae: MAE of the model on each window ``[S]``, pooled over components. Its mean
            is that of all, unless a window has no true value of one of several
            components.
        points: Smallest and largest number of points of a sample.
        by_type: Errors of the model at each node type, by its meaning or number.
        not_finite: Samples whose prediction is not finite, see :class:`NotFinite`.
            Their errors are infinite.
    """

    windows: WindowDataset
    std: tuple[float, ...]
    methods: dict[str, MethodErrors]
    mae: Tensor
    points: tuple[int, int]
    by_type: dict[str, FieldErrors]
    not_finite: list[dict[str, int]]

    def pooled(self) -> dict[str, dict[str, float]]:
        """Errors by method, pooled over components."""
        return {name: method.pooled() for name, method in self.methods.items()}

    def summary(self) -> dict[str, Any]:
        """Errors of the model and the baselines, with which ``summary.json`` ends."""
        file, scores, std = self.windows.file, self.pooled(), self.std
        names = file.component_names
        units = [file.units.get(name) for name in names]
        summary: dict[str, Any] = {"test": scores.pop("model"), "baselines": scores}
        if self.by_type:
            types = {name: metric.compute() for name, metric in self.by_type.items()}
            summary["by_node_type"] = types
        model = self.methods["model"].metric
        nums = zip(names, model.without_energy(), strict=False)
        if self.not_finite:
            summary["not_finite"] = self.not_finite
        if left := {name: num for name, num in nums if num}:
            summary["left_out"] = left
        parts = {name: m.metric.by_component() for name, m in self.methods.items()}
        if not (components := parts.pop("model")):
            return summary | ({"units": units[0]} if units[0] else {})
        flat = ", ".join(name for name, s in zip(names, std, strict=True) if not s)
        constant = f" They are without {flat}, constant in the training data."
        return summary | {
            "pooled": POOLED + constant * bool(flat),
            "components": {
                name: {"unit": units[c], "std": std[c]}
                | components[c]
                | {"baselines": {method: errors[c] for method, errors in parts.items()}}
                for c, name in enumerate(names)
            },
        }

    def rollout(self) -> dict[str, Any]:
        """Errors of a rollout by method.

        Returns:
            ``times`` after the last input, ``errors`` over all of these,
            ``mae_by_step``, and ``rel_l1_last_by_sample``, the relative L1 at the last
            of them with the mean removed.
        """
        n_in, times = self.windows.n_in, self.windows.times
        methods = self.methods.items()
        return {
            "times": (times[n_in:] - times[n_in - 1]).tolist(),
            "errors": self.pooled(),
            **({"not_finite": self.not_finite} if self.not_finite else {}),
            "mae_by_step": {name: m.by_time_step.tolist() for name, m in methods},
            "rel_l1_last_by_sample": {
                name: m.last.nanmean(-1).tolist() for name, m in methods
            },
        }


@torch.no_grad()
def score(
    scored: ScoredModel,
    references: References,
    *,
    steps: int | None = None,
    progress: Progress = silent,
) -> Scores:
    """Score the model and the references on every test sample.

    Time steps have to be those of training, unless a number of ``steps`` asks for a
    rollout.
    """
    forecaster, file, task = scored.forecaster, scored.used.file, scored.forecaster.task
    test, predictors = scored.windows(n_out=steps), references.predictors
    if steps is None:
        # On the training file, lead-time windows may exceed the longest training lead.
        if not (task.any_time and file.holds(task.fingerprint)):
            times = (test[item].times.tolist() for item in range(len(test)))
            check_times(task, file, times)
        check_observed("test", test)
    methods = {n: MethodErrors(scored.errors()) for n in ("model", *predictors)}
    mae, std = list[Tensor](), methods["model"].metric.std
    scale = 1 if std is None else std.masked_fill(std == 0, torch.nan)
    by_type, types, sizes = dict[int, FieldErrors](), file.node_types, list[int]()
    column = file.input_names.index(types) if types else 0
    column += file.components * task.has_time
    size, odd = scored.used.config.data.batch_size, NotFinite()
    for batch, prediction in predictions(forecaster, test, size, steps=steps):
        parts = prediction.split(batch.graphs.sizes)
        for number, part in zip(batch.sample.tolist(), parts, strict=True):
            odd.add(number, part)
        prediction = prediction.where(prediction.isfinite(), torch.inf)
        filled, truth, sample = with_given(scored, batch), batch.y, batch.batch
        fields = {"model": prediction}
        fields |= {name: predict(filled) for name, predict in predictors.items()}
        mean = fields["mean"].double().mean(dim=(0, 1))
        for name, field in fields.items():
            methods[name].add(field, batch, mean)
        kinds = batch.x[:, 0, column] if types else batch.x.new_empty(0)
        for kind in map(int, kinds.unique().tolist()):
            at = kinds == kind
            metric = by_type.setdefault(kind, scored.errors())
            metric.update(prediction[at], truth[at], sample[at])
        whole = errors_by_sample(prediction, truth, sample, mean=mean)["mae"][0]
        mae.append((whole / scale).nanmean(1).cpu())
        sizes += batch.graphs.sizes
        progress("rollouts" if steps else "test samples", len(sizes), len(test))
    return Scores(
        test,
        task.std,
        methods,
        torch.cat(mae),
        (min(sizes), max(sizes)),
        _named(file, by_type),
        odd.report("rollouts" if steps else "predictions"),
    )


def _named(file: Fields, by_type: dict[int, FieldErrors]) -> dict[str, FieldErrors]:
    """Errors by the meaning of a node type where it has one, else by its number."""
    meanings = file.categories.get(file.node_types or "", {})
    return {meanings.get(kind, str(kind)): by_type[kind] for kind in sorted(by_type)}


def unobserved_errors(scored: ScoredModel, references: References) -> dict[str, Any]:
    """Errors at points of the file where samples are not observed, ``"unobserved"``.

    Beside them are those of the references that predict there. For a single series,
    kriging extends these to other points, and also a model that predicts at observed
    points alone; such a model has no errors for other data. The result is empty where
    the file has no other points.
    """
    able, series = MODELS[scored.used.config.model.name].query_points, references.series
    if not able and series is None:
        return {}
    # Where all samples share a mesh, its query points and graphs are made once.
    mesh = queried(scored.used.mesh, scored.used.file, MAX_QUERIES, 0)
    test = scored.windows(mesh=mesh)
    if not (num := max(len(mesh(s).queries or ()) for s in set(test.samples))):
        return {}

    def connect(pos: Tensor, query_pos: Tensor, **more: Tensor) -> Graphs:
        return scored.forecaster.connect(
            pos, query_pos=query_pos if able else None, **more
        )

    errors = {name: scored.errors() for name in ("model", *references.at_queries)}
    size = 1 if references.at_queries else scored.used.config.data.batch_size
    for batch, prediction in predictions(
        scored.forecaster, test, size, connect=connect
    ):
        filled = with_given(scored, batch)
        if not able and series is not None:
            prediction = series.at_queries(filled, prediction)
        fields = {"model": prediction}
        fields |= {name: at(filled) for name, at in references.at_queries.items()}
        sizes = batch.graphs.query_sizes or (len(batch.query_y),), batch.graphs.sizes
        sample, observed = (
            tensor.to(prediction.device) for tensor in points_of(*sizes)
        )
        for name, field in fields.items():
            errors[name].update(
                field[~observed], batch.query_y[~observed], sample[~observed]
            )
    scores = {name: metric.compute() for name, metric in errors.items()}
    model_scores = scores.pop("model") | (
        {} if series is None else {"kriging": not able}
    )
    baselines = {"baselines": scores} if scores else {}
    return {"unobserved": {"num_points": num, **model_scores, **baselines}}


def with_given(scored: ScoredModel, batch: Batch) -> Batch:
    """Fill gaps in the inputs of a batch, which keeps the raw ones as ``given``."""
    task, x = scored.forecaster.task, batch.x.double()
    missing = scored.forecaster.find(MissingValues)
    assert missing is not None
    mean = x.new_zeros(x.size(-1))
    if task.has_time:  # of the fields, also where the network sees anomalies
        mean[: len(task.mean)] = mean.new_tensor(task.mean)
    filled = batch.clone()
    filled.given = batch.x
    values = missing.filled(x - mean, batch.graphs) + mean
    filled.x = torch.where(x.isnan(), values, x)
    return filled
