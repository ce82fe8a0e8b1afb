"""Mixers over patches and, on points, without patches: `vit`, `nfs-vit` and others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field, PositiveInt
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.mixer import (
    MixerOperator,
    MixerSettings,
    layer_norm,
    mixer_block,
    token_sizes,
)
from nfsgeo.models.point_mixer import PAPER_KERNEL, InterpolationSettings, PointMixer
from nfsgeo.models.settings import PAPER_FOURIER, ModelSettings, SpectralSettings
from nfsgeo.models.task import Problem
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
    SpectralConv,
    SplitComplex,
    TokenMLP,
)
from nfsgeo.nn.token_mixers import patches_of

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

# Most tokens of attention on a grid of points: 16² nodes with 10 time steps, or 8² with
# 40.
MAX_TOKENS = 2560


class PatchSettings(MixerSettings):
    """Settings of a mixer on patches.

    Attributes:
        patch: nodes of a patch along each axis of space.
        time_patch: time steps of a patch. With 1 for both, every node and time step is
            a token, without an embedding.
    """

    patch: PositiveInt = 4
    time_patch: PositiveInt = 2


class InterpolatedSettings(InterpolationSettings, PatchSettings):
    """Settings of a mixer on points, which has a small grid and no patches."""

    patch: PositiveInt = 1
    time_patch: PositiveInt = 1


class PatchMixer(MixerOperator):
    """A mixer whose tokens are patches of space and time.

    Blocks between patch embedding and unembedding, as in table 5 of "Non-equispaced
    Fourier Neural Solvers for PDEs" (Lin et al., 2022).

    Raises:
        UserError: when patches do not divide the grid and the time steps, or there are
            patches on a sphere.
    """

    Settings: ClassVar[type[ModelSettings]] = PatchSettings
    paper = {"depth": 3}
    unseen_meshes = False
    # Layers without weights between the last block and the unembedding.
    after: ClassVar[tuple[type[nn.Module], ...]] = ()

    @abstractmethod
    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make a block for tokens of these sizes; see :meth:`make_blocks`."""

    def make_blocks(self, problem: Problem, shape: Sequence[int]) -> nn.Sequential:
        """Make the blocks; see :class:`~nfsgeo.models.MixerOperator`."""
        settings = self.settings
        if problem.domain.curved and settings.patch > 1:
            raise UserError(
                f"patches of {settings.patch} nodes on a sphere",
                "single nodes, since its grid has no axes",
                "set model.settings.patch=1",
            )
        patch = (settings.patch,) * len(shape)
        if problem.has_time:
            patch = (*patch, settings.time_patch)
        sizes = patches_of(token_sizes(problem, shape), patch)
        layers: list[nn.Module] = [
            self.make_block(problem, sizes) for _ in range(settings.depth)
        ]
        layers += [layer() for layer in self.after]
        if max(patch) > 1:
            layers = [PatchEmbedding(settings.width, patch), *layers]
            layers.append(PatchUnembedding(settings.width, patch))
        return nn.Sequential(*layers)


class MLPMixer(PatchMixer):
    """MLP-Mixer whose tokens are patches of space and time."""

    source = "MLP-Mixer: An all-MLP Architecture for Vision (Tolstikhin et al., 2021)"

    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make a matrix over all tokens, then one over channels."""
        width = self.settings.width
        mix = nn.Sequential(TokenMLP(sizes), Pointwise(width, width))
        return mixer_block(self.settings, sizes, mix, residual=False)


class NFSMLPMixer(PointMixer, MLPMixer):
    """`mlpmixer` on any points: interpolation to a small grid instead of patches."""

    Settings = InterpolatedSettings
    paper = PAPER_KERNEL | MLPMixer.paper
    spheres = True


class AttentionSettings(MixerSettings):
    """Settings of attention blocks.

    Attributes:
        heads: attention heads, a divisor of ``width``.
        dropout: probability of dropping an attention weight in training.
    """

    heads: PositiveInt = 8
    dropout: float = Field(0.1, ge=0, lt=1)


class ViTSettings(AttentionSettings, PatchSettings):
    """Settings of `vit`."""


class NFSViTSettings(InterpolatedSettings, ViTSettings):
    """Settings of `nfs-vit`."""

    depth: PositiveInt = 1


def attention_block(settings: AttentionSettings, sizes: Sequence[int]) -> MixerBlock:
    """Make attention over all tokens, then a linear map of channels."""
    width = settings.width
    attention = Attention(width, settings.heads, dropout=settings.dropout)
    mix = nn.Sequential(attention, Pointwise(width, width))
    return mixer_block(settings, sizes, mix)


class ViT(PatchMixer):
    """Vision Transformer whose tokens are patches of space and time."""

    Settings = ViTSettings
    source = "An Image is Worth 16x16 Words (Dosovitskiy et al., 2021)"
    paper = {"depth": 2}

    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make an attention block."""
        return attention_block(self.settings, sizes)


class NFSViT(PointMixer, ViT):
    """`vit` on any points: interpolation to a small grid instead of patches.

    The cost of attention is quadratic in the number of tokens, so that the grid has
    fewer nodes for more time steps.
    """

    Settings = NFSViTSettings
    paper = PAPER_KERNEL
    spheres = True

    def max_nodes(self) -> int:
        """Return the largest default number of nodes, up to rounding."""
        return min(256, max(MAX_TOKENS // self.problem.n_out, 1))


class FNet(PatchMixer):
    """FNet whose tokens are patches of space and time.

    Its linear maps, normalisation and activation are complex.
    """

    source = "FNet: Mixing Tokens with Fourier Transforms (Lee-Thorp et al., 2022)"
    after = (RealPart,)

    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make a Fourier transform of all tokens and a complex map of channels.

        The field stays complex from block to block, and alternates between space and
        frequencies.
        """
        width = self.settings.width
        real, imaginary = (layer_norm(self.settings, sizes) for _ in range(2))
        return MixerBlock(
            nn.Sequential(FourierTokens(), Pointwise(width, width, dtype=torch.cfloat)),
            norm=SplitComplex(real, imaginary) if real and imaginary else None,
            activation=ModulusGELU(width),
        )


class NFSFNet(PointMixer, FNet):
    """`fnet` on any points: interpolation to a small grid instead of patches."""

    Settings = InterpolatedSettings
    paper = PAPER_KERNEL | FNet.paper


class GFN(PatchMixer):
    """Global Filter Network whose tokens are patches of space and time."""

    source = "Global Filter Networks for Image Classification (Rao et al., 2021)"

    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make a filter of all frequencies, then a linear map of channels."""
        width = self.settings.width
        mix = nn.Sequential(GlobalFilter(width, sizes), Pointwise(width, width))
        return mixer_block(self.settings, sizes, mix, residual=False)


class NFSGFN(PointMixer, GFN):
    """`gfn` on any points: interpolation to a small grid instead of patches."""

    Settings = InterpolatedSettings
    paper = PAPER_KERNEL | GFN.paper


class PFNOSettings(SpectralSettings, PatchSettings):
    """Settings of `pfno`, which keeps all frequencies in time and of few patches."""


class NFSPFNOSettings(InterpolatedSettings, PFNOSettings):
    """Settings of `nfs-pfno`."""


class PFNO(PatchMixer):
    """Fourier Neural Operator with Layer-Norm whose tokens are patches of nodes."""

    Settings = PFNOSettings
    source = "Non-equispaced Fourier Neural Solvers for PDEs (Lin et al., 2022)"
    paper = PAPER_FOURIER

    def make_block(self, problem: Problem, sizes: Sequence[int]) -> MixerBlock:
        """Make a Fourier block with all frequencies in time."""
        dim, most = problem.domain.dim, self.settings.modes_of(problem)
        modes = [min(most, max(1, n // 2)) for n in sizes[:dim]]
        modes += [n // 2 + 1 for n in sizes[dim:]]
        width = self.settings.width
        return mixer_block(self.settings, sizes, SpectralConv(width, width, modes))


class NFSPFNO(PointMixer, PFNO):
    """`pfno` on any points: interpolation to a small grid instead of patches."""

    Settings = NFSPFNOSettings
    paper = PAPER_KERNEL | PFNO.paper
