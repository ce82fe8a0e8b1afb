"""Spherical harmonics."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["spherical_harmonics"]


def spherical_harmonics(pos: Tensor, degrees: int) -> Tensor:
    r"""Real spherical harmonics, orthonormal on the unit sphere.

    .. math:: Y_{l, m} = \sqrt{2}\, \bar P_l^m(z) \cos m \phi, \quad
        Y_{l, -m} = \sqrt{2}\, \bar P_l^m(z) \sin m \phi, \quad
        Y_{l, 0} = \bar P_l^0(z)

    With :math:`\bar P_l^m = (1 - z^2)^{m/2} Q_l^m` and :math:`(x + i y)^m` they are
    polynomials of the coordinates, without a singularity at the poles; :math:`Q_l^m`
    follows from the three-term recurrence in the degree.

    Args:
        pos: unit vectors ``[n, 3]``.
        degrees: number of degrees :math:`L`, from 0 to :math:`L - 1`.

    Returns:
        ``[n, L^2]``, float64, degree by degree, the orders of each from ``-l`` to
        ``l``.
    """
    x, y, z = pos.to(torch.float64).unbind(1)
    values = z.new_zeros(len(z), degrees**2)
    cosine, sine = torch.ones_like(z), torch.zeros_like(z)
    first = (4 * math.pi) ** -0.5
    for m in range(degrees):
        if m:
            cosine, sine = cosine * x - sine * y, cosine * y + sine * x
            first *= math.sqrt((2 * m + 1) / (2 * m))
        last, now = torch.zeros_like(z), torch.full_like(z, first)
        for l in range(m, degrees):  # noqa: E741
            if l > m:
                back = ((l - 1) ** 2 - m**2) / (4 * (l - 1) ** 2 - 1)
                factor = math.sqrt((4 * l**2 - 1) / (l**2 - m**2))
                last, now = now, factor * (z * now - math.sqrt(back) * last)
            values[:, l**2 + l + m] = now * cosine * (2**0.5 if m else 1)
            if m:
                values[:, l**2 + l - m] = now * sine * 2**0.5
    return values
