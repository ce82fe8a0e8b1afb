"""The block that all Vision Mixers share, and Layer-Norm over a whole field."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError

__all__ = ["FieldLayerNorm", "MixerBlock"]


class FieldLayerNorm(nn.Module):
    r"""Layer-Norm with joint statistics over grid, time and channels.

    .. math:: y = \gamma \odot \frac{v - E[v]}{\sqrt{Var[v] + \epsilon}} + \beta

    Mean and variance are taken over all of a sample. With ``shape`` given,
    :math:`\gamma` and :math:`\beta` have an entry for every channel, node and time
    step, as the paper's authors train: the layer then holds for one grid alone. Without
    it they have one for each channel, and the layer works on any grid.

    Args:
        channels: :math:`C`.
        shape: sizes of grid and time, or ``None`` for an affine map per channel.
        eps: :math:`\epsilon`.

    Shapes:
        ``[B, C, *shape]`` to the same.

    Raises:
        UserError: for a field of another shape, where ``shape`` is given.
    """

    def __init__(
        self, channels: int, shape: Sequence[int] | None = None, *, eps: float = 1e-6
    ) -> None:
        super().__init__()
        self.shape = None if shape is None else (channels, *shape)
        self.eps = eps
        size = self.shape or (channels,)
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise every sample."""
        if self.shape is None:
            return nn.functional.group_norm(x, 1, self.weight, self.bias, self.eps)
        if x.shape[1:] != self.shape:
            raise UserError(
                f"a field of shape {tuple(x.shape[1:])} (channels, grid, time) at a "
                f"Layer-Norm made for {self.shape}",
                "the grid and time steps of training",
                "use these, or train with norm: channel",
            )
        return nn.functional.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        size = f"shape={self.shape}" if self.shape else f"{self.weight.numel()}"
        return f"{size}, eps={self.eps}"


class MixerBlock(nn.Module):
    r"""One round of mixing tokens and channels, with a residual.

    .. math:: v' = \sigma(\mathrm{Norm}(\mathrm{Mix}(v)) + \mathrm{Res}(v))

    The frame of table 5 in "Non-equispaced Fourier Neural Solvers for PDEs":
    :math:`\mathrm{Mix}` is token mixing, channel mixing and token demixing.

    Args:
        mix: mixes tokens and channels, ``[B, C, *n]`` to the same.
        norm: normalises a field; ``None`` for none.
        residual: the residual branch; a 1×1 convolution or the identity.
        activation: :math:`\sigma`; ``None`` for none.
    """

    def __init__(
        self,
        mix: nn.Module,
        *,
        norm: nn.Module | None = None,
        residual: nn.Module | None = None,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.mix = mix
        self.norm = norm
        self.residual = residual
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Mix a field ``[B, C, *n]``."""
        mixed = self.mix(x)
        if self.norm is not None:
            mixed = self.norm(mixed)
        mixed = mixed + (x if self.residual is None else self.residual(x))
        return mixed if self.activation is None else self.activation(mixed)
