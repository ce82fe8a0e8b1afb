"""Prediction as a correction of a linear forecast from all observed time steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms import ModelInputs, Residual, TransformOptions
from nfsgeo.forecast.transforms.residual import SPEED

__all__ = ["LinearForecast"]


class LinearForecast(Residual):
    r"""Adds a linear forecast, fitted beforehand, to what the network predicts.

    .. math:: \hat u_{tc}(x) = \sum_k w_{tkc} \, u_{kc}(x) + v_{tkc} \, \bar u_{kc}
        + \gamma_{tc} \, s_c \, y_{tc}(x)

    of normalised anomalies, with their mean :math:`\bar u` over the observed points
    and the standard deviation :math:`s` of the residuals in the training data. The
    learned :math:`\gamma` is 0 before training: the network starts as the linear
    forecast.

    At query points observed time steps are interpolated as those of :class:`Residual`.

    Args:
        std: standard deviation of the residuals, in those of the anomalies, ``C``; 0 of
            a component that the network does not change.
        own: weights :math:`w` of a point's own anomalies, ``[n_out, n_in, C]``.
        regional: weights :math:`v` of their mean over all points, likewise.
        level: whether the network sees anomalies as they are; else, of each point, less
            their mean over the observed time steps, so that its correction does not
            depend on the level.
        covariance: as for :class:`Residual`.
    """

    fitted = "std", "own", "regional", "level"

    def __init__(
        self,
        *,
        std: Sequence[float],
        own: Sequence[Any],
        regional: Sequence[Any],
        level: bool,
        covariance: Mapping[str, Any] | None = None,
    ) -> None:
        zeros = [0.0] * len(std)
        super().__init__(form="linear", mean=zeros, std=std, covariance=covariance)
        maps = {"own": own, "regional": regional}
        self.settings = {"std": std, **maps, "level": level, "covariance": covariance}
        self.level = level
        for name, weights in maps.items():
            self.register_buffer(name, torch.tensor(weights, dtype=torch.float64))

    own: Tensor
    regional: Tensor

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        return None  # nfsgeo.stations.series_fit.base_forecast makes it

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        num, graphs = len(self.std), batch.graphs
        seen = batch.x[..., :num].double()
        if (samples := graphs.batch) is None:
            mean = seen.mean(0, keepdim=True)
        else:
            mean = scatter(seen, samples, dim_size=graphs.num_samples, reduce="mean")
        mean = torch.einsum("tkc,skc->stc", self.regional, mean)
        if (samples := graphs.query_batch) is not None:
            mean = mean[samples]
        here = self.at_targets(seen, graphs)
        forecast = torch.einsum("tkc,nkc->ntc", self.own, here) + mean
        factor = SPEED * self.change * self.std
        batch = replace(batch, base=forecast / self.unit, factor=factor / self.unit)
        if self.level:
            return batch
        fields = seen - seen.mean(1, keepdim=True)
        return replace(batch, x=torch.cat([fields, batch.x[..., num:]], dim=-1))
