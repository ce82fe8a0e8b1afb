"""Weights of local splines and of moving least squares on scattered points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from nfsgeo.errors import check_shape
from nfsgeo.geometry.box import length
from nfsgeo.geometry.domain import Domain

__all__ = ["moving_least_squares", "polyharmonic_spline", "spline_neighbours"]

# Neighbours of a target by dimension, among scattered points and among grid nodes: a
# few times the number of quadratic polynomials.
SCATTERED, ON_GRID = {1: 8, 2: 24, 3: 40}, {1: 6, 2: 16, 3: 32}
# Powers of the distance and degrees of the polynomials, from the most accurate spline
# to one that is solvable for any neighbours.
SPLINES = ((5, 2), (3, 1), (1, 0))
# Largest sum of absolute weights of a target, the factor by which noise may grow, for
# splines and for fitted polynomials. It is exceeded where neighbours lie too unevenly.
LARGEST_GAIN, LARGEST_GAIN_OF_FITS = 12.0, 3.0
# Ridge over the basis function at the distance of neighbours. It lets a spline miss
# values that differ between much closer points, so that it does not overshoot.
RIDGE = 0.15
TARGETS = 1 << 15
# Ridge that makes fits to too few neighbours solvable, and changes no others.
SMALLEST_RIDGE = 1e-10
# Ridge that sets a coefficient to zero.
GIVEN_UP = 1e8


def spline_neighbours(domain: Domain, *, on_grid: bool = False) -> int:
    """Return the number of nearest points for a spline in a ``domain``.

    Fewer suffice if they are ``on_grid``.
    """
    return (ON_GRID if on_grid else SCATTERED)[2 if domain.curved else domain.dim]


def polyharmonic_spline(displacement: Tensor) -> Tensor:
    r"""Return the weights of local polyharmonic splines at their targets.

    .. math:: \begin{pmatrix} \Phi & P \\ P^T & 0 \end{pmatrix}
        \begin{pmatrix} \omega \\ \lambda \end{pmatrix} =
        \begin{pmatrix} \phi(0) \\ p(0) \end{pmatrix}, \qquad
        \Phi_{ij} = \epsilon \, \delta_{ij} - |x_i - x_j|^5

    These are radial basis functions with polynomials of degree 2, as in RBF-FD (Flyer,
    Fornberg, Bayona and Barnett, 2016). Quadratic fields are reproduced exactly, and
    smooth ones far better than by moving least squares. At a neighbour the spline has
    that neighbour's value; elsewhere the small :math:`\epsilon` amplifies noise less
    than an interpolating spline would. The equations do not depend on the unit of
    length. Where neighbours lie too unevenly, a spline of lower degree is used, exact
    for linear fields, or finally one that is exact for constants.

    Args:
        displacement: Displacements from each target to its ``k`` neighbours,
            ``[m, k, d]``.

    Returns:
        Weights ``[m, k]``, float64, which add up to 1 at every target.
    """
    if displacement.dim() != 3:
        check_shape("displacement", displacement, "m", "k", "d")
    # Blocks of targets bound the memory of their systems of equations.
    parts = displacement.split(TARGETS)
    return torch.cat([_weights(part.to(torch.float64)) for part in parts])


def _weights(offset: Tensor) -> Tensor:
    num, differentiated = len(offset), offset.requires_grad
    reach = length(offset).amax(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
    offset = offset / reach[:, None, None]
    weights = offset.new_zeros(offset.shape[:2])
    remaining = torch.arange(num, device=offset.device)
    for power, degree in SPLINES:
        with torch.no_grad():
            solved = _solved(offset[remaining], power, degree)
        gain = solved.abs().sum(1)
        # The solution of a singular system is not finite, and fails both tests.
        good = (gain <= LARGEST_GAIN) & ((solved.sum(1) - 1).abs() < 1e-6)
        if degree == 0:
            good |= True
        chosen = remaining[good]
        # Singular systems are left out, since even a zero gradient becomes NaN.
        passed = (
            solved[good]
            if not differentiated
            else _solved(offset[chosen], power, degree)
        )
        weights = weights.index_put((chosen,), passed)
        remaining = remaining[~good]
        if not remaining.numel():
            break
    # A target at a neighbour has its value and the derivatives nearby.
    here = (offset.square().sum(2) == 0).to(weights.dtype)
    alone = here.any(1, keepdim=True)
    if differentiated:
        weights = weights / weights.sum(1, keepdim=True)
        return weights + torch.where(alone, here - weights.detach(), 0)
    weights = torch.where(alone, here, weights)
    return weights / weights.sum(1, keepdim=True)


def _solved(offset: Tensor, power: int, degree: int) -> Tensor:
    """Solve for the weights ``[m, k]`` of one kind of spline; NaN if undetermined."""
    num, size, dim = offset.shape
    basis, _ = monomials(offset, degree)
    count = basis.size(2)
    if size < count:
        return offset.new_full((num, size), torch.nan)
    # With this sign the functions are conditionally positive definite.
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
    """Return the monomials up to a degree ``[..., K]``, and their degrees."""
    columns, powers = [torch.ones_like(offset[..., 0])], [0]
    for power in range(1, degree + 1):
        for axes in itertools.combinations_with_replacement(
            range(offset.size(-1)), power
        ):
            columns.append(offset[..., list(axes)].prod(-1))
            powers.append(power)
    return torch.stack(columns, dim=-1), powers


def moving_least_squares(
    displacement: Tensor, target: Tensor, num_target: int, radius: float, degree: int
) -> Tensor:
    r"""Return the weights of moving least squares along edges.

    A polynomial is fitted to the neighbours of every target, with larger weights for
    closer ones, and evaluated at the target:

    .. math:: \omega_{ij} = \phi_{ij} \, p_{ij}^T
        \left(\sum_k \phi_{kj} \, p_{kj} p_{kj}^T + \Lambda_j\right)^{-1} p(0)

    with monomials :math:`p` of the displacement and a Gaussian :math:`\phi` of the
    distance. Polynomials up to ``degree`` are reproduced where enough neighbours
    surround the target. Elsewhere the ridge :math:`\Lambda` grows, first for the
    highest degree and then for the next, until the weights are stable. Constants are
    reproduced everywhere, and a target at a neighbour has that neighbour's value.

    Args:
        displacement: Displacement from source to target of every edge, ``[E, d]``.
        target: Target of every edge, ``[E]``.
        num_target: Number of targets.
        radius: Radius of the graph, by which displacements are divided.
        degree: Degree of the polynomials: 0 (a weighted mean), 1 or 2.

    Returns:
        Weights ``[E]``, float64, which add up to 1 at every target.

    Raises:
        ValueError: If shapes are wrong or there is no such degree.
    """
    check_shape("displacement", displacement, "E", "d")
    check_shape("target", target, displacement.size(0))
    if degree not in (0, 1, 2):
        raise ValueError(f"degree={degree}; expected 0, 1 or 2")
    offset = displacement.to(torch.float64) / radius
    basis, powers = monomials(offset, degree)
    distance = offset.square().sum(1)
    # Neighbours on the boundary of the ball keep a small weight.
    phi = torch.exp(-4 * distance) * (1 - length(offset)).clamp(min=0.02)
    size = basis.size(1)
    gram = basis.new_zeros(num_target, size, size)
    gram.index_add_(0, target, (phi[:, None] * basis)[:, :, None] * basis[:, None])
    scale = gram[:, :1, :1]
    unit = gram.new_zeros(num_target, size, 1)
    unit[:, 0] = 1
    weights = phi.new_zeros(phi.shape)
    neighbours = torch.bincount(target, minlength=num_target)
    # Targets without stable weights, their edges, and the places of these among them.
    unsettled = torch.arange(num_target, device=phi.device)
    edges, place = torch.arange(len(target), device=phi.device), target
    for ridge in _ridges(powers):
        damped = gram[unsettled] + scale[unsettled] * torch.diag(ridge.to(gram))
        solved = torch.linalg.solve(damped, unit[: len(unsettled)]).squeeze(2)
        coefficients = solved.index_select(0, place)
        fitted = (basis.index_select(0, edges) * coefficients).sum(1)
        fitted = phi.index_select(0, edges) * fitted
        weights = weights.index_put((edges,), fitted)
        gain = phi.new_zeros(len(unsettled)).index_add_(0, place, fitted.abs())
        # With fewer neighbours than coefficients the fit is undetermined.
        enough = neighbours[unsettled] >= (ridge < GIVEN_UP).sum()
        rest = ~((gain <= LARGEST_GAIN_OF_FITS) & enough)
        if not rest.any():
            break
        asked, number = rest[place], rest.cumsum(0) - 1
        edges, place = edges[asked], number[place[asked]]
        unsettled = unsettled[rest]
    # A target at a neighbour has its value and the derivatives of the fit.
    here = (distance == 0).to(phi.dtype)
    alone = (here.new_zeros(num_target).index_add_(0, target, here) > 0)[target]
    if weights.requires_grad:
        weights = weights + torch.where(alone, here - weights.detach(), 0)
    else:
        weights = torch.where(alone, here, weights)
    total = phi.new_zeros(num_target).index_add(0, target, weights)
    return weights / total[target]


def _ridges(powers: list[int]) -> Iterator[Tensor]:
    """Yield ridges on monomials, from negligible to one that leaves only constants.

    The highest degree is suppressed first, so that linear fields stay exact where
    quadratic ones cannot.
    """
    degree = torch.tensor(powers)
    ridge = torch.where(degree > 0, SMALLEST_RIDGE, 0.0)
    yield ridge
    for given_up in range(max(powers), 0, -1):
        for strength in (1e-6, 1e-4, 1e-2, 1.0, GIVEN_UP):
            ridge = torch.where(degree == given_up, strength, ridge)
            yield ridge
