"""Pictures of fields: curves along a line, and maps of a plane, volume or surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.spatial import KDTree

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.geometry import Domain
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import COLOURS, WIDTH
from nfsgeo.report.views import on_surface

__all__ = ["Column", "FieldFigure", "colour_scale", "points_in"]

DOTTED_FROM = 2.5  # mean distance of points in a panel; dots of nearer ones hide it
IN_SLICE = 256  # points of a slice at least, the nearest ones
SIDES = {"from +x −y +z": (30, -45), "from −x +y −z": (-30, 135)}  # opposite
STEEPEST, FLATTEST = 3.0, 0.15  # height of a panel over its width
LINE = 13  # points of a page
TALLEST, WIDEST, TURNED = 2.6, 2.6, 1.25  # inches: of panels, and for turned labels
CURVES: list[dict[str, Any]] = [  # the lower first
    {"color": COLOURS["pale"], "lw": 4.0},
    {"color": COLOURS["model"], "lw": 1.0, "marker": ".", "ms": 4},
]
# Colours of categories, unlike that of pixels without a value.
KINDS = ["#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#0072b2", "#1b1f24"]
NAMED = 12  # categories with a tick
DOTS = {"color": COLOURS["second"], "ls": "", "marker": "o", "ms": 2.5}


# Draws on axes a column, a row and its colours, and returns what shows another field.
Drawing = Callable[[Any, "Column", int, ScalarMappable], Callable[[Doubles], object]]


@dataclass(frozen=True)
class Column:
    """One column of maps.

    Columns that name the same scale share colours and colour bar; the scale ``"error"``
    has a palette of its own and is not drawn as a curve.
    """

    title: str
    values: Sequence[Doubles]  # a field [n] for each row
    scale: str
    dots: bool = False  # whether only the points are coloured, not what is between
    predicted: bool = False  # whether limits of colours are those of others
    unit: str = ""  # beside the colour bar
    names: Sequence[str] = ()  # of categories, of which the values are the numbers

    def of_categories(self, meanings: Mapping[int, str]) -> Column:
        """The column of a category, whose numbers have ``meanings`` or show as such."""
        every = np.concatenate(self.values)
        kinds = np.unique(every[np.isfinite(every)])
        places = [np.searchsorted(kinds, v).astype(np.float64) for v in self.values]
        names = [meanings.get(int(kind), f"{kind:g}") for kind in kinds]
        return replace(self, values=places, names=names)


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
    pos: Sequence[Doubles]  # points [n, d] of each row
    columns: Sequence[Column]
    labels: Sequence[str]  # at the left of each row
    rows: Sequence[int] | None = None  # numbers of those that are shown, all if None
    axes: Sequence[str] = ("x", "y", "z")  # with their units in parentheses
    # Each row has the point numbers [m, 3] of a mesh in the plane. Empty: no meshes.
    triangles: Sequence[Indices | None] = ()
    mesh_pos: Sequence[Doubles | None] = ()  # points of that mesh [k, 2], if others
    slope: float | None = None  # height of a map over its width, if not to scale
    errors: Sequence[float] = ()  # to limit colours of errors, beside those shown

    def __post_init__(self) -> None:
        rows = range(len(self.labels)) if self.rows is None else self.rows
        self._updates: list[tuple[Callable[[Any], object], Sequence[Any]]] = []
        self.note = "Dots are the points; colours between are interpolated."
        if self.domain.dim == 1:
            self._curves(rows)
        elif self.domain.dim == 2 or on_surface(self.pos[rows[0]]):
            self._maps(rows)
        else:
            self._slice()
            self._maps(rows)
        filled = any(column.names and not column.dots for column in self.columns)
        if filled and self.domain.dim == 2:
            self.note += " Categories are those of the nearest point."

    def show(self, row: int) -> None:
        """Show another row, on the same points, instead of the only one."""
        for update, values in self._updates:
            update(values[row])

    def _slice(self) -> None:
        """Keep the points nearest the middle of the last axis, as those of a plane."""
        self.note = "Dots are the points next to the plane that is shown."
        domain, level = self.domain, (self.domain.lower[2] + self.domain.upper[2]) / 2
        near = []
        for pos in self.pos:
            away = np.abs(pos[:, 2] - level)
            count = max(IN_SLICE, int(np.sum(away <= 0.05 * domain.lengths[2])))
            near.append(np.argsort(away, kind="stable")[:count])
        name, _, unit = self.axes[2].partition(" (")
        label = f"{name} = {level:.3g} {unit.rstrip(')')}".rstrip()
        ends = domain.lower[:2], domain.upper[:2], domain.periodic[:2]

        def select(fields: Sequence[Doubles]) -> list[Doubles]:
            return [field[at] for field, at in zip(fields, near, strict=True)]

        self.domain, self.pos = Domain(*ends), [pos[:, :2] for pos in select(self.pos)]
        self.columns = [replace(c, values=select(c.values)) for c in self.columns]
        self.labels = [f"{text}\n{label}".strip() for text in self.labels]

    def _curves(self, rows: Sequence[int]) -> None:
        self.note = "Dots are the points."
        places = [_along(self.domain, pos) for pos in self.pos]
        shown = [column for column in self.columns if column.scale != "error"]
        self.figure = Figure((WIDTH, 1.3 * len(rows) + 0.6), layout="constrained")
        look: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
        panels = self.figure.subplots(len(rows), 1, **look)[:, 0]
        looks = iter(CURVES[-sum(not column.dots for column in shown) :])
        styles = [DOTS if column.dots else next(looks) for column in shown]
        for row, ax in zip(rows, panels, strict=True):
            for column, style in zip(shown, styles, strict=True):
                pairs = zip(column.values, places, strict=True)
                values = [field[order] for field, (_, order) in pairs]
                name = column.title.replace("\n", ", ")
                (line,) = ax.plot(places[row][0], values[row], label=name, **style)
                self._updates.append((line.set_ydata, values))
            ax.set(xlim=_limits(self.domain), ylabel=self.labels[row])
            ax.grid(True, axis="y")
        self._updates.append((panels[0].set_ylabel, self.labels))
        finite = np.concatenate([v for column in shown for v in column.values])
        finite = finite[np.isfinite(finite)]
        if finite.size:
            room = 0.05 * float(np.ptp(finite)) or 0.5
            panels[0].set_ylim(finite.min() - room, finite.max() + room)
        panels[-1].set_xlabel(self.axes[0])
        if len(shown) > 1:
            legend = panels[0].get_legend_handles_labels()
            self.figure.legend(*legend, loc="outside upper left", ncols=len(shown))

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
        places = list(product(rows, SIDES if space else [""]))
        panels, colours = self._panels(len(places), slope, look)
        prepare = self._discs if space else self._image
        draws = {id(self.pos[row]): prepare(self.pos[row], row) for row in rows}
        for (row, side), line in zip(places, panels, strict=True):
            texts = [f"{label}\n{side}".strip() for label in self.labels]
            if self._above:
                texts = [text.replace("\n", ", ") for text in texts]
            label = self._beside(line[0], texts[row], 0, 1 if self._above else 0.5)
            label.set_in_layout(not self._above)  # may be wider than a panel
            self._updates.append((label.set_text, texts))
            for ax, column in zip(line, self.columns, strict=True):
                draw = draws[id(self.pos[row])]
                shown = draw(ax, column, row, colours[column.scale])
                self._updates.append((shown, column.values))
                if space:
                    ax.view_init(*SIDES[side])
        if space:
            ends = zip(self.axes, domain.lower, domain.upper, strict=False)
            names = [f"{name}\n{low:.3g} to {up:.3g}" for name, low, up in ends]
            text = "\n".join(names).replace("-", "−")
            self._beside(panels[-1, -1], text, 1, 0.5)
            return
        # One panel has room for coordinates beside it and below.
        corner, height = panels[-1, -1], slope * self._width
        for axis, size in ((corner.xaxis, self._width), (corner.yaxis, height)):
            most = int(np.clip(size / 0.4, 1, 4))
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
        corner.yaxis.tick_right()
        corner.yaxis.set_label_position("right")
        corner.set_xlabel(self.axes[0])
        corner.set_ylabel(self.axes[1], rotation=self._turned)
        if not self._turned:
            corner.yaxis.label.set(ha="left", va="center")

    def _image(self, pos: Doubles, row: int) -> Drawing:
        """Return ``draw(ax, column, row, colours)``, which maps a field in the plane.

        It returns a function that shows another field in its place.
        """
        domain, extent = self.domain, _limits(self.domain)
        triangles = self.triangles[row] if self.triangles else None
        mesh_pos = self.mesh_pos[row] if self.mesh_pos else None
        raster = Raster(domain, pos, triangles, mesh_pos)
        share = self._slope / max(points_in(domain, pos).sum(), 1)
        size = 72 * self._width * float(np.sqrt(share))  # distance, in points
        dotted = size > DOTTED_FROM
        near = KDTree(pos).query(pos, 2)[0][:, 1] / domain.lengths[0]
        if not dotted:
            self.note = "Colours between the points are interpolated."

        def draw(ax: Any, column: Column, row: int, colours: ScalarMappable) -> Any:
            ax.set_facecolor(COLOURS["hairline"])  # shows where the image has no value
            ax.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
            look: dict[str, Any] = {"cmap": colours.cmap, "norm": colours.norm}
            if domain.region is not None:
                edges = list(domain.region.facets)
                ax.add_collection(LineCollection(edges, lw=0.6, color=COLOURS["muted"]))
            field = column.values[row]
            if column.dots and dotted:  # near ones would hide each other
                look |= {"s": np.clip(72 * self._width * near, 1.5, 6) ** 2, "lw": 0.25}
                discs = ax.scatter(*pos.T, c=field, ec=COLOURS["muted"], **look)
                return discs.set_array
            show = raster.nearest if column.names else raster.image
            image = show(field)
            look |= {"origin": "lower", "aspect": "auto", "extent": extent}
            shown = ax.imshow(image, **look)
            if dotted:
                ms = min(0.2 * size, 2.5)
                ax.plot(*pos.T, "o", ms=ms, mew=0.1 * ms, mec="w", c="k", alpha=0.7)
            return lambda field: shown.set_data(show(field))

        return draw

    def _discs(self, pos: Doubles, row: int) -> Drawing:
        """Return the same for points in space, where near points hide others."""
        size = np.ptp(pos, axis=0)
        distance = KDTree(pos).query(pos, min(4, len(pos)))[0][:, -1]
        distance = np.minimum(distance, 3 * np.median(distance))
        width = 67 * min(WIDEST, WIDTH / len(self.columns))  # points of a page
        area = (1.7 * width * distance / np.linalg.norm(size)) ** 2

        def draw(ax: Any, column: Column, row: int, colours: ScalarMappable) -> Any:
            look = {"cmap": colours.cmap, "norm": colours.norm, "depthshade": False}
            discs = ax.scatter(*pos.T, c=column.values[row], s=area, lw=0, **look)
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
        # Labels stand above flat maps, which leaves only those of coordinates beside.
        self._above = low and self.domain.dim < 3
        beside = 0.4 + 0.07 * len(self.axes[1]) if self._above else 1.2 + low
        width = min(WIDEST, TALLEST / slope, (WIDTH - beside) / len(columns))
        tall = rows * (max(slope * width, 0.35) + (0.22 if self._above else 0.1))
        upright = [column.names for column in columns if _upright(column.names, width)]
        letters = max((len(name) for names in upright for name in names), default=0)
        units = any(column.unit for column in columns)
        height = tall + (1.0 if self._above else 1.1) + 0.15 * units + 0.06 * letters
        self._turned, self._width, self._slope = 0 if low else 90, width, slope
        self.figure = Figure((WIDTH, height), layout="compressed")
        if self._above:
            self.figure.set_layout_engine("compressed", h_pad=0.11)
        panels = self.figure.subplots(
            rows, len(columns), squeeze=False, subplot_kw=look
        )
        for ax, column in zip(panels[0], columns, strict=True):
            self._beside(ax, column.title, 0.5, 1)
        colours = {}
        # A part of the domain has colours of its own.
        inside = [points_in(self.domain, pos) for pos in self.pos]
        inside = [at if at.any() else ~at for at in inside]
        for scale in dict.fromkeys(column.scale for column in columns):
            group = [i for i, column in enumerate(columns) if column.scale == scale]
            shown = np.array(self.errors if scale == "error" else ())
            for i in sorted(group, key=lambda i: columns[i].predicted):
                if not (columns[i].predicted and np.isfinite(shown).any()):
                    fields = zip(columns[i].values, inside, strict=True)
                    shown = np.concatenate(
                        [shown, *(field[at] for field, at in fields)]
                    )
            first = columns[group[0]]
            colours[scale] = colour_scale(shown, error=scale == "error")
            ticks: Any = MaxNLocator(max(2, round(len(group) * width / 0.7)))
            if first.names:
                colours[scale] = _category_colours(len(first.names))
                ticks = range(0, len(first.names), 1 + (len(first.names) - 1) // NAMED)
            bar = self.figure.colorbar(
                colours[scale],
                ax=panels[:, group].ravel().tolist(),
                location="bottom",
                pad=0.02,
                aspect=len(group) * width / 0.09,
                fraction=max(0.15, 0.14 / tall),  # else shorter below flat panels
                # Pointed ends stand for values beyond the percentiles.
                extend="neither" if first.names else "both",
                extendfrac=0.04 / len(group),
                ticks=ticks,
            )
            bar.outline.set(linewidth=0.4)
            bar.set_label(first.unit)
            if first.names:
                bar.ax.minorticks_off()
                names = [first.names[tick] for tick in ticks]
                turned = 90 * _upright(first.names, width)
                bar.set_ticklabels(names, rotation=turned)
        return panels, colours

    def _beside(self, ax: Axes, text: str, x: float, y: float) -> Annotation:
        """Write at an edge; unlike for labels, the layout leaves room for all of it."""
        look: dict[str, Any] = {"ha": ("right", "center", "left")[round(2 * x)]}
        look["va"] = ("top", "center", "bottom")[round(2 * y)]
        away = 8 * x - 4, 8 * y - 4
        if self._above and y == 1:  # a label of a row, and a title over it
            look["ha"] = "left" if x == 0 else "center"
            away = 0, 4 + LINE * (x > 0)
        elif x != 0.5:
            look |= {"rotation": self._turned, "ma": "center"}
        return ax.annotate(text, (x, y), away, "axes fraction", "offset points", **look)


def _upright(names: Sequence[str], width: float) -> bool:
    """Whether names at the ticks of a colour bar are too long for its inches."""
    return 0.08 * len("  ".join(names)) > width


def _category_colours(num: int) -> ScalarMappable:
    """Colours of a number of categories."""
    few, many = ListedColormap(KINDS[:num]), matplotlib.colormaps["turbo"]
    colours = few if num <= len(KINDS) else many.resampled(num)
    return ScalarMappable(BoundaryNorm(np.arange(num + 1) - 0.5, num), colours)


def points_in(box: Domain, pos: Doubles) -> NDArray[np.bool_]:
    """Mask of the points ``[n, d]`` within the ends of a box."""
    return np.asarray(((pos >= box.lower) & (pos <= box.upper)).all(axis=1))


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
