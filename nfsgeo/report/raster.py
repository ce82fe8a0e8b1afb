"""Piecewise linear interpolation from scattered points to the pixels of a map."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import torch
from matplotlib.tri import Triangulation
from numpy.typing import NDArray
from scipy.spatial import Delaunay, KDTree, QhullError

from nfsgeo.data.conventions import Doubles, Indices
from nfsgeo.geometry import Domain

__all__ = ["Raster"]

PIXELS = 320  # along the longer axis
# A triangle bridges a hole if at each corner an edge is that many times as long as the
# spacing of the points there, which is that of so many neighbours or, on anisotropic
# meshes, the length of edges in the opposite direction, by sectors of the circle.
LONG_EDGE, NEIGHBOURS, SECTORS = 3.0, 5, 24


class Raster:
    """Piecewise linear interpolation from points to the pixels of a box.

    The triangles are those of the mesh if it is given, else Delaunay's, which wrap
    around on periodic axes. Pixels outside of them, and in those of Delaunay that
    bridge a hole in the mesh, are NaN. Where points span no triangle at all, each pixel
    takes the value of the nearest point. Pixels outside of the domain are NaN, and
    others take nothing from behind a wall. Points are ``pos [n, 2]``; ``triangles`` of
    the mesh are their numbers ``[m, 3]``, and not used where they overlap. If the
    points are only some of those of the mesh, ``mesh_pos [k, 2]``, the triangles are
    Delaunay's and pixels outside of the mesh are NaN.
    """

    def __init__(
        self,
        domain: Domain,
        pos: Doubles,
        triangles: Indices | None = None,
        mesh_pos: Doubles | None = None,
    ) -> None:
        low, lengths = np.array(domain.lower), np.array(domain.lengths)
        sizes = np.maximum(1, np.rint(PIXELS * lengths / lengths.max())).astype(int)
        self.shape = int(sizes[1]), int(sizes[0])
        rows, columns = (np.indices(self.shape) + 0.5).reshape(2, -1)
        pixels = low + np.stack([columns, rows], axis=1) * lengths / sizes
        points, origin = pos, np.arange(len(pos))
        corners = cells = None
        if triangles is not None:
            cells = _in_mesh(pos if mesh_pos is None else mesh_pos, triangles, pixels)
        if mesh_pos is None:
            corners = cells
        if corners is None:
            points, origin = _with_images(domain, pos)
            # The mesh tells its holes. On a map near the poles, edges look long.
            holes = cells is None and not domain.curved
            corners = _in_delaunay(points, pixels, holes)
        if corners is None:
            corners = KDTree(points).query(pixels)[1][:, None]
            self.weights = np.ones(corners.shape)
        else:
            self.weights = _barycentric(points[corners], pixels)
            self.weights[corners[:, 0] < 0] = np.nan
        self.points = origin[corners]
        at, ends = torch.from_numpy(pixels), torch.from_numpy(points[corners])
        self.weights[~domain.visible(at[:, None].expand_as(ends), ends)] = 0
        with np.errstate(invalid="ignore"):
            self.weights /= self.weights.sum(axis=1, keepdims=True)
        self.weights[~domain.contains(at).numpy()] = np.nan
        if cells is not None:
            self.weights[cells[:, 0] < 0] = np.nan

    def image(self, values: Doubles) -> Doubles:
        """Image ``[rows, columns]``, lowest row first, of values ``[n]``."""
        # Points of a grid in an obstacle may have no value.
        parts = np.where(self.weights == 0, 0, values[self.points] * self.weights)
        return np.sum(parts, axis=1).reshape(self.shape)

    def nearest(self, values: Doubles) -> Doubles:
        """Return the image of categories; a pixel has that of its nearest corner."""
        known = np.isfinite(self.weights.sum(axis=1))
        corner = np.where(known[:, None], self.weights, 0).argmax(axis=1)
        image = values[self.points[np.arange(len(corner)), corner]]
        return np.where(known, image, np.nan).reshape(self.shape)


def _in_mesh(pos: Doubles, triangles: Indices, pixels: Doubles) -> Indices | None:
    """Corners ``[p, 3]`` of the triangle of each pixel, -1 for none."""
    try:
        finder = Triangulation(pos[:, 0], pos[:, 1], triangles).get_trifinder()
    except (RuntimeError, ValueError):  # triangles overlap
        return None
    number = np.asarray(finder(*pixels.T))
    return np.where(number[:, None] < 0, -1, triangles[number])


def _in_delaunay(points: Doubles, pixels: Doubles, holes: bool) -> Indices | None:
    """Corners ``[p, 3]`` of Delaunay's triangles; None where points span none.

    Pixels of triangles that bridge a hole have none (-1) if there may be ``holes``.
    """
    try:
        mesh = Delaunay(points)
    except (QhullError, ValueError):
        return None
    number = mesh.find_simplex(pixels)
    none = number < 0
    if holes:
        none |= _bridges(points, mesh.simplices)[number]
    return np.where(none[:, None], -1, mesh.simplices[number])


def _bridges(points: Doubles, triangles: Indices) -> NDArray[np.bool_]:
    """Mask of Delaunay's triangles ``[m, 3]`` that bridge a hole between the points.

    Points at the rim of a hole have long edges towards it, but neither neighbours as
    far away nor edges as long in the opposite direction, as those of stretched cells
    have. What is opposite is taken from the nearest neighbours too, as not each point
    of a column of such cells has an edge to both sides.
    """
    used, corners = np.unique(triangles, return_inverse=True)
    points, corners = points[used], corners.reshape(triangles.shape)
    ends = points[corners]
    # The edges from each corner to the next and to the one before.
    edges = np.stack([np.roll(ends, -1, axis=1), np.roll(ends, 1, axis=1)]) - ends
    length = np.linalg.norm(edges, axis=-1)
    turn = np.arctan2(edges[..., 1], edges[..., 0]) / (2 * math.pi)
    sector = np.floor(SECTORS * turn).astype(int) % SECTORS
    longest = np.zeros((len(points), SECTORS))
    np.maximum.at(longest, (np.broadcast_to(corners, sector.shape), sector), length)
    opposite = [np.roll(longest, SECTORS // 2 + k, axis=1) for k in (-1, 0, 1)]
    behind = np.maximum.reduce(opposite)
    nearest = min(NEIGHBOURS + 1, len(points))  # the point itself among them
    distance, near = KDTree(points).query(points, nearest)
    spacing = np.maximum(behind, distance[:, -1:])
    for others in near.T[1:]:
        np.maximum(spacing, behind[others], out=spacing)
    ratio = (length / spacing[corners, sector]).max(axis=0)
    return np.asarray((ratio > LONG_EDGE).all(axis=1))


def _with_images(domain: Domain, pos: Doubles) -> tuple[Doubles, Indices]:
    """Points and their periodic images near the box, with the index of the original."""
    low, lengths = np.array(domain.lower), np.array(domain.lengths)
    copies = [pos]
    if domain.curved:  # across a pole, the map goes on half a turn away
        half_circle, poles = lengths[0] / 2, (low[1], low[1] + lengths[1])
        copies += [pos * [1, -1] + [half_circle, 2 * pole] for pole in poles]
    steps = product(*((-1, 0, 1) if periodic else (0,) for periodic in domain.periodic))
    moved = [copy + lengths * step for step in steps for copy in copies]
    points, origin = np.concatenate(moved), np.tile(np.arange(len(pos)), len(moved))
    margin = lengths * np.clip(4 / np.sqrt(len(pos)), 0.15, 1)
    near = (np.abs(points - low - lengths / 2) <= lengths / 2 + margin).all(axis=1)
    return points[near], origin[near]


def _barycentric(corners: Doubles, pixels: Doubles) -> Doubles:
    """Weights ``[p, 3]`` of the corners of triangles ``[p, 3, 2]`` at the pixels."""
    to = corners - pixels[:, None]
    # Twice the signed area of the triangle of the pixel and the other two corners.
    one, other = np.roll(to, -1, 1), np.roll(to, -2, 1)
    areas = one[..., 0] * other[..., 1] - other[..., 0] * one[..., 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return areas / areas.sum(axis=1, keepdims=True)
