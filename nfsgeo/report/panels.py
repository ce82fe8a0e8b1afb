"""Panels side by side with colour bars below."""

from __future__ import annotations

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from nfsgeo.report.style import WIDTH

__all__ = ["colour_bar", "panels"]


def panels(rows: int, columns: int, slope: float) -> tuple[Figure, NDArray[np.object_]]:
    """Equal panels, with room for titles and colour bars.

    Args:
        rows: Of panels.
        columns: Of panels.
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
    """A bar below panels, with pointed ends for values beyond the percentiles.

    Args:
        figure: From :func:`panels`.
        colours: What it shows.
        above: Panels of some columns ``[rows, columns]``.
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
