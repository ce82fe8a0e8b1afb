"""A linear forecast of one long series, fitted in closed form."""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from nfsgeo.forecast.series import LinearForecast, SeriesFit
from nfsgeo.models import MODELS
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.training.climatology import fitted_climatology
from nfsgeo.training.run_data import RunData

__all__ = ["fitted_series"]

# Values of windows that are held at once.
MOST_VALUES = 5e7
# Where a fit of the first time steps ends and is scored on the next fifth of them.
ORIGINS = (0.4, 0.6, 0.8)
RIDGE = 1e-2


def fitted_series(used: RunData) -> SeriesFit | None:
    """The fit to the training part of a series that is split in time.

    Args:
        used: The data of the run, resolved.

    Returns:
        None for other data, for a series that is too short or too long, and where
        neither ``model.prediction`` is linear nor the model an autoregressive one,
        which predicts anomalies directly.
    """
    data, model = used.config.data, used.config.model
    if model.prediction != "linear" and not MODELS[model.name].autoregressive:
        return None
    found = fitted_climatology(used)
    n_in, n_out, apart = data.n_in or 0, data.n_out or 0, data.time_stride
    if found is None or ORIGINS[0] * len(found.times) <= data.length(n_in + n_out):
        return None
    series, num = found, len(found.times)

    def parts(fit: int, end: int) -> tuple[tuple[Tensor, Tensor], ...]:
        """Windows of anomalies to fit to, and those to be scored with targets after."""
        anomalies = series.anomalies if fit == num else series.of_first(fit)
        first = max(0, fit - 1 - (n_in - 1) * apart)
        return tuple(
            _windows(anomalies[series.trained, start:stop], n_in, n_out, apart)
            for start, stop in ((0, fit), (first, end))
        )

    ends = [(round(part * num), round((part + 0.2) * num)) for part in ORIGINS]
    folds, train = [parts(*each) for each in ends], parts(num, num)[0]
    chosen = [
        _linear(component, folds, train, found.level)
        for component in range(used.file.components)
    ]
    linear = LinearForecast(
        *(torch.stack(each, -1) for each in zip(*chosen, strict=True))
    )
    return SeriesFit(
        found.pos,
        found.periods,
        found.coefficients,
        found.std,
        linear,
        found.covariance(),
        found.level,
    )


def _windows(a: Tensor, n_in: int, n_out: int, apart: int) -> tuple[Tensor, Tensor]:
    """Windows of anomalies ``a [S, T, C]``: inputs without gaps, and targets."""
    numbers = apart * torch.arange(n_in + n_out)
    num = a.size(1) - int(numbers[-1])
    stride = math.ceil(num * a.size(0) * a.size(2) * len(numbers) / MOST_VALUES)
    starts = torch.arange(0, max(num, 0), max(stride, 1))
    found = a[:, starts[:, None] + numbers].flatten(0, 1)
    x = fill_in_time(found[:, :n_in]).nan_to_num()
    x = x.unflatten(0, (a.size(0), -1))
    regional = x.mean(0, keepdim=True).expand_as(x)
    joint = torch.cat([x, regional], dim=2).flatten(0, 1)
    return joint, found[:, n_in:]


def _linear(
    c: int,
    folds: list[tuple[tuple[Tensor, Tensor], ...]],
    train: tuple[Tensor, Tensor],
    level: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The map of a component that would have forecast best, fitted to ``train``.

    It is a mean of some of these: nothing, where there is a ``level`` to return to, and
    ridge regression on a point's own past or on that of all points as well, towards the
    level or towards the mean of the window.
    """
    forms = [(both, centred) for both in (False, True) for centred in (True, False)]
    forms = [form for form in forms if level or form[1]]

    def fits(windows: tuple[Tensor, Tensor]) -> Tensor:
        x, y = (each[..., c] for each in windows)
        found = [_ridge(x, y, *form) for form in forms]
        if level:
            found.append(torch.zeros_like(found[0]))
        return torch.stack(found)

    pairs = [(fits(before), after) for before, after in folds]
    num = len(pairs[0][0])
    subsets = torch.tensor([*product((0.0, 1.0), repeat=num)][1:]).double()
    subsets = subsets / subsets.sum(1, keepdim=True)
    error = torch.zeros(len(subsets)).double()
    for maps, (x, y) in pairs:
        rest = y[..., c, None] - torch.einsum("wk,ftk->wtf", x[..., c], maps)
        there = ~rest[..., 0].isnan()
        rest = rest[there]
        error += torch.stack([(rest @ each).abs().mean() for each in subsets])
    best = subsets[error.argmin()]
    weights = torch.einsum("f,ftk->tk", best, fits(train))
    n_in, (x, y) = weights.size(1) // 2, (each[..., c] for each in train)
    std = (y - x @ weights.T).square().nanmean().sqrt()
    return weights[:, :n_in], weights[:, n_in:], std


def _ridge(x: Tensor, y: Tensor, both: bool, centred: bool) -> Tensor:
    """Weights ``[n_out, 2 n_in]`` by ridge regression, of standardised inputs."""
    n_in = x.size(1) // 2
    # Centred inputs are a linear map of the inputs.
    centre = torch.eye(n_in).double() - centred / n_in
    change = torch.block_diag(centre, centre * both)
    base = torch.zeros(2 * n_in).double()
    base[:n_in] = centred / n_in
    seen, weights = x @ change.T, []
    for target in y.unbind(1):
        there = ~target.isnan()
        a, b = seen[there], target[there] - x[there] @ base
        gram = a.T @ a
        penalty = RIDGE * gram.diagonal() + 1e-9 * gram.diagonal().mean() + 1e-12
        solved = torch.linalg.solve(gram + penalty.diag(), a.T @ b)
        weights.append(solved @ change + base)
    return torch.stack(weights)
