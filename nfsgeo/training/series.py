"""Climatology and linear forecast of one long series, fitted in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from torch import Tensor

from nfsgeo.data.fields import Doubles
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.samples import read_sample
from nfsgeo.data.streams import philox, shuffled
from nfsgeo.data.times import EPOCH
from nfsgeo.forecast.series import LinearForecast, SeriesFit, harmonics
from nfsgeo.models import MODELS
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.training.covariance import PointSet, covariance_of
from nfsgeo.training.run_data import RunData

__all__ = ["fitted_series"]

DAY, YEAR = 86400.0, 365.2425 * 86400.0
# Values of a series, and of its windows, that are held at once.
MOST_VALUES = 5e7
# Stations that a Gaussian process is fitted to, and trials of its three parameters.
MOST_STATIONS, TRIALS = 600, 60
# Of the logarithms of a length, of the odds of what is shared, and of a variance.
BOUNDS = np.array([[-5.0, -7.0, -60.0], [3.0, 7.0, 60.0]])
# Where a fit of the first time steps ends and is scored on the next fifth of them.
ORIGINS = (0.4, 0.6, 0.8)
RIDGE = 1e-2
# Where that of measurements is looked for: power, decay, mean and noise.
NOISY = 1.0, -5.0, -2.0, -2.0
# Time steps, points and trials by which the covariance of anomalies is fitted.
SETS, POINTS, COVARIANCES = 6, 60, 60


def fitted_series(used: RunData) -> SeriesFit | None:
    """The fit to the training part of a series that is split in time.

    Args:
        used: The data of the run, resolved.

    Returns:
        None for other data, for a series that is too short or too long, and where
        neither ``model.prediction`` is linear nor the model an autoregressive one,
        which predicts anomalies directly.
    """
    data, file = used.config.data, used.file
    model = used.config.model
    suits = model.prediction == "linear" or MODELS[model.name].autoregressive
    if data.split_by != "time" or file.num_samples > 1 or not suits:
        return None
    steps = np.arange(used.steps["train"].start, used.steps["train"].stop)
    mesh = MeshOfFile(file)(0)
    n_in, n_out = data.n_in or 0, data.n_out or 0
    length = data.length(n_in + n_out)
    if len(mesh) * len(steps) * file.components > MOST_VALUES:
        return None
    if ORIGINS[0] * len(steps) < length + 1:
        return None
    sample = read_sample(file, 0, mesh, steps, volumes=False)
    u = torch.full(sample.u.shape, torch.nan, dtype=torch.float64)
    trained = torch.from_numpy(used.trained_points(0))
    u[trained] = torch.from_numpy(sample.u).double()[trained]
    pos = file.domain.normalise(torch.from_numpy(mesh.pos))
    times, apart = torch.from_numpy(file.times[steps]), data.time_stride
    periods, level = _periods(times, file.time_unit)
    points = _Points.fitted(pos, torch.from_numpy(sample.a).double())
    basis = harmonics(times, periods)
    whole = points.climatology(u, basis, refit=True)

    def parts(fit: int, end: int) -> tuple[tuple[Tensor, Tensor], ...]:
        """Windows of anomalies to fit to, and those to be scored with targets after."""
        known = whole
        if fit < len(times):
            known = points.climatology(u[:, :fit], basis[:fit])
        anomalies = (u - torch.einsum("tk,skc->stc", basis, known))[trained]
        first = fit - 1 - (n_in - 1) * apart
        return tuple(
            _windows(anomalies[:, start:stop], n_in, n_out, apart)
            for start, stop in ((0, fit), (max(0, first), end))
        )

    num = len(times)
    ends = [(round(part * num), round((part + 0.2) * num)) for part in ORIGINS]
    folds = [parts(*each) for each in ends]
    train = parts(num, num)[0]
    chosen = [
        _linear(component, folds, train, level) for component in range(file.components)
    ]
    own, regional, std = (torch.stack(each, -1) for each in zip(*chosen, strict=True))
    linear = LinearForecast(own, regional, std)
    anomalies = u - torch.einsum("tk,skc->stc", basis, whole)
    spread = anomalies.square().nanmean((0, 1)).sqrt()
    sets, domain = _point_sets(pos, anomalies / spread), file.domain.normalised
    zero = torch.zeros_like(spread)
    covariance = covariance_of(sets, domain, zero, spread, [NOISY], COVARIANCES)
    return SeriesFit(pos, periods, whole, spread, linear, covariance, level)


def _periods(times: Tensor, unit: str) -> tuple[tuple[float, ...], bool]:
    """Two harmonics of the year and of the day, where dates resolve and cover them.

    And whether there is a level that fields return to: the mean of part of a cycle, as
    of a summer, is none. The cycle that matters is the shortest that steps resolve.
    """
    found: list[float] = []
    if unit != EPOCH or len(times) < 2:
        return (), True
    span, step, level = float(times[-1] - times[0]), float(times.diff().median()), True
    for period, covers in ((YEAR, 1.5), (DAY, 3.0)):
        if step <= period / 4:
            level = span >= covers * period
            found += [period, period / 2] * level
    return tuple(found), level


def _point_sets(pos: Tensor, a: Tensor) -> list[PointSet]:
    """Complete points at some time steps, a fifth of them as queries of the others."""
    sets, complete = list[PointSet](), ~a.isnan().any(2)
    for step in philox(0, a.size(1)).permutation(a.size(1)):
        there = shuffled(int(complete[:, step].sum()), philox(1, int(step)))
        here = complete[:, step].nonzero()[:, 0][torch.from_numpy(there[:POINTS])]
        num = len(here) // 5
        if num and len(sets) < SETS:
            fields, queries = a[here[num:], step, None], a[here[:num], step, None]
            sets.append(PointSet(pos[here[num:]], pos[here[:num]], fields, queries))
    return sets


@dataclass
class _Points:
    """Points that share what they have in common: a Gaussian process of coefficients.

    .. math:: \\beta(x) = q(x) \\cdot c + f(x) + g(x)

    with a trend in position and static inputs, a field of exponential covariance, and
    what is a point's own.
    """

    distance: Doubles
    trend: Doubles
    parameters: dict[tuple[int, int], NDArray[np.float64]]

    @classmethod
    def fitted(cls, pos: Tensor, static: Tensor) -> _Points:
        near = len(pos) <= MOST_STATIONS
        distance = torch.cdist(pos, pos) if near else torch.zeros(0, 0)
        known = torch.cat([pos, static], dim=1)
        known = (known - known.mean(0)) / known.std(0).clamp_min(1e-12)
        trend = torch.cat([torch.ones_like(pos[:, :1]), known], dim=1)
        return cls(distance.numpy(), trend.numpy(), {})

    def climatology(self, u: Tensor, basis: Tensor, refit: bool = False) -> Tensor:
        """Coefficients ``[S, K, C]`` of fields ``u [S, T, C]``, at all points.

        Least squares at each point that is observed often enough, drawn towards what
        the others say of it by as much as its own estimate is uncertain.
        """
        size = basis.size(1)
        there = (~u.isnan()).double()
        gram = torch.einsum("tk,tl,stc->sckl", basis, basis, there)
        gram = gram + 1e-6 * torch.eye(size).double()
        right = torch.einsum("tk,stc->sck", basis, u.nan_to_num())
        found = torch.linalg.solve(gram, right)
        rest = u - torch.einsum("tk,sck->stc", basis, found)
        count = there.sum(1)
        # Values that follow each other tell less than independent ones.
        alike = (rest[:, 1:] * rest[:, :-1]).nanmean((0, 1)) / rest.square().nanmean(
            (0, 1)
        )
        alike = alike.clamp(0, 0.95)
        variance = rest.square().nansum(1) / (count - size).clamp_min(1)
        variance = variance * (1 + alike) / (1 - alike)
        inverse = torch.linalg.inv(gram).diagonal(dim1=-2, dim2=-1)
        noise = variance[..., None] * inverse
        few = count < 3 * size
        noise[few] = torch.inf
        done = found.clone()
        for c in range(u.size(2)):
            for k in range(size):
                done[:, c, k] = self._shrunk(
                    found[:, c, k].numpy(), noise[:, c, k].numpy(), (c, k), refit
                )
        return done.transpose(1, 2)

    def _shrunk(
        self, value: Doubles, noise: Doubles, key: tuple[int, int], refit: bool
    ) -> Tensor:
        """Posterior means at all points, of ``value`` where ``noise`` is finite."""
        seen = np.isfinite(noise)
        if not seen.any():
            return torch.zeros(len(value), dtype=torch.float64)
        if not self.distance.size or seen.sum() < 2 * self.trend.shape[1]:
            return torch.from_numpy(np.where(seen, value, value[seen].mean()))
        # In units of their spread, so that those of the data do not matter.
        unit = max(value[seen].std(), 1e-300)
        value, noise = value / unit, noise / unit**2
        if refit:
            start = np.array([math.log(0.2), 0.0, 0.0])
            simplex = start + np.concatenate([np.zeros((1, 3)), np.eye(3)])
            self.parameters[key] = minimize(
                lambda p: self._solved(value, noise, seen, p)[0],
                start,
                method="Nelder-Mead",
                options={"maxfev": TRIALS, "initial_simplex": simplex},
            ).x
        found = self._solved(value, noise, seen, self.parameters[key])[1]
        return torch.from_numpy(unit * found)

    def _solved(
        self,
        value: Doubles,
        noise: Doubles,
        seen: NDArray[np.bool_],
        parameters: NDArray[np.float64],
    ) -> tuple[float, Doubles]:
        """The negative log-likelihood, and the posterior mean at all points."""
        length, share, variance = np.clip(parameters, *BOUNDS)
        share = 1 / (1 + math.exp(-share))
        field = np.exp(-self.distance / math.exp(length))
        covariance = math.exp(variance) * (
            share * field + (1 - share) * np.eye(len(field))
        )
        own = covariance[np.ix_(seen, seen)] + np.diag(noise[seen])
        own[np.diag_indices_from(own)] *= 1 + 1e-9
        factor = cho_factor(own, lower=True)
        trend, target = self.trend[seen], value[seen]
        solved = cho_solve(factor, np.column_stack([trend, target]))
        slope = np.linalg.lstsq(trend.T @ solved[:, :-1], trend.T @ solved[:, -1])[0]
        rest = target - trend @ slope
        weight = cho_solve(factor, rest)
        likelihood = np.log(np.diag(factor[0])).sum() + rest @ weight / 2
        mean = self.trend @ slope + covariance[:, seen] @ weight
        return float(likelihood), mean


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
