"""Maps of fields on points scattered over the plane."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nfsgeo.geometry import Domain
from nfsgeo.report.panels import colour_bar, panels
from nfsgeo.report.raster import Raster
from nfsgeo.report.scales import Column, colour_scale, scale_groups
from nfsgeo.report.style import COLOURS

__all__ = ["field_maps", "points_and_field"]

Array = NDArray[np.float64]
DOTTED_UP_TO = 4096  # points; beyond, dots would hide the field


def field_maps(
    domain: Domain,
    pos: Array,
    columns: Sequence[Column],
    row_labels: Sequence[str],
) -> Figure:
    """Maps of fields at points of the plane, rows by columns.

    Between the points the field is interpolated, see
    :class:`~nfsgeo.report.raster.Raster`. Of points in space, those nearest the
    middle plane of the last axis are shown.

    Args:
        domain: Box that holds the points, two or three axes.
        pos: Points ``[n, d]``.
        columns: What to show; their ``values`` have ``len(row_labels)`` rows.
        row_labels: Text at the left of each row.
    """
    keep = _middle_slab(domain, pos)
    raster = Raster(domain, pos[keep, :2])
    figure, axes = panels(len(row_labels), len(columns), _slope(domain))
    for group, colours in scale_groups(columns):
        for row, i in itertools.product(range(len(row_labels)), group):
            ax = axes[row, i]
            _map(ax, domain, raster.image(columns[i].values[row, keep]), colours)
            if len(keep) <= DOTTED_UP_TO:
                ax.plot(*pos[keep, :2].T, ".", ms=1.3, mew=0, c="k", alpha=0.5)
            _frame(ax, domain)
        colour_bar(figure, colours, axes[:, group])
    for ax, column in zip(axes[0], columns, strict=True):
        ax.set_title(column.title)
    for ax, label in zip(axes[:, 0], row_labels, strict=True):
        ax.set_ylabel(label)
    return figure


def points_and_field(domain: Domain, pos: Array, field: Array, title: str) -> Figure:
    """The points alone, and a field ``[n]`` on them; see :func:`field_maps`."""
    keep = _middle_slab(domain, pos)
    raster = Raster(domain, pos[keep, :2])
    colours = colour_scale(field[keep])
    figure, axes = panels(1, 2, _slope(domain))
    points, filled = axes[0]
    size = min(3.0, 90 / np.sqrt(len(keep)))
    points.plot(*pos[keep, :2].T, ".", ms=size, mew=0, c=COLOURS["ink"])
    some = "" if len(keep) == len(pos) else f"{len(keep)} of "
    points.set_title(f"{some}{len(pos)} points")
    _map(filled, domain, raster.image(field[keep]), colours)
    filled.set_title(title)
    for ax in (points, filled):
        _frame(ax, domain)
    colour_bar(figure, colours, axes[:, 1:])
    return figure


def _map(ax: Axes, domain: Domain, image: Array, colours: ScalarMappable) -> None:
    (left, low), (right, high) = domain.lower[:2], domain.upper[:2]
    ax.set_facecolor(COLOURS["hairline"])  # shows where the image has no value
    drawn = ax.imshow(image, origin="lower", extent=(left, right, low, high))
    drawn.set(cmap=colours.cmap, norm=colours.norm)


def _frame(ax: Axes, domain: Domain) -> None:
    ax.set_xlim(domain.lower[0], domain.upper[0])
    ax.set_ylim(domain.lower[1], domain.upper[1])
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(True)


def _slope(domain: Domain) -> float:
    return domain.lengths[1] / domain.lengths[0]


def _middle_slab(domain: Domain, pos: Array) -> NDArray[np.int64]:
    """Numbers of the points to show: all in the plane, a slab in space."""
    if domain.dim == 2:
        return np.arange(len(pos))
    middle = (domain.lower[2] + domain.upper[2]) / 2
    away = np.abs(pos[:, 2] - middle)
    count = max(256, int(np.sum(away <= 0.05 * domain.lengths[2])))
    return np.argsort(away, kind="stable")[:count]
