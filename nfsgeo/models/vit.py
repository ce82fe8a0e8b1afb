"""`vit`: attention over patches, and over interpolated points as `nfs-vit`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, PositiveInt
from torch import nn

from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer, MixerSettings, layer_norm
from nfsgeo.models.patches import InterpolatedSettings, PatchSettings, over_patches
from nfsgeo.models.point_mixer import PointMixer, point_mixer_info
from nfsgeo.models.problem import Problem
from nfsgeo.nn import Attention, MixerBlock, Pointwise

__all__ = [
    "NFSViT",
    "NFS_VIT_INFO",
    "VIT_INFO",
    "AttentionSettings",
    "ViT",
    "attention_block",
]

# 16² nodes with 10 time steps, 8² with 40: what attention is given on interpolated
# points.
MAX_TOKENS = 2560


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
    return MixerBlock(
        nn.Sequential(
            Attention(width, settings.heads, dropout=settings.dropout),
            Pointwise(width, width),
        ),
        norm=layer_norm(settings, sizes),
        residual=Pointwise(width, width),
        activation=nn.GELU(),
    )


@over_patches
def vit_blocks(
    settings: ViTSettings, problem: Problem, sizes: Sequence[int]
) -> MixerBlock:
    """An attention block over patches."""
    return attention_block(settings, sizes)


class ViT(GridMixer):
    """Vision Transformer whose tokens are patches of space and time.

    After "An Image is Worth 16x16 Words", in the frame of "Non-equispaced Fourier
    Neural Solvers for PDEs", table 5.
    """

    Settings = ViTSettings
    make_blocks = staticmethod(vit_blocks)


class NFSViT(PointMixer):
    """The same on any points: interpolation to a small grid in place of patches.

    The cost of attention grows with the square of the number of tokens, so that more
    time steps leave fewer nodes.
    """

    Settings = NFSViTSettings
    spheres = True
    make_blocks = staticmethod(vit_blocks)

    @staticmethod
    def max_nodes(problem: Problem) -> int:
        """About the most nodes of a grid whose size the settings leave open."""
        return min(256, max(MAX_TOKENS // problem.n_out, 1))


VIT_INFO = ModelInfo(
    name="vit",
    model=ViT,
    points=False,
    unseen_meshes=False,
    source="An Image is Worth 16x16 Words",
    parameters_paper=773_217,
    paper={"depth": 2},
)
NFS_VIT_INFO = point_mixer_info("nfs-vit", NFSViT, {"depth": 1})
