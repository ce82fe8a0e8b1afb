"""What is fitted to one long series in closed form: its climatology, and a forecast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor

from nfsgeo.data import Fields
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.samples import read_sample
from nfsgeo.data.streams import philox, shuffled
from nfsgeo.data.times import EPOCH
from nfsgeo.forecast.transforms import SeriesFit
from nfsgeo.models import MODELS
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.stations.climatology import harmonics
from nfsgeo.training.covariance import PointSet, covariance_of, nelder_mead
from nfsgeo.training.run_data import RunData

__all__ = ["SeriesClimatology", "fitted_climatology", "fitted_series"]

DAY, YEAR = 86400.0, 365.2425 * 86400.0
# Values of a series, or of its windows, that are held at once.
MOST_VALUES = 5e7
# Stations that a Gaussian process is fitted to, and trials of its three parameters.
MOST_STATIONS, TRIALS = 600, 60
# Of the logarithms of a length, of the odds of what is shared, and of a variance.
START, BOUNDS = (math.log(0.2), 0.0, 0.0), ([-5.0, -7.0, -60.0], [3.0, 7.0, 60.0])
# Where the covariance of anomalies is looked for: power, decay, mean and noise.
NOISY = 1.0, -5.0, -2.0, -2.0
# Time steps, points and trials by which it is fitted.
SETS, POINTS, COVARIANCES = 6, 60, 60
# Where a fit of the first time steps ends and is scored on the next fifth of them.
ORIGINS = (0.4, 0.6, 0.8)
RIDGE = 1e-2

Windows = tuple[Tensor, Tensor]


class SeriesClimatology:
    r"""Mean and season of a series at the points of its file, and anomalies from them.

    .. math:: \beta(x) = q(x) \cdot c + f(x) + g(x)

    Coefficients are a Gaussian process: a trend in position and static inputs, a field
    of exponential covariance, and what is a point's own.

    Args:
        file: The series.
        pos: Its points ``[S, d]``, in the normalised domain.
        static: Static inputs there ``[S, A]``.
        values: In training, ``[S, T, C]``, NaN where nothing was observed or seen.
        times: ``[T]``.

    Attributes:
        periods: Of the harmonics, in the unit of the times.
        level: Whether fields return to it: the mean of part of a cycle, as of a summer,
            is none.
        coefficients: ``[S, K, C]``.
        anomalies: ``[S, T, C]``.
    """

    def __init__(
        self, file: Fields, pos: Tensor, static: Tensor, values: Tensor, times: Tensor
    ) -> None:
        self.domain, self.pos, self.values = file.domain.normalised, pos, values
        self.periods, self.level = _cycles(times, file.time_unit)
        near = len(pos) <= MOST_STATIONS
        self.distance = torch.cdist(pos, pos).numpy() if near else None
        known = torch.cat([pos, static], dim=1)
        known = (known - known.mean(0)) / known.std(0).clamp_min(1e-12)
        self.trend = torch.cat([torch.ones_like(pos[:, :1]), known], dim=1).numpy()
        self.parameters: dict[tuple[int, int], Doubles] = {}
        self.basis = harmonics(times, self.periods)
        self.coefficients = self._fit(values, self.basis)
        self.anomalies = self._less(self.coefficients)

    def of_first(self, num: int) -> Tensor:
        """Anomalies ``[S, T, C]`` from what the first time steps tell."""
        return self._less(self._fit(self.values[:, :num], self.basis[:num]))

    @property
    def std(self) -> Tensor:
        """Standard deviation of the anomalies, ``[C]``; 1 of what never changes."""
        std = self.anomalies.square().nanmean((0, 1)).sqrt()
        size = self.values.abs().nan_to_num().amax((0, 1))
        return torch.where(std > 1e-9 * size, std, torch.ones_like(std))

    def covariance(self) -> StationaryCovariance | None:
        """That of the anomalies in space; None where a spline is as good."""
        zero, a = torch.zeros_like(self.std), self.anomalies / self.std
        sets, complete = list[PointSet](), ~a.isnan().any(2)
        for step in philox(0, a.size(1)).permutation(a.size(1)):
            there = shuffled(int(complete[:, step].sum()), philox(1, int(step)))
            here = complete[:, step].nonzero()[:, 0][torch.from_numpy(there[:POINTS])]
            # A fifth of the points at a time step are queries of the others.
            at, of = here[: len(here) // 5], here[len(here) // 5 :]
            if len(at) and len(sets) < SETS:
                ends = self.pos[of], self.pos[at]
                sets.append(PointSet(*ends, a[of, step, None], a[at, step, None]))
        return covariance_of(sets, self.domain, zero, self.std, [NOISY], COVARIANCES)

    def _less(self, coefficients: Tensor) -> Tensor:
        return self.values - torch.einsum("tk,skc->stc", self.basis, coefficients)

    def _fit(self, u: Tensor, basis: Tensor) -> Tensor:
        """Coefficients ``[S, K, C]`` of fields ``u [S, T, C]``, at all points.

        Least squares at each point that is observed often enough, drawn towards what
        the others say of it by as much as its own estimate is uncertain.
        """
        size, there = basis.size(1), (~u.isnan()).double()
        gram = torch.einsum("tk,tl,stc->sckl", basis, basis, there)
        gram = gram + 1e-6 * torch.eye(size).double()
        right = torch.einsum("tk,stc->sck", basis, u.nan_to_num())
        found = torch.linalg.solve(gram, right)
        rest = u - torch.einsum("tk,sck->stc", basis, found)
        count, square = there.sum(1), rest.square()
        # Values that follow each other tell less than independent ones.
        alike = (rest[:, 1:] * rest[:, :-1]).nanmean((0, 1)) / square.nanmean((0, 1))
        alike = alike.nan_to_num().clamp(0, 0.95)
        variance = square.nansum(1) / (count - size).clamp_min(1)
        variance = variance * (1 + alike) / (1 - alike)
        noise = variance[..., None] * gram.inverse().diagonal(dim1=-2, dim2=-1)
        noise[count < 3 * size] = torch.inf
        for key in product(range(u.size(2)), range(size)):
            at = (slice(None), *key)
            shrunk = self._shrunk(found[at].numpy(), noise[at].numpy(), key)
            found[at] = torch.from_numpy(shrunk)
        return found.transpose(1, 2)

    def _shrunk(self, value: Doubles, noise: Doubles, key: tuple[int, int]) -> Doubles:
        """Posterior means at all points, of ``value`` where ``noise`` is finite."""
        if not (seen := np.isfinite(noise)).any():
            return np.zeros_like(value)
        spread, distance = value[seen].std(), self.distance
        alike = spread <= 1e-12 * np.abs(value[seen]).max()
        if alike or distance is None or seen.sum() < 2 * self.trend.shape[1]:
            return np.where(seen, value, value[seen].mean())
        # In units of their spread, so that those of the data do not matter.
        target, noise = value[seen] / spread, noise[seen] / spread**2
        trend = self.trend[seen]

        def posterior(parameters: Doubles) -> tuple[float, Doubles]:
            """The negative log-likelihood, and the mean at all points."""
            length, share, variance = np.clip(parameters, *BOUNDS)
            share = 1 / (1 + math.exp(-share))
            field = np.exp(-distance / math.exp(length))
            field = share * field + (1 - share) * np.eye(len(field))
            covariance = math.exp(variance) * field
            own = covariance[np.ix_(seen, seen)] + np.diag(noise)
            own[np.diag_indices_from(own)] *= 1 + 1e-9
            factor = cho_factor(own, lower=True)
            solved = cho_solve(factor, np.column_stack([trend, target]))
            gram, right = trend.T @ solved[:, :-1], trend.T @ solved[:, -1]
            slope = np.linalg.lstsq(gram, right)[0]
            rest = target - trend @ slope
            weight = cho_solve(factor, rest)
            cost = np.log(np.diag(factor[0])).sum() + rest @ weight / 2
            return float(cost), self.trend @ slope + covariance[:, seen] @ weight

        if key not in self.parameters:
            cost = (lambda parameters: posterior(parameters)[0], START, np.ones(3))
            self.parameters[key] = nelder_mead(*cost, TRIALS)[0]
        return np.asarray(spread * posterior(self.parameters[key])[1])


def fitted_climatology(used: RunData) -> SeriesClimatology | None:
    """The climatology of a series that is split in time, None of other data."""
    return used.once("climatology", lambda: _fitted_climatology(used))


def _fitted_climatology(used: RunData) -> SeriesClimatology | None:
    data, file = used.config.data, used.file
    if data.split_by != "time" or file.num_samples > 1 or not data.n_in:
        return None
    steps, mesh = np.array(used.steps["train"]), MeshOfFile(file)(0)
    trained = torch.from_numpy(used.trained_points(0))
    if len(mesh) * len(steps) * file.components > MOST_VALUES or not len(trained):
        return None
    sample = read_sample(file, 0, mesh, steps, volumes=False)
    u = torch.full(sample.u.shape, torch.nan, dtype=torch.float64)
    u[trained] = torch.from_numpy(sample.u).double()[trained]
    pos = file.domain.normalise(torch.from_numpy(mesh.pos))
    static, times = torch.from_numpy(sample.a).double(), torch.tensor(file.times[steps])
    return SeriesClimatology(file, pos, static, u, times)


def _cycles(times: Tensor, unit: str) -> tuple[tuple[float, ...], bool]:
    """Two harmonics of the year and of the day, where dates resolve and cover them.

    And whether there is a level, which takes the shortest cycle that steps resolve.
    """
    found, level = list[float](), True
    if unit != EPOCH or len(times) < 2:
        return (), True
    span, step = float(times[-1] - times[0]), float(times.diff().median())
    for period, covers in ((YEAR, 1.5), (DAY, 3.0)):
        if step <= period / 4:
            level = span >= covers * period
            found += [period, period / 2] * level
    return tuple(found), level


def fitted_series(used: RunData) -> SeriesFit | None:
    """The fit to the training part of a series that is split in time.

    None of other data, of a series that is too short or too long, and where neither
    ``model.prediction`` is linear nor the model an autoregressive one, which predicts
    anomalies directly.
    """
    data, model = used.config.data, used.config.model
    if model.prediction != "linear" and not MODELS[model.name].autoregressive:
        return None
    n_in, n_out, apart = data.n_in or 0, data.n_out or 0, data.time_stride
    season = fitted_climatology(used)
    if season is None or ORIGINS[0] * len(season.basis) <= data.length(n_in + n_out):
        return None
    num, trained = len(season.basis), torch.from_numpy(used.trained_points(0))

    def windows(anomalies: Tensor, start: int, stop: int) -> Windows:
        """Inputs without gaps, of a point and then means over all; and targets."""
        a, numbers = anomalies[trained, start:stop], apart * torch.arange(n_in + n_out)
        most = a.size(1) - int(numbers[-1])
        stride = math.ceil(most * a.size(0) * a.size(2) * len(numbers) / MOST_VALUES)
        starts = torch.arange(0, max(most, 0), max(stride, 1))
        found = a[:, starts[:, None] + numbers].flatten(0, 1)
        x = fill_in_time(found[:, :n_in]).nan_to_num().unflatten(0, (len(a), -1))
        joint = torch.cat([x, x.mean(0, keepdim=True).expand_as(x)], dim=2)
        return joint.flatten(0, 1), found[:, n_in:]

    folds = []  # windows to fit to, and those with targets after them to be scored
    for part in ORIGINS:
        fit, end = round(part * num), round((part + 0.2) * num)
        rest, first = season.of_first(fit), max(0, fit - 1 - (n_in - 1) * apart)
        folds.append((windows(rest, 0, fit), windows(rest, first, end)))
    train = windows(season.anomalies, 0, num)
    chosen = [
        _linear(
            [[(x[..., c], y[..., c]) for x, y in fold] for fold in folds],
            (train[0][..., c], train[1][..., c]),
            season.level,
        )
        for c in range(used.file.components)
    ]
    own, regional, left = (torch.stack(each, -1) for each in zip(*chosen, strict=True))
    return SeriesFit(
        pos=season.pos,
        periods=season.periods,
        coefficients=season.coefficients,
        level=season.level,
        std=season.std,
        own=own,
        regional=regional,
        left=left,
        covariance=season.covariance(),
    )


def _linear(
    folds: Sequence[Sequence[Windows]], train: Windows, level: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The map of a component that would have forecast best, fitted to ``train``.

    It is a mean of some of these: nothing, where there is a ``level`` to return to, and
    ridge regression on a point's own past or on that of all points as well, towards the
    level or towards the mean of the window. And what it leaves.
    """
    forms = [(both, centred) for both in (False, True) for centred in (True, False)]

    def fits(x: Tensor, y: Tensor) -> Tensor:
        found = [_ridge(x, y, *form) for form in forms if level or form[1]]
        return torch.stack([*found, *[torch.zeros_like(found[0])] * level])

    maps = fits(*train)
    subsets = torch.tensor([*product((0.0, 1.0), repeat=len(maps))][1:]).double()
    subsets = subsets / subsets.sum(1, keepdim=True)
    error = torch.zeros(len(subsets)).double()
    for before, (x, y) in folds:
        rest = y[..., None] - torch.einsum("wk,ftk->wtf", x, fits(*before))
        rest = rest[~rest[..., 0].isnan()]
        error += torch.stack([(rest @ each).abs().mean() for each in subsets])
    weights = torch.einsum("f,ftk->tk", subsets[error.argmin()], maps)
    x, y = train
    left = (y - x @ weights.T).square().nanmean().sqrt()
    own, regional = weights.tensor_split(2, dim=1)
    return own, regional, left


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
        # The last is for inputs that are all 0: a larger one would count in some units.
        penalty = RIDGE * gram.diagonal() + 1e-9 * gram.diagonal().mean() + 1e-200
        solved = torch.linalg.solve(gram + penalty.diag(), a.T @ b)
        weights.append(solved @ change + base)
    return torch.stack(weights)
