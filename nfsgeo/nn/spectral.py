"""Convolution in Fourier space with a fixed number of modes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["SpectralConv", "by_product", "mixed_modes", "real_waves"]

# Most frequencies for which a matrix product is faster than an FFT, measured on a CPU
# for axes of 64 to 8192 nodes.
FEW = 64


class SpectralConv(nn.Module):
    r"""Fourier token mixing and channel mixing over the last ``d`` axes.

    The layer :math:`F^{-1}(R_\phi \cdot F(v))` of equation (5) in "Non-equispaced
    Fourier Neural Solvers for PDEs" (Lin et al., 2022), after "Fourier Neural Operator
    for Parametric Partial Differential Equations" (Li et al., 2021):

    .. math:: \hat w(k) = R(k) \, \hat v(k), \qquad |k_l| \le k_{max,l}

    The spectrum of a real field is Hermitian, so that the last axis keeps the
    frequencies :math:`0 \dots m_d - 1`. Every other axis keeps
    :math:`-m_l \dots m_l - 1`, with separate weights for negative frequencies. A grid
    that is too small for all modes uses those that it has, so that the layer works at
    any resolution.

    Args:
        in_channels: channels of the input, :math:`C`.
        out_channels: channels of the result, :math:`C'`.
        modes: :math:`m_1 \dots m_d`, the number of non-negative frequencies kept on
            each of the :math:`d` transformed axes.

    Attributes:
        weight: :math:`R`, ``[2 m_1, ..., m_d, C, C', 2]``; the last axis holds real and
            imaginary parts, which optimisers and exported programs may treat as any
            other real numbers.

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
        sizes = [2 * m for m in self.modes[:-1]] + [self.modes[-1]]
        # Modes lead: the product is then one batched matrix product.
        self.weight = nn.Parameter(torch.empty(*sizes, in_channels, out_channels, 2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw both parts from a normal distribution of variance 1 / (2 C C')."""
        std = 1 / math.sqrt(2 * self.in_channels * self.out_channels)
        nn.init.normal_(self.weight, std=std)

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
            # FFTs in half precision exist only on CUDA, for powers of two.
            x = x.float()
        with torch.autocast(x.device.type, enabled=False):
            return self._convolve(x).to(dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        """Convolve, with complex numbers as pairs of real ones for export."""
        sizes, num_modes = x.shape[2:], self._num_modes(x.shape[2:])
        others = range(len(num_modes) - 1)
        # The last axis comes first, since it keeps the fewest frequencies.
        parts = _real_transform(x, num_modes[-1])
        for axis in reversed(others):
            parts = _transform(parts, axis + 2, num_modes[axis])
        modes = parts.movedim((0, 1), (-3, -2)).flatten(0, -4)
        weight = self._weight(num_modes).to(x.dtype).flatten(0, -4)
        parts = (
            mixed_modes(modes, weight).unflatten(0, num_modes).movedim((-3, -2), (0, 1))
        )
        for axis in others:
            parts = _inverse(parts, axis + 2, sizes[axis])
        return _real_inverse(parts, sizes[-1])

    def _num_modes(self, sizes: Sequence[int]) -> list[int]:
        """Return the number of frequencies on every axis of a grid."""
        num_modes = [
            min(2 * m, n) for m, n in zip(self.modes[:-1], sizes[:-1], strict=True)
        ]
        return [*num_modes, min(self.modes[-1], sizes[-1] // 2 + 1)]

    def _weight(self, num_modes: list[int]) -> Tensor:
        """Return the weights of the frequencies of a grid, ``[*k, C, C', 2]``."""
        weight: Tensor = self.weight
        for axis, size in enumerate(num_modes):
            if size < weight.size(axis):
                high, low = (size + 1) // 2, size // 2
                if axis == len(num_modes) - 1:
                    high, low = size, 0
                ends = (weight.narrow(axis, 0, high), weight.narrow(axis, -low, low))
                weight = torch.cat(ends, dim=axis)
        return weight

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, modes={self.modes}"


def mixed_modes(modes: Tensor, weight: Tensor) -> Tensor:
    """Multiply the channels of complex modes by complex matrices.

    Args:
        modes: modes ``[K, B, C, 2]``, with real and imaginary parts as the last axis.
        weight: matrices ``[K, C, C', 2]``, likewise.
    """
    if not torch.compiler.is_exporting():
        weight, modes = (
            torch.view_as_complex(parts.contiguous()) for parts in (weight, modes)
        )
        return torch.view_as_real(torch.bmm(modes, weight))
    real, imaginary = weight.unbind(-1)
    # Complex multiplication as a real 2x2 matrix.
    matrix = torch.stack([real, imaginary, -imaginary, real], dim=-1)
    matrix = matrix.unflatten(-1, (2, 2)).transpose(2, 3).flatten(3, 4).flatten(1, 2)
    return torch.bmm(modes.flatten(2), matrix).unflatten(2, (-1, 2))


def _real_transform(x: Tensor, num_modes: int) -> Tensor:
    """Transform the last axis to the lowest ``num_modes`` frequencies, from 0."""
    if by_product(num_modes):
        return (x @ real_waves(x.size(-1), num_modes, x)[0]).unflatten(
            -1, (num_modes, 2)
        )
    return torch.view_as_real(torch.fft.rfft(x, norm="forward")[..., :num_modes])


def _real_inverse(parts: Tensor, size: int) -> Tensor:
    """Transform the lowest frequencies of the last axis back to a real field."""
    num_modes = parts.size(-2)
    if by_product(num_modes):
        return parts.flatten(-2) @ real_waves(size, num_modes, parts)[1]
    spectrum = torch.view_as_complex(parts.contiguous())
    return torch.fft.irfft(spectrum, n=size, norm="forward")


def _transform(parts: Tensor, axis: int, num_modes: int) -> Tensor:
    """Transform an axis to its lowest ``num_modes`` frequencies, over its length.

    The first ``ceil(num_modes / 2)`` are 0, 1, ... and the others ..., -2, -1.
    """
    size, low = parts.size(axis), num_modes // 2
    if torch.compiler.is_exporting():
        waves = _rotations(num_modes, size, parts, -1).transpose(0, 2)
        return _along(axis, parts, waves / size)
    spectrum = torch.view_as_complex(parts.contiguous())
    spectrum = torch.fft.fft(spectrum, dim=axis, norm="forward")
    ends = (
        spectrum.narrow(axis, 0, num_modes - low),
        spectrum.narrow(axis, size - low, low),
    )
    return torch.view_as_real(torch.cat(ends, dim=axis))


def _inverse(parts: Tensor, axis: int, size: int) -> Tensor:
    """Transform the lowest frequencies of an axis back to ``size`` nodes."""
    num_modes = parts.size(axis)
    low = num_modes // 2
    if torch.compiler.is_exporting():
        return _along(axis, parts, _rotations(num_modes, size, parts))
    spectrum = torch.view_as_complex(parts.contiguous())
    shape = [*spectrum.shape[:axis], size - num_modes, *spectrum.shape[axis + 1 :]]
    ends = spectrum.split([num_modes - low, low], dim=axis)
    spectrum = torch.cat([ends[0], spectrum.new_zeros(shape), ends[1]], dim=axis)
    return torch.view_as_real(torch.fft.ifft(spectrum, dim=axis, norm="forward"))


def real_waves(size: int, num_modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real Fourier transform of few frequencies and its inverse.

    Args:
        size: nodes of the axis, :math:`n`.
        num_modes: frequencies 0 to :math:`k - 1`.
        like: tensor whose type and device the result has.

    Returns:
        Matrices ``[n, 2 k]``, divided by ``n``, and ``[2 k, n]``, with alternating real
        and imaginary parts.
    """
    # Made on the device, so that a step copies nothing from the host.
    place, frequency = (
        torch.arange(num, dtype=torch.float64, device=like.device)
        for num in (size, num_modes)
    )
    angle = torch.outer(place, frequency) * (2 * math.pi / size)
    waves = torch.stack([angle.cos(), -angle.sin()], dim=-1)
    # Frequencies other than 0 and the Nyquist frequency also represent their negatives.
    times = 1.0 + ((frequency > 0) & (2 * frequency != size))
    inverse = (waves * times[:, None]).flatten(1).T
    return (waves.flatten(1) / size).to(like), inverse.to(like)


def _rotations(num_modes: int, size: int, like: Tensor, sign: int = 1) -> Tensor:
    """Return complex waves at the nodes as real matrices ``[k, 2, n, 2]``."""
    places, frequency = (
        torch.arange(num, dtype=torch.float64, device=like.device)
        for num in (size, num_modes)
    )
    frequency = torch.where(
        frequency < num_modes - num_modes // 2, frequency, frequency - num_modes
    )
    angle = torch.outer(frequency, places) * (sign * 2 * math.pi / size)
    cosine, sine = angle.cos(), angle.sin()
    rotations = torch.stack([cosine, sine, -sine, cosine], dim=-1)
    return rotations.unflatten(-1, (2, 2)).transpose(1, 2).to(like)


def _along(axis: int, parts: Tensor, matrix: Tensor) -> Tensor:
    """Multiply one axis of ``parts [..., 2]`` by ``matrix [from, 2, to, 2]``."""
    rows = parts.movedim(axis, -2).flatten(-2)
    mapped = rows @ matrix.flatten(2).flatten(0, 1)
    return mapped.unflatten(-1, (-1, 2)).movedim(-2, axis)


def by_product(num_modes: int) -> bool:
    """Return whether to transform by a matrix product instead of an FFT.

    It is faster for few frequencies, above all in the backward pass, because the
    gradient of a real FFT is a complex FFT. Exported programs may lack complex numbers.
    """
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return torch.compiler.is_exporting()
    return torch.get_float32_matmul_precision() == "highest" and num_modes <= FEW
