"""Convolution in Fourier space, evaluated directly at irregular points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nfsgeo.errors import check_shape
from nfsgeo.geometry import Domain

__all__ = ["PointSpectralConv", "PointWaves"]


@dataclass(frozen=True, eq=False)
class PointWaves:
    r"""Fourier modes at irregular points: Vandermonde matrices of a batch.

    .. math:: V_{jk} = e^{2 \pi i \, k \cdot (x_j - x_0) / L}

    "Beyond Regular Grids: Fourier-Based Neural Operators on Arbitrary Domains" (Lingsch
    et al., 2024), section 3. The transform is :math:`\frac{1}{n} V^H`, and :math:`V`
    its synthesis. On an equispaced grid of a torus they are the discrete Fourier
    transform and its inverse.

    Attributes:
        matrix: complex matrix ``[N, K]``.
        sizes: number of points of each of the :math:`B` samples.
    """

    matrix: Tensor
    sizes: tuple[int, ...]

    @classmethod
    def of(
        cls,
        pos: Tensor,
        sizes: Sequence[int],
        domain: Domain,
        frequencies: Sequence[Sequence[int]],
    ) -> PointWaves:
        """Evaluate the modes for all combinations of frequencies of the axes.

        Args:
            pos: points ``[N, d]``.
            sizes: number of points of each sample.
            domain: box whose lengths are the periods.
            frequencies: integers for every axis; the last axis runs fastest.
        """
        check_shape("pos", pos, sum(sizes), domain.dim)
        matrix = torch.ones(len(pos), 1, dtype=torch.complex64, device=pos.device)
        matrix = matrix.to(torch.promote_types(pos.dtype, torch.complex64))
        ends = zip(frequencies, domain.lower, domain.lengths, strict=True)
        for axis, (numbers, lower, length) in enumerate(ends):
            turns = (pos[:, axis] - lower) * (2 * math.pi / length)
            angle = turns[:, None] * torch.tensor(numbers, device=pos.device)
            waves = torch.polar(torch.ones_like(angle), angle)
            matrix = (matrix[:, :, None] * waves[:, None]).flatten(1)
        return cls(matrix, tuple(sizes))

    def analyse(self, x: Tensor) -> Tensor:
        """Transform fields ``[N, D]`` to coefficients ``[B, K, D]``."""
        x = x.to(self.matrix.dtype)
        samples = zip(
            *(tensor.split(self.sizes) for tensor in (self.matrix, x)), strict=True
        )
        return torch.stack([waves.mH @ field / len(field) for waves, field in samples])

    def synthesise(self, coefficients: Tensor) -> Tensor:
        """Evaluate complex fields ``[N, D]`` from coefficients ``[B, K, D]``."""
        samples = zip(self.matrix.split(self.sizes), coefficients, strict=True)
        return torch.cat([waves @ values for waves, values in samples])


class PointSpectralConv(nn.Module):
    r"""Spectral convolution of the Fourier Neural Operator at irregular points.

    .. math:: y = \mathrm{Re} \, V \, R \cdot \frac{1}{n} V^H x

    Direct spectral evaluation, "Beyond Regular Grids: Fourier-Based Neural Operators
    on Arbitrary Domains", section 3. The time steps are equispaced and transformed by
    the FFT. On a grid it equals :class:`~nfsgeo.nn.SpectralConv` over space and time.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        modes: number of non-negative frequencies kept on each space axis.
        time_modes: frequencies kept in time; ``None`` without a time axis.

    Attributes:
        weight: :math:`R`, real and imaginary parts as the last axis, as in
            :class:`~nfsgeo.nn.SpectralConv`.

    Shapes:
        ``x`` ``[N, T, in_channels]`` to ``[N, T, out_channels]``, real.
    """

    factor: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        modes: Sequence[int],
        time_modes: int | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.modes, self.time_modes = tuple(modes), time_modes
        frequencies = list(itertools.product(*self.frequencies()))
        shape = len(frequencies), time_modes or 1, in_channels, out_channels
        self.weight = nn.Parameter(torch.empty(*shape, 2))
        # The conjugate half of a spectrum contributes equally to the real part.
        alone = [time_modes is not None or mode[-1] == 0 for mode in frequencies]
        factor = 2.0 - torch.tensor(alone, dtype=torch.float32)
        self.register_buffer("factor", factor, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw both parts from a normal distribution of variance 1 / (2 C C')."""
        std = 1 / math.sqrt(2 * self.in_channels * self.out_channels)
        nn.init.normal_(self.weight, std=std)

    def frequencies(self) -> list[list[int]]:
        """Return the frequencies of every space axis, in the order of the weights.

        The spectrum of a real field is Hermitian, so that the last axis (time, if there
        is one) needs no negative frequencies.
        """
        numbers = [[*range(m), *range(-m, 0)] for m in self.modes]
        if self.time_modes is None:
            numbers[-1] = numbers[-1][: self.modes[-1]]
        return numbers

    def forward(self, x: Tensor, waves: PointWaves) -> Tensor:
        """Convolve ``x``, with ``waves`` made for :meth:`frequencies`."""
        check_shape("x", x, "N", "T", self.in_channels)
        check_shape("matrix of the waves", waves.matrix, x.size(0), len(self.weight))
        dtype = x.dtype
        with torch.autocast(x.device.type, enabled=False):
            return self._convolve(x.to(waves.matrix.real.dtype), waves).to(dtype)

    def _convolve(self, x: Tensor, waves: PointWaves) -> Tensor:
        steps = x.size(1)
        if self.time_modes is not None:
            num_modes = min(self.time_modes, steps // 2 + 1)
            spectrum = torch.fft.rfft(x, dim=1, norm="forward")[:, :num_modes]
        else:
            num_modes, spectrum = 1, x
        modes = waves.analyse(spectrum.flatten(1)).unflatten(2, (num_modes, -1))
        weight = torch.view_as_complex(self.weight[:, :num_modes].to(modes.real.dtype))
        mixed = torch.einsum("bktc,ktco->bkto", modes, weight)
        mixed = mixed * self.factor[:, None, None].to(modes.real.dtype)
        out = waves.synthesise(mixed.flatten(2)).unflatten(1, (num_modes, -1))
        if self.time_modes is None:
            return out.real
        return torch.fft.irfft(out, n=steps, dim=1, norm="forward")

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, modes={self.modes}, "
            f"time_modes={self.time_modes}"
        )
