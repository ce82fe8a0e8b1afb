"""Predictions without a network, as references for a model.

They are persistence, polynomials in time and the mean of the training targets; for one
series at stations those of :data:`SERIES_REFERENCES`, and for problems without time
nearest neighbours and gradient boosted trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from scipy.interpolate import KroghInterpolator
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import WindowDataset
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.static_references import StaticReferences
from nfsgeo.training.run_data import RunData

__all__ = ["MAX_QUERIES", "SERIES_REFERENCES", "References", "SeriesReferences"]
__all__ += ["extrapolation", "persistence", "training_mean", "window_times"]

# Predicts for a batch without gaps in ``x``, whose raw inputs are ``given``.
Predictor = Callable[[Batch], Tensor]

# Polynomials in time through the last observed values, from the first degree on.
DEGREES = ("linear", "quadratic", "cubic")
# Number of unobserved points per sample at which errors are computed, at most.
MAX_QUERIES = 4096


class SeriesReferences(Protocol):
    """Predictions for one series that is split by time, at points that stay."""

    def predictors(self) -> dict[str, Predictor]:
        """Return each reference by its name, for batches with raw inputs ``given``."""

    def at_queries(self, batch: Batch, field: Tensor) -> Tensor:
        """Extend a prediction ``[n, n_out, C]`` at the observed points of a window to
        its other points: ``[n + m, n_out, C]``, as ``query_y``.
        """


# Each fits references to the data of a run, for a number of time steps, or returns
# None; they may take a minute if the last argument says so.
SERIES_REFERENCES: list[Callable[[RunData, int, bool], SeriesReferences | None]] = []


class References:
    """All predictions without a network, fitted to the training windows.

    Persistence needs one observed time step, extrapolation by a polynomial one more
    than its degree, :class:`SeriesReferences` a single series split by time, and
    :class:`~nfsgeo.evaluation.static_references.StaticReferences` a problem without
    time and training samples in the file.

    Args:
        scored: The model and the data that are scored.
        steps: Time steps to predict; None for those of training.
        boosting: Whether references of a series may take a minute to fit.

    Attributes:
        predictors: Each reference by its name in a summary.
        at_queries: References that also predict at unobserved query points, by name,
            from a batch of one window: ``[n + m, n_out, C]``, as ``query_y``.
        tied: Names of those that are fitted to each point of the training mesh.
        series: Those of a single series; None for other data.
    """

    def __init__(
        self, scored: ScoredModel, *, steps: int | None = None, boosting: bool = False
    ) -> None:
        used = scored.used
        # A named file may have no training samples.
        part = "train" if len(used.samples("train")) else "test"
        train, num = scored.windows(part, n_out=steps), used.file.components
        train.drop_absent = False  # so that all windows have the same points
        self.predictors: dict[str, Predictor] = {}
        if train.n_in:
            self.predictors["persistence"] = lambda batch: persistence(
                batch.x[..., :num], train.n_out
            )
        for degree, name in enumerate(DEGREES[: max(0, train.n_in - 1)], start=1):
            predict = partial(_extrapolated, num, degree)
            self.predictors[f"{name}_extrapolation"] = predict
        self.predictors["mean"] = training_mean(train)
        self.tied = {"mean"}
        self.at_queries: dict[str, Predictor] = {}
        # Fitted to the samples that are scored, they would find these samples again.
        if not train.n_in and part == "train":
            static = StaticReferences(train)
            self.predictors |= static.predictors()
            self.at_queries = static.predictors(queries=True)
        fits = (fit(used, train.n_out, boosting) for fit in SERIES_REFERENCES)
        self.series = next((series for series in fits if series is not None), None)
        if self.series is not None:
            predictors = self.series.predictors()
            self.predictors |= predictors
            self.tied |= {*predictors}
            for name in ("persistence", "mean", *predictors):
                self.at_queries[name] = partial(self._extended, name)

    def _extended(self, name: str, batch: Batch) -> Tensor:
        """Extend a reference of a series to the unobserved points of its window."""
        assert self.series is not None
        return self.series.at_queries(batch, self.predictors[name](batch))


def _extrapolated(components: int, degree: int, batch: Batch) -> Tensor:
    fields = batch.x[..., :components].split(batch.graphs.sizes)
    samples = zip(fields, window_times(batch), strict=True)
    return torch.cat([extrapolation(u, at, degree) for u, at in samples])


def persistence(u: Tensor, num_out: int) -> Tensor:
    """Repeat the last time step of ``u [N, n_in, C]``: ``[N, num_out, C]``."""
    return u[:, -1:].expand(-1, num_out, -1)


def extrapolation(u: Tensor, times: Tensor, degree: int) -> Tensor:
    """Extend the polynomial in time through the last observed values ``[N, n_out, C]``.

    Args:
        u: Fields at the observed time steps ``[N, n_in, C]``, more than ``degree``.
        times: Times of all time steps ``[n_in + n_out]``, which may be uneven.
        degree: Degree of the polynomial: 1 for linear extrapolation.
    """
    n_in, at = u.size(1), times.cpu().double().numpy()
    # In double precision: the weights of cubics are large and cancel.
    last = u[:, n_in - degree - 1 :].cpu().double().numpy()
    through = KroghInterpolator(at[n_in - degree - 1 : n_in], last, axis=1)
    return torch.from_numpy(through(at[n_in:])).to(u)


def training_mean(train: WindowDataset) -> Predictor:
    """Return the mean of the targets of the training samples as a prediction.

    It is taken at each point and time step where all samples share one mesh, else at
    each time step over all points. Missing values do not count; where there are no
    others, it is the mean of each component.
    """
    shared = isinstance(train.mesh, Mesh) and not train.drop_absent
    total, count = torch.zeros((), dtype=torch.float64), torch.zeros(())
    for item in range(len(train)):
        y = train[item].y.double()
        y = y if shared else y.nanmean(dim=0, keepdim=True)
        total = total + y.nan_to_num(0.0)
        count = count + (~y.isnan()).double()
    overall = total.sum((0, 1)) / count.sum((0, 1))
    mean = torch.where(count > 0, total / count, overall)

    def predict(batch: Batch) -> Tensor:
        values = mean.to(batch.y)
        return values[batch.point] if shared else values.expand_as(batch.y)

    return predict


def window_times(batch: Batch) -> Tensor:
    """Return the times of each window ``[W, n_in + n_out]``."""
    return torch.as_tensor(batch.times).view(batch.num_graphs, -1).cpu()
