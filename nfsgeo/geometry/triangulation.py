"""Triangulations of points, and few points that stand for many."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from scipy.spatial import ConvexHull, Delaunay
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search, radius_for

__all__ = ["farthest_points", "triangulation"]

# Digits to which positions and distances count as equal: on a grid, many are.
DIGITS = 6
# Points in a smaller box are at one place: Qhull finds no simplex in them.
ONE_PLACE = 1e-4


def triangulation(pos: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """Delaunay's triangulation of points of a normalised domain, across its boundaries.

    On a line its simplices are intervals, on the unit sphere faces of the convex hull.
    Neither here nor below does the order of the points matter.

    Returns:
        Edges ``[2, E]``, int64, each in both directions, none across a wall, and the
        largest distance of each point from the centre of a simplex at it ``[n]``,
        float64: balls of these radii cover the triangulation. Both on the CPU.
    """
    place, order = _in_order(pos)
    # Of points that are spread at random.
    hole = radius_for(max(2, len(pos)), domain, 1.0)
    reach = min(8 * hole, max(domain.lengths))
    images, index = Search(place, place, domain).images(reach)
    points, number = images.numpy().round(DIGITS), order[index].numpy()
    corners = _simplices(points, domain.curved)
    # The points themselves are the first of the images.
    corners = corners[(corners < len(pos)).any(1)]
    away = points[corners] - points[corners].mean(1, keepdims=True)
    own, radii = corners < len(pos), np.zeros(len(pos))
    np.maximum.at(radii, number[corners[own]], np.linalg.norm(away, axis=2)[own])
    both = number[corners][:, list(permutations(range(corners.shape[1]), 2))]
    edges = torch.from_numpy(both.reshape(-1, 2)).unique(dim=0).t()
    edges, pos = edges[:, edges[0] != edges[1]], pos.detach().cpu()
    seen = domain.visible(pos[edges[0]], pos[edges[1]])
    return edges[:, seen], torch.from_numpy(radii)


def farthest_points(pos: Tensor, domain: Domain, num: int) -> Tensor:
    """Numbers of ``num`` points, each the farthest from those before it, on the CPU.

    The first has the farthest neighbours.
    """
    place, order = _in_order(pos)
    near = place[Search(place, place, domain).nearest(5)]
    alone = domain.distance(place[:, None].expand_as(near), near).sum(1)
    best, left, found = alone, torch.full_like(alone, torch.inf), []
    for _ in range(num):
        found.append(int(best.numpy().round(DIGITS).argmax()))
        away = domain.distance(place, place[found[-1]].expand_as(place))
        best = left = torch.minimum(left, away)
    return order[found]


def _in_order(pos: Tensor) -> tuple[Tensor, Tensor]:
    """The points sorted by their coordinates, in float64, and their numbers."""
    place = pos.detach().cpu().double()
    columns = place.numpy().T
    order = torch.from_numpy(np.lexsort([*columns, *columns.round(DIGITS)]))
    return place[order], order


def _simplices(points: np.ndarray, curved: bool) -> np.ndarray:
    """Numbers of the corners of each simplex; of too few points all are in one."""
    num, dim = points.shape
    if num <= dim + 1:
        return np.arange(num)[None]
    if dim > 1 and np.ptp(points, axis=0).max() > ONE_PLACE:
        made = ConvexHull if curved else Delaunay
        # Joggled: points may form a grid, or lie on a line.
        return made(points, qhull_options="QJ").simplices
    order = points[:, 0].argsort(kind="stable")
    return np.stack([order[:-1], order[1:]], axis=1)
