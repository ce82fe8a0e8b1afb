"""The closed-form fit to one long series: climatology and linear forecast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from nfsgeo.forecast.transforms import BaseForecast, Transform
from nfsgeo.forecast.transforms.residual import covariance_settings
from nfsgeo.models import MODELS
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.stations.climatology import Climatology, Cycle
from nfsgeo.stations.linear_forecast import LinearForecast
from nfsgeo.stations.seasonal_means import MOST_VALUES, fitted_climatology
from nfsgeo.training.run_data import RunData

__all__ = ["SeriesFit", "base_forecast", "fitted_series"]

# Fractions of the time steps after which the next fifth of them scores a forecast.
ORIGINS = (0.4, 0.6, 0.8)
RIDGE = 1e-2

# Settings that suit a noisy series.
NOISY: dict[str, dict[str, Any]] = {
    "data": {"batch_size": 32},
    "loss": {"name": "mae"},
    "optimiser": {"lr": 5e-4},
}

# Inputs and targets of windows, a row for each window and point.
Windows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class SeriesFit:
    r"""The climatology of a long series, and a linear forecast of its anomalies.

    .. math:: \hat a_t(x) = \sum_k w_{tk} \, a_k(x) + v_{tk} \, \bar a_k

    for the anomalies :math:`a` of each component from the climatology, with their mean
    :math:`\bar a` over the observed points of the sample.

    Attributes:
        pos: Points of the file ``[S, d]``, in the normalised domain.
        cycles: Period and number of phases of each cycle of the climatology, the first
            infinite and of one phase.
        table: The climatology at all phases of each point, ``[S, K, C]``.
        level: Whether fields return to the climatology in the long run.
        std: Standard deviation of the anomalies, ``[C]``.
        own: Weights :math:`w`, ``[n_out, n_in, C]``.
        regional: Weights :math:`v`, likewise.
        left: Root mean square of the residuals of the forecast, ``[C]``.
        covariance: Covariance of the anomalies; ``None`` if a spline is as good.
        static: Static inputs ``[S, C_s]`` of the points.
        trend: Derivatives of the climatology by these ``[C_s, K, C]``.
    """

    pos: Tensor
    cycles: Sequence[Cycle]
    table: Tensor
    level: bool
    std: Tensor
    own: Tensor
    regional: Tensor
    left: Tensor
    covariance: StationaryCovariance | None
    static: Tensor | None = None
    trend: Tensor | None = None

    @property
    def noisy(self) -> bool:
        """Return whether residuals are at least half as large as the anomalies."""
        return float((self.left / self.std).mean()) > 0.5

    def linear_forecast(self) -> LinearForecast:
        """Return the transform that adds the forecast."""
        left = self.left / self.std
        return LinearForecast(
            std=(left * (left > 1e-9)).tolist(),
            own=self.own.tolist(),
            regional=self.regional.tolist(),
            level=self.level,
            covariance=covariance_settings(self.covariance, self.std),
        )


def base_forecast(used: RunData) -> BaseForecast | None:
    """Fit the climatology and the linear forecast that a network starts from.

    Args:
        used: Data of the run, with a complete configuration.

    Returns:
        The forecast, or ``None`` where :func:`fitted_series` fits none.
    """
    if (series := fitted_series(used)) is None:
        return None
    transforms: dict[str, Transform] = {
        "climatology": Climatology.of(
            series.pos, series.cycles, series.table, series.static, series.trend
        )
    }
    if used.config.model.prediction == "linear":
        transforms["linear_forecast"] = series.linear_forecast()
    return BaseForecast(
        transforms,
        series.std,
        seasonal=len(series.cycles) > 1,
        settings=NOISY if series.noisy else {},
    )


def fitted_series(used: RunData) -> SeriesFit | None:
    """Fit climatology and linear forecast to the training part of a series.

    The result is ``None`` for data that are not one series split in time, for a series
    that is too short or too long, and unless ``model.prediction`` is linear or the
    model is an autoregressive one, which predicts anomalies directly.

    Args:
        used: Data of the run, with a complete configuration.
    """
    data, model = used.config.data, used.config.model
    if model.prediction != "linear" and not MODELS[model.name].autoregressive:
        return None
    n_in, n_out, apart = data.n_in or 0, data.n_out or 0, data.time_stride
    season = fitted_climatology(used)
    if season is None or ORIGINS[0] * len(season.times) <= data.length(n_in + n_out):
        return None
    num, trained = len(season.times), torch.from_numpy(used.trained_points(0))

    def windows(anomalies: Tensor, start: int, stop: int) -> Windows:
        """Inputs without gaps, of the point and then means over all; and targets."""
        series, numbers = anomalies[trained, start:stop], torch.arange(n_in + n_out)
        numbers = apart * numbers
        most = series.size(1) - int(numbers[-1])
        size = most * series[:, 0].numel() * len(numbers)
        starts = torch.arange(0, max(most, 0), max(1, math.ceil(size / MOST_VALUES)))
        values = series[:, starts[:, None] + numbers].flatten(0, 1)
        x = fill_in_time(values[:, :n_in]).nan_to_num().unflatten(0, (len(series), -1))
        joint = torch.cat([x, x.mean(0, keepdim=True).expand_as(x)], dim=2)
        return joint.flatten(0, 1), values[:, n_in:]

    folds = []  # windows to fit to, and those with targets after them to be scored
    for origin in ORIGINS:
        fit, end = round(origin * num), round((origin + 0.2) * num)
        rest = season.fitted(fit).anomalies
        first = max(0, fit - 1 - (n_in - 1) * apart)
        folds.append((windows(rest, 0, fit), windows(rest, first, end)))
    train = windows(season.anomalies, 0, num)
    forecasts = [
        _best_forecast(
            [[(x[..., c], y[..., c]) for x, y in fold] for fold in folds],
            (train[0][..., c], train[1][..., c]),
            season.level,
        )
        for c in range(used.file.components)
    ]
    own, regional, left = (torch.stack(f, -1) for f in zip(*forecasts, strict=True))
    return SeriesFit(
        pos=season.pos,
        cycles=season.cycles,
        table=season.table,
        level=season.level,
        std=season.std,
        own=own,
        regional=regional,
        left=left,
        covariance=season.covariance(),
        static=season.static,
        trend=season.trend,
    )


def _best_forecast(
    folds: Sequence[Sequence[Windows]], train: Windows, level: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Own and regional weights of the best forecast of a component, and its RMSE.

    The forecast is the mean of some of these: zero, if there is a level to return to,
    and ridge regressions on the past of the point alone or of all points as well, each
    towards the level or towards the mean of the window.

    Args:
        folds: Pairs of windows to fit to and of later ones that score the forecasts.
        train: Windows that the chosen forecast is fitted to.
        level: Whether fields return to the climatology.
    """
    forms = [(both, centred) for both in (False, True) for centred in (True, False)]

    def fits(x: Tensor, y: Tensor) -> Tensor:
        maps = [_ridge(x, y, *form) for form in forms if level or form[1]]
        return torch.stack([*maps, *[torch.zeros_like(maps[0])] * level])

    maps = fits(*train)
    subsets = torch.tensor([*product((0.0, 1.0), repeat=len(maps))][1:]).double()
    subsets = subsets / subsets.sum(1, keepdim=True)
    error = torch.zeros(len(subsets)).double()
    for earlier, (x, y) in folds:
        rest = y[..., None] - torch.einsum("wk,ftk->wtf", x, fits(*earlier))
        rest = rest[~rest[..., 0].isnan()]
        error += torch.stack([(rest @ subset).abs().mean() for subset in subsets])
    weights = torch.einsum("f,ftk->tk", subsets[error.argmin()], maps)
    x, y = train
    left = (y - x @ weights.T).square().nanmean().sqrt()
    own, regional = weights.tensor_split(2, dim=1)
    return own, regional, left


def _ridge(x: Tensor, y: Tensor, both: bool, centred: bool) -> Tensor:
    """Weights ``[n_out, 2 n_in]`` of a ridge regression on standardised inputs."""
    n_in = x.size(1) // 2
    # Centred inputs are a linear map of the inputs.
    centre = torch.eye(n_in).double() - centred / n_in
    change = torch.block_diag(centre, centre * both)
    base = torch.zeros(2 * n_in).double()
    base[:n_in] = centred / n_in
    inputs, weights = x @ change.T, []
    for target in y.unbind(1):
        observed = ~target.isnan()
        a, b = inputs[observed], target[observed] - x[observed] @ base
        gram = a.T @ a
        # The last is for inputs that are all 0: a larger one would count in some units.
        penalty = RIDGE * gram.diagonal() + 1e-9 * gram.diagonal().mean() + 1e-200
        solved = torch.linalg.solve(gram + penalty.diag(), a.T @ b)
        weights.append(solved @ change + base)
    return torch.stack(weights)
