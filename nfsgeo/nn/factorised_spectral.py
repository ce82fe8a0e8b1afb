"""Convolution in Fourier space along each axis alone."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from nfsgeo.nn.spectral import SpectralConv

__all__ = ["FactorisedSpectralConv"]


class FactorisedSpectralConv(nn.Module):
    r"""The sum of Fourier convolutions along each of the last ``d`` axes.

    .. math:: w = \sum_{l=1}^{d} F_l^{-1}\big(R_l(k_l) \cdot F_l(v)\big),
        \qquad |k_l| < m_l

    The layer of "Factorized Fourier Neural Operators". It has
    :math:`\sum_l m_l C C'` complex weights where
    :class:`~nfsgeo.nn.SpectralConv` has :math:`2^{d-1} \prod_l m_l C C'`: with few
    training samples it generalises better, and it takes less time for each step. One
    layer mixes nodes that differ in one coordinate; two layers mix all nodes. In one
    dimension both are the same.

    Args:
        in_channels: channels of the input, :math:`C`.
        out_channels: channels of the result, :math:`C'`.
        modes: :math:`m_1 \dots m_d`, the number of frequencies kept on each of the
            :math:`d` transformed axes.

    Attributes:
        axes: the convolution along each axis, with weights of its own.

    Shapes:
        ``[B, C, n_1, ..., n_d]`` to ``[B, C', n_1, ..., n_d]``, real.

    Raises:
        ValueError: when the modes or the input do not fit.
    """

    def __init__(
        self, in_channels: int, out_channels: int, modes: Sequence[int]
    ) -> None:
        super().__init__()
        if not modes:
            raise ValueError("modes is (); expected a number for each transformed axis")
        self.axes = nn.ModuleList(
            SpectralConv(in_channels, out_channels, [number]) for number in modes
        )

    def reset_parameters(self) -> None:
        """Draw the weights of every axis anew."""
        for convolution in self.axes:
            convolution.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Mix tokens and channels; see the class for shapes."""
        if x.dim() != len(self.axes) + 2:
            raise ValueError(
                f"input has shape {tuple(x.shape)}; expected [B, C] and "
                f"{len(self.axes)} axes"
            )
        mixed = [
            _along(convolution, x, axis)
            for axis, convolution in enumerate(self.axes, 2)
        ]
        return sum(mixed[1:], start=mixed[0])


def _along(convolution: nn.Module, x: Tensor, axis: int) -> Tensor:
    """The convolution of every line of nodes along an axis."""
    lines = x.movedim((1, axis), (-2, -1))
    mixed: Tensor = convolution(lines.flatten(0, -3)).unflatten(0, lines.shape[:-2])
    return mixed.movedim((-2, -1), (1, axis))
