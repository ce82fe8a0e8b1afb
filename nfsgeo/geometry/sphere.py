"""Geometry of the unit sphere, in degrees and in unit vectors."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import sph_harm_y
from torch import Tensor

from nfsgeo.errors import check_shape
from nfsgeo.geometry.box import length

__all__ = ["arc", "azimuthal", "lattice", "spherical_harmonics", "unit_vectors"]

GOLDEN_RATIO = (1 + 5**0.5) / 2


def unit_vectors(pos: Tensor) -> Tensor:
    """Return the unit vectors ``[..., 3]`` of longitudes and latitudes in degrees."""
    longitude, latitude = torch.deg2rad(pos.to(torch.float64)).unbind(-1)
    ring = latitude.cos()
    return torch.stack(
        [ring * longitude.cos(), ring * longitude.sin(), latitude.sin()], dim=-1
    )


def arc(a: Tensor, b: Tensor) -> Tensor:
    """Return the angle between unit vectors, accurate also near 0 and pi."""
    a, b = torch.broadcast_tensors(a, b)
    return torch.atan2(length(torch.linalg.cross(a, b)), (a * b).sum(-1))


def lattice(num: int) -> Tensor:
    """Return a Fibonacci lattice in longitude and latitude ``[num, 2]``, float64.

    All nodes represent the same area. "Measurement of areas on a sphere using Fibonacci
    and latitude-longitude lattices" (González, 2010).
    """
    number = torch.arange(num, dtype=torch.float64)
    longitude = 360 * torch.frac(number / GOLDEN_RATIO)
    latitude = torch.rad2deg(torch.asin(1 - (2 * number + 1) / num))
    return torch.stack([longitude, latitude], dim=1)


def azimuthal(a: Tensor, b: Tensor) -> Tensor:
    r"""Project ``b`` by Lambert's equal-area projection around ``a``, ``[..., 2]``.

    .. math:: \frac{(b - a) \cdot (e, n)}{\sqrt{1 - |b - a|^2 / 4}}

    with unit vectors :math:`e` to the east and :math:`n` to the north, at a pole those
    at longitude 0. Distances from ``a`` are chords.

    Args:
        a: Unit vectors ``[..., 3]``.
        b: Unit vectors ``[..., 3]``, broadcast against ``a``.
    """
    x, y, z = a.unbind(-1)
    pole = (x == 0) & (y == 0)
    away = (x.square() + y.square()).masked_fill(pole, 1).sqrt()
    cosine, sine = (x / away).masked_fill(pole, 1), y / away
    east = torch.stack([-sine, cosine, torch.zeros_like(z)], dim=-1)
    north = torch.stack([-z * cosine, -z * sine, away.masked_fill(pole, 0)], -1)
    chord = b - a
    # The antipode has no direction.
    least = torch.finfo(chord.dtype).eps
    scale = (1 - chord.square().sum(-1, keepdim=True) / 4).clamp_min(least).rsqrt()
    flat = [(chord * axis).sum(-1, keepdim=True) for axis in (east, north)]
    return torch.cat(flat, dim=-1) * scale


def spherical_harmonics(pos: Tensor, degrees: int) -> Tensor:
    r"""Evaluate real spherical harmonics, orthonormal on the unit sphere.

    .. math:: Y_{l, m} = \sqrt{2}\, \bar P_l^m(z) \cos m \phi, \quad
        Y_{l, -m} = \sqrt{2}\, \bar P_l^m(z) \sin m \phi, \quad
        Y_{l, 0} = \bar P_l^0(z)

    Args:
        pos: Unit vectors ``[n, 3]``.
        degrees: Number of degrees :math:`L`, from 0 to :math:`L - 1`.

    Returns:
        Values ``[n, L^2]``, float64, sorted by degree and then by order.
    """
    check_shape("pos", pos, "n", 3)
    x, y, z = pos.to(torch.float64).cpu().numpy().T[..., None]
    degrees_once = np.arange(degrees)
    degree = np.repeat(degrees_once, 2 * degrees_once + 1)
    order = np.arange(degrees**2) - degree * (degree + 1)
    # Near a pole, the arc cosine would lose half of the digits.
    angles = np.arctan2(np.hypot(x, y), z), np.arctan2(y, x)
    waves = sph_harm_y(degree, np.abs(order), *angles)
    # SciPy includes the Condon-Shortley phase.
    waves *= np.where(order, 2**0.5, 1.0) * (-1.0) ** order
    return torch.from_numpy(np.where(order < 0, waves.imag, waves.real)).to(pos.device)
