"""`gfn`: global filters over patches, and on points as `nfs-gfn`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from nfsgeo.models.framing import on_grid, on_points
from nfsgeo.models.mixer_settings import layer_norm
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings, patched
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GlobalFilter, MixerBlock, Pointwise

__all__ = ["build_gfn", "build_nfs_gfn"]


def gfn_blocks(
    settings: PatchSettings, problem: Problem, shape: Sequence[int]
) -> nn.Module:
    """A weight for each frequency and channel, then a linear map of channels."""
    width = settings.width

    def block(sizes: tuple[int, ...]) -> nn.Module:
        return MixerBlock(
            nn.Sequential(GlobalFilter(width, sizes), Pointwise(width, width)),
            norm=layer_norm(settings, sizes),
            activation=nn.GELU(),
        )

    return patched(settings, problem, shape, block)


def build_gfn(problem: Problem, settings: PatchSettings) -> MixerOperator:
    """Global Filter Network whose tokens are patches of space and time.

    After "Global Filter Networks for Image Classification", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """
    return on_grid(problem, settings, gfn_blocks)


def build_nfs_gfn(problem: Problem, settings: InterpolatedSettings) -> MixerOperator:
    """The same on any points: interpolation to a small grid in place of patches."""
    return on_points(problem, settings, gfn_blocks)
