"""How points are seen: in the plane, in slices of a volume, or on a surface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import EllipseCollection, LineCollection
from numpy.typing import NDArray
from scipy.spatial import KDTree

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.geometry import Domain
from nfsgeo.report.panels import label_axes
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import COLOURS

__all__ = ["SIDES", "SurfaceView", "View", "on_surface", "views_of"]

DOTTED_UP_TO = 4096  # points; beyond, dots would hide the field
SLICES = (0.25, 0.5, 0.75)  # of the last axis, where there is room for several
IN_SLICE = 256  # points of a slice at least, the nearest ones
SIDES = ((1.0, -1.0, 0.7), (-1.0, 1.0, -0.7))  # opposite to each other
NEIGHBOURS = 12
FLAT = 0.1  # largest variance off a plane, over the smaller one in it


class View(ABC):
    """One way to see some of the points.

    Attributes:
        note: What a caption says of it.

    Args:
        points: Indices of the points that are seen.
        label: What distinguishes it from other views, empty for the only one.
        slope: Height of its panel over the width.
    """

    note = "Dots are the points; colours between are interpolated."

    def __init__(self, points: NDArray[np.int64], label: str, slope: float) -> None:
        self.points = points
        self.label = label
        self.slope = slope

    @abstractmethod
    def frame(self, ax: Axes) -> None:
        """Sets the limits of a panel, and draws walls or edges of a box."""

    @abstractmethod
    def name_axes(self, ax: Axes, last: bool) -> None:
        """Names the axes beside a panel of the last column, and of the last row."""

    @abstractmethod
    def draw(self, ax: Axes, values: Doubles, colours: ScalarMappable) -> None:
        """Draws a field ``[n]`` on all points."""

    @abstractmethod
    def redraw(self, ax: Axes, values: Doubles) -> None:
        """Replaces the field that :meth:`draw` has drawn."""

    @abstractmethod
    def dots(self, ax: Axes) -> None:
        """Draws the points alone."""


class FlatView(View):
    """Points of the plane, or those of a volume next to a plane.

    Args:
        domain: Their domain.
        pos: Points ``[n, d]``, of which the first two coordinates are shown.
        axes: Names of the axes.
        level: In space, where the plane cuts the last axis.
        triangles: Of a mesh in the plane, point numbers ``[m, 3]``.
    """

    def __init__(
        self,
        domain: Domain,
        pos: Doubles,
        axes: Sequence[str],
        level: float | None = None,
        triangles: Indices | None = None,
    ) -> None:
        points, label = np.arange(len(pos)), ""
        if level is not None:
            away = np.abs(pos[:, 2] - level)
            count = max(IN_SLICE, int(np.sum(away <= 0.05 * domain.lengths[2])))
            points = np.argsort(away, kind="stable")[:count]
            name, _, unit = axes[2].partition(" (")
            self.note = "Dots are the points next to the plane that is shown."
            label = f"{name} = {level:.3g} {unit.rstrip(')')}".rstrip()
        super().__init__(points, label, domain.lengths[1] / domain.lengths[0])
        self._domain, self._axes = domain, axes
        self._pos = pos[points, :2]
        self._raster = Raster(domain, self._pos, level, triangles)

    def frame(self, ax: Axes) -> None:
        low, high = self._domain.lower[:2], self._domain.upper[:2]
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(True)
        if self._domain.region is not None and self._domain.dim == 2:
            edges = list(self._domain.region.facets)
            ax.add_collection(LineCollection(edges, lw=0.6, color=COLOURS["muted"]))

    def name_axes(self, ax: Axes, last: bool) -> None:
        label_axes(ax, self._domain, self._axes, last)

    def draw(self, ax: Axes, values: Doubles, colours: ScalarMappable) -> None:
        low, high = self._domain.lower[:2], self._domain.upper[:2]
        ax.set_facecolor(COLOURS["hairline"])  # shows where the image has no value
        image = self._raster.image(values[self.points])
        drawn = ax.imshow(
            image, origin="lower", extent=(low[0], high[0], low[1], high[1])
        )
        drawn.set(cmap=colours.cmap, norm=colours.norm)
        if len(self.points) <= DOTTED_UP_TO:
            ax.plot(*self._pos.T, ".", ms=1.3, mew=0, c="k", alpha=0.5)

    def redraw(self, ax: Axes, values: Doubles) -> None:
        ax.images[0].set_data(self._raster.image(values[self.points]))

    def dots(self, ax: Axes) -> None:
        size = min(3.0, 90 / np.sqrt(len(self.points)))
        ax.plot(*self._pos.T, ".", ms=size, mew=0, c=COLOURS["ink"])


class SurfaceView(View):
    """Points on a surface in space as discs, seen from far away; near ones hide others.

    Args:
        pos: Points ``[n, 3]``.
        axes: Names of the axes.
        side: Direction from the points to the eye ``[3]``.
    """

    note = "Discs are the points, seen from two opposite sides."

    def __init__(
        self, pos: Doubles, axes: Sequence[str], side: Sequence[float]
    ) -> None:
        eye = np.array(side) / np.linalg.norm(side)
        right = np.cross([0.0, 0.0, 1.0], eye)
        right /= np.linalg.norm(right)
        self._screen = np.stack([right, np.cross(eye, right)], axis=1)
        flat = pos @ self._screen
        extent = np.ptp(flat, axis=0)
        room = np.array([0.2 * extent[0], 0.08 * extent.max()])
        self._low, self._high = flat.min(0) - room, flat.max(0) + room
        order = np.argsort(pos @ eye, kind="stable")
        width, height = self._high - self._low
        signs = "".join("+" if s > 0 else "−" for s in side)
        names = [name.partition(" (")[0] for name in axes]
        towards = " ".join(s + name for s, name in zip(signs, names, strict=True))
        super().__init__(order, f"from {towards}", height / width)
        self._flat, self._axes = flat[order], axes
        spacing = _spacing(pos)[order]
        self._size = 1.7 * spacing
        depth = (pos @ eye)[order]
        near = KDTree(self._flat).query_ball_point(self._flat, self._size)
        hidden_by = np.array([depth[each].max() for each in near])
        self._visible = hidden_by <= depth + 4 * spacing
        self._box = pos.min(0), pos.max(0)

    def frame(self, ax: Axes) -> None:
        ax.set_xlim(self._low[0], self._high[0])
        ax.set_ylim(self._low[1], self._high[1])
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.patch.set_visible(False)  # names of axes reach beyond a panel
        # Edges of the bounding box: two that meet at the bottom, and an upright one.
        (left, front, bottom), (right, back, top) = self._box
        ring = (left, front), (left, back), (right, back), (right, front)
        corners = np.array([(*corner, bottom) for corner in ring])
        flat = corners @ self._screen
        nearest = int(flat[:, 1].argmin())
        for other in (nearest - 1, (nearest + 1) % 4):
            edge = flat[[nearest, other]]
            axis = int(np.ptp(corners[[nearest, other]], axis=0).argmax())
            side = "left" if edge[1, 0] > edge[0, 0] else "right"
            self._edge(ax, edge, self._axes[axis], ha=side, va="top")
        outer = corners[flat[:, 0].argmax()]
        upright = np.stack([outer, [*outer[:2], top]]) @ self._screen
        self._edge(ax, upright, f" {self._axes[2]}", ha="left", va="center")

    def name_axes(self, ax: Axes, last: bool) -> None:
        """Every panel has its own names."""

    @staticmethod
    def _edge(ax: Axes, ends: Doubles, name: str, ha: str, va: str) -> None:
        ax.plot(*ends.T, lw=0.6, c=COLOURS["muted"], zorder=0)
        ax.annotate(name, ends.mean(0), fontsize=6.5, ha=ha, va=va)

    def draw(self, ax: Axes, values: Doubles, colours: ScalarMappable) -> None:
        discs = self._discs(ax)
        discs.set(cmap=colours.cmap, norm=colours.norm, array=values[self.points])

    def redraw(self, ax: Axes, values: Doubles) -> None:
        ax.collections[0].set_array(values[self.points])

    def dots(self, ax: Axes) -> None:
        self._discs(ax).set_facecolor(COLOURS["hairline"])
        seen = self._flat[self._visible]
        ax.plot(*seen.T, ".", ms=1.5, mew=0, c=COLOURS["ink"])

    def _discs(self, ax: Axes) -> EllipseCollection:
        discs = EllipseCollection(
            self._size,
            self._size,
            np.zeros_like(self._size),
            units="xy",
            offsets=self._flat,
            offset_transform=ax.transData,
            lw=0,
        )
        ax.add_collection(discs)
        return discs


def views_of(
    domain: Domain,
    pos: Doubles,
    axes: Sequence[str],
    several: bool = False,
    triangles: Indices | None = None,
) -> list[View]:
    """The views of points, each in a row of panels of its own.

    One of the plane, one from either side of points :func:`on_surface`, and slices
    across the last axis of a volume.

    Args:
        domain: Holds the points, two or three axes.
        pos: Points ``[n, d]``.
        axes: Names of the axes, with their units in parentheses.
        several: Whether there is room for several slices of a volume.
        triangles: Of a mesh in the plane, point numbers ``[m, 3]``.
    """
    if domain.dim == 2:
        return [FlatView(domain, pos, axes, triangles=triangles)]
    if on_surface(pos):
        return [SurfaceView(pos, axes, side) for side in SIDES]
    cuts = SLICES if several else SLICES[1:2]
    return [
        FlatView(domain, pos, axes, domain.lower[2] + cut * domain.lengths[2])
        for cut in cuts
    ]


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


def _spacing(pos: Doubles) -> Doubles:
    """Distance ``[n]`` from each point to the third of the nearest others."""
    distance = KDTree(pos).query(pos, min(4, len(pos)))[0][:, -1]
    return np.asarray(np.minimum(distance, 3 * np.median(distance)))
