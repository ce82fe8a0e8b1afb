"""The Fourier core that `fno` and `nfs` share, and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt
from torch import nn

from nfsgeo.models.problem import Problem
from nfsgeo.nn import FieldLayerNorm, MixerBlock, Pointwise, SpectralConv

__all__ = ["FourierSettings", "fourier_blocks"]


class FourierSettings(BaseModel):
    """Settings of the Fourier core.

    Attributes:
        width: channels, ``C``.
        modes: non-negative frequencies kept on every space axis.
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
        depth: number of blocks.
        norm: Layer-Norm over grid, time and channels: its affine map has an
            ``element`` for each node, record and channel, or one a ``channel``;
            ``none`` leaves it out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: PositiveInt = 32
    modes: PositiveInt = 8
    time_modes: PositiveInt = 8
    depth: PositiveInt = 2
    norm: Literal["element", "channel", "none"] = "none"


def fourier_blocks(
    settings: FourierSettings, problem: Problem, shape: Sequence[int]
) -> nn.Sequential:
    """Fourier mixer blocks on a grid of ``shape``, with GELU after each.

    Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
    spectral convolution over space and time, Layer-Norm, a 1×1 convolution beside
    them.
    """
    width = settings.width
    modes = [settings.modes] * problem.domain.dim
    sizes = list(shape)
    if problem.has_time:
        modes.append(min(settings.time_modes, problem.n_out // 2 + 1))
        sizes.append(problem.n_out)

    def norm() -> nn.Module | None:
        if settings.norm == "none":
            return None
        return FieldLayerNorm(width, sizes if settings.norm == "element" else None)

    return nn.Sequential(
        *(
            MixerBlock(
                SpectralConv(width, width, modes),
                norm=norm(),
                residual=Pointwise(width, width),
                activation=nn.GELU(),
            )
            for _ in range(settings.depth)
        )
    )
