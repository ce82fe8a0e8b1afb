"""`mlpmixer`: matrices over patches, and on points as `nfs-mlpmixer`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from nfsgeo.models.framing import on_grid, on_points
from nfsgeo.models.mixer_settings import layer_norm
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings, patched
from nfsgeo.models.problem import Problem
from nfsgeo.nn import MixerBlock, Pointwise, TokenMLP

__all__ = ["build_mlpmixer", "build_nfs_mlpmixer"]


def mlpmixer_blocks(
    settings: PatchSettings, problem: Problem, shape: Sequence[int]
) -> nn.Module:
    """A matrix over all tokens of space and time, then one over channels."""
    width = settings.width

    def block(sizes: tuple[int, ...]) -> nn.Module:
        return MixerBlock(
            nn.Sequential(TokenMLP(sizes), Pointwise(width, width)),
            norm=layer_norm(settings, sizes),
            activation=nn.GELU(),
        )

    return patched(settings, problem, shape, block)


def build_mlpmixer(problem: Problem, settings: PatchSettings) -> MixerOperator:
    """MLP-Mixer whose tokens are patches of space and time.

    After "MLP-Mixer: An all-MLP Architecture for Vision", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """
    return on_grid(problem, settings, mlpmixer_blocks)


def build_nfs_mlpmixer(
    problem: Problem, settings: InterpolatedSettings
) -> MixerOperator:
    """The same on any points: interpolation to a small grid in place of patches."""
    return on_points(problem, settings, mlpmixer_blocks)
