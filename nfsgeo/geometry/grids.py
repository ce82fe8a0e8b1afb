"""Equispaced grids on a domain, and the volumes of points, counted on them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.sphere import lattice, unit_vectors

__all__ = ["equispaced_grid", "quadrature_weights"]

# Nodes per point by which volumes are counted: an error of about 1 / sqrt(64).
NODES = 64


def equispaced_grid(
    domain: Domain,
    shape: Sequence[int],
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Nodes of an equispaced grid, the last axis running fastest.

    A periodic axis of ``m`` nodes has spacing ``length / m`` and leaves out the
    end point, which is its first node again. Other axes hold both end points.

    A sphere has no such grid. Its nodes are those of a Fibonacci lattice, without axes.

    Args:
        domain: The box to cover.
        shape: Number of nodes on each axis; of a sphere, of all nodes.
        dtype: Type of the coordinates, which are computed in float64.
        device: Where the result is put.

    Returns:
        Coordinates ``[prod(shape), d]``.

    Raises:
        ValueError: If ``shape`` has not one positive entry per axis, or a single
            node on an axis that needs two ends.
    """
    if domain.curved and len(shape) == 1:
        nodes = lattice(shape[0])
        nodes = domain.wrap(nodes) if domain.dim == 2 else unit_vectors(nodes)
        return nodes.to(dtype).to(device)
    least = [1 if periodic else 2 for periodic in domain.periodic]
    if len(shape) != domain.dim or any(
        size < few for size, few in zip(shape, least, strict=True)
    ):
        raise ValueError(
            f"grid shape {tuple(shape)}: expected {domain.dim} entries, at least 1 on "
            "a periodic axis and 2 on any other; change the shape"
        )
    box = zip(shape, domain.lower, domain.upper, domain.periodic, strict=True)
    axes = [
        low + torch.arange(size, dtype=torch.float64) * (high - low) / size
        if periodic
        else torch.linspace(low, high, size, dtype=torch.float64)
        for size, low, high, periodic in box
    ]
    nodes = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
    return nodes.reshape(-1, domain.dim).to(dtype).to(device)


def quadrature_weights(pos: Tensor, domain: Domain) -> Tensor:
    """Volumes of the Voronoi cells of points, as fractions of the domain.

    Cells are periodic where the domain is, and end at its walls. Their volumes are
    counted on 64 nodes per point, of a Sobol sequence, or on a sphere of a Fibonacci
    lattice; a cell without a node counts as one node.

    Args:
        pos: Points of one sample ``[n, d]``, one or more, in the domain.
        domain: The box, with its periodic axes.

    Returns:
        ``[n]``, float64; they add up to 1.

    Raises:
        ValueError: If there is no point.
    """
    if not len(pos):
        raise ValueError("no points; expected at least one; leave the sample out")
    num = NODES * len(pos)
    if domain.curved:
        nodes = equispaced_grid(domain, [num], torch.float64)
    else:
        low, lengths = torch.tensor([domain.lower, domain.lengths], dtype=torch.float64)
        nodes = low + lengths * SobolEngine(domain.dim).draw(num, dtype=torch.float64)
    nearest = Search(pos, nodes, domain).nearest(1)[:, 0]
    nearest = nearest[nearest >= 0]
    counts = torch.bincount(nearest, minlength=len(pos)).clamp(min=1).double()
    return counts / counts.sum()
