"""The block that all Vision Mixers share."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["MixerBlock"]


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
