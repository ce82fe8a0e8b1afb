"""The Fourier core that `fno`, `pfno` and `nfs` share, and its settings."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt
from torch import nn

from nfsgeo.models.mixer_settings import MixerSettings, layer_norm, token_sizes
from nfsgeo.models.modes import modes_for
from nfsgeo.models.problem import Problem
from nfsgeo.nn import MixerBlock, Pointwise, SpectralConv

__all__ = ["FourierSettings", "fourier_blocks", "spectral_block"]


class FourierSettings(MixerSettings):
    """Settings of the Fourier core.

    Attributes:
        modes: non-negative frequencies kept on every space axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more.
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    modes: PositiveInt | None = None
    time_modes: PositiveInt = 8


def fourier_blocks(
    settings: FourierSettings, problem: Problem, shape: Sequence[int]
) -> nn.Sequential:
    """Fourier blocks over space and time on a grid of ``shape``."""
    dim = problem.domain.dim
    modes = [modes_for(settings.modes, problem)] * dim
    if problem.has_time:
        modes.append(min(settings.time_modes, problem.n_out // 2 + 1))
    sizes = token_sizes(problem, shape)
    return nn.Sequential(
        *(spectral_block(settings, sizes, modes) for _ in range(settings.depth))
    )


def spectral_block(
    settings: MixerSettings, sizes: Sequence[int], modes: Sequence[int]
) -> MixerBlock:
    """A Fourier mixer block for tokens on a grid of ``sizes``.

    Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
    spectral convolution over space and time, Layer-Norm, a 1×1 convolution beside
    them, GELU.
    """
    width = settings.width
    return MixerBlock(
        SpectralConv(width, width, modes),
        norm=layer_norm(settings, sizes),
        residual=Pointwise(width, width),
        activation=nn.GELU(),
    )
