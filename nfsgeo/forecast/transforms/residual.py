"""Residual prediction: the network predicts what is added to the last time step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from nfsgeo.config import Prediction
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

__all__ = ["SPEED", "Residual", "covariance_settings"]

# Adam moves every weight by about the learning rate, and a factor has farther to go.
SPEED = 10.0


class Residual(Transform):
    r"""Adds the last observed time step to what the network predicts.

    .. math:: \hat u_{tc}(x) = \alpha_{tc} \, u_c(x) + s_c \, y_{tc}(x)

    of normalised fields, with the standard deviation :math:`s` of the changes in the
    training data. With ``residual`` and ``rate``, :math:`\alpha` is 1; ``rate``
    multiplies the prediction :math:`y` by the lead time. With ``damped`` it is damped
    persistence: a learned factor for each predicted time step and component, 1 before
    training, which also damps the noise of the last time step.

    At query points the last time step comes from a local polyharmonic spline through
    the observed points, or from kriging where these are few.

    Args:
        form: ``residual``, ``rate`` or ``damped``.
        mean: mean of the changes, in standard deviations of the fields, ``C``.
        std: their standard deviation, likewise; 0 of a component that the network does
            not change.
        lead_std: standard deviation of the lead time, by which a rate is multiplied.
        covariance: ``parameters`` and normalised ``expected`` value of
            :class:`~nfsgeo.nn.kriging.StationaryCovariance`; ``None`` for the spline.
    """

    fitted: ClassVar[tuple[str, ...]] = ("mean", "std", "lead_std")
    query_edges = ("last",)

    def __init__(
        self,
        *,
        form: Prediction,
        mean: Sequence[float],
        std: Sequence[float],
        lead_std: float | None = None,
        covariance: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            form=form, mean=mean, std=std, lead_std=lead_std, covariance=covariance
        )
        self.form, self.lead_std = form, lead_std
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64))

    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        form = options.prediction
        if form in ("direct", "linear") or not statistics.n_in:
            return None
        changes = statistics.rates if form == "rate" else statistics.changes
        channels, inputs = slice(len(changes.mean)), statistics.inputs
        offset, unit = inputs.mean[channels], inputs.scale[channels]
        leads = statistics.forcings.scale if statistics.any_time else None
        lead_std = None if leads is None else float(leads[-1])
        change = unit / (lead_std or 1) if form == "rate" else unit
        return cls(
            form=form,
            mean=(changes.mean / change).tolist(),
            std=(changes.std / change).tolist(),
            lead_std=lead_std,
            covariance=covariance_settings(options.covariance, unit, offset),
        )

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
        last = self.at_targets(batch.x[:, -1:, : len(self.std)], batch.graphs)
        mean, factor = self.mean, self.std
        if self.form == "rate":
            assert batch.lead is not None and self.lead_std is not None
            passed, sample = (
                batch.lead.to(last) / self.lead_std,
                batch.graphs.query_batch,
            )
            passed = (passed if sample is None else passed[sample])[:, None, None]
            mean, factor = mean * passed, factor * passed
        elif self.form == "damped":
            last = self.damping.to(last) * last
        base, factor = (last + mean) / self.unit, factor / self.unit
        return replace(batch, base=base, factor=factor)

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        return target / self.unit

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        return self.unit * prediction

    @property
    def unit(self) -> Tensor:
        """Scale of the changes ``[C]``; 1 where the network does not change a field."""
        return self.std.where(self.std > 0, 1)

    @property
    def damping(self) -> Tensor:
        r"""The factor :math:`\alpha` of damped persistence, ``[T, C]``."""
        return 1 + SPEED * self.change

    def at_targets(self, fields: Tensor, graphs: Graphs) -> Tensor:
        """Interpolate observed fields to the query points, if there are any.

        Args:
            fields: Fields at the observed points ``[N, T, C]``.
            graphs: Graphs of :meth:`connect`.
        """
        if graphs.query_pos is None:
            return fields
        # In double precision: weights in a gap are large and cancel.
        fields, graph = fields.double(), graphs.edges["last"]
        if self.covariance is None:
            return interpolate_along(fields, graph)
        expected = self.covariance.expected
        return expected + interpolate_along(fields - expected, graph)


def covariance_settings(
    covariance: StationaryCovariance | None, unit: Tensor, offset: Tensor | float = 0.0
) -> dict[str, Any] | None:
    """Describe a covariance by plain types, for fields that are normalised.

    Args:
        covariance: Covariance of fields in the units of the data.
        unit: Scale of each component ``[C]``.
        offset: Value of each component that is subtracted before ``[C]``.
    """
    if covariance is None:
        return None
    expected = ((covariance.expected - offset) / unit).tolist()
    return {"parameters": covariance.fitted.tolist(), "expected": expected}
