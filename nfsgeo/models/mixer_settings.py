"""Settings that all mixers share, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

from nfsgeo.models.problem import Problem
from nfsgeo.nn import FieldLayerNorm

__all__ = ["MixerSettings", "layer_norm", "token_sizes"]


class MixerSettings(BaseModel):
    """Settings that all mixers share.

    Attributes:
        width: channels, ``C``.
        depth: number of blocks.
        norm: Layer-Norm over grid, time and channels: its affine map has an
            ``element`` for each node, record and channel, or one a ``channel``;
            ``none`` leaves it out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: PositiveInt = 32
    depth: PositiveInt = 2
    norm: Literal["element", "channel", "none"] = "element"


def layer_norm(settings: MixerSettings, sizes: Sequence[int]) -> FieldLayerNorm | None:
    """The normalisation of one block, for tokens on a grid of ``sizes``."""
    if settings.norm == "none":
        return None
    return FieldLayerNorm(settings.width, sizes if settings.norm == "element" else None)


def token_sizes(problem: Problem, shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes of the field that mixers see: grid, then records where there is time."""
    return (*shape, problem.n_out) if problem.has_time else tuple(shape)
