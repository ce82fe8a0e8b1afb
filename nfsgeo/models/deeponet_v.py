"""`deeponet-v`: DeepONet with a Vision Transformer as its branch."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt
from torch import nn

from nfsgeo.models.deeponet import DeepONet, DeepONetSettings
from nfsgeo.models.patching import divided
from nfsgeo.models.problem import Problem
from nfsgeo.models.vit import AttentionSettings, attention_block
from nfsgeo.nn import PatchEmbedding, Pointwise

__all__ = ["DeepONetVSettings", "build_deeponet_v"]


class DeepONetVSettings(AttentionSettings, DeepONetSettings):
    """Settings of `deeponet-v`.

    Attributes:
        norm: of the blocks, as for `vit`; an ``element`` for each node ties the
            branch to one grid.
        patch: nodes of a patch along each axis.
    """

    norm: Literal["element", "channel", "none"] = "channel"
    patch: PositiveInt = 4


def build_deeponet_v(problem: Problem, settings: DeepONetVSettings) -> DeepONet:
    """DeepONet with the blocks of `vit` over patches of space for its branch.

    A variant that "Non-equispaced Fourier Neural Solvers for PDEs" compares with.
    """
    width, dim = settings.width, problem.domain.dim
    patch = (settings.patch,) * dim
    tokens = divided(problem.grid_shape or (), patch)
    branch = nn.Sequential(
        Pointwise(problem.num_features + dim, width),
        PatchEmbedding(width, patch),
        *(attention_block(settings, tokens) for _ in range(settings.depth)),
    )
    return DeepONet(problem, branch=branch, width=width, settings=settings)
