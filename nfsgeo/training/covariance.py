"""The covariance of fields for kriging, fitted to training samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch_geometric.data import Data

from nfsgeo.data.conventions import Doubles
from nfsgeo.data.streams import philox, shuffled
from nfsgeo.data.windows import WindowDataset
from nfsgeo.geometry import Domain
from nfsgeo.nn.base_interpolation import interpolate, interpolate_along
from nfsgeo.nn.kriging import (
    StationaryCovariance,
    kriging_graph,
    seen_points,
    within_reach,
)
from nfsgeo.progress import Progress, silent
from nfsgeo.training.run_data import RunData

__all__ = ["PointSet", "covariance_of", "fitted_covariance", "nelder_mead"]

# Least error of the spline, relative to the changes, at which a covariance is fitted.
WORTH_WHILE = 3e-3
SAMPLES, POINTS, QUERIES, TRIALS = 64, 128, 128, 200
# Among walls each query has a system of equations of its own.
QUERIES_AMONG_WALLS = 32
# Bounds of the log length scales, and of (power, decay, mean, noise).
LENGTHS = (-5.0, 5.0)
OTHERS = ((-1.0, 3.0), (-10.0, 2.0), (-25.0, 5.0), (-25.0, 0.0))
# Starts for a spatial mean that varies and for one that is conserved, which have
# different optima.
STARTS = ((1.0, -5.0, -2.0, -18.0), (1.0, -5.0, -12.0, -18.0))
# Number of point sets, among which the samples are divided.
SETS = 4


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: on small systems of equations more wait for each other,
    twenty times as long where another program is on one of the cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def nelder_mead(
    cost: Callable[[Doubles], float],
    start: Sequence[float],
    steps: Sequence[float] | Doubles,
    trials: int,
    bounds: Any = None,
) -> tuple[Doubles, float]:
    """Minimise a cost by the method of Nelder and Mead.

    Args:
        cost: Function of the parameters.
        start: Parameters to start from.
        steps: Size of the first simplex along each axis.
        trials: Number of evaluations of the cost at most.
        bounds: Bounds of the parameters, as of SciPy.

    Returns:
        The best parameters and their cost.
    """
    simplex = np.array(start) + np.vstack([np.zeros(len(start)), np.diag(steps)])
    options = {"initial_simplex": simplex, "maxfev": trials}
    best = minimize(cost, start, method="Nelder-Mead", bounds=bounds, options=options)
    return best.x, float(best.fun)


def fitted_covariance(
    used: RunData, mean: Tensor, scale: Tensor, progress: Progress = silent
) -> StationaryCovariance | None:
    """Fit the covariance by which kriging predicts unobserved query points best.

    The parameters minimise the error of kriging at query points of some training
    samples, at the first predicted time step.

    Args:
        used: Data of the run, with a complete configuration.
        mean: Mean of the fields ``[C]``.
        scale: Standard deviation of the predicted changes ``[C]``, the unit of errors.
        progress: Called as in :func:`covariance_of`.

    Returns:
        The covariance; ``None`` as for :func:`covariance_of`, without values at query
        points, and on a sphere.
    """
    data, domain = used.config.data, used.file.domain.normalised
    if not data.query_points or used.file.domain.curved:
        return None
    # More query points than training needs, so that enough of them lie in gaps.
    observed = used.training_observation(QUERIES)
    sets = _sets(used.windows("train", observed), mean, scale)
    return covariance_of(sets, domain, mean, scale, progress=progress)


@one_thread()
def covariance_of(
    sets: Sequence[PointSet],
    domain: Domain,
    mean: Tensor,
    scale: Tensor,
    starts: Sequence[tuple[float, ...]] = STARTS,
    trials: int | None = None,
    progress: Progress = silent,
) -> StationaryCovariance | None:
    """Fit the covariance by which kriging on point sets predicts their queries best.

    Args:
        sets: Values on point sets, minus ``mean`` and divided by ``scale``.
        domain: The normalised domain.
        mean: Mean of the fields ``[C]``.
        scale: Unit of the values ``[C]``.
        starts: Parameters (power, decay, mean, noise) to start from.
        trials: Number of evaluations for each start at most.
        progress: Called with what is being done, the number of evaluations, and that
            at most.

    Returns:
        The covariance of fields in the units of the data; ``None`` if the error of the
        spline is below :data:`WORTH_WHILE` or below that of kriging, or if there are
        too many points.
    """
    if not sets or not within_reach(domain, max(len(points.pos) for points in sets)):
        return None
    if _rms(points.spline_error(domain) for points in sets) < WORTH_WHILE:
        return None
    sets = [points.smaller(domain) for points in sets]

    evaluations = itertools.count(1)

    def error(parameters: Doubles) -> float:
        most = len(starts) * (trials or TRIALS)
        progress("fitting the covariance", min(next(evaluations), most), most)
        return math.log(_kriging(sets, domain, torch.tensor(parameters))[0])

    bounds, lengths = [*[LENGTHS] * domain.dim, *OTHERS], [0.0] * domain.dim
    steps = [*[1.0] * (domain.dim + 2), -4.0, -4.0]
    optima = [
        nelder_mead(error, [*lengths, *start], steps, trials or TRIALS, bounds)
        for start in starts
    ]
    parameters, least = min(optima, key=lambda optimum: optimum[1])
    if math.exp(least) >= _rms(points.spline_error(domain) for points in sets):
        return None
    best = torch.tensor(parameters)
    expected = mean + scale * _kriging(sets, domain, best)[1]
    return StationaryCovariance(domain, best, expected)


@dataclass(frozen=True)
class PointSet:
    """Values of samples on one point set and at its query points.

    Attributes:
        pos: Positions ``[n, d]`` in the normalised domain.
        query_pos: Positions of the query points ``[m, d]``.
        values: Values ``[n, S, C]``, in units of the changes.
        query_values: Values at the query points ``[m, S, C]``.
        seen: Points that no wall hides from each query, if there are walls.
    """

    pos: Tensor
    query_pos: Tensor
    values: Tensor
    query_values: Tensor
    seen: Tensor | None = None

    def spline_error(self, domain: Domain) -> Tensor:
        """Return the error of the spline ``[m, S, C]``.

        Args:
            domain: The normalised domain.
        """
        splines = interpolate(self.values, self.pos, self.query_pos, domain)
        return splines - self.query_values

    def smaller(self, domain: Domain) -> PointSet:
        """Return a subset of at most :data:`POINTS` points, among walls of few queries.

        Args:
            domain: The normalised domain.
        """
        points = _some(len(self.pos), POINTS, 0)
        queries, seen = torch.arange(len(self.query_pos)), None
        if domain.walls is not None:
            queries = _some(len(queries), QUERIES_AMONG_WALLS, 1)
            seen = seen_points(domain, self.pos[points], self.query_pos[queries])
        return PointSet(
            self.pos[points],
            self.query_pos[queries],
            self.values[points],
            self.query_values[queries],
            seen,
        )


def _some(num: int, most: int, seed: int) -> Tensor:
    return torch.from_numpy(shuffled(num, philox(seed, num))[:most])


def _sets(train: WindowDataset, mean: Tensor, scale: Tensor) -> list[PointSet]:
    """Return some training samples by point set."""
    groups: dict[int, list[Data]] = {}
    for number in train.by_rank():
        item = train[number]
        if "query_pos" not in item or len(item.query_pos) == len(item.pos):
            return []
        if item.mesh in groups or len(groups) < SETS:
            group = groups.setdefault(item.mesh, [])
            if len(group) < SAMPLES // SETS:
                group.append(item)
        if sum(map(len, groups.values())) == SAMPLES:
            break
    sets = []
    for items in groups.values():
        num, pos = len(items[0].pos), train.file.domain.normalise(items[0].query_pos)
        fields = [(item.query_y[:, 0] - mean) / scale for item in items]
        values = torch.stack(fields, 1).double()
        if values.isnan().any():
            return []
        sets.append(PointSet(pos[:num], pos[num:], values[:num], values[num:]))
    return sets


def _kriging(
    sets: Sequence[PointSet], domain: Domain, parameters: Tensor
) -> tuple[float, Tensor]:
    """Return the RMS error of kriging, and the best expected value ``[C]``."""
    covariance = StationaryCovariance(domain, parameters, torch.zeros(1))
    errors, remainders = [], []
    for points in sets:
        graph = kriging_graph(covariance, points.pos, points.query_pos, points.seen)
        ones = torch.ones_like(points.values[:, :1])
        kriged = interpolate_along(torch.cat([points.values, ones], dim=1), graph)
        errors.append((points.query_values - kriged[:, :-1]).flatten(0, 1))
        remainder = (1 - kriged[:, -1:]).expand_as(kriged[:, :-1])
        remainders.append(remainder.flatten(0, 1))
    error, remainder = torch.cat(errors), torch.cat(remainders)
    # Least squares in the expected value, whose weight is 1 minus those of the points.
    expected = (error * remainder).sum(0) / remainder.square().sum(0).clamp_min(1e-30)
    return _rms([error - expected * remainder]), expected


def _rms(errors: Iterable[Tensor]) -> float:
    """Return the root mean square of all errors."""
    return float(torch.cat([*map(torch.ravel, errors)]).square().mean().sqrt())
