"""A small U-Net on grids of one, two or three dimensions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from nfsgeo.nn.mixer_block import FieldLayerNorm

__all__ = ["UNet"]

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class UNet(nn.Module):
    """Convolutions on ever coarser grids and back, joined at every size.

    After "U-Net: Convolutional Networks for Biomedical Image Segmentation", with
    Layer-Norm and GELU, two convolutions of size 3 a level, as many channels on all
    levels, and grids of any size.

    Args:
        in_channels: channels of the input.
        channels: channels of all levels and of the result.
        dim: space dimensions, 1, 2 or 3.
        levels: number of times that the grid is halved.
        periodic: whether the convolutions go round the domain; else zeros surround
            it.

    Shapes:
        ``[B, C_in, *n]`` to ``[B, C, *n]``, ``dim`` axes ``n``.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        dim: int,
        *,
        levels: int = 2,
        periodic: bool = False,
    ) -> None:
        super().__init__()
        convolution = CONVOLUTIONS[dim]
        mode: Literal["circular", "zeros"] = "circular" if periodic else "zeros"

        def pair(inputs: int) -> nn.Sequential:
            return nn.Sequential(
                convolution(inputs, channels, 3, padding=1, padding_mode=mode),
                FieldLayerNorm(channels),
                nn.GELU(),
                convolution(channels, channels, 3, padding=1, padding_mode=mode),
                FieldLayerNorm(channels),
                nn.GELU(),
            )

        self.top = pair(in_channels)
        self.down = nn.ModuleList(pair(channels) for _ in range(levels))
        self.up = nn.ModuleList(pair(2 * channels) for _ in range(levels))

    def forward(self, x: Tensor) -> Tensor:
        """Down and up again; see the class for shapes."""
        x = self.top(x)
        passed = []
        for layer in self.down:
            passed.append(x)
            half = [(n + 1) // 2 for n in x.shape[2:]]
            x = layer(nn.functional.interpolate(x, size=half, mode="area"))
        for layer in self.up:
            beside = passed.pop()
            x = nn.functional.interpolate(x, size=beside.shape[2:])
            x = layer(torch.cat([beside, x], dim=1))
        return x
