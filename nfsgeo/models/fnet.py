"""`fnet`: Fourier transforms over patches, and on points as `nfs-fnet`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from nfsgeo.models.framing import on_grid, on_points
from nfsgeo.models.mixer_settings import MixerSettings, layer_norm
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings, patched
from nfsgeo.models.problem import Problem
from nfsgeo.nn import (
    FourierTokens,
    MixerBlock,
    ModulusGELU,
    Pointwise,
    RealPart,
    SplitComplex,
)

__all__ = ["build_fnet", "build_nfs_fnet"]


def fnet_blocks(
    settings: PatchSettings, problem: Problem, shape: Sequence[int]
) -> nn.Module:
    """Transforms of space and time, complex maps of channels; the real part at last.

    The field stays complex from block to block, and goes back and forth between space
    and frequencies.
    """
    width = settings.width

    def block(sizes: tuple[int, ...]) -> nn.Module:
        return MixerBlock(
            nn.Sequential(FourierTokens(), Pointwise(width, width, dtype=torch.cfloat)),
            norm=_complex_layer_norm(settings, sizes),
            activation=ModulusGELU(width),
        )

    return patched(settings, problem, shape, block, after=RealPart())


def build_fnet(problem: Problem, settings: PatchSettings) -> MixerOperator:
    """FNet whose tokens are patches of space and time.

    After "FNet: Mixing Tokens with Fourier Transforms", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5: complex linear maps,
    normalisation and activation.
    """
    return on_grid(problem, settings, fnet_blocks)


def build_nfs_fnet(problem: Problem, settings: InterpolatedSettings) -> MixerOperator:
    """The same on any points: interpolation to a small grid in place of patches."""
    return on_points(problem, settings, fnet_blocks)


def _complex_layer_norm(
    settings: MixerSettings, sizes: Sequence[int]
) -> SplitComplex | None:
    real, imaginary = layer_norm(settings, sizes), layer_norm(settings, sizes)
    return SplitComplex(real, imaginary) if real and imaginary else None
