"""Delaunay triangulation and farthest-point sampling."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.spatial import ConvexHull, Delaunay
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search, radius_for

__all__ = ["farthest_points", "triangulation"]

# Digits to which positions and distances are equal, which breaks ties on grids.
DIGITS = 6
# Size of a box whose points coincide, because Qhull fails on them.
ONE_PLACE = 1e-4


def triangulation(pos: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Return the Delaunay triangulation of points of a normalised domain.

    It continues across periodic boundaries. Its simplices are intervals on a line, and
    faces of the convex hull on the unit sphere. Points at one place have the same
    neighbours, and each other. It does not depend on the order of the points.

    Args:
        pos: Points ``[n, d]``.
        domain: The normalised domain.

    Returns:
        Edges in both directions ``[2, E]``, int64, without those across walls, and the
        largest distance of each point from the centre of an adjacent simplex ``[n]``,
        float64: balls of these radii cover the triangulation. Both are on the CPU.
    """
    ordered, order = _in_order(pos)
    first = torch.cat([ordered.new_ones(1), ordered.diff(dim=0).abs().sum(1)]) > 0
    place = ordered[first]
    # The radius of a ball that holds about log n random points.
    hole = radius_for(max(2, len(place)), domain, 1.0)
    reach = min(8 * hole, max(domain.lengths))
    images, index = Search(place, place, domain).images(reach)
    points, number = images.numpy().round(DIGITS), index.numpy()
    corners = _simplices(points, domain.curved)
    # The first images are the places themselves.
    corners = corners[(corners < len(place)).any(1)]
    away = points[corners] - points[corners].mean(1, keepdims=True)
    original, radii = corners < len(place), np.zeros(len(place))
    np.maximum.at(
        radii, number[corners[original]], np.linalg.norm(away, axis=2)[original]
    )
    both = number[corners][:, list(permutations(range(corners.shape[1]), 2))]
    # The place of each point.
    place_of = torch.empty_like(order).index_put((order,), first.cumsum(0) - 1).numpy()
    edges, pos = _among_points(both.reshape(-1, 2), place_of), pos.detach().cpu()
    seen = domain.visible(pos[edges[0]], pos[edges[1]])
    return edges[:, seen], torch.from_numpy(radii[place_of])


def farthest_points(pos: Tensor, domain: Domain, num: int) -> Tensor:
    """Select ``num`` points, each the farthest from those before it.

    The first point is the one with the farthest neighbours. The order of the points
    does not matter.

    Args:
        pos: Points ``[n, d]``.
        domain: The normalised domain.
        num: Number of points to select.

    Returns:
        Numbers of the points ``[num]``, on the CPU.
    """
    place, order = _in_order(pos)
    near = place[Search(place, place, domain).nearest(5)]
    alone = domain.distance(place[:, None].expand_as(near), near).sum(1)
    score, distance, chosen = alone, torch.full_like(alone, torch.inf), []
    for _ in range(num):
        chosen.append(int(score.numpy().round(DIGITS).argmax()))
        away = domain.distance(place, place[chosen[-1]].expand_as(place))
        score = distance = torch.minimum(distance, away)
    return order[chosen]


def _among_points(edges: np.ndarray, place: np.ndarray) -> Tensor:
    """Return the edges ``[2, E]`` between all points of two places that are joined.

    Points of one place are joined, too.

    Args:
        edges: Numbers of places ``[e, 2]``.
        place: Place of each point ``[n]``.
    """
    num = len(place)
    at = csr_matrix((np.ones(num), (np.arange(num), place)))
    joined = csr_matrix((np.ones(len(edges)), edges.T), (at.shape[1], at.shape[1]))
    between = (at @ joined @ at.T + at @ at.T).tocoo()
    pairs = torch.from_numpy(np.stack([between.row, between.col]).astype(np.int64))
    return pairs[:, pairs[0] != pairs[1]].unique(dim=1)


def _in_order(pos: Tensor) -> tuple[Tensor, Tensor]:
    """Return the points sorted by coordinates, in float64, and their numbers."""
    place = pos.detach().cpu().double()
    columns = place.numpy().T
    order = torch.from_numpy(np.lexsort([*columns, *columns.round(DIGITS)]))
    return place[order], order


def _simplices(points: np.ndarray, curved: bool) -> np.ndarray:
    """Return the corners of each simplex; too few points form one simplex."""
    num, dim = points.shape
    if num <= dim + 1:
        return np.arange(num)[None]
    if dim > 1 and np.ptp(points, axis=0).max() > ONE_PLACE:
        made = ConvexHull if curved else Delaunay
        # Joggled input, because points may form a grid or lie on a line.
        return made(points, qhull_options="QJ").simplices
    order = points[:, 0].argsort(kind="stable")
    return np.stack([order[:-1], order[1:]], axis=1)
