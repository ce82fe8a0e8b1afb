"""Convolution in Fourier space with a fixed number of modes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["SpectralConv"]


class SpectralConv(nn.Module):
    r"""Fourier token mixing and channel mixing over the last ``d`` axes.

    The layer :math:`F^{-1}(R_\phi \cdot F(v))` of equation (5) in "Non-equispaced
    Fourier Neural Solvers for PDEs", after "Fourier Neural Operator for Parametric
    Partial Differential Equations":

    .. math:: \hat w(k) = R(k) \, \hat v(k), \qquad |k_l| \le k_{max,l}

    The spectrum of a real field is Hermitian, so the last axis keeps the
    frequencies :math:`0 \dots m_d - 1`. Every other axis keeps
    :math:`-m_l \dots m_l - 1`, with weights of its own for each frequency:
    negative frequencies are true ones, not copies of the positive. A grid too small
    for all of the modes uses those that it has, so the layer works at any
    resolution.

    Args:
        in_channels: channels of the input, :math:`C`.
        out_channels: channels of the result, :math:`C'`.
        modes: :math:`m_1 \dots m_d`, the number of non-negative frequencies kept on
            each of the :math:`d` transformed axes.

    Shapes:
        ``[B, C, n_1, ..., n_d]`` to ``[B, C', n_1, ..., n_d]``, real.

    Raises:
        ValueError: when the modes or the input do not fit.
    """

    def __init__(
        self, in_channels: int, out_channels: int, modes: Sequence[int]
    ) -> None:
        super().__init__()
        if not modes or min(modes) < 1:
            raise ValueError(
                f"modes is {tuple(modes)}; expected one positive number for each "
                "transformed axis"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.modes = tuple(modes)
        kept = [2 * m for m in self.modes[:-1]] + [self.modes[-1]]
        # Modes lead: the product is then one batched matrix product.
        self.weight = nn.Parameter(
            torch.empty(*kept, in_channels, out_channels, dtype=torch.cfloat)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both parts from a centred normal law of variance 1 / (2 C C')."""
        std = 1 / math.sqrt(2 * self.in_channels * self.out_channels)
        nn.init.normal_(torch.view_as_real(self.weight.data), std=std)

    def forward(self, x: Tensor) -> Tensor:
        """Mix tokens and channels; see the class for shapes."""
        dim = len(self.modes)
        if x.dim() != dim + 2 or x.size(1) != self.in_channels:
            raise ValueError(
                f"input has shape {tuple(x.shape)}; expected [B, {self.in_channels}, "
                f"{', '.join(f'n_{i + 1}' for i in range(dim))}]"
            )
        dtype = x.dtype
        if dtype in (torch.float16, torch.bfloat16):
            # FFTs of half precision exist for powers of two on CUDA only.
            x = x.float()
        with torch.autocast(x.device.type, enabled=False):
            return self._convolve(x).to(dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        dim, sizes = len(self.modes), x.shape[2:]
        kept = self._frequencies(sizes, x.device)
        weight: Tensor = self.weight
        # Axis by axis, dropping what is not kept before the next: less to transform.
        spectrum = torch.fft.rfft(x, dim=-1, norm="forward")
        last = min(self.modes[-1], spectrum.size(-1))
        spectrum = spectrum[..., :last]
        weight = weight.narrow(dim - 1, 0, last)
        for axis, (rows, columns) in enumerate(kept):
            spectrum = torch.fft.fft(spectrum, dim=2 + axis, norm="forward")
            spectrum = spectrum.index_select(2 + axis, rows)
            weight = weight.index_select(axis, columns)
        mixed = self._mix(spectrum, weight)
        for axis, (rows, _) in reversed(list(enumerate(kept))):
            shape = list(mixed.shape)
            shape[2 + axis] = sizes[axis]
            padded = mixed.new_zeros(shape).index_copy(2 + axis, rows, mixed)
            mixed = torch.fft.ifft(padded, dim=2 + axis, norm="forward")
        return torch.fft.irfft(mixed, n=sizes[-1], dim=-1, norm="forward")

    def _frequencies(
        self, sizes: torch.Size, device: torch.device
    ) -> list[tuple[Tensor, Tensor]]:
        """Rows of the spectrum that are kept, and the weights that they meet."""
        kept = []
        for m, n in zip(self.modes[:-1], sizes[:-1], strict=True):
            # On a grid of n points, -n/2 and n/2 are one frequency: keep the negative.
            low, high = min(m, n // 2), min(m, (n + 1) // 2)
            frequency = torch.cat(
                [
                    torch.arange(high, device=device),
                    torch.arange(-low, 0, device=device),
                ]
            )
            kept.append((frequency % n, frequency % (2 * m)))
        return kept

    @staticmethod
    def _mix(spectrum: Tensor, weight: Tensor) -> Tensor:
        """Multiply every mode by its matrix: ``[B, C, *k]`` to ``[B, C', *k]``."""
        modes = spectrum.shape[2:]
        flat = spectrum.flatten(2).permute(2, 0, 1)
        mixed = torch.bmm(flat, weight.flatten(0, -3).to(flat.dtype))
        return mixed.permute(1, 2, 0).unflatten(2, modes)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, modes={self.modes}"
