"""`vit`: attention over patches, and over interpolated points as `nfs-vit`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field, PositiveInt
from torch import nn

from nfsgeo.models.framing import on_grid, on_points
from nfsgeo.models.mixer_settings import MixerSettings, layer_norm
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings, patched
from nfsgeo.models.problem import Problem
from nfsgeo.nn import Attention, MixerBlock, Pointwise

__all__ = [
    "AttentionSettings",
    "NFSViTSettings",
    "ViTSettings",
    "attention_block",
    "build_nfs_vit",
    "build_vit",
]

# 16² nodes with 10 records, 8² with 40: what attention is given on interpolated points.
MAX_TOKENS = 2560


class AttentionSettings(MixerSettings):
    """Settings of attention blocks.

    Attributes:
        heads: of the attention, a divisor of ``width``.
        dropout: share of the attention weights that are dropped in training.
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
    return MixerBlock(
        nn.Sequential(
            Attention(width, settings.heads, dropout=settings.dropout),
            Pointwise(width, width),
        ),
        norm=layer_norm(settings, sizes),
        residual=Pointwise(width, width),
        activation=nn.GELU(),
    )


def vit_blocks(
    settings: ViTSettings, problem: Problem, shape: Sequence[int]
) -> nn.Module:
    """Attention blocks over patches."""
    return patched(settings, problem, shape, partial(attention_block, settings))


def build_vit(problem: Problem, settings: ViTSettings) -> MixerOperator:
    """Vision Transformer whose tokens are patches of space and time.

    After "An Image is Worth 16x16 Words", in the frame of "Non-equispaced Fourier
    Neural Solvers for PDEs", table 5.
    """
    return on_grid(problem, settings, vit_blocks)


def build_nfs_vit(problem: Problem, settings: NFSViTSettings) -> MixerOperator:
    """The same on any points: interpolation to a small grid in place of patches.

    Attention costs the square of the tokens, so more records leave fewer nodes.
    """
    nodes = min(256, max(MAX_TOKENS // problem.n_out, 1))
    return on_points(problem, settings, vit_blocks, max_nodes=nodes)
