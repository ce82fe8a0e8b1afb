"""Sizes of a grid that suits a number of points."""

from __future__ import annotations

import math

from nfsgeo.geometry import Domain

__all__ = ["grid_shape_for"]


def grid_shape_for(domain: Domain, grid: int | None, num_nodes: int) -> tuple[int, ...]:
    """Nodes along each axis, spaced alike; even numbers, which FFTs like.

    Args:
        domain: the box.
        grid: nodes along its shortest axis; ``None`` for about ``num_nodes`` in all.
        num_nodes: as said.
    """
    shortest = min(domain.lengths)
    if grid is None:
        spacing = (domain.volume / num_nodes) ** (1 / domain.dim)
        grid = max(2, 2 * math.ceil(shortest / spacing / 2))
    return tuple(
        grid if length == shortest else max(2, 2 * round(grid * length / shortest / 2))
        for length in domain.lengths
    )
