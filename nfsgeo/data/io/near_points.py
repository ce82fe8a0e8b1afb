"""Points that are nearly the same, as if rounded, and groups of points in a region."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from nfsgeo.data.checks import nearly_equal
from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.data.fields import Fields
from nfsgeo.errors import UserError

__all__ = ["NEAR", "check_near_points", "rounded", "mixed", "one_box"]

MIXED = 0.5  # as many neighbours of other groups as of points put together by chance
NEAR = 1e-6  # of the box
LOOKED_AT = 1000  # pairs


def check_near_points(fields: Fields) -> None:
    """Check that no point that all samples share is there twice, with other digits.

    Two points closer than 1e-6 of the box are one if they seldom have values at the
    same time, as where a series was exported twice. Points of a mesh with cells, those
    with names, and those with all values, stay as they are.

    Raises:
        UserError: There are such points.
    """
    if fields.axes is not None or fields.own_meshes or fields.names_of("cells"):
        return
    if len(fields.times) == 1 or fields.stations():  # names tell points apart
        return
    points = fields.coordinates()
    pairs = nearly_equal(points, NEAR)[:LOOKED_AT]
    numbers, place = np.unique(pairs, return_inverse=True)
    odd = []
    for sample in range(fields.num_samples if len(pairs) else 0):
        values = fields.read(sample, slice(None), numbers)
        has_values = np.asarray(np.isfinite(values).any(axis=2))
        seen = has_values[place.reshape(pairs.shape)]
        both, either = seen.all(axis=1).sum(axis=1), seen.any(axis=1).sum(axis=1)
        odd += [*pairs[2 * both < either]]
    if odd:
        raise rounded(fields.path, points, np.array(odd))


def rounded(path: Path, points: Doubles, pairs: Indices) -> UserError:
    """Return the error that asks to round coordinates in which pairs of points differ.

    Args:
        path: The file.
        points: Coordinates ``[n, d]``.
        pairs: Indices of the points of each pair ``[m, 2]``.
    """
    num, places = len(np.unique(pairs, axis=0)), points[pairs]
    digits = [d for d in range(-8, 16) if not np.ptp(places.round(d), axis=1).any()]
    return UserError(
        f"{path} with {num} pairs of points that are nearly the same, such as "
        f"{places[0, 0].tolist()} and {places[0, 1].tolist()}, which seldom have "
        "values at one time",
        "one point for each place",
        f"round the coordinates to {max(digits)} digits behind the point, in which "
        "all of them are the same, and join the values of such points",
    )


def one_box(points: Doubles, group: Indices) -> bool:
    """Return whether the boxes of all groups are about that of all points."""
    boxes = [np.ptp(points[group == k], axis=0) for k in range(group.max() + 1)]
    return bool((np.array(boxes) >= np.ptp(points, axis=0) / 2).all())


def mixed(points: Doubles, group: Indices) -> bool:
    """Return whether points of several groups lie among each other."""
    some = np.random.default_rng(0).permutation(len(points))[:2000]
    _, near = cKDTree(points).query(points[some], 2)
    other = np.mean(group[near[:, 1]] != group[some])
    share = np.bincount(group) / len(group)
    return bool(other >= MIXED * (1 - np.sum(share**2)))
