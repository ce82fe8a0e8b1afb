"""A global filter: one real weight for each frequency and channel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError

__all__ = ["GlobalFilter"]


class GlobalFilter(nn.Module):
    r"""Fourier token mixing, an element-wise product, and the inverse transform.

    .. math:: v' = F^{-1}(W \odot F(v)), \qquad W(k) \in R^C

    After "Global Filter Networks for Image Classification", with real weights: a
    convolution with an even kernel, a kernel for each channel. All frequencies have
    weights, so it holds for one grid and number of records.

    Args:
        channels: :math:`C`.
        sizes: of grid and time.

    Shapes:
        ``[B, C, *sizes]`` to the same, real.

    Raises:
        UserError: for a field of other sizes.
    """

    def __init__(self, channels: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        # The spectrum of a real field is Hermitian: half of the last axis suffices.
        kept = (*self.sizes[:-1], self.sizes[-1] // 2 + 1)
        self.weight = nn.Parameter(torch.empty(channels, *kept))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights of variance 1, which keep the variance of a field."""
        nn.init.normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Filter every channel."""
        if x.shape[2:] != self.sizes:
            raise UserError(
                f"tokens {tuple(x.shape[2:])} (grid, time)",
                f"{self.sizes}, for which the filter is made",
                "use the grid and records of training, or a model such as nfs",
            )
        dim = tuple(range(2, x.dim()))
        # FFTs of half precision exist for powers of two on CUDA only.
        exact = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            spectrum = torch.fft.rfftn(x.to(exact), dim=dim)
            filtered = spectrum * self.weight.to(exact)
            return torch.fft.irfftn(filtered, s=self.sizes, dim=dim).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.size(0)}, sizes={self.sizes}"
