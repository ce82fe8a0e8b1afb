"""Maps of fields on points of the plane, of volumes and of surfaces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.geometry import Domain
from nfsgeo.report.panels import (
    Column,
    colour_bar,
    colour_scale,
    label_row,
    panels,
    scale_groups,
)
from nfsgeo.report.views import SIDES, SurfaceView, View, views_of

__all__ = ["FieldMaps", "points_and_field", "points_of_surface"]

AXES = ("x", "y", "z")


class FieldMaps:
    """Maps of fields at points, rows by columns.

    Between points of a plane the field is interpolated, see
    :class:`~nfsgeo.report.raster.Raster`. Each row is repeated for every one of the
    :func:`~nfsgeo.report.views.views_of` the points.

    Args:
        domain: Box that holds the points, two or three axes.
        pos: Points ``[n, d]``.
        columns: What to show; their ``values`` have ``len(row_labels)`` rows.
        row_labels: Text at the left of each row.
        axes: Names of the axes, with their units in parentheses.
        triangles: Of a mesh in the plane, point numbers ``[m, 3]``.
    """

    figure: Figure

    def __init__(
        self,
        domain: Domain,
        pos: Doubles,
        columns: Sequence[Column],
        row_labels: Sequence[str],
        axes: Sequence[str] = AXES,
        triangles: Indices | None = None,
    ) -> None:
        several = len(row_labels) == 1
        self._views = views_of(domain, pos, axes, several, triangles)
        rows = list(itertools.product(range(len(row_labels)), self._views))
        self.figure, self._panels = panels(
            len(rows), len(columns), self._views[0].slope
        )
        for group, colours in scale_groups(columns):
            for place, (row, view) in enumerate(rows):
                for i in group:
                    ax = self._panels[place, i]
                    view.draw(ax, columns[i].values[row], colours)
                    view.frame(ax)
            colour_bar(self.figure, colours, self._panels[:, group])
        for ax, column in zip(self._panels[0], columns, strict=True):
            ax.set_title(column.title)
        for ax, (row, view) in zip(self._panels[:, 0], rows, strict=True):
            label_row(ax, "\n".join(filter(None, (row_labels[row], view.label))))
        _name_axes(self._panels, [view for _, view in rows])

    @property
    def note(self) -> str:
        """What a caption says of the points."""
        return self._views[0].note

    def update(self, fields: Sequence[Doubles], label: str) -> None:
        """Shows other fields ``[n]``, one for each column, where there is one row."""
        for view, row in zip(self._views, self._panels, strict=True):
            for ax, field in zip(row, fields, strict=True):
                view.redraw(ax, field)
            label_row(row[0], "\n".join(filter(None, (label, view.label))))


def points_and_field(
    domain: Domain,
    pos: Doubles,
    field: Doubles,
    title: str,
    axes: Sequence[str] = AXES,
    triangles: Indices | None = None,
) -> Figure:
    """The points alone, and a field ``[n]`` on them; see :class:`FieldMaps`."""
    views = views_of(domain, pos, axes, triangles=triangles)
    colours = colour_scale(field)
    figure, places = panels(len(views), 2, views[0].slope)
    for view, (points, filled) in zip(views, places, strict=True):
        view.dots(points)
        view.draw(filled, field, colours)
        for ax in (points, filled):
            view.frame(ax)
        label_row(points, view.label)
    shown = len(views[0].points)
    some = "" if shown == len(pos) else f"{shown} of "
    places[0, 0].set_title(f"{some}{len(pos)} points")
    places[0, 1].set_title(title)
    _name_axes(places, views)
    colour_bar(figure, colours, places[:, 1:])
    return figure


def points_of_surface(pos: Doubles, axes: Sequence[str] = AXES) -> Figure:
    """Points ``[n, 3]`` on a surface, seen from two opposite sides."""
    views = [SurfaceView(pos, axes, side) for side in SIDES]
    figure, places = panels(1, len(views), views[0].slope)
    for view, ax in zip(views, places[0], strict=True):
        view.dots(ax)
        view.frame(ax)
        ax.set_title(f"{len(pos)} points, {view.label}")
    return figure


def _name_axes(places: NDArray[np.object_], views: Sequence[View]) -> None:
    """Names vertical axes at the right, horizontal ones below."""
    for number, view in enumerate(views, 1):
        view.name_axes(places[number - 1, -1], last=number == len(views))
