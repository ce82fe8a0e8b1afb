"""Values at scattered points of the plane, as an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, KDTree, QhullError

from nfsgeo.geometry import Domain

__all__ = ["Raster"]

Array = NDArray[np.float64]
PIXELS = 320  # along the first axis
LONG_EDGE = 6.0  # in median edges: such a triangle bridges a hole in the mesh


class Raster:
    """Piecewise linear interpolation from points to the pixels of a box.

    The triangles are Delaunay's and wrap around on periodic axes. Pixels outside of
    them, and in those that bridge a hole in the mesh, are NaN. Where points span no
    triangle at all, each pixel takes the value of the nearest point.

    Args:
        domain: The box; its first two axes are shown.
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

    def image(self, values: Array) -> Array:
        """Image ``[rows, columns]``, lowest row first, of values ``[n]``."""
        return np.sum(values[self.points] * self.weights, axis=1).reshape(self.shape)


def _with_images(domain: Domain, pos: Array) -> tuple[Array, NDArray[np.int64]]:
    """Points with their periodic images near the box, and whose image each is."""
    corners, origin = pos, np.arange(len(pos))
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
