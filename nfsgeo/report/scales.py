"""Colour scales that panels share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from numpy.typing import NDArray

__all__ = ["Column", "colour_scale", "scale_groups"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """One column of maps.

    Args:
        title: Head of the column.
        values: A field for each row ``[rows, n]``.
        scale: Columns that name the same scale share colours and colour bar; the
            scale ``"error"`` has a palette of its own.
    """

    title: str
    values: Array
    scale: str


def scale_groups(columns: Sequence[Column]) -> list[tuple[list[int], ScalarMappable]]:
    """Numbers of the columns that share a scale, with that scale's colours."""
    groups = []
    for scale in dict.fromkeys(column.scale for column in columns):
        group = [i for i, column in enumerate(columns) if column.scale == scale]
        shown = np.concatenate([columns[i].values.ravel() for i in group])
        groups.append((group, colour_scale(shown, error=scale == "error")))
    return groups


def colour_scale(values: Array, error: bool = False) -> ScalarMappable:
    """Colours for a field: diverging about zero where it takes both signs.

    Limits are the 0.5 and 99.5 percentiles, so that one point cannot wash out a map.
    """
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, [0.5, 99.5]) if finite.size else (0.0, 1.0)
    if error or (low < -0.05 * high < 0 and high > -0.05 * low > 0):
        top = max(abs(low), abs(high)) or 1.0
        return ScalarMappable(Normalize(-top, top), "PuOr_r" if error else "RdBu_r")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return ScalarMappable(Normalize(low, high), "viridis")
