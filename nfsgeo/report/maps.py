"""Pictures of fields: maps of points of the plane, of a volume or of a surface, and
profiles along a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.spatial import KDTree

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.geometry import Domain
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo.report.text import time_axis

__all__ = [
    "Column",
    "FieldMaps",
    "along",
    "colour_scale",
    "on_surface",
    "profiles",
    "space_time",
]

Show = Callable[[Doubles], Any]

AXES = ("x", "y", "z")
DOTTED_UP_TO = 4096  # points; beyond, dots would hide the field
SLICES = (0.25, 0.5, 0.75)  # of the last axis, where there is room for several
IN_SLICE = 256  # points of a slice at least, the nearest ones
SIDES = {"from +x −y +z": (30, -45), "from −x +y −z": (-30, 135)}  # opposite
NEIGHBOURS = 12
FLAT = 0.1  # largest variance off a plane, over the smaller one in it
STEEPEST, FLATTEST = 3.0, 0.15  # height of a panel over its width
TALLEST, WIDEST, TURNED = 2.6, 2.6, 1.25  # inches: of panels, and for turned labels


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


class _Panels:
    """Equal panels whose columns have titles, and colour bars below by their scale."""

    def __init__(
        self, rows: int, columns: Sequence[Column], slope: float, **look: Any
    ) -> None:
        low = slope * (WIDTH - 1.2) / len(columns) < TURNED
        room = (WIDTH - (2.2 if low else 1.2)) / len(columns)
        width = min(WIDEST, TALLEST / slope, room)
        height = max(slope * width, 0.35)
        self._turned = 0 if low else 90
        size = WIDTH, rows * (height + 0.1) + 1.1
        self.figure = Figure(size, layout="compressed")
        self.axes = self.figure.subplots(rows, len(columns), squeeze=False, **look)
        for ax, column in zip(self.axes[0], columns, strict=True):
            self._beside(ax, column.title, 0.5, 1, ha="center", va="bottom")
        self.colours: dict[str, ScalarMappable] = {}
        for scale in dict.fromkeys(column.scale for column in columns):
            group = [i for i, column in enumerate(columns) if column.scale == scale]
            shown = np.concatenate([columns[i].values.ravel() for i in group])
            self.colours[scale] = colour_scale(shown, error=scale == "error")
            bar = self.figure.colorbar(
                self.colours[scale],
                ax=self.axes[:, group].ravel().tolist(),
                location="bottom",
                pad=0.02,
                aspect=len(group) * width / 0.09,
                extend="both",  # pointed ends stand for values beyond the percentiles
                extendfrac=0.04 / len(group),
                ticks=MaxNLocator(max(2, round(len(group) * width / 0.7))),
            )
            bar.outline.set(linewidth=0.4)

    def label_row(self, row: int, text: str) -> Annotation:
        """Writes at the left of a row."""
        return self._beside(self.axes[row, 0], text, 0, 0.5, ha="right", va="center")

    def name_axes(self, below: str, right: str) -> None:
        """Names the axes of the last panel, which are those of all."""
        self._beside(self.axes[-1, -1], below, 0.5, 0, ha="center", va="top")
        self._beside(self.axes[-1, -1], right, 1, 0.5, ha="left", va="center")

    def _beside(
        self, ax: Axes, text: str, x: float, y: float, **look: Any
    ) -> Annotation:
        """Writes beside a panel; unlike labels, the layout leaves room for it all."""
        look |= {"rotation": self._turned, "ma": "center"} if x != 0.5 else {}
        apart = 8 * x - 4, 8 * y - 4
        return ax.annotate(
            text, (x, y), apart, "axes fraction", "offset points", **look
        )


@dataclass(frozen=True)
class View:
    """One way to see points.

    Attributes:
        label: What distinguishes it from other views, empty for the only one.
        note: What a caption says of it.
        slope: Height of its panel over the width.
        look: How its panels are made.
        draw: Draws a field ``[n]`` in a panel, and returns what shows another one.
    """

    label: str
    note: str
    slope: float
    look: dict[str, Any]
    draw: Callable[[Any, Doubles, ScalarMappable], Show]


def _plane(
    domain: Domain,
    pos: Doubles,
    axis: str = "",
    level: float | None = None,
    triangles: Indices | None = None,
) -> View:
    """Points of the plane, or of a volume those next to a level of the last axis."""
    points: Any = slice(None)
    label, low, high = "", domain.lower, domain.upper
    note = "Dots are the points; colours between are interpolated."
    if level is not None:
        away = np.abs(pos[:, 2] - level)
        count = max(IN_SLICE, int(np.sum(away <= 0.05 * domain.lengths[2])))
        points = np.argsort(away, kind="stable")[:count]
        name, _, unit = axis.partition(" (")
        note = "Dots are the points next to the plane that is shown."
        label = f"{name} = {level:.3g} {unit.rstrip(')')}".rstrip()
    pos = pos[points, :2]
    raster = Raster(domain, pos, level, triangles)

    def draw(ax: Any, values: Doubles, colours: ScalarMappable) -> Show:
        ax.set_facecolor(COLOURS["hairline"])  # shows where the image has no value
        extent = low[0], high[0], low[1], high[1]
        look = {"cmap": colours.cmap, "norm": colours.norm, "origin": "lower"}
        content = raster.image(values[points])
        image = ax.imshow(content, aspect="auto", extent=extent, **look)
        if len(pos) <= DOTTED_UP_TO:
            ax.plot(*pos.T, ".", ms=1.3, mew=0, c="k", alpha=0.5)
        if domain.region is not None and domain.dim == 2:
            edges = list(domain.region.facets)
            ax.add_collection(LineCollection(edges, lw=0.6, color=COLOURS["muted"]))
        ax.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
        ax.spines[:].set_visible(True)
        return lambda field: image.set_data(raster.image(field[points]))

    slope = float(np.clip(domain.lengths[1] / domain.lengths[0], FLATTEST, STEEPEST))
    return View(label, note, slope, {"box_aspect": slope}, draw)


def _surface(pos: Doubles, label: str) -> View:
    """Points on a surface in space as discs, of which near ones hide others."""
    distance = KDTree(pos).query(pos, min(4, len(pos)))[0][:, -1]
    distance = np.minimum(distance, 3 * np.median(distance))
    relative = 1.7 * distance / np.linalg.norm(np.ptp(pos, axis=0))

    def draw(ax: Any, values: Doubles, colours: ScalarMappable) -> Show:
        look = {"cmap": colours.cmap, "norm": colours.norm, "depthshade": False}
        columns = ax.get_subplotspec().get_geometry()[1]
        size = (67 * min(WIDEST, WIDTH / columns) * relative) ** 2  # points of a page
        discs = ax.scatter(*pos.T, c=values, s=size, lw=0, **look)
        ax.view_init(*SIDES[label])
        ax.set_box_aspect(np.ptp(pos, axis=0), zoom=1.5)
        ax.set_axis_off()
        return lambda field: discs.set_array(field)

    note = "Discs are the points, seen from two opposite sides."
    return View(label, note, 0.8, {"projection": "3d", "proj_type": "ortho"}, draw)


class FieldMaps:
    """Maps of fields at points, rows by columns.

    Between points of a plane the field is interpolated, see
    :class:`~nfsgeo.report.raster.Raster`. Points :func:`on_surface` have a row of maps
    for either side, and a volume one for each of several slices across its last axis.
    Domains more than three times as high as wide, or seven times as wide as high, are
    not drawn to scale.

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
        self._views = _views(domain, pos, axes, len(row_labels) == 1, triangles)
        rows = list(product(range(len(row_labels)), self._views))
        first = self._views[0]
        panels = _Panels(len(rows), columns, first.slope, subplot_kw=first.look)
        self.figure, self.note = panels.figure, first.note
        self._shows, self._labels = [], []
        for place, (row, view) in enumerate(rows):
            label = "\n".join(filter(None, (row_labels[row], view.label)))
            self._labels.append(panels.label_row(place, label))
            for ax, column in zip(panels.axes[place], columns, strict=True):
                colours = panels.colours[column.scale]
                self._shows.append(view.draw(ax, column.values[row], colours))
        spans = [domain.span(axis).replace("-", "−") for axis in range(domain.dim)]
        names = [f"{name}\n{span}" for name, span in zip(axes, spans, strict=False)]
        if first.label in SIDES:
            names = ["", "\n".join(names)]
        panels.name_axes(*names[:2])

    def update(self, fields: Sequence[Doubles], label: str) -> None:
        """Shows other fields ``[n]``, one for each column, where there is one row."""
        for view, text in zip(self._views, self._labels, strict=True):
            text.set_text("\n".join(filter(None, (label, view.label))))
        for show, field in zip(self._shows, [*fields] * len(self._views), strict=True):
            show(field)


def _views(
    domain: Domain,
    pos: Doubles,
    axes: Sequence[str],
    several: bool,
    triangles: Indices | None,
) -> list[View]:
    """The plane, a surface from either side, or slices across the last axis."""
    if domain.dim == 2:
        return [_plane(domain, pos, triangles=triangles)]
    if on_surface(pos):
        return [_surface(pos, label) for label in SIDES]
    levels = domain.lower[2] + domain.lengths[2] * np.array(SLICES)
    chosen = levels if several else levels[1:2]
    return [_plane(domain, pos, axes[2], float(level)) for level in chosen]


def on_surface(pos: Doubles) -> bool:
    """Whether points ``[n, 3]`` lie on a surface, and do not fill a volume.

    They do if most of them and their nearest neighbours lie almost in a plane: of the
    principal components of the neighbours' positions, the least has a variance of at
    most :data:`FLAT` times the middle one. Points in a slab that is thinner than their
    distances count as a surface, and few points never do.
    """
    if len(pos) < 4 * NEIGHBOURS:
        return False
    some = pos[np.linspace(0, len(pos) - 1, min(500, len(pos))).astype(int)]
    near = pos[KDTree(pos).query(some, NEIGHBOURS)[1]]
    centred = near - near.mean(axis=1, keepdims=True)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    flat = variances[:, 2] <= FLAT * variances[:, 1]
    return bool(flat.mean() > 0.5)


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
    figure = Figure((WIDTH, 1.3 * len(row_labels) + 0.6), layout="constrained")
    axes = figure.subplots(len(row_labels), 1, sharex=True, sharey=True, squeeze=False)
    below: dict[str, Any] = {"color": COLOURS["pale"], "lw": 4.0}
    above = {"color": COLOURS["model"], "lw": 1.0, "marker": ".", "ms": 2.5}
    for row, (ax, label) in enumerate(zip(axes[:, 0], row_labels, strict=True)):
        looks = [below, above][-len(lines) :]
        for (name, values), look in zip(lines.items(), looks, strict=True):
            ax.plot(x, values[row, order], label=name, **look)
        ax.set(xlim=(domain.lower[0], domain.upper[0]), ylabel=label)
        ax.grid(True, axis="y")
    axes[-1, 0].set_xlabel(axis)
    if len(lines) > 1:
        shown = axes[0, 0].get_legend_handles_labels()
        figure.legend(*shown, loc="outside upper left", ncols=2)
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
    times, label = time_axis(times, unit)
    panels = _Panels(1, columns, 2.4, sharex=True, sharey=True)
    for ax, column in zip(panels.axes[0], columns, strict=True):
        colours = panels.colours[column.scale]
        look = {"cmap": colours.cmap, "norm": colours.norm, "shading": "nearest"}
        ax.pcolormesh(x, times, column.values[:, order], **look)
        ax.set(xlim=(domain.lower[0], domain.upper[0]), xlabel=axis)
        ax.xaxis.set_major_locator(MaxNLocator(3))
    panels.axes[0, 0].set_ylabel(label)
    return panels.figure


def along(domain: Domain, pos: Doubles) -> tuple[Doubles, NDArray[np.int64]]:
    """Increasing coordinates, continued over a periodic seam, and their indices."""
    order = np.argsort(pos[:, 0])
    x = pos[order, 0]
    if domain.periodic[0]:
        length = domain.lengths[0]
        order = np.concatenate([order[-1:], order, order[:1]])
        x = np.concatenate([x[-1:] - length, x, x[:1] + length])
    return x, order
