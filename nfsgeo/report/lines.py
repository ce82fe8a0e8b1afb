"""Pictures of fields along a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles
from nfsgeo.geometry import Domain
from nfsgeo.report.panels import Column, colour_bar, panels, scale_groups
from nfsgeo.report.style import COLOURS, WIDTH, legend_above
from nfsgeo.report.times import along_time

__all__ = ["along", "profiles", "space_time"]


def profiles(
    domain: Domain,
    pos: Doubles,
    lines: dict[str, Doubles],
    row_labels: Sequence[str],
    axis: str = "x",
) -> Figure:
    """Fields along a line, one panel a row.

    Args:
        domain: Interval that holds the points.
        pos: Points ``[n, 1]``.
        lines: One or two legend entries, the lower first, with a field for each row
            ``[rows, n]``.
        row_labels: Text at the left of each row.
        axis: Name of the axis, with its unit.
    """
    x, order = along(domain, pos)
    figure = Figure((WIDTH, 1.15 * len(row_labels) + 0.6), layout="constrained")
    axes = figure.subplots(len(row_labels), 1, sharex=True, sharey=True, squeeze=False)
    below: dict[str, Any] = {"color": COLOURS["pale"], "lw": 4.0}
    above: dict[str, Any] = {"color": COLOURS["model"], "lw": 1.0, "marker": "."}
    looks = [below, above | {"ms": 2.5}][-len(lines) :]
    for row, (ax, label) in enumerate(zip(axes[:, 0], row_labels, strict=True)):
        for (name, values), look in zip(lines.items(), looks, strict=True):
            ax.plot(x, values[row, order], label=name, **look)
        ax.set_xlim(domain.lower[0], domain.upper[0])
        ax.set_ylabel(label)
        ax.grid(True, axis="y")
    axes[-1, 0].set_xlabel(axis)
    if len(lines) > 1:
        legend_above(axes[0, 0])
    return figure


def space_time(
    domain: Domain,
    pos: Doubles,
    times: Doubles,
    columns: Sequence[Column],
    axis: str = "x",
    unit: str = "",
) -> Figure:
    """Fields over a line and time, time upwards.

    Args:
        domain: Interval that holds the points.
        pos: Points ``[n, 1]``.
        times: Times of the time steps ``[T]``, at least two.
        columns: What to show; their ``values`` are ``[T, n]``.
        axis: Name of the axis, with its unit.
        unit: Of the times.
    """
    x, order = along(domain, pos)
    times, label = along_time(times, unit)
    figure, axes = panels(1, len(columns), 2.4)
    for group, colours in scale_groups(columns):
        for i in group:
            ax = axes[0, i]
            values = columns[i].values[:, order]
            mesh = ax.pcolormesh(x, times, values, shading="nearest")
            mesh.set(cmap=colours.cmap, norm=colours.norm)
            ax.set(title=columns[i].title, xlabel=axis)
            ax.xaxis.set_major_locator(MaxNLocator(3))
            ax.set_xlim(domain.lower[0], domain.upper[0])
        colour_bar(figure, colours, axes[:, group])
    axes[0, 0].set_ylabel(label)
    return figure


def along(domain: Domain, pos: Doubles) -> tuple[Doubles, NDArray[np.int64]]:
    """Increasing coordinates, continued over a periodic seam, and their indices."""
    order = np.argsort(pos[:, 0])
    x = pos[order, 0]
    if domain.periodic[0]:
        length = domain.lengths[0]
        order = np.concatenate([order[-1:], order, order[:1]])
        x = np.concatenate([x[-1:] - length, x, x[:1] + length])
    return x, order
