"""Panels of one figure, with colour scales that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles
from nfsgeo.geometry import Domain
from nfsgeo.report.style import WIDTH

__all__ = [
    "Column",
    "colour_bar",
    "colour_scale",
    "label_axes",
    "label_row",
    "panels",
    "scale_groups",
]

# Inches: of the highest panel, around all panels, and what a label takes at the least.
TALLEST = 3.4
TOP, BOTTOM = 0.42, 0.85
SIDES = {True: (0.66, 0.45), False: (1.35, 1.05)}  # by whether labels are turned
TITLE, LINES, GAP, BAR = 1.05, 0.5, 0.1, 0.09
TURNED = 1.25  # least height of panels whose labels are turned: that of a date


def panels(rows: int, columns: int, slope: float) -> tuple[Figure, NDArray[np.object_]]:
    """Equal panels, with room for titles, labels and colour bars.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        slope: Height of a panel over its width.

    Returns:
        The figure, and its axes ``[rows, columns]``.
    """
    room = (WIDTH - sum(SIDES[True])) / columns - GAP
    width = min(2.6, room, TALLEST / slope)
    height = slope * width
    turned = height >= TURNED
    left, right = SIDES[turned]
    across = max(width, min(TITLE, room)) + GAP
    down = max(height, TURNED if turned else LINES) + GAP
    size = left + columns * across + right, TOP + rows * down + BOTTOM
    figure = Figure(size)
    axes = np.empty((rows, columns), dtype=object)
    for row, column in np.ndindex(rows, columns):
        x = left + (column + 0.5) * across - 0.5 * (width + GAP)
        y = BOTTOM + (rows - row - 0.5) * down - 0.5 * (height - GAP)
        place = x / size[0], y / size[1], width / size[0], height / size[1]
        first = axes[0, 0]
        ax = figure.add_axes(place, sharex=first, sharey=first)
        ax.tick_params(labelleft=column == 0, labelbottom=row == rows - 1)
        axes[row, column] = ax
    return figure, axes


def label_axes(ax: Axes, domain: Domain, names: Sequence[str], last: bool) -> None:
    """Names the first two axes of a domain and tells where they begin and end.

    Args:
        ax: A panel in the last column.
        domain: The box.
        names: Names of the axes, with their units.
        last: Whether the panel is in the last row, too.
    """
    texts = [domain.span(axis).replace("-", "−") for axis in range(domain.dim)]
    right = ax.secondary_yaxis("right")
    right.set_yticks([])
    text = f"{names[1]}\n{texts[1]}"
    if _is_low(ax):
        right.set_ylabel(text, rotation=0, ha="left", va="center")
    else:
        right.set_ylabel(text)
    if last:
        ax.set_xlabel(f"{names[0]}, {texts[0]}")


def _is_low(ax: Axes) -> bool:
    """Whether a panel is too low for labels that are turned."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    height = ax.get_position(original=True).height * figure.get_figheight()
    return bool(height < 0.99 * TURNED)


def label_row(ax: Axes, text: str) -> None:
    """Writes the label of a row at the left of its first panel."""
    if _is_low(ax):
        ax.set_ylabel(text, rotation=0, ha="right", va="center")
    else:
        ax.set_ylabel(text)


def colour_bar(
    figure: Figure, colours: ScalarMappable, above: NDArray[np.object_]
) -> None:
    """A colour bar below some columns of panels, ``above [rows, columns]``.

    Its pointed ends stand for values beyond the percentiles.
    """
    inches = figure.get_size_inches()
    boxes = [ax.get_position(original=True) for ax in above[-1]]
    left, right = boxes[0].x0 * inches[0], boxes[-1].x1 * inches[0]
    wider = max(0.0, TITLE - (right - left)) / 2
    left, right = left - wider, right + wider
    place = left / inches[0], 0.36 / inches[1], (right - left) / inches[0]
    bar = figure.colorbar(
        colours,
        cax=figure.add_axes((*place, BAR / inches[1])),
        orientation="horizontal",
        extend="both",
        extendfrac=0.04 / above.shape[1],
        ticks=MaxNLocator(max(2, round((right - left) / 0.7))),
    )
    bar.outline.set(linewidth=0.4)


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
    values: Doubles
    scale: str


def scale_groups(columns: Sequence[Column]) -> list[tuple[list[int], ScalarMappable]]:
    """Indices of the columns that share a scale, with the colours of that scale."""
    groups = []
    for scale in dict.fromkeys(column.scale for column in columns):
        group = [i for i, column in enumerate(columns) if column.scale == scale]
        shown = np.concatenate([columns[i].values.ravel() for i in group])
        groups.append((group, colour_scale(shown, error=scale == "error")))
    return groups


def colour_scale(values: Doubles, error: bool = False) -> ScalarMappable:
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
