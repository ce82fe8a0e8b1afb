"""The climatology of one long series, fitted to its training part in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

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
from nfsgeo.forecast.series import harmonics
from nfsgeo.geometry import Domain
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.training.covariance import PointSet, covariance_of
from nfsgeo.training.run_data import RunData

__all__ = ["Climatology", "fitted_climatology"]

DAY, YEAR = 86400.0, 365.2425 * 86400.0
# Values of a series that are held at once.
MOST_VALUES = 5e7
# Stations that a Gaussian process is fitted to, and trials of its three parameters.
MOST_STATIONS, TRIALS = 600, 60
# Of the logarithms of a length, of the odds of what is shared, and of a variance.
BOUNDS = np.array([[-5.0, -7.0, -60.0], [3.0, 7.0, 60.0]])
# Where the covariance of anomalies is looked for: power, decay, mean and noise.
NOISY = 1.0, -5.0, -2.0, -2.0
# Time steps, points and trials by which it is fitted.
SETS, POINTS, COVARIANCES = 6, 60, 60


@dataclass
class Climatology:
    """Mean and season of a series at the points of its file, and anomalies from them.

    Attributes:
        domain: Normalised.
        pos: Points of the file ``[S, d]``, in it.
        static: Static inputs there ``[S, A]``.
        values: In training, ``[S, T, C]``, NaN where nothing was observed or seen.
        trained: Numbers of the points that training sees.
        times: ``[T]``.
        periods: Of the harmonics, in the unit of the times.
        level: Whether fields return to it: the mean of part of a cycle, as of a summer,
            is none.
    """

    domain: Domain
    pos: Tensor
    static: Tensor
    values: Tensor
    trained: Tensor
    times: Tensor
    periods: tuple[float, ...]
    level: bool
    coefficients: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.points = _Points.fitted(self.pos, self.static)
        self.basis = harmonics(self.times, self.periods)
        self.coefficients = self.points.climatology(self.values, self.basis, refit=True)
        self.anomalies = self.values - self.at(self.coefficients)

    def at(self, coefficients: Tensor) -> Tensor:
        """The climatology ``[S, T, C]`` of coefficients ``[S, K, C]``."""
        return torch.einsum("tk,skc->stc", self.basis, coefficients)

    def of_first(self, num: int) -> Tensor:
        """Anomalies ``[S, T, C]`` from what the first time steps tell."""
        values, basis = self.values[:, :num], self.basis[:num]
        return self.values - self.at(self.points.climatology(values, basis))

    @property
    def std(self) -> Tensor:
        """Standard deviation of the anomalies, ``[C]``; 1 of what never changes."""
        std = self.anomalies.square().nanmean((0, 1)).sqrt()
        size = self.values.abs().nan_to_num().amax((0, 1))
        return torch.where(std > 1e-9 * size, std, torch.ones_like(std))

    def covariance(self) -> StationaryCovariance | None:
        """That of the anomalies in space; None where a spline is as good."""
        sets = _point_sets(self.pos, self.anomalies / self.std)
        zero = torch.zeros_like(self.std)
        return covariance_of(sets, self.domain, zero, self.std, [NOISY], COVARIANCES)


def fitted_climatology(used: RunData) -> Climatology | None:
    """The climatology of a series that is split in time, None of other data.

    Args:
        used: The data of the run, resolved.
    """
    data, file = used.config.data, used.file
    if data.split_by != "time" or file.num_samples > 1 or not data.n_in:
        return None
    span = used.steps["train"]
    steps, mesh = np.arange(span.start, span.stop), MeshOfFile(file)(0)
    trained = torch.from_numpy(used.trained_points(0))
    if len(mesh) * len(steps) * file.components > MOST_VALUES or not len(trained):
        return None
    sample = read_sample(file, 0, mesh, steps, volumes=False)
    u = torch.full(sample.u.shape, torch.nan, dtype=torch.float64)
    u[trained] = torch.from_numpy(sample.u).double()[trained]
    pos = file.domain.normalise(torch.from_numpy(mesh.pos))
    static, times = torch.from_numpy(sample.a).double(), torch.tensor(file.times[steps])
    domain, cycles = file.domain.normalised, _periods(times, file.time_unit)
    return Climatology(domain, pos, static, u, trained, times, *cycles)


def _periods(times: Tensor, unit: str) -> tuple[tuple[float, ...], bool]:
    """Two harmonics of the year and of the day, where dates resolve and cover them.

    And whether there is a level, which takes the shortest cycle that steps resolve.
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
        alike = alike.nan_to_num().clamp(0, 0.95)
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
        spread = value[seen].std()
        alike = spread <= 1e-12 * np.abs(value[seen]).max()
        if alike or not self.distance.size or seen.sum() < 2 * self.trend.shape[1]:
            return torch.from_numpy(np.where(seen, value, value[seen].mean()))
        # In units of their spread, so that those of the data do not matter.
        value, noise = value / spread, noise / spread**2
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
        return torch.from_numpy(spread * found)

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
