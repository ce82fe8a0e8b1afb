"""Fourier transform as token mixing, and the complex layers that follow it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FourierTokens", "ModulusGELU", "RealPart", "SplitComplex"]


class FourierTokens(nn.Module):
    r"""Full Fourier transform over all axes of grid and time, without weights.

    .. math:: v'(k) = N^{-1/2} \sum_x v(x) \, e^{-2 \pi i k \cdot x}

    The token mixing of "FNet: Mixing Tokens with Fourier Transforms". The transform
    keeps the sum of squares.

    Shapes:
        ``[B, C, *n]``, real or complex, to the same, complex.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Transform the tokens."""
        if not x.is_complex():
            # FFTs of half precision exist for powers of two on CUDA only.
            x = x.to(torch.promote_types(x.dtype, torch.float32))
        return torch.fft.fftn(x, dim=tuple(range(2, x.dim())), norm="ortho")


class SplitComplex(nn.Module):
    """Applies one real layer to the real part, another to the imaginary part.

    Args:
        real: layer of the real part.
        imaginary: layer of the imaginary part.

    Shapes:
        ``[B, C, *n]`` to what the layers make of it, complex.
    """

    def __init__(self, real: nn.Module, imaginary: nn.Module) -> None:
        super().__init__()
        self.real = real
        self.imaginary = imaginary

    def forward(self, x: Tensor) -> Tensor:
        """Apply both; shapes and types as theirs, complex."""
        return torch.complex(self.real(x.real), self.imaginary(x.imag))


class ModulusGELU(nn.Module):
    r"""GELU of the modulus less a bias; the phase stays.

    .. math:: \sigma(z) = \mathrm{GELU}(|z| - b_c) \, \frac{z}{|z|}

    The form of modReLU in "Unitary Evolution Recurrent Neural Networks", equation
    (8), with GELU in its place.

    Args:
        channels: number of biases :math:`b_c`.

    Shapes:
        ``[B, C, *n]`` complex, to the same.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        # Smooth at zero, where the modulus is not.
        modulus = (x.real.square() + x.imag.square() + 1e-12).sqrt()
        bias = self.bias.view(-1, *(1 for _ in x.shape[2:]))
        return x * (nn.functional.gelu(modulus - bias) / modulus)


class RealPart(nn.Module):
    """The real part of a complex field, on the way out of complex layers.

    Shapes:
        ``[B, C, *n]`` to the same, real.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The real part."""
        return x.real
