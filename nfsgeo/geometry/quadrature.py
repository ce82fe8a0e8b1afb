"""Quadrature weights of scattered points."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.grids import equispaced_grid
from nfsgeo.geometry.search import Search

__all__ = ["quadrature_weights"]

# Grid nodes per point by which volumes are counted: an error of about 1 / sqrt(64).
NODES = 64


def quadrature_weights(pos: Tensor, domain: Domain) -> Tensor:
    """Volumes of the Voronoi cells of points, as fractions of the domain.

    Cells are periodic where the domain is, and end at its walls. Their
    volumes are counted on a grid of about 64 nodes per point; a cell without a node
    counts as one node.

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
    if domain.curved:
        shape = [NODES * len(pos)]
    nodes = equispaced_grid(domain, shape, torch.float64)
    nearest = Search(pos, nodes, domain).nearest(1)[:, 0]
    nearest = nearest[nearest >= 0]
    counts = torch.bincount(nearest, minlength=len(pos)).clamp(min=1).double()
    return counts / counts.sum()
