"""Weights of local polyharmonic splines on scattered points."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from nfsgeo.geometry.box import length

__all__ = ["polyharmonic_spline", "spline_neighbours", "monomials"]

# Neighbours of a target by dimension, among scattered points and among those of a grid:
# some times the polynomials of degree 2.
SCATTERED, ON_GRID = {1: 8, 2: 24, 3: 40}, {1: 6, 2: 16, 3: 32}
# Powers of the distance and degrees of the polynomials, from the most exact spline to
# one that any neighbours carry.
SPLINES = ((5, 2), (3, 1), (1, 0))
# Where the weights of a target add up to more than this in modulus, its neighbours lie
# too unevenly, and noise would grow by as much.
LARGEST_GAIN = 12.0
# Of the functions at the distance of neighbours: how far a spline may miss values that
# differ between points much closer than that, rather than swing.
RIDGE = 0.15
TARGETS = 1 << 15


def spline_neighbours(dim: int, *, on_grid: bool = False) -> int:
    """How many of the nearest points a spline in ``dim`` dimensions goes through.

    Args:
        dim: Of the points.
        on_grid: Whether these are a grid's, of which fewer will do.
    """
    return (ON_GRID if on_grid else SCATTERED)[dim]


def polyharmonic_spline(displacement: Tensor) -> Tensor:
    r"""Weights of the polyharmonic spline through the neighbours of every target.

    .. math:: \begin{pmatrix} \Phi & P \\ P^T & 0 \end{pmatrix}
        \begin{pmatrix} \omega \\ \lambda \end{pmatrix} =
        \begin{pmatrix} \phi(0) \\ p(0) \end{pmatrix}, \qquad
        \Phi_{ij} = \epsilon \, \delta_{ij} - |x_i - x_j|^5

    Radial basis functions with polynomials of degree 2, as in RBF-FD (Flyer, Fornberg,
    Bayona and Barnett, 2016). Quadratic fields are followed exactly, and smooth ones
    far better than by moving least squares. A target that is a neighbour itself has
    that neighbour's value; elsewhere the small :math:`\epsilon` spreads noise less than
    a spline through every value would. The equations know no length, so that neighbours
    may be as dense as they like. Where they lie too unevenly, a spline of lower degree
    takes over, exact for linear fields, and at last one that is exact for constants.

    Args:
        displacement: from the target to each of its ``k`` neighbours, ``[m, k, d]``.

    Returns:
        ``[m, k]``, float64; the weights of every target add up to 1.
    """
    # The systems of equations of some targets at a time.
    parts = displacement.split(TARGETS)
    return torch.cat([_weights(part.to(torch.float64)) for part in parts])


def _weights(offset: Tensor) -> Tensor:
    num, differentiated = len(offset), offset.requires_grad
    reach = length(offset).amax(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
    offset = offset / reach[:, None, None]
    weights = offset.new_zeros(offset.shape[:2])
    left = torch.arange(num, device=offset.device)
    for power, degree in SPLINES:
        with torch.no_grad():
            found = _solved(offset[left], power, degree)
        gain = found.abs().sum(1)
        # The solution of a singular system is not finite.
        good = (gain <= LARGEST_GAIN) & ((found.sum(1) - 1).abs() < 1e-6)
        if degree == 0:
            good |= True
        chosen = left[good]
        # A singular system must not pass a gradient on, not even a zero.
        kept = (
            found[good]
            if not differentiated
            else _solved(offset[chosen], power, degree)
        )
        weights = weights.index_put((chosen,), kept)
        left = left[~good]
        if not left.numel():
            break
    # A target at a neighbour has its value, and the derivatives of targets nearby.
    here = (offset.square().sum(2) == 0).to(weights.dtype)
    alone = here.any(1, keepdim=True)
    if differentiated:
        weights = weights / weights.sum(1, keepdim=True)
        return weights + torch.where(alone, here - weights.detach(), 0)
    weights = torch.where(alone, here, weights)
    return weights / weights.sum(1, keepdim=True)


def _solved(offset: Tensor, power: int, degree: int) -> Tensor:
    """Weights ``[m, k]`` of one kind of spline."""
    num, size, dim = offset.shape
    basis, _ = monomials(offset, degree)
    count = basis.size(2)
    if size < count:
        return offset.new_full((num, size), torch.nan)
    # With this sign the functions are positive, whatever the polynomials leave.
    sign = -1 if (power // 2) % 2 == 0 else 1
    system = offset.new_zeros(num, size + count, size + count)
    apart = length(offset[:, :, None] - offset[:, None])
    system[:, :size, :size] = sign * apart**power
    ball = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1)
    spacing = (ball / size) ** (1 / dim)
    system[:, :size, :size] += RIDGE * spacing**power * torch.eye(size).to(system)
    system[:, :size, size:] = basis
    system[:, size:, :size] = basis.transpose(1, 2)
    right = offset.new_zeros(num, size + count, 1)
    right[:, :size, 0] = sign * length(offset) ** power
    right[:, size, 0] = 1
    return torch.linalg.solve_ex(system, right).result[:, :size, 0]


def monomials(offset: Tensor, degree: int) -> tuple[Tensor, list[int]]:
    """Monomials of the last axis up to a degree ``[..., K]``, and their degrees."""
    columns, powers = [torch.ones_like(offset[..., 0])], [0]
    for power in range(1, degree + 1):
        for axes in itertools.combinations_with_replacement(
            range(offset.size(-1)), power
        ):
            columns.append(offset[..., list(axes)].prod(-1))
            powers.append(power)
    return torch.stack(columns, dim=-1), powers
