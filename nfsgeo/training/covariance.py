"""The covariance of a file's fields, found on its training samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
from nfsgeo.training.run_data import RunData

__all__ = ["PointSet", "covariance_of", "fitted_covariance", "nelder_mead"]

# Of the changes that are predicted: an error of the spline that is worth a covariance.
WORTH_WHILE = 3e-3
SAMPLES, POINTS, QUERIES, TRIALS = 64, 128, 128, 200
# Where walls give each query a system of equations of its own.
QUERIES_AMONG_WALLS = 32
# Bounds of the logarithms of a length, and of the other parameters.
LENGTHS = (-5.0, 5.0)
OTHERS = ((-1.0, 3.0), (-10.0, 2.0), (-25.0, 5.0), (-25.0, 0.0))
# Of a spatial mean that varies, and of one that is conserved: each has its optimum.
STARTS = ((1.0, -5.0, -2.0, -18.0), (1.0, -5.0, -12.0, -18.0))
# Point sets that are compared, with so many samples on each.
SETS = 4


def nelder_mead(
    cost: Callable[[Doubles], float],
    start: Sequence[float],
    steps: Sequence[float] | Doubles,
    trials: int,
    bounds: Any = None,
) -> tuple[Doubles, float]:
    """Parameters of the least cost, and that cost, from first steps along each axis."""
    simplex = np.array(start) + np.vstack([np.zeros(len(start)), np.diag(steps)])
    options = {"initial_simplex": simplex, "maxfev": trials}
    how = {"method": "Nelder-Mead", "bounds": bounds, "options": options}
    found = minimize(cost, start, **how)
    return found.x, float(found.fun)


def fitted_covariance(
    used: RunData, mean: Tensor, scale: Tensor
) -> StationaryCovariance | None:
    """The covariance by which observed values best tell those at the query points.

    Its parameters minimise the error of kriging at the unobserved query points of some
    training samples, at the first time step that is to be predicted, less the ``mean``
    of the fields ``[C]`` and in the ``scale`` of the changes that are predicted.

    None as for :func:`covariance_of`, where there are no query points or values are not
    known there, and on a sphere.
    """
    data, domain = used.config.data, used.file.domain.normalised
    if not data.query_points or used.file.domain.curved:
        return None
    # Gaps are what it is about: more query points than training needs fall into them.
    observed = used.training_observation(QUERIES)
    sets = _sets(used.windows("train", observed), mean, scale)
    return covariance_of(sets, domain, mean, scale)


def covariance_of(
    sets: Sequence[PointSet],
    domain: Domain,
    mean: Tensor,
    scale: Tensor,
    starts: Sequence[tuple[float, ...]] = STARTS,
    trials: int | None = None,
) -> StationaryCovariance | None:
    """The covariance by which the values of sets best tell those at their queries.

    These are less ``mean [C]``, in units of ``scale [C]``, on the normalised domain.
    Each of the ``starts`` is of the power, the decay, the mean and the noise. None
    where the error of the spline is below :data:`WORTH_WHILE` or below that of kriging,
    and where there are too many points.
    """
    if not sets or not within_reach(domain, max(len(each.pos) for each in sets)):
        return None
    if _rms(each.spline_error(domain) for each in sets) < WORTH_WHILE:
        return None
    sets = [each.smaller(domain) for each in sets]

    def error(parameters: Doubles) -> float:
        return math.log(_kriging(sets, domain, torch.tensor(parameters))[0])

    bounds, lengths = [*[LENGTHS] * domain.dim, *OTHERS], [0.0] * domain.dim
    steps = [*[1.0] * (domain.dim + 2), -4.0, -4.0]
    tried = [
        nelder_mead(error, [*lengths, *each], steps, trials or TRIALS, bounds)
        for each in starts
    ]
    found, least = min(tried, key=lambda trial: trial[1])
    if math.exp(least) >= _rms(each.spline_error(domain) for each in sets):
        return None
    best = torch.tensor(found)
    expected = mean + scale * _kriging(sets, domain, best)[1]
    return StationaryCovariance(domain, best, expected)


@dataclass(frozen=True)
class PointSet:
    """Samples on one point set, values ``[n, S, C]`` in units of the changes.

    Walls hide points from queries that are not ``seen``.
    """

    pos: Tensor
    query_pos: Tensor
    values: Tensor
    query_values: Tensor
    seen: Tensor | None = None

    def spline_error(self, domain: Domain) -> Tensor:
        found = interpolate(self.values, self.pos, self.query_pos, domain)
        return found - self.query_values

    def smaller(self, domain: Domain) -> PointSet:
        """With fewer points, which tell as much; among walls also fewer queries."""
        here = _some(len(self.pos), POINTS, 0)
        there, seen = torch.arange(len(self.query_pos)), None
        if domain.walls is not None:
            there = _some(len(there), QUERIES_AMONG_WALLS, 1)
            seen = seen_points(domain, self.pos[here], self.query_pos[there])
        queries = self.query_pos[there], self.values[here], self.query_values[there]
        return PointSet(self.pos[here], *queries, seen)


def _some(num: int, most: int, seed: int) -> Tensor:
    return torch.from_numpy(shuffled(num, philox(seed, num))[:most])


def _sets(train: WindowDataset, mean: Tensor, scale: Tensor) -> list[PointSet]:
    """Some training samples, by point set."""
    found: dict[int, list[Data]] = {}
    for number in train.by_rank():
        item = train[number]
        if "query_pos" not in item or len(item.query_pos) == len(item.pos):
            return []
        if item.mesh in found or len(found) < SETS:
            group = found.setdefault(item.mesh, [])
            if len(group) < SAMPLES // SETS:
                group.append(item)
        if sum(map(len, found.values())) == SAMPLES:
            break
    sets = []
    for items in found.values():
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
    """The error of kriging with the expected value that makes it least, ``[C]``."""
    covariance = StationaryCovariance(domain, parameters, torch.zeros(1))
    errors, rest = [], []
    for each in sets:
        graph = kriging_graph(covariance, each.pos, each.query_pos, each.seen)
        known = torch.cat([each.values, torch.ones_like(each.values[:, :1])], dim=1)
        found = interpolate_along(known, graph)
        errors.append((each.query_values - found[:, :-1]).flatten(0, 1))
        left = (1 - found[:, -1:]).expand_as(found[:, :-1])
        rest.append(left.flatten(0, 1))
    error, remainder = torch.cat(errors), torch.cat(rest)
    # Least squares in the expected value, of which a query gets what weights leave.
    expected = (error * remainder).sum(0) / remainder.square().sum(0).clamp_min(1e-30)
    return _rms([error - expected * remainder]), expected


def _rms(errors: Iterable[Tensor]) -> float:
    """Root of the mean square of all of them."""
    return float(torch.cat([each.flatten() for each in errors]).square().mean().sqrt())
