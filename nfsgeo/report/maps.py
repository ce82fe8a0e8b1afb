"""Maps of fields on points scattered over the plane."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial import Delaunay, KDTree, QhullError

from nfsgeo.geometry import Domain
from nfsgeo.report.panels import Column, colour_bar, colour_scale, panels, scale_groups
from nfsgeo.report.style import COLOURS

__all__ = ["Raster", "field_maps", "points_and_field", "shown_points"]

Array = NDArray[np.float64]
PIXELS = 320  # along the first axis
LONG_EDGE = 6.0  # in median edges: such a triangle bridges a hole in the mesh


class Raster:
    """Piecewise linear interpolation from points to the pixels of a box.

    The triangles are Delaunay's and wrap around on periodic axes. Pixels outside of
    them, and in those that bridge a hole in the mesh, are NaN. Where points span no
    triangle at all, each pixel takes the value of the nearest point. Pixels outside of
    the region of the domain are NaN, and others take nothing from behind a wall.

    Args:
        domain: The box; its first two axes are shown, in space at the middle of the
            third.
        pos: Points ``[n, 2]``.
    """

    def __init__(self, domain: Domain, pos: Array) -> None:
        corners, origin = _with_images(domain, pos)
        width, height = domain.lengths[:2]
        self.shape = (max(1, round(PIXELS * height / width)), PIXELS)
        steps = [(np.arange(k) + 0.5) / k for k in self.shape]
        y, x = np.meshgrid(*steps, indexing="ij")
        pixels = np.stack([x.ravel() * width, y.ravel() * height], axis=1)
        pixels += np.array(domain.lower[:2])
        try:
            triangles = Delaunay(corners)
        except (QhullError, ValueError):  # fewer than three points, or all in a line
            self.points = origin[KDTree(corners).query(pixels)[1]][:, None]
            self.weights = np.ones((len(pixels), 1))
            return
        found = triangles.find_simplex(pixels)
        affine = triangles.transform[found]
        first = np.einsum("pij,pj->pi", affine[:, :2], pixels - affine[:, 2])
        self.weights = np.column_stack([first, 1 - first.sum(axis=1)])
        self.weights[(found < 0) | _bridging(triangles)[found]] = np.nan
        self.points = origin[triangles.simplices[found]]
        if domain.region is not None:
            self._stop_at_walls(domain, pixels, corners[triangles.simplices[found]])

    def image(self, values: Array) -> Array:
        """Image ``[rows, columns]``, lowest row first, of values ``[n]``."""
        # Points of a grid in an obstacle may have no value.
        parts = np.where(self.weights == 0, 0, values[self.points] * self.weights)
        return np.sum(parts, axis=1).reshape(self.shape)

    def _stop_at_walls(self, domain: Domain, pixels: Array, corners: Array) -> None:
        if domain.dim == 3:
            middle = np.full((len(pixels), 1), _middle(domain))
            pixels = np.concatenate([pixels, middle], axis=1)
        at = torch.from_numpy(pixels)
        if domain.dim == 2:
            ways = at[:, None].expand(-1, 3, -1), torch.from_numpy(corners)
            self.weights[~domain.visible(*ways).numpy()] = 0
            with np.errstate(invalid="ignore"):
                self.weights /= self.weights.sum(axis=1, keepdims=True)
        self.weights[~domain.contains(at).numpy()] = np.nan


def _with_images(domain: Domain, pos: Array) -> tuple[Array, NDArray[np.int64]]:
    """Points and their periodic images near the box, with the index of the original."""
    corners, origin = pos, np.arange(len(pos))
    if domain.curved:
        for pole in (domain.lower[1], domain.upper[1]):
            # Across a pole, the map goes on half a turn away.
            near = np.abs(pos[:, 1] - pole) < BEYOND
            across = domain.lengths[0] / 2
            beyond = pos[near] * [1, -1] + [across, 2 * pole]
            beyond[:, 0] -= 2 * across * (beyond[:, 0] >= domain.upper[0])
            corners = np.concatenate([corners, beyond])
            origin = np.concatenate([origin, np.flatnonzero(near)])
    for axis in range(2):
        if domain.periodic[axis]:
            length = domain.lengths[axis]
            margin = length * min(1.0, max(0.15, 4 / np.sqrt(len(pos))))
            near_low = corners[:, axis] < domain.lower[axis] + margin
            near_high = corners[:, axis] > domain.upper[axis] - margin
            step = np.eye(2)[axis] * length
            corners = np.concatenate(
                [corners, corners[near_low] + step, corners[near_high] - step]
            )
            origin = np.concatenate([origin, origin[near_low], origin[near_high]])
    return corners, origin


def _bridging(triangles: Delaunay) -> NDArray[np.bool_]:
    """Whether the longest edge of a triangle is far longer than is usual."""
    ends = triangles.points[triangles.simplices]
    edges = np.linalg.norm(ends - np.roll(ends, 1, axis=1), axis=2).max(axis=1)
    return np.asarray(edges > LONG_EDGE * np.median(edges))


BEYOND = 40  # degrees beyond a pole in which points are repeated
DOTTED_UP_TO = 4096  # points; beyond, dots would hide the field


def field_maps(
    domain: Domain,
    pos: Array,
    columns: Sequence[Column],
    row_labels: Sequence[str],
) -> Figure:
    """Maps of fields at points of the plane, rows by columns.

    Between the points the field is interpolated, see :class:`Raster`. Of points in
    space, those nearest the middle plane of the last axis are shown.

    Args:
        domain: Box that holds the points, two or three axes.
        pos: Points ``[n, d]``.
        columns: What to show; their ``values`` have ``len(row_labels)`` rows.
        row_labels: Text at the left of each row.
    """
    keep = shown_points(domain, pos)
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
    keep = shown_points(domain, pos)
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
    if domain.region is not None and domain.dim == 2:
        edges = list(domain.region.facets)
        ax.add_collection(LineCollection(edges, lw=0.6, color=COLOURS["muted"]))


def _slope(domain: Domain) -> float:
    return domain.lengths[1] / domain.lengths[0]


def _middle(domain: Domain) -> float:
    """Of the last axis."""
    return (domain.lower[-1] + domain.upper[-1]) / 2


def shown_points(domain: Domain, pos: Array) -> NDArray[np.int64]:
    """Indices of the points to show: all in the plane, a slab in space."""
    if domain.dim == 2:
        return np.arange(len(pos))
    away = np.abs(pos[:, 2] - _middle(domain))
    count = max(256, int(np.sum(away <= 0.05 * domain.lengths[2])))
    return np.argsort(away, kind="stable")[:count]
