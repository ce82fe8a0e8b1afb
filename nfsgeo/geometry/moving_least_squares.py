"""Weights of moving least squares, which interpolate polynomials exactly."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from nfsgeo.geometry.box import length
from nfsgeo.geometry.splines import monomials

__all__ = ["moving_least_squares"]

# Where the weights of a target add up to more than this in modulus, its neighbours lie
# too unevenly to follow the polynomials, and noise would grow by as much.
LARGEST_GAIN = 3.0
# Keeps systems with too few neighbours solvable, and changes no other.
SMALLEST_RIDGE = 1e-10
# Leaves nothing of a coefficient.
GIVEN_UP = 1e8


def moving_least_squares(
    displacement: Tensor, target: Tensor, num_target: int, radius: float, degree: int
) -> Tensor:
    r"""Weights of a moving-least-squares interpolation along edges.

    A polynomial is fitted to the neighbours of every target, near ones counting
    more, and read off at the target:

    .. math:: \omega_{ij} = \phi_{ij} \, p_{ij}^T
        \left(\sum_k \phi_{kj} \, p_{kj} p_{kj}^T + \Lambda_j\right)^{-1} p(0)

    with monomials :math:`p` of the displacement and :math:`\phi` a Gaussian of the
    distance. Polynomials up to ``degree`` are interpolated exactly where enough
    neighbours surround the target. Elsewhere the ridge :math:`\Lambda` grows, first on
    the highest degree and then on the next, until the weights are no larger than a
    stable interpolation allows; constants are exact everywhere,
    and a target that is a neighbour itself has that neighbour's value.

    Args:
        displacement: from source to target of every edge, ``[E, d]``.
        target: of every edge, ``[E]``.
        num_target: number of targets.
        radius: length that scales displacements, the radius of the graph.
        degree: of the polynomials; 0 (a weighted mean), 1 or 2.

    Returns:
        ``[E]``, float64; the weights of every target add up to 1.

    Raises:
        ValueError: for another degree.
    """
    if degree not in (0, 1, 2):
        raise ValueError(f"degree {degree}: expected 0, 1 or 2; choose one of them")
    offset = displacement.to(torch.float64) / radius
    basis, powers = monomials(offset, degree)
    distance = offset.square().sum(1)
    # A neighbour on the boundary of the ball still has a small weight.
    phi = torch.exp(-4 * distance) * (1 - length(offset)).clamp(min=0.02)
    size = basis.size(1)
    gram = basis.new_zeros(num_target, size, size)
    gram.index_add_(0, target, (phi[:, None] * basis)[:, :, None] * basis[:, None])
    scale = gram[:, :1, :1]
    unit = gram.new_zeros(num_target, size, 1)
    unit[:, 0] = 1
    weights = phi.new_zeros(phi.shape)
    neighbours = torch.bincount(target, minlength=num_target)
    unsettled = torch.ones(num_target, dtype=torch.bool, device=phi.device)
    for ridge in _ridges(powers):
        damped = gram + scale * torch.diag(ridge.to(gram))
        solved = torch.linalg.solve(damped, unit)
        found = phi * (basis * solved.squeeze(2)[target]).sum(1)
        weights = torch.where(unsettled[target], found, weights)
        gain = phi.new_zeros(num_target).index_add_(0, target, found.abs())
        # With fewer neighbours than coefficients the fit is not determined.
        enough = neighbours >= (ridge < GIVEN_UP).sum()
        unsettled &= ~((gain <= LARGEST_GAIN) & enough)
        if not unsettled.any():
            break
    # A target at a neighbour has its value; its derivatives are those of the fit.
    here = (distance == 0).to(phi.dtype)
    alone = (here.new_zeros(num_target).index_add_(0, target, here) > 0)[target]
    if weights.requires_grad:
        weights = weights + torch.where(alone, here - weights.detach(), 0)
    else:
        weights = torch.where(alone, here, weights)
    total = phi.new_zeros(num_target).index_add(0, target, weights)
    return weights / total[target]


def _ridges(powers: list[int]) -> Iterator[Tensor]:
    """Ridges on monomials of given degrees, from next to nothing to all but constants.

    The highest degree is given up first, so that linear fields stay exact where
    quadratic ones can not.
    """
    degree = torch.tensor(powers)
    ridge = torch.where(degree > 0, SMALLEST_RIDGE, 0.0)
    yield ridge
    for given_up in range(max(powers), 0, -1):
        for strength in (1e-6, 1e-4, 1e-2, 1.0, GIVEN_UP):
            ridge = torch.where(degree == given_up, strength, ridge)
            yield ridge
