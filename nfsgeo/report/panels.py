"""Panels of one figure, with colour scales that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from nfsgeo.report.style import WIDTH

__all__ = ["Column", "colour_bar", "colour_scale", "panels", "scale_groups"]


def panels(rows: int, columns: int, slope: float) -> tuple[Figure, NDArray[np.object_]]:
    """Equal panels, with room for titles and colour bars.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        slope: Height of a panel over its width.

    Returns:
        The figure, and its axes ``[rows, columns]``.
    """
    panel = min(2.6, WIDTH / columns - 0.1)
    size = (columns * (panel + 0.1), rows * slope * panel + 0.8)
    figure = Figure(size, layout="compressed")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    return figure, axes


def colour_bar(
    figure: Figure, colours: ScalarMappable, above: NDArray[np.object_]
) -> None:
    """A colour bar below some columns of panels, ``above [rows, columns]``.

    Its pointed ends stand for values beyond the percentiles.
    """
    labels = ScalarFormatter()
    labels.set_powerlimits((-3, 4))  # longer ones run into each other
    bar = figure.colorbar(
        colours,
        ax=above,
        location="bottom",
        aspect=18 * above.shape[1],
        extend="both",
        ticks=MaxNLocator(2 + above.shape[1]),
        format=labels,
    )
    bar.outline.set(linewidth=0.4)


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """One column of maps.

    Args:
        title: Title of the column.
        values: A field for each row ``[rows, n]``.
        scale: Columns that name the same scale share colours and colour bar; the
            scale ``"error"`` has a palette of its own.
    """

    title: str
    values: Array
    scale: str


def scale_groups(columns: Sequence[Column]) -> list[tuple[list[int], ScalarMappable]]:
    """Indices of the columns that share a scale, with the colours of that scale."""
    groups = []
    for scale in dict.fromkeys(column.scale for column in columns):
        group = [i for i, column in enumerate(columns) if column.scale == scale]
        shown = np.concatenate([columns[i].values.ravel() for i in group])
        groups.append((group, colour_scale(shown, error=scale == "error")))
    return groups


def colour_scale(values: Array, error: bool = False) -> ScalarMappable:
    """Colours for a field: diverging about zero where it takes both signs.

    Limits are the 0.5 and 99.5 percentiles, so that outliers do not wash out a map.
    """
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, [0.5, 99.5]) if finite.size else (0.0, 1.0)
    if error or (low < -0.05 * high < 0 and high > -0.05 * low > 0):
        top = max(abs(low), abs(high)) or 1.0
        return ScalarMappable(Normalize(-top, top), "PuOr_r" if error else "RdBu_r")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return ScalarMappable(Normalize(low, high), "viridis")
