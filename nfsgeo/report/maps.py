"""Pictures of fields: curves along a line, and maps of a plane, volume or surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from scipy.spatial import KDTree

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.geometry import Domain
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo.report.views import on_surface

__all__ = ["Column", "FieldFigure", "colour_scale"]

DOTTED_UP_TO = 4096  # points; beyond, dots would hide the field
IN_SLICE = 256  # points of a slice at least, the nearest ones
SIDES = {"from +x −y +z": (30, -45), "from −x +y −z": (-30, 135)}  # opposite
STEEPEST, FLATTEST = 3.0, 0.15  # height of a panel over its width
TALLEST, WIDEST, TURNED = 2.6, 2.6, 1.25  # inches: of panels, and for turned labels
CURVES: list[dict[str, Any]] = [  # the lower first
    {"color": COLOURS["pale"], "lw": 4.0},
    {"color": COLOURS["model"], "lw": 1.0, "marker": ".", "ms": 2.5},
]


@dataclass(frozen=True)
class Column:
    """One column of maps.

    Columns that name the same scale share colours and colour bar; the scale ``"error"``
    has a palette of its own and is not drawn as a curve.
    """

    title: str
    values: Doubles  # a field for each row [rows, n]
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


@dataclass
class FieldFigure:
    """Fields at points, a row for each of several time steps or samples.

    Over an interval fields are curves. Between points of a plane, or next to the one in
    the middle of a volume, they are interpolated, see
    :class:`~nfsgeo.report.raster.Raster`. Points of a surface are discs, seen
    from two opposite sides. Planes more than three times as high as wide, or seven
    times as wide as high, are not drawn to scale. The drawing is its ``figure``, and
    ``note`` what a caption says about it. Colours and axes are for all rows, also those
    that are not shown.
    """

    domain: Domain
    pos: Doubles  # [n, d]
    columns: Sequence[Column]
    labels: Sequence[str]  # at the left of each row
    rows: Sequence[int] | None = None  # numbers of those that are shown, all if None
    axes: Sequence[str] = ("x", "y", "z")  # with their units in parentheses
    triangles: Indices | None = None  # of a mesh in the plane, point numbers [m, 3]
    slope: float | None = None  # height of a map over its width, if not to scale

    def __post_init__(self) -> None:
        rows = range(len(self.labels)) if self.rows is None else self.rows
        self._updates: list[tuple[Callable[[Any], object], Sequence[Any]]] = []
        self.note = "Dots are the points; colours between are interpolated."
        if self.domain.dim == 1:
            self._curves(rows)
        elif self.domain.dim == 2 or on_surface(self.pos):
            self._maps(rows)
        else:
            self._slice()
            self._maps(rows)

    def show(self, row: int) -> None:
        """Show another row, by its number, instead of the only one."""
        for update, values in self._updates:
            update(values[row])

    def _slice(self) -> None:
        """Keep the points nearest the middle of the last axis, as those of a plane."""
        self.note = "Dots are the points next to the plane that is shown."
        domain, level = self.domain, (self.domain.lower[2] + self.domain.upper[2]) / 2
        away = np.abs(self.pos[:, 2] - level)
        count = max(IN_SLICE, int(np.sum(away <= 0.05 * domain.lengths[2])))
        near = np.argsort(away, kind="stable")[:count]
        name, _, unit = self.axes[2].partition(" (")
        label = f"{name} = {level:.3g} {unit.rstrip(')')}".rstrip()
        ends = domain.lower[:2], domain.upper[:2], domain.periodic[:2]
        self.domain, self.pos = Domain(*ends), self.pos[near, :2]
        self.columns = [replace(c, values=c.values[:, near]) for c in self.columns]
        self.labels = [f"{text}\n{label}".strip() for text in self.labels]

    def _curves(self, rows: Sequence[int]) -> None:
        self.note = "Dots are the points."
        x, order = _along(self.domain, self.pos)
        shown = [column for column in self.columns if column.scale != "error"]
        fields = {column.title: column.values[:, order] for column in shown}
        self.figure = Figure((WIDTH, 1.3 * len(rows) + 0.6), layout="constrained")
        look: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
        panels = self.figure.subplots(len(rows), 1, **look)[:, 0]
        for row, ax in zip(rows, panels, strict=True):
            looks = CURVES[-len(fields) :]
            for (name, values), curve in zip(fields.items(), looks, strict=True):
                (line,) = ax.plot(x, values[row], label=name, **curve)
                self._updates.append((line.set_ydata, list(values)))
            ax.set(xlim=_limits(self.domain), ylabel=self.labels[row])
            ax.grid(True, axis="y")
        self._updates.append((panels[0].set_ylabel, self.labels))
        finite = np.concatenate([v[np.isfinite(v)] for v in fields.values()])
        if finite.size:
            room = 0.05 * float(np.ptp(finite)) or 0.5
            panels[0].set_ylim(finite.min() - room, finite.max() + room)
        panels[-1].set_xlabel(self.axes[0])
        if len(fields) > 1:
            legend = panels[0].get_legend_handles_labels()
            self.figure.legend(*legend, loc="outside upper left", ncols=2)

    def _maps(self, rows: Sequence[int]) -> None:
        domain, space = self.domain, self.domain.dim == 3
        slope = 0.8
        look: dict[str, Any] = {"projection": "3d", "proj_type": "ortho"}
        if space:
            self.note = "Discs are the points, seen from two opposite sides."
        else:
            slope = self.slope or domain.lengths[1] / domain.lengths[0]
            slope = float(np.clip(slope, FLATTEST, STEEPEST))
            look = {"box_aspect": slope}
        draw = self._discs() if space else self._image()
        places = list(product(rows, SIDES if space else [""]))
        panels, colours = self._panels(len(places), slope, look)
        for (row, side), line in zip(places, panels, strict=True):
            texts = [f"{label}\n{side}".strip() for label in self.labels]
            label = self._beside(line[0], texts[row], 0, 0.5)
            self._updates.append((label.set_text, texts))
            for ax, column in zip(line, self.columns, strict=True):
                shown = draw(ax, column.values[row], colours[column.scale])
                self._updates.append((shown, list(column.values)))
                if space:
                    ax.view_init(*SIDES[side])
        ends = zip(self.axes, domain.lower, domain.upper, strict=False)
        names = [f"{name}\n{low:.4g} to {up:.4g}" for name, low, up in ends]
        names = [name.replace("-", "−") for name in names]
        below, right = ("", "\n".join(names)) if space else names
        self._beside(panels[-1, -1], below, 0.5, 0)
        self._beside(panels[-1, -1], right, 1, 0.5)

    def _image(self) -> Callable[..., Callable[[Doubles], object]]:
        """Return ``draw(ax, field, colours)``, which maps a field in the plane.

        It returns a function that shows another field in its place.
        """
        domain, pos, extent = self.domain, self.pos, _limits(self.domain)
        raster = Raster(domain, pos, self.triangles)

        def draw(ax: Any, field: Doubles, colours: ScalarMappable) -> Any:
            ax.set_facecolor(COLOURS["hairline"])  # shows where the image has no value
            look = {"cmap": colours.cmap, "norm": colours.norm, "origin": "lower"}
            image = ax.imshow(raster.image(field), aspect="auto", extent=extent, **look)
            if len(pos) <= DOTTED_UP_TO:
                ax.plot(*pos.T, ".", ms=1.3, mew=0, c="k", alpha=0.5)
            if domain.region is not None:
                edges = list(domain.region.facets)
                ax.add_collection(LineCollection(edges, lw=0.6, color=COLOURS["muted"]))
            ax.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
            return lambda field: image.set_data(raster.image(field))

        return draw

    def _discs(self) -> Callable[..., Callable[[Doubles], object]]:
        """Return the same for points in space, where near points hide others."""
        pos, size = self.pos, np.ptp(self.pos, axis=0)
        distance = KDTree(pos).query(pos, min(4, len(pos)))[0][:, -1]
        distance = np.minimum(distance, 3 * np.median(distance))
        width = 67 * min(WIDEST, WIDTH / len(self.columns))  # points of a page
        area = (1.7 * width * distance / np.linalg.norm(size)) ** 2

        def draw(ax: Any, field: Doubles, colours: ScalarMappable) -> Any:
            look = {"cmap": colours.cmap, "norm": colours.norm, "depthshade": False}
            discs = ax.scatter(*pos.T, c=field, s=area, lw=0, **look)
            ax.set_box_aspect(size, zoom=1.5)
            ax.set_axis_off()
            return discs.set_array

        return draw

    def _panels(
        self, rows: int, slope: float, look: dict[str, Any]
    ) -> tuple[Any, dict[str, ScalarMappable]]:
        """Make equal panels with titles of columns, and a colour bar for each scale."""
        columns = self.columns
        low = slope * (WIDTH - 1.2) / len(columns) < TURNED
        room = (WIDTH - (2.2 if low else 1.2)) / len(columns)
        width = min(WIDEST, TALLEST / slope, room)
        tall = rows * (max(slope * width, 0.35) + 0.1)
        height = tall + 1.1
        self._turned = 0 if low else 90
        self.figure = Figure((WIDTH, height), layout="compressed")
        panels = self.figure.subplots(
            rows, len(columns), squeeze=False, subplot_kw=look
        )
        for ax, column in zip(panels[0], columns, strict=True):
            self._beside(ax, column.title, 0.5, 1)
        colours = {}
        # A part of the domain has colours of its own.
        ends = self.domain.lower, self.domain.upper
        inside = ((self.pos >= ends[0]) & (self.pos <= ends[1])).all(axis=1)
        inside = inside if inside.any() else ~inside
        for scale in dict.fromkeys(column.scale for column in columns):
            group = [i for i, column in enumerate(columns) if column.scale == scale]
            shown = np.concatenate(
                [columns[i].values[:, inside].ravel() for i in group]
            )
            colours[scale] = colour_scale(shown, error=scale == "error")
            bar = self.figure.colorbar(
                colours[scale],
                ax=panels[:, group].ravel().tolist(),
                location="bottom",
                pad=0.02,
                aspect=len(group) * width / 0.09,
                fraction=max(0.15, 0.14 / tall),  # else shorter below flat panels
                extend="both",  # pointed ends stand for values beyond the percentiles
                extendfrac=0.04 / len(group),
                ticks=MaxNLocator(max(2, round(len(group) * width / 0.7))),
            )
            bar.outline.set(linewidth=0.4)
        return panels, colours

    def _beside(self, ax: Axes, text: str, x: float, y: float) -> Annotation:
        """Write at an edge; unlike for labels, the layout leaves room for all of it."""
        look: dict[str, Any] = {"ha": ("right", "center", "left")[round(2 * x)]}
        look["va"] = ("top", "center", "bottom")[round(2 * y)]
        look |= {"rotation": self._turned, "ma": "center"} if x != 0.5 else {}
        away = 8 * x - 4, 8 * y - 4
        return ax.annotate(text, (x, y), away, "axes fraction", "offset points", **look)


def _limits(domain: Domain) -> tuple[float, ...]:
    """Lower and upper end of each axis in turn."""
    return tuple(np.ravel([domain.lower, domain.upper], "F").tolist())


def _along(domain: Domain, pos: Doubles) -> tuple[Doubles, Indices]:
    """Increasing coordinates, continued over a periodic seam, and their indices."""
    order = np.argsort(pos[:, 0])
    x = pos[order, 0]
    if domain.periodic[0]:
        length = domain.lengths[0]
        order = np.concatenate([order[-1:], order, order[:1]])
        x = np.concatenate([x[-1:] - length, x, x[:1] + length])
    return x, order
