"""Delaunay triangulation and farthest-point sampling."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
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
    faces of the convex hull on the unit sphere. It does not depend on the order of the
    points.

    Args:
        pos: Points ``[n, d]``.
        domain: The normalised domain.

    Returns:
        Edges in both directions ``[2, E]``, int64, without those across walls, and the
        largest distance of each point from the centre of an adjacent simplex ``[n]``,
        float64: balls of these radii cover the triangulation. Both are on the CPU.
    """
    place, order = _in_order(pos)
    # The radius of a ball that holds about log n random points.
    hole = radius_for(max(2, len(pos)), domain, 1.0)
    reach = min(8 * hole, max(domain.lengths))
    images, index = Search(place, place, domain).images(reach)
    points, number = images.numpy().round(DIGITS), order[index].numpy()
    corners = _simplices(points, domain.curved)
    # The first images are the points themselves.
    corners = corners[(corners < len(pos)).any(1)]
    away = points[corners] - points[corners].mean(1, keepdims=True)
    original, radii = corners < len(pos), np.zeros(len(pos))
    np.maximum.at(
        radii, number[corners[original]], np.linalg.norm(away, axis=2)[original]
    )
    both = number[corners][:, list(permutations(range(corners.shape[1]), 2))]
    edges = torch.from_numpy(both.reshape(-1, 2)).unique(dim=0).t()
    edges, pos = edges[:, edges[0] != edges[1]], pos.detach().cpu()
    seen = domain.visible(pos[edges[0]], pos[edges[1]])
    return edges[:, seen], torch.from_numpy(radii)


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
