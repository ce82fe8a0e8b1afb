"""Views of points: whether they lie on a surface, and the part where they are dense."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from nfsgeo.data.conventions import Doubles
from nfsgeo.geometry import Domain

__all__ = ["densest_part", "on_surface"]

NEIGHBOURS = 12
FLAT = 0.1  # largest variance off a plane, over the smaller one in it
# Fraction of the points in a part of a plane on each axis, its greatest area, and its
# least width, to show it alone.
HELD, SMALL, THIN = 0.75, 0.1, 1e-6


def on_surface(pos: Doubles) -> bool:
    """Tell points ``[n, 3]`` of a surface from those that fill a volume.

    They lie on a surface if most of them and their nearest neighbours lie almost in a
    plane, by the principal components of the neighbours' positions. Points in a slab
    that is thinner than their distances count as a surface, and few points never do.
    """
    if len(pos) < 4 * NEIGHBOURS:
        return False
    some = pos[np.linspace(0, len(pos) - 1, min(500, len(pos))).astype(int)]
    near = pos[KDTree(pos).query(some, NEIGHBOURS)[1]]
    centred = near - near.mean(axis=1, keepdims=True)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    return bool(np.mean(variances[:, 2] <= FLAT * variances[:, 1]) > 0.5)


def densest_part(domain: Domain, pos: Doubles) -> Domain | None:
    """Return a box around most of the points, or None if it is not much smaller.

    Its sides, in a plane, are the shortest intervals that hold 0.75 of the points on
    each axis, a tenth longer at both ends. Half of the points lie in it at least.
    """
    num = int(np.ceil(HELD * len(pos)))
    if domain.dim != 2 or domain.curved or num < 2:
        return None
    ordered, axes = np.sort(pos, axis=0), np.arange(2)
    widths = ordered[num - 1 :] - ordered[: len(pos) - num + 1]
    first = widths.argmin(axis=0)
    low, width = ordered[first, axes], widths[first, axes]
    lengths, least = np.array(domain.lengths), THIN * np.abs(pos).max()
    if width.prod() > SMALL * lengths.prod() or (width < THIN * lengths + least).any():
        return None
    lower = np.maximum(low - 0.1 * width, domain.lower)
    upper = np.minimum(low + 1.1 * width, domain.upper)
    if ((pos >= lower) & (pos <= upper)).all(axis=1).mean() < 0.5:
        return None
    ends = tuple(lower.tolist()), tuple(upper.tolist())
    return Domain(*ends, (False, False), domain.region)
