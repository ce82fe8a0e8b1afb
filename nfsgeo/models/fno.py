"""`fno`, the Fourier Neural Operator on equispaced grids, and its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import nn

from nfsgeo.geometry import equispaced_grid
from nfsgeo.models.mixer import (
    GridMixer,
    MixerSettings,
    mixer_block,
    token_sizes,
)
from nfsgeo.models.problem import Problem
from nfsgeo.models.settings import SpectralSettings
from nfsgeo.nn import MixerBlock, SpectralConv, SphericalConv, SphericalTransform

__all__ = ["FNO", "FourierSettings", "fourier_blocks", "spectral_block"]

# As many harmonics as frequencies in two dimensions.
SPHERE_DEGREES = 16


class FourierSettings(SpectralSettings, MixerSettings):
    """Settings of the Fourier blocks.

    On a sphere, ``modes`` are the degrees of the spherical harmonics, at most what the
    grid resolves, and 16 for ``None``.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    time_modes: PositiveInt = 8


def fourier_blocks(
    settings: FourierSettings, problem: Problem, shape: Sequence[int]
) -> nn.Sequential:
    """Fourier blocks over space and time on a grid of ``shape``.

    On a sphere, blocks of spherical harmonics.
    """
    sizes, width, modes = token_sizes(problem, shape), settings.width, []
    if problem.has_time:
        modes = [min(settings.time_modes, problem.n_out // 2 + 1)]
    if not problem.domain.curved:
        modes = [settings.modes_of(problem)] * problem.domain.dim + modes
        blocks = [spectral_block(settings, sizes, modes) for _ in range(settings.depth)]
        return nn.Sequential(*blocks)
    degrees = min(settings.modes or SPHERE_DEGREES, max(1, math.isqrt(shape[0] // 2)))
    nodes = equispaced_grid(problem.domain.normalised, tuple(shape), torch.float64)
    transform = SphericalTransform(nodes, degrees)
    convolutions = (
        SphericalConv(width, width, transform, *modes) for _ in range(settings.depth)
    )
    return nn.Sequential(*(mixer_block(settings, sizes, each) for each in convolutions))


def spectral_block(
    settings: MixerSettings, sizes: Sequence[int], modes: Sequence[int]
) -> MixerBlock:
    """A Fourier mixer block for tokens on a grid of ``sizes``.

    Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
    spectral convolution over space and time and Layer-Norm, beside them a 1×1
    convolution, then GELU.
    """
    convolution = SpectralConv(settings.width, settings.width, modes)
    return mixer_block(settings, sizes, convolution)


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it takes grids of any resolution."""

    norm: Literal["element", "channel", "none"] = "none"


class FNO(GridMixer):
    """Fourier Neural Operator over space and time, as the paper compares with it.

    After "Fourier Neural Operator for Parametric Partial Differential Equations".
    """

    Settings = FNOSettings
    make_blocks = staticmethod(fourier_blocks)
