"""Polynomials of displacements, and bases of them that are orthonormal."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

__all__ = ["monomials", "orthonormal_polynomials"]

# Squared length of what rounding alone leaves of a polynomial.
ROUNDING = 1e-12


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


def orthonormal_polynomials(
    displacement: Tensor,
    target: Tensor,
    mean_weight: Tensor,
    num_target: int,
    degree: int,
) -> Tensor:
    r"""Polynomials up to a degree, orthonormal in the mean over every neighbourhood.

    .. math:: \sum_{i \in N(x_j)} s_{ij} \, p_k(x_j - x_i) \, p_l(x_j - x_i) =
        \delta_{kl}

    Where neighbours are too few or lie on a line, some of the polynomials are zero.

    Args:
        displacement: from source to target of every edge, ``[E, d]``.
        target: of every edge, ``[E]``.
        mean_weight: of every edge in the mean of its target, ``[E]``.
        num_target: number of targets.
        degree: of the polynomials; 0 or more.

    Returns:
        ``[E, K]``, float64, one column for each of the ``K`` monomials.
    """
    offset = displacement.to(torch.float64)
    mean_weight = mean_weight.to(torch.float64)
    largest = offset.new_zeros(num_target).index_reduce_(
        0, target, offset.norm(dim=1), "amax"
    )
    length = largest.where(largest > 0, 1)[target]
    basis, _ = monomials(offset / length[:, None], degree)
    size = basis.size(1)
    gram = basis.new_zeros(num_target, size, size)
    gram.index_add_(
        0, target, (mean_weight[:, None] * basis)[:, :, None] * basis[:, None]
    )
    squared, axes = torch.linalg.eigh(gram)
    scale = squared.rsqrt().where(squared > ROUNDING, 0)
    return torch.einsum("ek,ekl->el", basis, (axes * scale[:, None])[target])
