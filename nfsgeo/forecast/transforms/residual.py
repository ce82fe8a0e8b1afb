"""Residual prediction: the network predicts what is added to the last time step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch_geometric.utils import scatter

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.base_interpolation import interpolate_along, spline_graph
from nfsgeo.nn.kriging import StationaryCovariance, kriging_graph

__all__ = ["Residual"]

# Adam moves every weight by about the learning rate, and a factor has farther to go.
SPEED = 10.0
MAPS = ("own", "regional")


class Residual(Transform):
    r"""Adds the last observed time step to what the network predicts.

    .. math:: \hat u_{tc}(x) = \alpha_{tc} \, u_c(x) + s_c \, y_{tc}(x)

    of normalised fields, with the standard deviation :math:`s` of the changes in the
    training data. With ``residual`` and ``rate``, :math:`\alpha` is 1; ``rate``
    multiplies the prediction :math:`y` by the lead time. With ``damped`` it is damped
    persistence: a learned factor for each predicted time step and component, 1 before
    training, which also damps the noise of the last time step.

    With ``linear`` the network corrects a linear forecast from all observed time steps,
    fitted to the training data beforehand:

    .. math:: \hat u_{tc}(x) = \sum_k w_{tkc} \, u_{kc}(x) + v_{tkc} \, \bar u_{kc}
        + \gamma_{tc} \, s_c \, y_{tc}(x)

    with the mean :math:`\bar u` over the observed points. The learned :math:`\gamma`
    is 0 before training: the network starts as the linear forecast.

    At query points observed time steps come from a local polyharmonic spline through
    the observed points, or from kriging where these are few.

    Args:
        form: which of the four.
        mean: mean of the changes, in standard deviations of the fields, ``C``.
        std: their standard deviation, likewise; 0 where the network has no say.
        lead_std: standard deviation of the lead time, by which a rate is multiplied.
        covariance: ``parameters`` and normalised ``expected`` value of
            :class:`~nfsgeo.nn.kriging.StationaryCovariance`; ``None`` for the spline.
        linear: ``own`` and ``regional`` weights :math:`w` and :math:`v`.
        level: whether the network sees fields as they are; else, of each point, less
            their mean over the observed time steps, so that it corrects a forecast
            alike wherever the level has gone.
    """

    fitted = "mean", "std", "lead_std", "linear", "level"
    query_edges = ("last",)

    def __init__(
        self,
        *,
        form: Literal["residual", "damped", "linear", "rate"],
        mean: Sequence[float],
        std: Sequence[float],
        lead_std: float | None = None,
        covariance: Mapping[str, Any] | None = None,
        linear: Mapping[str, Any] | None = None,
        level: bool = True,
    ) -> None:
        super().__init__(
            form=form,
            mean=mean,
            std=std,
            lead_std=lead_std,
            covariance=covariance,
            linear=linear,
            level=level,
        )
        self.form, self.lead_std, self.level = form, lead_std, level
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64))
        for name in MAPS:
            weights = None if linear is None else torch.tensor(linear[name]).double()
            self.register_buffer(name, weights)

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        form, series = options.prediction, options.series
        if form == "direct" or not statistics.n_in:
            return None
        if form == "linear" and series is not None:
            left = series.left / series.std  # standard deviations of the anomalies
            std = (left * (left > 1e-9)).tolist()
            return cls(
                form="linear",
                mean=[0.0] * len(std),
                std=std,
                covariance=_plain(series.covariance, series.std),
                linear={of: getattr(series, of).tolist() for of in MAPS},
                level=series.level,
            )
        changes = statistics.rates if form == "rate" else statistics.changes
        own, inputs = slice(len(changes.mean)), statistics.inputs
        offset, unit = inputs.mean[own], inputs.scale[own]
        leads = statistics.forcings.scale if statistics.any_time else None
        lead_std = None if leads is None else float(leads[-1])
        change = unit / (lead_std or 1) if form == "rate" else unit
        return cls(
            form=form,
            mean=(changes.mean / change).tolist(),
            std=(changes.std / change).tolist(),
            lead_std=lead_std,
            covariance=_plain(options.covariance, unit, offset),
        )

    mean: Tensor
    std: Tensor
    own: Tensor
    regional: Tensor

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        fitted, self.covariance = self.settings["covariance"], None
        if fitted is not None:
            values = (torch.tensor(fitted[key]) for key in ("parameters", "expected"))
            self.covariance = StationaryCovariance(self.domain, *values)
        if self.form in ("damped", "linear"):
            zeros = torch.zeros(problem.n_out, problem.out_components)
            self.change = nn.Parameter(zeros)
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        if graphs.query_pos is None:
            return graphs
        if self.covariance is None:
            return graphs.with_edges("last", partial(spline_graph, domain=self.domain))
        return graphs.with_edges("last", partial(kriging_graph, self.covariance))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        num, graphs = len(self.std), batch.graphs
        seen = batch.x[..., :num]
        last = seen if self.form == "linear" else seen[:, -1:]
        if graphs.query_pos is not None:
            last = self._at_queries(last, graphs)
        mean, factor = self.mean, self.std
        if self.form == "rate":
            assert batch.lead is not None and self.lead_std is not None
            passed, at = batch.lead.to(last) / self.lead_std, graphs.query_batch
            passed = (passed if at is None else passed[at])[:, None, None]
            mean, factor = mean * passed, factor * passed
        if self.form == "linear":
            last = self._linear(seen, last, graphs)
            mean, factor = (SPEED * self.change * each for each in (mean, factor))
        if self.form == "damped":
            last = self.damping.to(last) * last
        batch = replace(
            batch, base=(last + mean) / self.unit, factor=factor / self.unit
        )
        if self.level:
            return batch
        fields = seen - seen.mean(1, keepdim=True)
        return replace(batch, x=torch.cat([fields, batch.x[..., num:]], dim=-1))

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        return target / self.unit

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        return self.unit * prediction

    @property
    def unit(self) -> Tensor:
        """Scale of the changes ``[C]``; 1 where the network has no say."""
        return self.std.where(self.std > 0, 1)

    def _linear(self, seen: Tensor, last: Tensor, graphs: Graphs) -> Tensor:
        """The linear forecast ``[M, T, C]`` from all observed time steps.

        Args:
            seen: Fields at the observed points ``[N, n_in, C]``.
            last: The same at the points of the prediction ``[M, n_in, C]``.
            graphs: Graphs of the batch.
        """
        at, here, num = graphs.batch, graphs.query_batch, graphs.num_samples
        mean = seen.double().mean(0, keepdim=True)
        if at is not None:
            mean = scatter(seen.double(), at, dim_size=num, reduce="mean")
        mean = torch.einsum("tkc,skc->stc", self.regional, mean)
        forecast = torch.einsum("tkc,nkc->ntc", self.own, last.double())
        return forecast + (mean if here is None else mean[here])

    @property
    def damping(self) -> Tensor:
        r"""The factor :math:`\alpha` of damped persistence, ``[T, C]``."""
        return 1 + SPEED * self.change

    def _at_queries(self, last: Tensor, graphs: Graphs) -> Tensor:
        """The last time step ``[N, 1, C]`` at the query points."""
        # In double precision: weights in a gap are large and cancel.
        last, graph = last.double(), graphs.edges["last"]
        if self.covariance is None:
            return interpolate_along(last, graph)
        expected = self.covariance.expected
        return expected + interpolate_along(last - expected, graph)


def _plain(
    covariance: StationaryCovariance | None, unit: Tensor, offset: Tensor | float = 0.0
) -> dict[str, Any] | None:
    """A covariance as a setting, for fields less an offset in a unit."""
    if covariance is None:
        return None
    expected = ((covariance.expected - offset) / unit).tolist()
    return {"parameters": covariance.fitted.tolist(), "expected": expected}
