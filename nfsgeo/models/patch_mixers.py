"""Mixers over patches: `mlpmixer`, `vit`, `fnet`, `gfn`, `pfno`; these on points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from pydantic import Field, PositiveInt
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.fno import spectral_block
from nfsgeo.models.mixer import (
    GridMixer,
    MixerSettings,
    layer_norm,
    mixer_block,
    token_sizes,
)
from nfsgeo.models.point_mixer import InterpolationSettings, PointMixer
from nfsgeo.models.problem import Problem
from nfsgeo.models.settings import SpectralSettings
from nfsgeo.nn import (
    Attention,
    FourierTokens,
    GlobalFilter,
    MixerBlock,
    ModulusGELU,
    PatchEmbedding,
    PatchUnembedding,
    Pointwise,
    RealPart,
    SplitComplex,
    TokenMLP,
)
from nfsgeo.nn.patches import patches_of

__all__ = [
    "GFN",
    "NFSGFN",
    "NFSPFNO",
    "PFNO",
    "AttentionSettings",
    "FNet",
    "MLPMixer",
    "NFSFNet",
    "NFSMLPMixer",
    "NFSViT",
    "ViT",
    "attention_block",
]

# 16² nodes with 10 time steps, 8² with 40: what attention is given on interpolated
# points.
MAX_TOKENS = 2560


class PatchSettings(MixerSettings):
    """Settings of a mixer on patches.

    Attributes:
        patch: nodes of a patch along each axis of space.
        time_patch: time steps of a patch. With 1 for both, every node and time step is
            a token, without layers that embed it.
    """

    patch: PositiveInt = 4
    time_patch: PositiveInt = 2


class InterpolatedSettings(InterpolationSettings, PatchSettings):
    """Settings of such a mixer on interpolated points: a small grid, no patches."""

    patch: PositiveInt = 1
    time_patch: PositiveInt = 1


def over_patches(
    block: Callable[[Any, Problem, tuple[int, ...]], nn.Module],
    after: nn.Module | None = None,
) -> Callable[[Any, Problem, Sequence[int]], nn.Sequential]:
    """Decorates what makes a block: blocks between the embedding of patches and back.

    Args:
        block: makes one of settings and problem, for tokens on a grid of given sizes.
        after: a layer without weights between the last block and the way back.

    Raises:
        UserError: when patches do not fill the grid and the time steps, or it is that
            of a sphere.
    """

    def blocks(
        settings: PatchSettings, problem: Problem, shape: Sequence[int]
    ) -> nn.Sequential:
        if problem.domain.curved and settings.patch > 1:
            raise UserError(
                f"patches of {settings.patch} nodes on a sphere",
                "single nodes, since its grid has no axes",
                "set model.settings.patch=1",
            )
        patch = (settings.patch,) * len(shape)
        if problem.has_time:
            patch = (*patch, settings.time_patch)
        tokens = patches_of(token_sizes(problem, shape), patch)
        layers = [block(settings, problem, tokens) for _ in range(settings.depth)]
        if after is not None:
            layers.append(after)
        if max(patch) > 1:
            width = settings.width
            layers = [PatchEmbedding(width, patch), *layers]
            layers.append(PatchUnembedding(width, patch))
        return nn.Sequential(*layers)

    return blocks


class MLPMixer(GridMixer):
    """MLP-Mixer whose tokens are patches of space and time.

    After "MLP-Mixer: An all-MLP Architecture for Vision", as all mixers over patches in
    the frame of "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """

    Settings = PatchSettings

    @staticmethod
    @over_patches
    def make_blocks(
        settings: PatchSettings, problem: Problem, sizes: Sequence[int]
    ) -> MixerBlock:
        """A matrix over all tokens of space and time, then one over channels."""
        mix = nn.Sequential(TokenMLP(sizes), Pointwise(settings.width, settings.width))
        return mixer_block(settings, sizes, mix, residual=False)


class NFSMLPMixer(PointMixer):
    """`mlpmixer` on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    spheres = True
    make_blocks = staticmethod(MLPMixer.make_blocks)


class AttentionSettings(MixerSettings):
    """Settings of attention blocks.

    Attributes:
        heads: of the attention, a divisor of ``width``.
        dropout: fraction of the attention weights that are dropped in training.
    """

    heads: PositiveInt = 8
    dropout: float = Field(0.1, ge=0, lt=1)


class ViTSettings(AttentionSettings, PatchSettings):
    """Settings of `vit`."""


class NFSViTSettings(InterpolatedSettings, ViTSettings):
    """Settings of `nfs-vit`."""

    depth: PositiveInt = 1


def attention_block(settings: AttentionSettings, sizes: Sequence[int]) -> MixerBlock:
    """Attention over all tokens of space and time, then a linear map of channels."""
    width = settings.width
    attention = Attention(width, settings.heads, dropout=settings.dropout)
    mix = nn.Sequential(attention, Pointwise(width, width))
    return mixer_block(settings, sizes, mix)


class ViT(GridMixer):
    """Vision Transformer whose tokens are patches of space and time.

    After "An Image is Worth 16x16 Words".
    """

    Settings = ViTSettings

    @staticmethod
    @over_patches
    def make_blocks(
        settings: ViTSettings, problem: Problem, sizes: Sequence[int]
    ) -> MixerBlock:
        """An attention block over patches."""
        return attention_block(settings, sizes)


class NFSViT(PointMixer):
    """`vit` on any points: interpolation to a small grid in place of patches.

    The cost of attention grows with the square of the number of tokens, so that more
    time steps leave fewer nodes.
    """

    Settings = NFSViTSettings
    spheres = True
    make_blocks = staticmethod(ViT.make_blocks)

    @staticmethod
    def max_nodes(problem: Problem) -> int:
        """About the most nodes of a grid whose size the settings leave open."""
        return min(256, max(MAX_TOKENS // problem.n_out, 1))


class FNet(GridMixer):
    """FNet whose tokens are patches of space and time.

    After "FNet: Mixing Tokens with Fourier Transforms", with complex linear maps,
    normalisation and activation.
    """

    Settings = PatchSettings

    @staticmethod
    @partial(over_patches, after=RealPart())
    def make_blocks(
        settings: PatchSettings, problem: Problem, sizes: Sequence[int]
    ) -> MixerBlock:
        """Transforms of space and time, complex maps of channels, then the real part.

        The field stays complex from block to block, and alternates between space and
        frequencies.
        """
        width = settings.width
        real, imaginary = layer_norm(settings, sizes), layer_norm(settings, sizes)
        return MixerBlock(
            nn.Sequential(FourierTokens(), Pointwise(width, width, dtype=torch.cfloat)),
            norm=SplitComplex(real, imaginary) if real and imaginary else None,
            activation=ModulusGELU(width),
        )


class NFSFNet(PointMixer):
    """`fnet` on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    make_blocks = staticmethod(FNet.make_blocks)


class GFN(GridMixer):
    """Global Filter Network whose tokens are patches of space and time.

    After "Global Filter Networks for Image Classification".
    """

    Settings = PatchSettings

    @staticmethod
    @over_patches
    def make_blocks(
        settings: PatchSettings, problem: Problem, sizes: Sequence[int]
    ) -> MixerBlock:
        """A weight for each frequency and channel, then a linear map of channels."""
        width = settings.width
        mix = nn.Sequential(GlobalFilter(width, sizes), Pointwise(width, width))
        return mixer_block(settings, sizes, mix, residual=False)


class NFSGFN(PointMixer):
    """`gfn` on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    make_blocks = staticmethod(GFN.make_blocks)


class PFNOSettings(SpectralSettings, PatchSettings):
    """Settings of `pfno`; in time, and of few patches, all frequencies are kept."""


class NFSPFNOSettings(InterpolatedSettings, PFNOSettings):
    """Settings of `nfs-pfno`."""


class PFNO(GridMixer):
    """Fourier Neural Operator with Layer-Norm whose tokens are patches of nodes.

    `pfno` of "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """

    Settings = PFNOSettings

    @staticmethod
    @over_patches
    def make_blocks(
        settings: PFNOSettings, problem: Problem, sizes: Sequence[int]
    ) -> MixerBlock:
        """A Fourier block over patches, with all frequencies of time."""
        dim, most = problem.domain.dim, settings.modes_of(problem)
        modes = [min(most, max(1, n // 2)) for n in sizes[:dim]]
        modes += [n // 2 + 1 for n in sizes[dim:]]
        return spectral_block(settings, sizes, modes)


class NFSPFNO(PointMixer):
    """`pfno` on any points: interpolation to a small grid in place of patches."""

    Settings = NFSPFNOSettings
    make_blocks = staticmethod(PFNO.make_blocks)
