"""Piecewise linear interpolation from scattered points to the pixels of a picture."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.tri import Triangulation
from numpy.typing import NDArray
from scipy.spatial import Delaunay, KDTree, QhullError

from nfsgeo.data.fields import Doubles, Indices
from nfsgeo.geometry import Domain

__all__ = ["Raster"]

PIXELS = 320  # along the longer axis
LONG_EDGE = 6.0  # in median edges: such a triangle bridges a hole in the mesh
BEYOND = 40  # degrees beyond a pole in which points are repeated


class Raster:
    """Piecewise linear interpolation from points to the pixels of a box.

    The triangles are those of the mesh if it is given, else Delaunay's, which wrap
    around on periodic axes. Pixels outside of them, and in those of Delaunay that
    bridge a hole in the mesh, are NaN. Where points span no triangle at all, each pixel
    takes the value of the nearest point. Pixels outside of the region of the domain are
    NaN, and others take nothing from behind a wall.

    Args:
        domain: The box, whose first two axes are shown.
        pos: Points ``[n, 2]``.
        level: In space, the coordinate of the pixels along the third axis.
        triangles: Those of the mesh, point numbers ``[m, 3]``; not used where they
            overlap.
    """

    def __init__(
        self,
        domain: Domain,
        pos: Doubles,
        level: float | None = None,
        triangles: Indices | None = None,
    ) -> None:
        self._level = level
        corners, origin = _with_images(domain, pos)
        width, height = domain.lengths[:2]
        longer = max(width, height)
        self.shape = (
            max(1, round(PIXELS * height / longer)),
            max(1, round(PIXELS * width / longer)),
        )
        steps = [(np.arange(k) + 0.5) / k for k in self.shape]
        y, x = np.meshgrid(*steps, indexing="ij")
        pixels = np.stack([x.ravel() * width, y.ravel() * height], axis=1)
        pixels += np.array(domain.lower[:2])
        at = _of_mesh(pos, triangles, pixels) or _of_delaunay(corners, pixels)
        if at is None:
            self.points = origin[KDTree(corners).query(pixels)[1]][:, None]
            self.weights = np.ones((len(pixels), 1))
            return
        self.weights, found = at
        self.points = origin[found]
        if domain.region is not None:
            self._stop_at_walls(domain, pixels, corners[found])

    def image(self, values: Doubles) -> Doubles:
        """Image ``[rows, columns]``, lowest row first, of values ``[n]``."""
        # Points of a grid in an obstacle may have no value.
        parts = np.where(self.weights == 0, 0, values[self.points] * self.weights)
        return np.sum(parts, axis=1).reshape(self.shape)

    def _stop_at_walls(self, domain: Domain, pixels: Doubles, corners: Doubles) -> None:
        if self._level is not None:
            level = np.full((len(pixels), 1), self._level)
            pixels = np.concatenate([pixels, level], axis=1)
        at = torch.from_numpy(pixels)
        if domain.dim == 2:
            ways = at[:, None].expand(-1, 3, -1), torch.from_numpy(corners)
            self.weights[~domain.visible(*ways).numpy()] = 0
            with np.errstate(invalid="ignore"):
                self.weights /= self.weights.sum(axis=1, keepdims=True)
        self.weights[~domain.contains(at).numpy()] = np.nan


def _with_images(domain: Domain, pos: Doubles) -> tuple[Doubles, NDArray[np.int64]]:
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


def _of_delaunay(corners: Doubles, pixels: Doubles) -> tuple[Doubles, Indices] | None:
    """Weights ``[p, 3]`` of the corners of the triangle of each pixel, and these.

    None where there are fewer than three points, or all in a line.
    """
    try:
        triangles = Delaunay(corners)
    except (QhullError, ValueError):
        return None
    found = triangles.find_simplex(pixels)
    affine = triangles.transform[found]
    first = np.einsum("pij,pj->pi", affine[:, :2], pixels - affine[:, 2])
    weights = np.column_stack([first, 1 - first.sum(axis=1)])
    weights[(found < 0) | _bridging(triangles)[found]] = np.nan
    return weights, triangles.simplices[found]


def _of_mesh(
    pos: Doubles, triangles: Indices | None, pixels: Doubles
) -> tuple[Doubles, Indices] | None:
    """The same of given triangles; None without any, or where they overlap."""
    if triangles is None:
        return None
    x, y = pos.T
    try:
        finder = Triangulation(x, y, triangles).get_trifinder()
    except (RuntimeError, ValueError):
        return None
    found = np.asarray(finder(*pixels.T))
    corners, inside = triangles[found], found >= 0
    a, b, last = pos[corners[inside].T]
    sides = np.stack([a - last, b - last], axis=-1)
    weights = np.full((len(pixels), 3), np.nan)
    offsets = (pixels[inside] - last)[..., None]
    weights[inside, :2] = np.linalg.solve(sides, offsets)[..., 0]
    weights[inside, 2] = 1 - weights[inside, :2].sum(axis=1)
    return weights, corners


def _bridging(triangles: Delaunay) -> NDArray[np.bool_]:
    """Whether the longest edge of a triangle is far longer than is usual."""
    ends = triangles.points[triangles.simplices]
    edges = np.linalg.norm(ends - np.roll(ends, 1, axis=1), axis=2).max(axis=1)
    return np.asarray(edges > LONG_EDGE * np.median(edges))
