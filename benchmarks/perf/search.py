"""Search for all neighbours within a radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch

from nfsgeo.geometry import Domain, radius_edges

# A box without periodic axes, of which the others know nothing.
DOMAIN = Domain.unit(2, periodic=False)


def our_search(
    folder: Path, *, points: int, neighbours: float, backend: str
) -> Callable[[], object]:
    """All pairs of random points in a square, sorted, by one of our backends.

    Args:
        points: Number of sources, and of targets.
        neighbours: Of a target, on average.
        backend: As :func:`nfsgeo.geometry.radius_edges` names it.
    """
    source, target, radius = _points(points, neighbours)
    return lambda: radius_edges(source, target, radius, DOMAIN, backend=backend)


def torch_cluster_search(
    folder: Path, *, points: int, neighbours: float
) -> Callable[[], object]:
    """The same by torch-cluster alone, with room for every neighbour."""
    from torch_cluster import radius as search

    source, target, radius = _points(points, neighbours)
    most = int(4 * neighbours)
    return lambda: search(source, target, radius, max_num_neighbors=most)


def dense_search(
    folder: Path, *, points: int, neighbours: float
) -> Callable[[], object]:
    """The same by the distances of all pairs, as neuraloperator searches in 2-D."""
    source, target, radius = _points(points, neighbours)
    return lambda: (torch.cdist(target, source) <= radius).nonzero()


def _points(points: int, neighbours: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    random = torch.Generator().manual_seed(0)
    source, target = torch.rand(2, points, 2, generator=random)
    return source, target, math.sqrt(neighbours / (math.pi * points))
