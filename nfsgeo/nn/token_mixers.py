"""Patch embeddings and token mixing of Vision Mixers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError, check_shape
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
    """Return the number of patches along each axis.

    Args:
        sizes: sizes of a field, space first, then time.
        patch: nodes of a patch along each axis.

    Raises:
        UserError: when patches do not divide the field.
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
    r"""Maps every patch to a token by a linear map and GELU.

    .. math:: v'_P = \sigma(W \, [v(x)]_{x \in P} + b)

    Patchwise embedding of table 5 in "Non-equispaced Fourier Neural Solvers for PDEs"
    (Lin et al., 2022); a convolution whose stride is its size.

    Args:
        channels: :math:`C`.
        patch: nodes of a patch along each axis, space first, then time.

    Shapes:
        ``[B, C, n_1, ..., n_d]`` to ``[B, C, n_1 / p_1, ..., n_d / p_d]``.

    Raises:
        UserError: when patches do not divide the grid.
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
        check_shape("x", x, "B", self.linear.out_features, *["n"] * dim)
        for axis, p in reversed(list(enumerate(self.patch))):
            x = x.unflatten(2 + axis, (-1, p))
        # [B, C, m_1, p_1, ...] to [B, C, p_1, ..., p_d, m_1, ..., m_d].
        within = [3 + 2 * axis for axis in range(dim)]
        across = [2 + 2 * axis for axis in range(dim)]
        x = x.permute(0, 1, *within, *across).flatten(1, 1 + dim)
        return self.activation(self.linear(x))


class PatchUnembedding(nn.Module):
    r"""Maps every token to a patch by a linear map and GELU.

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
        """Map the tokens to patches; see the class for shapes."""
        dim = len(self.patch)
        check_shape("x", x, "B", self.channels, *["m"] * dim)
        x = self.activation(self.linear(x))
        x = x.unflatten(1, (self.channels, *self.patch))
        # [B, C, p_1, ..., p_d, m_1, ..., m_d] to [B, C, m_1, p_1, ...].
        pairs = [axis for i in range(dim) for axis in (2 + dim + i, 2 + i)]
        x = x.permute(0, 1, *pairs)
        for axis in range(dim):
            x = x.flatten(2 + axis, 3 + axis)
        return x


class TokenMLP(nn.Module):
    r"""A dense matrix over tokens, shared by all channels.

    .. math:: v'(x) = \sum_{x'} W_{x x'} \, v(x') + b_x

    The token mixing of "MLP-Mixer: An all-MLP Architecture for Vision" (Tolstikhin et
    al., 2021) with one layer. The number of weights is the square of the number of
    tokens. The layer works on one grid and one number of time steps.

    Args:
        sizes: sizes of grid and time.

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
    r"""Element-wise product in Fourier space.

    .. math:: v' = F^{-1}(W \odot F(v)), \qquad W(k) \in R^C

    "Global Filter Networks for Image Classification" (Rao et al., 2021), with real
    weights: a convolution with an even kernel for each channel. All frequencies have
    weights, so that the layer works on one grid and one number of time steps.

    Args:
        channels: :math:`C`.
        sizes: sizes of grid and time.

    Shapes:
        ``[B, C, *sizes]`` to the same, real.

    Raises:
        UserError: for a field of other sizes.
    """

    def __init__(self, channels: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        # Half of the last axis suffices, since the spectrum is Hermitian.
        shape = (*self.sizes[:-1], self.sizes[-1] // 2 + 1)
        self.weight = nn.Parameter(torch.empty(channels, *shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights with variance 1, which preserves that of a field."""
        nn.init.normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Filter every channel."""
        _check_sizes(x, self.sizes)
        check_shape("x", x, "B", self.weight.size(0), *self.sizes)
        dim = tuple(range(2, x.dim()))
        # FFTs in half precision exist only on CUDA, for powers of two.
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
    r"""Fourier transform over all axes of grid and time, without weights.

    .. math:: v'(k) = N^{-1/2} \sum_x v(x) \, e^{-2 \pi i k \cdot x}

    The token mixing of "FNet: Mixing Tokens with Fourier Transforms" (Lee-Thorp et al.,
    2022). The transform preserves the sum of squares.

    Shapes:
        ``[B, C, *n]``, real or complex, to the same, complex.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Transform the tokens."""
        if not x.is_complex():
            # FFTs in half precision exist only on CUDA, for powers of two.
            x = x.to(torch.promote_types(x.dtype, torch.float32))
        return torch.fft.fftn(x, dim=tuple(range(2, x.dim())), norm="ortho")


class SplitComplex(nn.Module):
    """Applies separate layers to the real and the imaginary part.

    Args:
        real: layer of the real part.
        imaginary: layer of the imaginary part.

    Shapes:
        ``[B, C, *n]`` to the shape of the layers' results, complex.
    """

    def __init__(self, real: nn.Module, imaginary: nn.Module) -> None:
        super().__init__()
        self.real = real
        self.imaginary = imaginary

    def forward(self, x: Tensor) -> Tensor:
        """Apply both layers."""
        return torch.complex(self.real(x.real), self.imaginary(x.imag))


class ModulusGELU(nn.Module):
    r"""GELU of the modulus minus a bias, which preserves the phase.

    .. math:: \sigma(z) = \mathrm{GELU}(|z| - b_c) \, \frac{z}{|z|}

    This is modReLU of "Unitary Evolution Recurrent Neural Networks" (Arjovsky et al.,
    2016), equation (8), with GELU instead of ReLU.

    Args:
        channels: number of biases :math:`b_c`.

    Shapes:
        ``[B, C, *n]`` complex, to the same.

    Raises:
        ValueError: for a field of another shape or type.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        if not x.is_complex() or x.dim() < 2 or x.size(1) != len(self.bias):
            given = f"a field of shape {tuple(x.shape)} and type {x.dtype}"
            raise ValueError(f"{given}; expected complex [B, {len(self.bias)}, *n]")
        # The small constant makes the modulus smooth at zero.
        modulus = (x.real.square() + x.imag.square() + 1e-12).sqrt()
        bias = self.bias.view(-1, *(1 for _ in x.shape[2:]))
        return x * (nn.functional.gelu(modulus - bias) / modulus)


class RealPart(nn.Module):
    """Takes the real part of a complex field.

    Shapes:
        ``[B, C, *n]`` to the same, real.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the real part."""
        return x.real
