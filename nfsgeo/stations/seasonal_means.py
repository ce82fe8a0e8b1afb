"""The climatology of one long series: means by the phase of its cycles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

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
from nfsgeo.geometry import Domain
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.stations.climatology import Cycle, at_times, phases_of
from nfsgeo.training.covariance import PointSet, covariance_of
from nfsgeo.training.run_data import RunData

__all__ = ["MOST_VALUES", "SeriesClimatology", "fitted_climatology"]


class CycleRule(NamedTuple):
    """Rule by which a cycle enters a climatology and its means are smoothed."""

    covered: float  # periods that training has to cover
    smoothing: float  # standard deviation of the Gaussian filter, in seconds
    phases: int  # at most
    pull: float  # values of a phase that weigh as much as the mean of all points


DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0
CYCLES = {
    math.inf: CycleRule(0.0, 0.0, 1, 1.0),  # the mean
    YEAR: CycleRule(1.5, 30 * DAY, 366, 1.0),
    DAY: CycleRule(3.0, DAY / 96, 288, 1.0),
    WEEK: CycleRule(4.0, DAY / 96, 7 * 288, 12.0),
}
# Parts of the training data that in turn tell whether weekly means fitted to the others
# are worth it.
PARTS = 4
# Values of a series, or of its windows, that are held in memory at once.
MOST_VALUES = 5e7
# Rounds of smoothing, each of what the one before has left.
ROUNDS = 4
# Number of values of a point that weigh as much as the estimate from other points, and
# number of values that such a point needs.
PULL, ENOUGH = 20.0, 30
# Smoothing of the radial basis functions, and their number of neighbours.
SMOOTHING, NEIGHBOURS = 0.5, 100
# The covariance of anomalies: where its fit starts (power, decay, mean and noise), the
# time steps and the points of each that it is fitted to, and the number of trials.
NOISE = 1.0, -5.0, -2.0, -2.0
SETS, POINTS, TRIALS = 6, 60, 60


@dataclass(frozen=True)
class SeriesClimatology:
    r"""The mean of a series at the points of its file, by the phase of its cycles.

    The mean of a phase is taken over the training part, smoothed along the cycle and
    shrunk towards that of all points where few cycles were observed. A point with few
    values is shrunk towards an estimate from other points: a linear trend in position
    and static inputs, plus radial basis functions of these.

    Attributes:
        domain: The normalised domain.
        pos: Points ``[S, d]`` in it.
        static: Static inputs ``[S, C_s]``.
        values: Training values ``[S, T, C]``, NaN where nothing was observed or the
            point is no training point.
        times: Their times ``[T]``.
        cycles: Period and number of phases of each cycle, of which the first is the
            mean.
        level: Whether fields return to the climatology. They do not return to the mean
            of part of a cycle, such as a summer.
        table: Values of all phases ``[S, K, C]``.
        trend: Derivatives of these by the static inputs ``[C_s, K, C]``, at one
            position; 0 where there are too few points to fit them.
    """

    domain: Domain
    pos: Tensor
    static: Tensor
    values: Tensor
    times: Tensor
    cycles: list[Cycle]
    level: bool
    table: Tensor
    trend: Tensor

    @property
    def anomalies(self) -> Tensor:
        """Differences of the values from the climatology ``[S, T, C]``."""
        return self.values - at_times(self.table, self.cycles, self.times)

    @property
    def std(self) -> Tensor:
        """Standard deviation of the anomalies ``[C]``, 1 for a constant component."""
        std = self.anomalies.square().nanmean((0, 1)).sqrt()
        size = self.values.abs().nan_to_num().amax((0, 1))
        return torch.where(std > 1e-9 * size, std, torch.ones_like(std))

    def fitted(self, steps: int) -> SeriesClimatology:
        """Return the climatology that is fitted to the first time steps.

        Args:
            steps: Their number.
        """
        u, times = self.values[:, :steps].numpy(), self.times[:steps]
        places = torch.cat([self.pos, self.static], dim=1).numpy()
        scale = np.maximum(places.std(0), 1e-12)
        places = (places - places.mean(0)) / scale
        table, trend = _shrunk(_phase_means(u, times, self.cycles), u, places)
        first = self.pos.size(1)
        trend = trend[first:] / scale[first:, None, None]
        tables = torch.from_numpy(table), torch.from_numpy(trend)
        return replace(self, table=tables[0], trend=tables[1])

    def covariance(self) -> StationaryCovariance | None:
        """Fit the spatial covariance of the anomalies; None if a spline is as good."""
        std = self.std
        sets, anomalies = list[PointSet](), self.anomalies / std
        complete = ~anomalies.isnan().any(2)
        for step in philox(0, len(self.times)).permutation(len(self.times)):
            order = shuffled(int(complete[:, step].sum()), philox(1, int(step)))
            points = complete[:, step].nonzero()[:, 0][torch.from_numpy(order[:POINTS])]
            # A fifth of the points at a time step are queries of the others.
            queries, observed = points.tensor_split([len(points) // 5])
            if len(queries) and len(sets) < SETS:
                ends = self.pos[observed], self.pos[queries]
                values = (anomalies[at, step, None] for at in (observed, queries))
                sets.append(PointSet(*ends, *values))
        zero = torch.zeros_like(std)
        return covariance_of(sets, self.domain, zero, std, [NOISE], TRIALS)


def _phase_means(u: Doubles, times: Tensor, cycles: Sequence[Cycle]) -> Doubles:
    """Fit the means of ``u [S, T, C]`` by phase of all cycles together: ``[S, K, C]``.

    Each cycle in turn is fitted to what the others leave, in several rounds, and its
    means are shrunk towards those of all points.
    """
    num, steps, components = u.shape
    flat = u.swapaxes(0, 1).reshape(steps, -1)
    observed = (~np.isnan(flat)).astype(float)
    shares, tables = [], []
    for cycle in cycles:
        low, high, share = (part.numpy() for part in phases_of(times, cycle))
        place = np.concatenate([low, high]), np.tile(np.arange(steps), 2)
        weights = np.concatenate([1 - share, share])
        shares.append(csr_matrix((weights, place), (cycle[1], steps)))
        tables.append(np.zeros((cycle[1], num * components)))

    def over_points(values: Doubles) -> Doubles:
        total = values.reshape(-1, num, components).sum(1, keepdims=True)
        return total.repeat(num, 1).reshape(values.shape)

    for _, (k, (period, phases)) in product(range(ROUNDS), enumerate(cycles)):
        fitted = sum(
            share.T @ table for share, table in zip(shares, tables, strict=True)
        )
        along, pull = (
            (CYCLES[period].smoothing / period * phases, 0),
            CYCLES[period].pull,
        )
        sums, nums = (
            gaussian_filter(shares[k] @ values, along, mode="wrap")
            for values in (np.nan_to_num(flat - fitted), observed)
        )
        common = over_points(sums) / np.maximum(over_points(nums), 1e-9)
        added = (sums + pull * common) / (nums + pull)
        # Only a mean over whole cycles is that of the point.
        tables[k] += added - added.mean(0)
        tables[0] += added.mean(0)
    table = np.concatenate(tables).reshape(-1, num, components)
    return np.ascontiguousarray(table.swapaxes(0, 1))


def _shrunk(table: Doubles, u: Doubles, places: Doubles) -> tuple[Doubles, Doubles]:
    """Shrink the ``table [S, K, C]`` of points with few values to their estimate.

    Also return its linear trend in the coordinates of the ``places``, ``[F, K, C]``.
    """
    counts = (~np.isnan(u)).sum(1)
    inputs = np.column_stack([np.ones(len(places)), places])
    slopes = np.zeros((places.shape[1], *table.shape[1:]))
    for c, count in enumerate(counts.T):
        means = table[..., c].copy()
        enough = count >= min(ENOUGH, count.max())
        estimate = means[enough].mean(0)
        if enough.sum() >= 2 * inputs.shape[1]:
            linear = np.linalg.lstsq(inputs[enough], means[enough])[0]
            slopes[..., c], trend = linear[1:], inputs @ linear
            functions = RBFInterpolator(
                places[enough],
                means[enough] - trend[enough],
                neighbors=min(NEIGHBOURS, int(enough.sum())),
                smoothing=SMOOTHING,
                kernel="linear",
                degree=0,
            )
            estimate = trend + functions(places)
        share = (count / (count + PULL))[:, None]
        table[..., c] = share * means + (1 - share) * estimate
    return table, slopes


def fitted_climatology(used: RunData) -> SeriesClimatology | None:
    """Fit the climatology of a series that is split in time; None for other data.

    Args:
        used: Data of the run, with a complete configuration.
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
    static = torch.from_numpy(np.asarray(sample.a, float))
    times = torch.tensor(file.times[steps]).double()
    cycles, level = _cycles(times, file.time_unit)
    if any(period == WEEK for period, _ in cycles) and not _weekly(u, times, cycles):
        cycles = [cycle for cycle in cycles if cycle[0] != WEEK]
    facts = file.domain.normalised, pos, static, u, times, cycles, level
    return SeriesClimatology(*facts, torch.empty(0), torch.empty(0)).fitted(len(times))


def _cycles(times: Tensor, unit: str) -> tuple[list[Cycle], bool]:
    """The cycles that dates resolve and cover, and whether there is a level.

    There is one if the shorter of year and day that time steps resolve is covered, or
    none of the two is resolved.
    """
    cycles, level = [(math.inf, 1)], True
    if unit != EPOCH or len(times) < 2:
        return cycles, level
    span, step = float(times[-1] - times[0]), float(times.diff().median())
    for period in (YEAR, DAY, WEEK):
        if step <= period / 4:
            covered = span >= CYCLES[period].covered * period
            level = level if period == WEEK else covered
            phases = min(round(period / step), CYCLES[period].phases)
            cycles += [(period, phases)] * covered
    return cycles, level


def _weekly(u: Tensor, times: Tensor, cycles: Sequence[Cycle]) -> bool:
    """Return whether the week helps to predict the mean over all points.

    The climatology with and without weekly means is fitted to three quarters of the
    training data, and predicts the fourth. Weekly means of few weeks are mostly noise.

    Args:
        u: Training values ``[S, T, C]``, NaN where nothing was observed.
        times: Their times ``[T]``.
        cycles: All cycles that training covers.
    """
    mean = (u - u.nanmean(1, keepdim=True)).nanmean(0, keepdim=True)
    mean = mean / mean.square().nanmean(1, keepdim=True).sqrt().clamp_min(1e-300)
    errors = []
    for some in (cycles, [cycle for cycle in cycles if cycle[0] != WEEK]):
        error = 0.0
        for part in torch.arange(len(times)).tensor_split(PARTS):
            rest = torch.ones(len(times), dtype=torch.bool)
            rest[part] = False
            table = _phase_means(mean[:, rest].numpy(), times[rest], some)
            predicted = at_times(torch.from_numpy(table), some, times[part])
            error += float((mean[:, part] - predicted).square().nansum())
        errors.append(error)
    return errors[0] < errors[1]
