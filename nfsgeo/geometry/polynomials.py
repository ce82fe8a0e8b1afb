"""Polynomials that are orthonormal over the neighbours of a target."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.geometry.monomials import monomials

__all__ = ["orthonormal_polynomials"]

# Squared length of what rounding alone leaves of a polynomial.
ROUNDING = 1e-12


def orthonormal_polynomials(
    displacement: Tensor, target: Tensor, share: Tensor, num_target: int, degree: int
) -> Tensor:
    r"""Polynomials up to a degree, orthonormal in the mean over every neighbourhood.

    .. math:: \sum_{i \in N(x_j)} s_{ij} \, p_k(x_j - x_i) \, p_l(x_j - x_i) =
        \delta_{kl}

    Where neighbours are too few or lie on a line, some of the polynomials are zero.

    Args:
        displacement: from source to target of every edge, ``[E, d]``.
        target: of every edge, ``[E]``.
        share: of every edge in the mean of its target, ``[E]``.
        num_target: number of targets.
        degree: of the polynomials; 0 or more.

    Returns:
        ``[E, K]``, float64, one column for each of the ``K`` monomials.
    """
    offset, share = displacement.to(torch.float64), share.to(torch.float64)
    largest = offset.new_zeros(num_target).index_reduce_(
        0, target, offset.norm(dim=1), "amax"
    )
    length = largest.where(largest > 0, 1)[target]
    basis, _ = monomials(offset / length[:, None], degree)
    size = basis.size(1)
    gram = basis.new_zeros(num_target, size, size)
    gram.index_add_(0, target, (share[:, None] * basis)[:, :, None] * basis[:, None])
    squared, axes = torch.linalg.eigh(gram)
    scale = squared.rsqrt().where(squared > ROUNDING, 0)
    return torch.einsum("ek,ekl->el", basis, (axes * scale[:, None])[target])
