"""Panels side by side with colour bars below, placed by hand.

A layout that finds room by itself measures all text once more, which takes time.
"""

from __future__ import annotations

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from nfsgeo.report.style import WIDTH

__all__ = ["colour_bar", "panels"]

# Inches: the right edge, titles, above colour bars, these, and these with numbers.
EDGE, TITLE, GAP, BAR, BELOW = 0.04, 0.25, 0.08, 0.07, 0.5


def panels(
    rows: int,
    columns: int,
    slope: float,
    *,
    left: float = EDGE,
    gap: float = GAP,
    numbers: float = 0,
) -> tuple[Figure, NDArray[np.object_]]:
    """Equal panels, with room for titles and colour bars.

    Args:
        rows: Of panels.
        columns: Of panels.
        slope: Height of a panel over its width.
        left: Inches for labels at the left.
        gap: Inches between panels.
        numbers: Inches for numbers and labels of axes below the panels.

    Returns:
        The figure, and its axes ``[rows, columns]``.
    """
    right = EDGE + numbers / 4  # the last number is wider than its tick
    panel = min(2.6, (WIDTH - left - right + gap) / columns - gap)
    tall = panel * slope
    width = left + columns * (panel + gap) - gap + right
    bottom = GAP + numbers + BELOW
    height = TITLE + rows * (tall + gap) - gap + bottom
    figure = Figure((width, height))
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        top=1 - TITLE / height,
        bottom=bottom / height,
        wspace=gap / panel,
        hspace=gap / tall,
    )
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    return figure, axes


def colour_bar(
    figure: Figure,
    colours: ScalarMappable,
    above: NDArray[np.object_],
    numbers: float = 0,
) -> None:
    """A bar below panels, with pointed ends for values beyond the percentiles.

    Args:
        figure: From :func:`panels`.
        colours: What it shows.
        above: Panels of the lowest row.
        numbers: As given to :func:`panels`.
    """
    first, last = (ax.get_position() for ax in above[[0, -1]])
    inch = 1 / figure.get_figheight()
    low = first.y0 - (GAP + numbers + BAR) * inch
    place = figure.add_axes((first.x0, low, last.x1 - first.x0, BAR * inch))
    labels = ScalarFormatter()
    labels.set_powerlimits((-3, 4))  # longer ones run into each other
    bar = figure.colorbar(
        colours,
        place,
        orientation="horizontal",
        extend="both",
        ticks=MaxNLocator(2 + len(above)),
        format=labels,
    )
    bar.outline.set(linewidth=0.4)
