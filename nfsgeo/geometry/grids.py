"""Equispaced grids, and quadrature weights of points."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.sphere import lattice, unit_vectors

__all__ = ["equispaced_grid", "quadrature_weights"]

# Nodes per point for the quadrature weights, whose error is about 1 / sqrt(64).
NODES = 64


def equispaced_grid(
    domain: Domain,
    shape: Sequence[int],
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return the nodes of an equispaced grid, with the last axis fastest.

    A periodic axis of ``m`` nodes has spacing ``length / m`` and leaves out the end
    point, which is the first node. Other axes include both end points. On a sphere the
    nodes form a Fibonacci lattice.

    Args:
        domain: The box to cover.
        shape: Number of nodes on each axis; on a sphere, of all nodes.
        dtype: Type of the coordinates, which are computed in float64.
        device: Device of the result.

    Returns:
        Coordinates ``[prod(shape), d]``.

    Raises:
        ValueError: If ``shape`` does not have one positive entry per axis, or has a
            single node on an axis that is not periodic.
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
    """Return the volumes of the Voronoi cells of points over that of the domain.

    Cells are periodic where the domain is, and end at its walls. Their volumes are
    estimated from 64 quasi-random nodes per point, of a Sobol sequence or, on a sphere,
    of a Fibonacci lattice. A cell without a node counts as one node.

    Args:
        pos: Points of one sample ``[n, d]``, at least one, in the domain.
        domain: The box, with its periodic axes.

    Returns:
        Weights ``[n]``, float64, which add up to 1.

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
    nearest = Search(pos, nodes, domain).nearest(1, whole_places=True)
    exists = nearest >= 0
    parts = (1 / exists.sum(1, keepdim=True).double()).expand_as(nearest)
    counts = torch.bincount(nearest[exists], parts[exists], len(pos)).clamp(min=1)
    return counts / counts.sum()
