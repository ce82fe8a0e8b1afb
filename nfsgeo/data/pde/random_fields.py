"""Gaussian random fields that do not depend on resolution, batch size and device.

Random numbers are drawn on the CPU, mode by mode, in a fixed order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["GENERATOR", "Rngs", "neumann_field", "periodic_field", "sample_rng"]

GENERATOR = "philox4x64-10, key (seed, sha256(equation)[:8]), counter (0, 0, 0, sample)"
# A generator for each sample.
Rngs = Sequence[np.random.Generator]


def sample_rng(seed: int, equation: str, index: int) -> np.random.Generator:
    """Return the generator of one sample, which depends only on the arguments.

    Args:
        seed: Seed of the data set.
        equation: Name of the equation.
        index: Number of the sample.

    Raises:
        UserError: ``seed`` is negative or does not fit 64 bits.
    """
    if not 0 <= seed < 2**64:
        raise UserError(f"seed {seed}", "0 <= seed < 2**64", "choose another seed")
    tag = int.from_bytes(hashlib.sha256(equation.encode()).digest()[:8], "little")
    key = np.array([seed, tag], dtype=np.uint64)
    counter = np.array([0, 0, 0, index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def periodic_field(
    rngs: Rngs, *, dim: int, resolution: int, cutoff: int, scale: float
) -> Tensor:
    r"""Draw zero-mean Gaussian fields on the unit torus.

    The covariance is ``scale`` :math:`(-\Delta + 49)^{-5/2}`, restricted to the modes
    :math:`|k_i| \le` ``cutoff`` on every axis and to those that the grid resolves under
    a strict 2/3 mask. The variance of a mode, the eigenvalue for the orthonormal
    functions :math:`\sqrt2\cos 2\pi kx` and :math:`\sqrt2\sin 2\pi kx`, is ``scale``
    :math:`(4\pi^2|k|^2 + 49)^{-5/2}`.

    Args:
        rngs: Generator of each sample.
        dim: Number of axes, 1 or 2.
        resolution: Points on each axis.
        cutoff: Highest wave number; all modes are resolved if ``resolution`` is more
            than three times as large.
        scale: Factor of the covariance.

    Returns:
        Fields ``[B, resolution]`` or ``[B, resolution, resolution]``, float64, on the
        CPU.
    """
    # A one-dimensional field is a two-dimensional one with a single row.
    rows, across = (resolution, cutoff) if dim == 2 else (1, 0)
    kx = torch.arange(-across, across + 1, dtype=torch.float64)[:, None]
    ky = torch.arange(cutoff + 1, dtype=torch.float64)
    variance = scale * (4 * torch.pi**2 * (kx**2 + ky**2) + 49) ** -2.5
    normals = np.stack([rng.standard_normal((*variance.shape, 2)) for rng in rngs])
    # Both parts of a complex coefficient have half of its variance.
    modes = torch.view_as_complex(torch.from_numpy(normals)) * (variance / 2).sqrt()
    # On the line k_y = 0 the modes k_x < 0 are the conjugates of those with k_x > 0.
    modes[:, :across, 0] = modes[:, across + 1 :, 0].flip(1).conj()
    modes[:, across, 0] = 0
    max_mode = min(cutoff, (resolution - 1) // 3)
    x = torch.arange(-min(across, max_mode), min(across, max_mode) + 1)
    spectrum = modes.new_zeros(len(rngs), rows, resolution // 2 + 1)
    spectrum[:, x, : max_mode + 1] = modes[:, across + x, : max_mode + 1]
    field = torch.fft.irfft2(spectrum, s=(rows, resolution), norm="forward")
    return field if dim == 2 else field[:, 0]


def neumann_field(
    rngs: Rngs, *, dim: int, resolution: int, cutoff: int, tau: float
) -> Tensor:
    r"""Draw Gaussian fields on the unit square or cube by Karhunen-Loeve series.

    The orthonormal functions are products of ``1`` and :math:`\sqrt2\cos\pi kx`
    (homogeneous Neumann conditions) with :math:`0 \le k <` ``cutoff`` on each axis. The
    variance of a mode is :math:`\tau^2(\pi^2|k|^2 + \tau^2)^{-2}`, and 0 for the
    constant mode. All resolutions sample the same function at their cell centres.

    Args:
        rngs: Generator of each sample.
        dim: Number of axes.
        resolution: Cells on each axis.
        cutoff: Number of modes on each axis.
        tau: Inverse of the correlation length.

    Returns:
        Fields ``[B, resolution, ...]`` with ``dim`` axes, float64, on the CPU.
    """
    k = torch.arange(cutoff, dtype=torch.float64)
    squares = torch.stack(torch.meshgrid([k**2] * dim, indexing="ij")).sum(dim=0)
    std = tau / (torch.pi**2 * squares + tau**2)
    std.view(-1)[0] = 0
    normals = np.stack([rng.standard_normal(std.shape) for rng in rngs])
    centres = (torch.arange(resolution, dtype=torch.float64) + 0.5) / resolution
    basis = torch.cos(torch.pi * centres[:, None] * k) * 2**0.5
    basis[:, 0] = 1
    field = torch.from_numpy(normals) * std
    for _ in range(dim):  # tensordot moves the summed axis to the end
        field = torch.tensordot(field, basis, dims=([1], [1]))
    return field
