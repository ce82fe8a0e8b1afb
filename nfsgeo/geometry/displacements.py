"""Lengths of displacements, and polynomials of them."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

__all__ = ["length", "monomials"]


def length(vectors: Tensor) -> Tensor:
    """Euclidean lengths ``[...]`` of ``vectors [..., d]``.

    Unlike ``norm``, also the second derivative at zero is zero, not NaN.
    """
    if not vectors.requires_grad:
        return vectors.norm(dim=-1)
    zero = (vectors == 0).all(-1)
    return vectors.masked_fill(zero[..., None], 1).norm(dim=-1).masked_fill(zero, 0)


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
