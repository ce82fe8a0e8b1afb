"""How much of the domain every point stands for."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.grids import equispaced_grid
from nfsgeo.geometry.nearest import nearest_neighbours
from nfsgeo.geometry.query import RadiusQuery

__all__ = ["cell_volumes"]

# Nodes to a point, on which cells are counted: an error of about 1 / sqrt(64).
NODES = 64


def cell_volumes(pos: Tensor, domain: Domain) -> Tensor:
    """Share of the domain that is nearer to a point than to any other.

    The volumes of the Voronoi cells, periodic where the domain is, counted on a grid of
    about 64 nodes to a point. Cells without a node count for one.

    Args:
        pos: Points of one sample ``[n, d]``, in the domain.
        domain: The box, with its periodic axes.

    Returns:
        ``[n]``, float64; they add up to 1.

    Raises:
        ValueError: If there is no point.
    """
    if not len(pos):
        raise ValueError("no points; expected at least one; leave the sample out")
    lengths = torch.tensor(domain.lengths, dtype=torch.float64)
    spacing = (lengths.prod() / (NODES * len(pos))) ** (1 / domain.dim)
    shape = [max(2, round(float(n))) for n in lengths / spacing]
    nodes = equispaced_grid(domain, shape, torch.float64)
    query = RadiusQuery.create(
        pos.detach().cpu(), nodes, 1.0, domain, None, None, torch.device("cpu")
    )
    nearest = nearest_neighbours(query, 1)[:, 0]
    counts = torch.bincount(nearest, minlength=len(pos)).clamp(min=1).double()
    return counts / counts.sum()
