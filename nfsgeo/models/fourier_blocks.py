"""The Fourier blocks that `fno`, `pfno` and `nfs` share, and their settings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import nn

from nfsgeo.geometry import equispaced_grid
from nfsgeo.models.mixer import MixerSettings, layer_norm, token_sizes
from nfsgeo.models.problem import Problem
from nfsgeo.nn import (
    MixerBlock,
    Pointwise,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
)

__all__ = [
    "PAPER_MODES",
    "FourierSettings",
    "fourier_blocks",
    "modes_for",
    "spectral_block",
]

# What the paper keeps, in any dimension.
PAPER_MODES = 8
LINE_MODES = 64
# As many harmonics as frequencies in two dimensions.
SPHERE_DEGREES = 16


class FourierSettings(MixerSettings):
    """Settings of the Fourier blocks.

    Attributes:
        modes: non-negative frequencies kept on every space axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more. On a sphere, the
            degrees of the spherical harmonics, at most what the grid resolves, and 16
            for ``None``.
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    modes: PositiveInt | None = None
    time_modes: PositiveInt = 8


def modes_for(modes: int | None, problem: Problem) -> int:
    """Non-negative frequencies on every space axis.

    Args:
        modes: the setting; ``None`` for 64 in one dimension, where they cost little, or
            half as many as points, and 8 in more dimensions.
        problem: dimensions and number of points.
    """
    if problem.domain.dim > 1:
        return modes or PAPER_MODES
    return modes or max(1, min(LINE_MODES, problem.num_points // 2))


def fourier_blocks(
    settings: FourierSettings, problem: Problem, shape: Sequence[int]
) -> nn.Sequential:
    """Fourier blocks over space and time on a grid of ``shape``.

    On a sphere, blocks of spherical harmonics.
    """
    if problem.domain.curved:
        return _spherical_blocks(settings, problem, shape[0])
    modes = [modes_for(settings.modes, problem)] * problem.domain.dim
    if problem.has_time:
        modes.append(min(settings.time_modes, problem.n_out // 2 + 1))
    sizes = token_sizes(problem, shape)
    return nn.Sequential(
        *(spectral_block(settings, sizes, modes) for _ in range(settings.depth))
    )


def _spherical_blocks(
    settings: FourierSettings, problem: Problem, num_nodes: int
) -> nn.Sequential:
    degrees = min(settings.modes or SPHERE_DEGREES, max(1, math.isqrt(num_nodes // 2)))
    nodes = equispaced_grid(problem.domain.normalised, (num_nodes,), torch.float64)
    transform, modes = SphericalTransform(nodes, degrees), None
    if problem.has_time:
        modes = min(settings.time_modes, problem.n_out // 2 + 1)
    sizes, width = token_sizes(problem, (num_nodes,)), settings.width
    return nn.Sequential(
        *(
            _mixer_block(settings, sizes, SphericalConv(width, width, transform, modes))
            for _ in range(settings.depth)
        )
    )


def spectral_block(
    settings: MixerSettings, sizes: Sequence[int], modes: Sequence[int]
) -> MixerBlock:
    """A Fourier mixer block for tokens on a grid of ``sizes``.

    Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
    spectral convolution over space and time and Layer-Norm, beside them a 1×1
    convolution, then GELU.
    """
    width = settings.width
    return _mixer_block(settings, sizes, SpectralConv(width, width, modes))


def _mixer_block(
    settings: MixerSettings, sizes: Sequence[int], mix: nn.Module
) -> MixerBlock:
    width = settings.width
    return MixerBlock(
        mix,
        norm=layer_norm(settings, sizes),
        residual=Pointwise(width, width),
        activation=nn.GELU(),
    )
