"""Ordinary kriging with an exponential covariance and a nugget."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["fitted_covariance", "kriging_weights"]

Doubles = NDArray[np.float64]
# Lengths over the median distance, and nuggets over the variance, that are tried.
LENGTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
NUGGETS = (1e-3, 0.03, 0.1, 0.3, 1.0, 3.0)


def fitted_covariance(distance: Doubles, values: Doubles) -> tuple[float, float]:
    r"""Length and nugget with the least error at each point from all others.

    .. math:: k(h) = e^{-h / \ell} + \sigma^2 [h = 0]

    Errors of leaving one out come from one inverse (Dubrule, *Cross validation of
    kriging in a unique neighborhood*, 1983).

    Args:
        distance: Between the points ``[n, n]``.
        values: Of some fields ``[n, k]``, NaN where unknown, which count as 0.
    """
    there, known = ~np.isnan(values), np.nan_to_num(values)
    scale = float(np.median(distance[distance > 0])) if (distance > 0).any() else 1.0
    best = np.inf, (scale, 1.0)
    if len(distance) < 3:
        return best[1]
    for length, nugget in product(LENGTHS, NUGGETS):
        inverse = np.linalg.inv(_system(distance, scale * length, nugget))[:-1, :-1]
        error = inverse @ known / np.diag(inverse)[:, None]
        found = float(np.mean(np.square(error), where=there))
        best = min(best, (found, (scale * length, nugget)))
    return best[1]


def kriging_weights(
    between: Doubles, distance: Doubles, covariance: tuple[float, float]
) -> Doubles:
    """Weights ``[m, n]`` of the points at each query, which add up to 1.

    Cressie, *Statistics for Spatial Data*, section 3.2.

    Args:
        between: Distances between the points ``[n, n]``.
        distance: Those from queries to points ``[m, n]``.
        covariance: Length and nugget.
    """
    right = np.exp(-distance / covariance[0])
    right = np.concatenate([right, np.ones((len(right), 1))], axis=1)
    found = np.linalg.solve(_system(between, *covariance), right.T).T
    return np.asarray(found[:, :-1])


def _system(between: Doubles, length: float, nugget: float) -> Doubles:
    """Covariances of the points, and the condition that weights add up to 1."""
    num = len(between)
    system = np.ones((num + 1, num + 1))
    system[:num, :num] = np.exp(-between / length) + nugget * np.eye(num)
    system[num, num] = 0
    return system
