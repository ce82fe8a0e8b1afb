"""Pointwise maps into and out of the channels, and the 1×1 convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

__all__ = ["Lift", "Pointwise", "Projector"]

# Numbers of a hidden layer that are computed at a time: what fits a core's cache, and
# on a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


class Pointwise(nn.Linear):
    """A linear map of the channels at every node: ``[B, C, *n]`` to ``[B, C', *n]``.

    The 1×1 convolution of the Fourier Neural Operator, for any number of axes.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply the map at every node."""
        flat, weight = x.flatten(2), self.weight.expand(x.size(0), -1, -1)
        # A product for each sample; one for all of them would want copies of x.
        if self.bias is None:
            flat = torch.bmm(weight, flat)
        else:
            flat = torch.baddbmm(self.bias[:, None], weight, flat)
        return flat.unflatten(2, x.shape[2:])


class Lift(nn.Module):
    r"""Linear map of inputs, position and time to the channels.

    .. math:: v(x, t) = W_a a(x) + W_x x + b + t \, W_t

    Input time steps are channels and output time steps tokens. Since the map is affine
    in time, the field is given by two terms, not by a copy per time step.

    Args:
        num_features: inputs at a point, time steps times components.
        dim: space dimensions; 0 for a map that does not depend on the position.
        channels: :math:`C`.
        time: whether the field depends on time; without it the slope is ``None``.
    """

    def __init__(
        self, num_features: int, dim: int, channels: int, *, time: bool = True
    ) -> None:
        super().__init__()
        self.dim = dim
        self.space = nn.Linear(num_features + dim, channels)
        self.time = nn.Parameter(torch.empty(channels)) if time else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew, time's as those of any other input."""
        self.space.reset_parameters()
        if self.time is not None:
            bound = (self.space.in_features + 1) ** -0.5
            nn.init.uniform_(self.time, -bound, bound)

    def forward(self, features: Tensor, pos: Tensor) -> tuple[Tensor, Tensor | None]:
        """The value at t = 0 ``[N, C]`` and the slope ``[C]``.

        Args:
            features: ``[N, F]``.
            pos: ``[N, d]``.
        """
        return self.space(torch.cat([features, pos[:, : self.dim]], dim=-1)), self.time


class Projector(nn.Sequential):
    """Two linear maps with a GELU between: channels to components, last axis.

    The hidden layer is computed for a block of rows at a time, and again in the
    backward pass: it is never stored for all of them.

    Args:
        channels: :math:`C`.
        out_components: components of the field.
        hidden: width between the maps; 128 in the paper.

    Shapes:
        ``[..., C]`` to ``[..., out_components]``.
    """

    def __init__(self, channels: int, out_components: int, hidden: int = 128) -> None:
        super().__init__(
            nn.Linear(channels, hidden),
            nn.GELU(),
            nn.Linear(hidden, out_components),
        )
        self.hidden = hidden

    def forward(self, x: Tensor) -> Tensor:
        """Map the channels of every point and time step."""
        layers = super().forward
        if torch.compiler.is_compiling():
            # Compilers fuse plain layers.
            return layers(x)
        size = max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // self.hidden)
        blocks = [
            checkpoint(
                layers,
                rows,
                use_reentrant=False,
                preserve_rng_state=False,
                determinism_check="none",
            )
            for rows in x.flatten(0, -2).split(size)
        ]
        return torch.cat(blocks).unflatten(0, x.shape[:-1])
