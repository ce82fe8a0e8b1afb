"""A field as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["picture"]

SHADES = " .:-=+*#%@"
WIDEST, HEIGHT = 72, 16


def picture(pos: NDArray[np.float64], values: NDArray[np.float32]) -> list[str]:
    """Lines of characters, the value of the nearest point at each.

    In one dimension a curve; in two, shades from low to high; in three, the plane in
    the middle of the last axis.

    Args:
        pos: Points ``[n, d]``.
        values: Field at the points ``[n]``.
    """
    from scipy.spatial import cKDTree

    lower, upper = pos.min(axis=0), pos.max(axis=0)
    extent = np.maximum(upper - lower, np.finfo(np.float64).tiny)
    flat = pos.shape[1] > 1
    # A character is about twice as high as wide.
    width = round(2 * HEIGHT * extent[0] / extent[1]) if flat else WIDEST
    shape = [min(max(8, width), WIDEST), HEIGHT if flat else 1]
    middles = [(np.arange(n) + 0.5) / n for n in shape] + [np.array([0.5])]
    cells = np.meshgrid(*middles[: pos.shape[1]], indexing="ij")
    at = lower + extent * np.stack([cell.ravel() for cell in cells], axis=1)
    shown = values[cKDTree(pos).query(at)[1]].reshape(shape).T[::-1]
    span = max(float(np.ptp(values)), np.finfo(np.float32).tiny)
    share = (shown - values.min()) / span
    if not flat:
        return _curve(share[0])
    shades = np.array(list(SHADES))
    level = np.clip(share * len(shades), 0, len(shades) - 1).astype(np.int64)
    return ["".join(line) for line in shades[level]]


def _curve(share: NDArray[np.float32]) -> list[str]:
    """A curve through values between 0 and 1."""
    height = HEIGHT // 2
    row = height - 1 - np.clip(share * height, 0, height - 1).astype(np.int64)
    grid = np.full((height, len(share)), " ")
    for column, here in enumerate(row):
        # Steep parts are drawn up or down to the row beside the last column's.
        last = row[max(0, column - 1)]
        grid[min(here, last + 1) : max(here, last - 1) + 1, column] = "*"
    return ["".join(line) for line in grid]
