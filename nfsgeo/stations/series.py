"""The climatology of one long series, and a linear forecast of its anomalies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.interpolate import RBFInterpolator
from scipy.ndimage import gaussian_filter
from scipy.sparse import csr_matrix
from torch import Tensor

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.samples import read_sample
from nfsgeo.data.streams import philox, shuffled
from nfsgeo.data.times import EPOCH
from nfsgeo.forecast.transforms import BaseForecast, Transform
from nfsgeo.forecast.transforms.residual import covariance_settings
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.nn.missing_values import fill_in_time
from nfsgeo.stations.climatology import Climatology, Cycle, at_times, phases_of
from nfsgeo.stations.linear_forecast import LinearForecast
from nfsgeo.training.covariance import PointSet, covariance_of
from nfsgeo.training.run_data import RunData

__all__ = ["SeriesClimatology", "SeriesFit", "fitted_climatology", "fitted_series"]
__all__ += ["base_forecast"]

DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0
# Values of a series, or of its windows, that are held at once.
MOST_VALUES = 5e7
# Periods that training has to cover, standard deviation of the smoothing, most phases,
# and weight of the mean of all points in that of one, in values of each phase.
CYCLES = {
    math.inf: (0.0, 0.0, 1, 0.0),
    YEAR: (1.5, 30 * DAY, 366, 1.0),
    DAY: (3.0, DAY / 96, 288, 1.0),
    WEEK: (2.0, DAY / 96, 7 * 288, 6.0),
}
# How often what smoothing has left is smoothed again.
ROUNDS = 4
# Values of a point that count as much as what the others say of it, and those that one
# of these others has at least.
PULL, ENOUGH = 20.0, 30
# Smoothing of what others say, and how many of them do.
SMOOTHING, OTHERS = 0.5, 100
# Where the covariance of anomalies is looked for: power, decay, mean and noise.
NOISE = 1.0, -5.0, -2.0, -2.0
# Time steps, points and trials by which it is fitted.
SETS, POINTS, COVARIANCES = 6, 60, 60
# Where a fit of the first time steps ends and is scored on the next fifth of them.
ORIGINS = (0.4, 0.6, 0.8)
RIDGE = 1e-2

# Settings that suit a noisy series.
NOISY: dict[str, dict[str, Any]] = {
    "data": {"batch_size": 32},
    "loss": {"name": "mae"},
    "optimiser": {"lr": 5e-4},
}

Windows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class SeriesFit:
    r"""The climatology of a long series, and a linear forecast of its anomalies.

    .. math:: \hat a_t(x) = \sum_k w_{tk} \, a_k(x) + v_{tk} \, \bar a_k

    for the anomalies :math:`a` of each component from the climatology, with their mean
    :math:`\bar a` over the observed points of the sample.

    Attributes:
        pos: points of the file ``[S, d]``, in the normalised domain.
        cycles: period and number of phases of each cycle of the climatology, the first
            infinite and of one phase.
        table: the climatology at all phases of each point, ``[S, K, C]``.
        level: whether fields return to the climatology in the long run.
        std: standard deviation of the anomalies, ``[C]``.
        own: :math:`w`, ``[n_out, n_in, C]``.
        regional: :math:`v`, likewise.
        left: root mean square of the residuals of the forecast, ``[C]``.
        covariance: of the anomalies; ``None`` where a spline is as good.
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

    @property
    def noisy(self) -> bool:
        """Whether the residuals are half as large as the anomalies, or larger."""
        return float((self.left / self.std).mean()) > 0.5

    def linear_forecast(self) -> LinearForecast:
        """Make the transform that adds the forecast."""
        left = self.left / self.std
        return LinearForecast(
            std=(left * (left > 1e-9)).tolist(),
            own=self.own.tolist(),
            regional=self.regional.tolist(),
            level=self.level,
            covariance=covariance_settings(self.covariance, self.std),
        )


@dataclass(frozen=True)
class SeriesClimatology:
    r"""The mean of a series at the points of its file, by the phase of its cycles.

    Values of all phases are means over training, smoothed along the cycle, and drawn
    towards those of the other points where few cycles were seen. A point with few
    values has what the others say of it: a trend in position and static inputs, and
    radial basis functions of these.

    Attributes:
        domain: The normalised domain.
        pos: Points ``[S, d]`` in it.
        places: Positions and static inputs, standardised, ``[S, F]``.
        values: Of training ``[S, T, C]``, NaN where nothing was observed or seen.
        times: ``[T]``.
        cycles: Period and number of phases of each, of which the first is the mean.
        level: Whether fields return to it: the mean of part of a cycle, as of a summer,
            is none.
        table: Values of all phases ``[S, K, C]``.
    """

    domain: Domain
    pos: Tensor
    places: Doubles
    values: Tensor
    times: Tensor
    cycles: list[Cycle]
    level: bool
    table: Tensor

    @property
    def anomalies(self) -> Tensor:
        """Differences of the values from the climatology ``[S, T, C]``."""
        return self.values - at_times(self.table, self.cycles, self.times)

    @property
    def std(self) -> Tensor:
        """Standard deviation of the anomalies, ``[C]``; 1 of what never changes."""
        std = self.anomalies.square().nanmean((0, 1)).sqrt()
        size = self.values.abs().nan_to_num().amax((0, 1))
        return torch.where(std > 1e-9 * size, std, torch.ones_like(std))

    def fitted(self, steps: int) -> SeriesClimatology:
        """The climatology that the first time steps tell.

        Args:
            steps: Their number.
        """
        u, times = self.values[:, :steps].numpy(), self.times[:steps]
        table = _drawn(_phase_means(u, times, self.cycles), u, self.places)
        return replace(self, table=torch.from_numpy(table))

    def covariance(self) -> StationaryCovariance | None:
        """That of the anomalies in space; None where a spline is as good."""
        std = self.std
        sets, a = list[PointSet](), self.anomalies / std
        complete = ~a.isnan().any(2)
        for step in philox(0, a.size(1)).permutation(a.size(1)):
            there = shuffled(int(complete[:, step].sum()), philox(1, int(step)))
            here = complete[:, step].nonzero()[:, 0][torch.from_numpy(there[:POINTS])]
            # A fifth of the points at a time step are queries of the others.
            at, of = here[: len(here) // 5], here[len(here) // 5 :]
            if len(at) and len(sets) < SETS:
                ends = self.pos[of], self.pos[at]
                sets.append(PointSet(*ends, a[of, step, None], a[at, step, None]))
        zero = torch.zeros_like(std)
        return covariance_of(sets, self.domain, zero, std, [NOISE], COVARIANCES)


def _phase_means(u: Doubles, times: Tensor, cycles: Sequence[Cycle]) -> Doubles:
    """Means of fields ``u [S, T, C]`` by phase ``[S, K, C]``, of all cycles together.

    Each cycle has those of what the others leave, in several rounds.
    """
    num, steps, components = u.shape
    flat = u.swapaxes(0, 1).reshape(steps, -1)
    seen = (~np.isnan(flat)).astype(float)
    shares, tables = [], []
    for cycle in cycles:
        low, high, share = (each.numpy() for each in phases_of(times, cycle))
        place = np.concatenate([low, high]), np.tile(np.arange(steps), 2)
        weights = np.concatenate([1 - share, share])
        shares.append(csr_matrix((weights, place), (cycle[1], steps)))
        tables.append(np.zeros((cycle[1], num * components)))

    def over_all(values: Doubles) -> Doubles:
        total = values.reshape(-1, num, components).sum(1, keepdims=True)
        return total.repeat(num, 1).reshape(values.shape)

    for _, (k, cycle) in product(range(ROUNDS), enumerate(cycles)):
        period, phases = cycle
        known = sum(
            share.T @ table for share, table in zip(shares, tables, strict=True)
        )
        _, width, _, pull = CYCLES[period]
        along = (width / period * phases, 0)
        sums, nums = (
            gaussian_filter(shares[k] @ values, along, mode="wrap")
            for values in (np.nan_to_num(flat - known), seen)
        )
        common = over_all(sums) / np.maximum(over_all(nums), 1e-9)
        added = (sums + pull * common) / np.maximum(nums + pull, 1e-9)
        # The mean over a whole cycle is that of the point; part of a cycle has another.
        tables[k] += added - added.mean(0)
        tables[0] += added.mean(0)
    table = np.concatenate(tables).reshape(-1, num, components)
    return np.ascontiguousarray(table.swapaxes(0, 1))


def _drawn(table: Doubles, u: Doubles, places: Doubles) -> Doubles:
    """The ``table [S, K, C]`` with what others say of points with few values."""
    seen = (~np.isnan(u)).sum(1)
    trend = np.column_stack([np.ones(len(places)), places])
    for c in range(u.shape[2]):
        count, own = seen[:, c], table[..., c].copy()
        known = count >= min(ENOUGH, count.max())
        expected = own[known].mean(0)
        if known.sum() >= 2 * trend.shape[1]:
            line = trend @ np.linalg.lstsq(trend[known], own[known])[0]
            how = {"kernel": "linear", "degree": 0, "smoothing": SMOOTHING}
            rest = own[known] - line[known]
            others = min(OTHERS, len(rest))
            expected = line + RBFInterpolator(
                places[known], rest, neighbors=others, **how
            )(places)
        share = (count / (count + PULL))[:, None]
        table[..., c] = share * own + (1 - share) * expected
    return table


def fitted_climatology(used: RunData) -> SeriesClimatology | None:
    """The climatology of a series that is split in time, ``None`` of other data.

    Args:
        used: Data of the run, resolved.
    """
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
    places = np.column_stack([pos.numpy(), sample.a])
    places = (places - places.mean(0)) / np.maximum(places.std(0), 1e-12)
    times = torch.tensor(file.times[steps]).double()
    cycles, level = _cycles(times, file.time_unit)
    about = file.domain.normalised, pos, places, u, times, cycles, level
    return SeriesClimatology(*about, torch.empty(0)).fitted(len(times))


def _cycles(times: Tensor, unit: str) -> tuple[list[Cycle], bool]:
    """The mean, and the cycles that dates resolve and cover.

    And whether there is a level, which takes the shorter one of year and day that steps
    resolve.
    """
    found, level = [(math.inf, 1)], True
    if unit != EPOCH or len(times) < 2:
        return found, level
    span, step = float(times[-1] - times[0]), float(times.diff().median())
    for period in (YEAR, DAY, WEEK):
        covers, _, most, _ = CYCLES[period]
        if step <= period / 4:
            covered = span >= covers * period
            # Within part of a year, a week is as little to return to as the mean.
            covered &= level or period != WEEK
            level = covered if period != WEEK else level
            found += [(period, min(round(period / step), most))] * covered
    return found, level


def base_forecast(used: RunData) -> BaseForecast | None:
    """Fit what a network starts from: the climatology, and a linear forecast.

    Args:
        used: Data of the run, resolved.

    Returns:
        The forecast, or ``None`` where :func:`fitted_series` fits none.
    """
    if (series := fitted_series(used)) is None:
        return None
    transforms: dict[str, Transform] = {
        "climatology": Climatology.of(series.pos, series.cycles, series.table)
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
    """The fit to the training part of a series that is split in time.

    It is ``None`` for other data, for a series that is too short or too long, and where
    neither ``model.prediction`` is linear nor the model an autoregressive one, which
    predicts anomalies directly.

    Args:
        used: Data of the run, resolved.
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
        rest = season.fitted(fit).anomalies
        first = max(0, fit - 1 - (n_in - 1) * apart)
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
        cycles=season.cycles,
        table=season.table,
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
    """Own and regional weights of the best forecast of a component, and its RMSE.

    It is a mean of some of these: zero, where there is a level to return to, and ridge
    regression on a point's own past or on that of all points as well, towards the level
    or towards the mean of the window.

    Args:
        folds: Pairs of windows to fit to and of later ones to choose by.
        train: Windows that the chosen forecast is fitted to.
        level: Whether fields return to the climatology.
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
