"""`fno`: the Fourier Neural Operator on equispaced grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import nn

from nfsgeo.geometry import equispaced_grid
from nfsgeo.models.mixer import (
    MixerOperator,
    MixerSettings,
    mixer_block,
    token_sizes,
)
from nfsgeo.models.settings import PAPER_FOURIER, ModelSettings, SpectralSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import SpectralConv, SphericalConv, SphericalTransform

__all__ = ["FNO", "FourierSettings"]

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


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it takes grids of any resolution."""

    norm: Literal["element", "channel", "none"] = "none"


class FNO(MixerOperator):
    """Fourier Neural Operator over space and time, as the paper compares with it."""

    Settings: ClassVar[type[ModelSettings]] = FNOSettings
    source = "Fourier Neural Operator for Parametric PDEs"
    paper = PAPER_FOURIER

    def make_blocks(self, problem: Problem, shape: Sequence[int]) -> nn.Module:
        """Fourier blocks over space and time; on a sphere, of spherical harmonics.

        Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
        spectral convolution and Layer-Norm, beside them a 1×1 convolution, then GELU.
        """
        settings, sizes = self.settings, token_sizes(problem, shape)
        mix: Callable[[], nn.Module]
        width, modes = settings.width, []
        if problem.has_time:
            modes = [min(settings.time_modes, problem.n_out // 2 + 1)]
        if problem.domain.curved:
            most = max(1, math.isqrt(shape[0] // 2))
            degrees = min(settings.modes or SPHERE_DEGREES, most)
            domain = problem.domain.normalised
            nodes = equispaced_grid(domain, tuple(shape), torch.float64)
            transform = SphericalTransform(nodes, degrees)
            mix = partial(SphericalConv, width, width, transform, *modes)
        else:
            modes = [settings.modes_of(problem)] * problem.domain.dim + modes
            mix = partial(SpectralConv, width, width, modes)
        blocks = (mixer_block(settings, sizes, mix()) for _ in range(settings.depth))
        return nn.Sequential(*blocks)
