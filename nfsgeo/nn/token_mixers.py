"""Patches as tokens, and token mixing of Vision Mixers without spectral layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.nn.mixer_block import Pointwise

__all__ = [
    "FourierTokens",
    "GlobalFilter",
    "ModulusGELU",
    "PatchEmbedding",
    "PatchUnembedding",
    "RealPart",
    "SplitComplex",
    "TokenMLP",
    "patches_of",
]


def patches_of(sizes: Sequence[int], patch: Sequence[int]) -> tuple[int, ...]:
    """Number of patches along each axis.

    Args:
        sizes: of a field, space first, then time.
        patch: nodes of a patch along each axis.

    Raises:
        UserError: when patches do not fill the field.
    """
    pairs = list(zip(sizes, patch, strict=False))
    if len(sizes) != len(patch) or any(n % p for n, p in pairs):
        raise UserError(
            f"patches of {tuple(patch)} on {tuple(sizes)} nodes and time steps",
            "sizes that the patches divide",
            "set model.settings.patch and time_patch, or change grid and time steps",
        )
    return tuple(n // p for n, p in pairs)


class PatchEmbedding(nn.Module):
    r"""Makes a token of every patch: GELU of one linear map of its nodes.

    .. math:: v'_P = \sigma(W \, [v(x)]_{x \in P} + b)

    Patchwise embedding of table 5 in "Non-equispaced Fourier Neural Solvers for
    PDEs"; a convolution whose stride is its size.

    Args:
        channels: :math:`C`.
        patch: nodes of a patch along each axis, space first, then time.

    Shapes:
        ``[B, C, n_1, ..., n_d]`` to ``[B, C, n_1 / p_1, ..., n_d / p_d]``.

    Raises:
        UserError: when patches do not fill the grid.
    """

    def __init__(self, channels: int, patch: Sequence[int]) -> None:
        super().__init__()
        self.patch = tuple(patch)
        self.linear = Pointwise(channels * math.prod(self.patch), channels)
        self.activation = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """Embed the patches; see the class for shapes."""
        dim = len(self.patch)
        patches_of(x.shape[2:], self.patch)
        for axis, p in reversed(list(enumerate(self.patch))):
            x = x.unflatten(2 + axis, (-1, p))
        # [B, C, m_1, p_1, ...] to [B, C, p_1, ..., p_d, m_1, ..., m_d].
        within = [3 + 2 * axis for axis in range(dim)]
        across = [2 + 2 * axis for axis in range(dim)]
        x = x.permute(0, 1, *within, *across).flatten(1, 1 + dim)
        return self.activation(self.linear(x))


class PatchUnembedding(nn.Module):
    r"""Makes a patch of every token: one linear map, GELU, rearrangement.

    .. math:: [v(x)]_{x \in P} = \sigma(W \, v'_P + b)

    Back-sampling of table 5 in "Non-equispaced Fourier Neural Solvers for PDEs".

    Args:
        channels: :math:`C`.
        patch: nodes of a patch along each axis, space first, then time.

    Shapes:
        ``[B, C, m_1, ..., m_d]`` to ``[B, C, m_1 p_1, ..., m_d p_d]``.
    """

    def __init__(self, channels: int, patch: Sequence[int]) -> None:
        super().__init__()
        self.patch = tuple(patch)
        self.channels = channels
        self.linear = Pointwise(channels, channels * math.prod(self.patch))
        self.activation = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """Spread the tokens over their patches; see the class for shapes."""
        dim = len(self.patch)
        x = self.activation(self.linear(x))
        x = x.unflatten(1, (self.channels, *self.patch))
        # [B, C, p_1, ..., p_d, m_1, ..., m_d] to [B, C, m_1, p_1, ...].
        pairs = [axis for i in range(dim) for axis in (2 + dim + i, 2 + i)]
        x = x.permute(0, 1, *pairs)
        for axis in range(dim):
            x = x.flatten(2 + axis, 3 + axis)
        return x


class TokenMLP(nn.Module):
    r"""A full matrix over tokens, the same for every channel.

    .. math:: v'(x) = \sum_{x'} W_{x x'} \, v(x') + b_x

    The token mixing of "MLP-Mixer: An all-MLP Architecture for Vision" with one
    layer. It has the square of the number of tokens in weights, and holds for one
    grid and number of time steps.

    Args:
        sizes: of grid and time.

    Shapes:
        ``[B, C, *sizes]`` to the same.

    Raises:
        UserError: for a field of other sizes.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        tokens = math.prod(self.sizes)
        self.linear = nn.Linear(tokens, tokens)

    def forward(self, x: Tensor) -> Tensor:
        """Mix the tokens."""
        _check_sizes(x, self.sizes)
        return self.linear(x.flatten(2)).unflatten(2, self.sizes)

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}"


class GlobalFilter(nn.Module):
    r"""Fourier token mixing, an element-wise product, and the inverse transform.

    .. math:: v' = F^{-1}(W \odot F(v)), \qquad W(k) \in R^C

    After "Global Filter Networks for Image Classification", with real weights: a
    convolution with an even kernel, a kernel for each channel. All frequencies have
    weights, so it holds for one grid and number of time steps.

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
        _check_sizes(x, self.sizes)
        dim = tuple(range(2, x.dim()))
        # FFTs of half precision exist for powers of two on CUDA only.
        exact = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            spectrum = torch.fft.rfftn(x.to(exact), dim=dim)
            filtered = spectrum * self.weight.to(exact)
            return torch.fft.irfftn(filtered, s=self.sizes, dim=dim).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.size(0)}, sizes={self.sizes}"


def _check_sizes(x: Tensor, sizes: tuple[int, ...]) -> None:
    if x.shape[2:] != sizes:
        raise UserError(
            f"tokens {tuple(x.shape[2:])} (grid, time)",
            f"{sizes}, for which the layer is made",
            "use the grid and time steps of training, or a model such as nfs",
        )


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
