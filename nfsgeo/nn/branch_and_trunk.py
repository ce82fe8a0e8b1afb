"""Networks of DeepONets: a U-Net for the branch, a perceptron for the trunk."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from nfsgeo.errors import check_shape
from nfsgeo.nn.mixer_block import FieldLayerNorm, Lift

__all__ = ["Trunk", "UNet"]

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class UNet(nn.Module):
    """A U-Net: convolutions on coarser and coarser grids and back, with skips.

    "U-Net: Convolutional Networks for Biomedical Image Segmentation" (Ronneberger et
    al., 2015), with Layer-Norm and GELU. Each level has two convolutions of size 3 and
    the same number of channels. The grid may have any size.

    Args:
        in_channels: channels of the input.
        channels: channels of all levels and of the result.
        dim: space dimensions, 1, 2 or 3.
        levels: number of times that the grid is halved.
        periodic: whether padding is circular; if not, it is zero.

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
        self.in_channels, self.dim = in_channels, dim
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
        """Apply the network; see the class for shapes."""
        check_shape("x", x, "B", self.in_channels, *["n"] * self.dim)
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


class Trunk(nn.Module):
    r"""A multi-layer perceptron of position and time with GELU.

    .. math:: (x, t) \mapsto (t_1(x, t), \dots, t_K(x, t))

    The trunk net of "Learning nonlinear operators via DeepONet" (Lu et al., 2021),
    equation (2). It does not depend on a mesh. Coordinates and times should lie between
    0 and 1.

    Args:
        dim: space dimensions.
        out_features: number of basis functions, :math:`K`.
        hidden: width of the hidden layers.
        depth: number of hidden layers.
        time: whether the functions depend on time.

    Shapes:
        ``pos`` ``[N, d]`` and ``times`` ``[T]`` to ``[N, T, K]``; without time ``T``
        is 1.
    """

    def __init__(
        self,
        dim: int,
        out_features: int,
        *,
        hidden: int = 128,
        depth: int = 4,
        time: bool = True,
    ) -> None:
        super().__init__()
        self.first = Lift(0, dim, hidden, time=time)
        layers: list[nn.Module] = [nn.GELU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(hidden, hidden), nn.GELU()]
        self.rest = nn.Sequential(*layers, nn.Linear(hidden, out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights, so that the functions vary across the unit box.

        With torch's default they are almost constant at first, and learn slowly.
        """
        nn.init.normal_(self.first.space.weight, std=2.0)
        nn.init.uniform_(self.first.space.bias, -2.0, 2.0)
        if self.first.time is not None:
            nn.init.normal_(self.first.time, std=2.0)
        for layer in self.rest:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)

    def forward(self, pos: Tensor, times: Tensor) -> Tensor:
        """Evaluate the functions at all positions and times."""
        # The first layer is affine in time, so positions need no copy per time step.
        value, slope = self.first(pos.new_empty(pos.size(0), 0), pos)
        inner = value.unsqueeze(1)
        if slope is not None:
            check_shape("times", times, "T")
            inner = inner + times.unsqueeze(1) * slope
        basis: Tensor = self.rest(inner)
        return basis
