"""Convolution in Fourier space with a fixed number of modes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["SpectralConv", "real_waves"]

# Most frequencies of an axis that a matrix product gives sooner than an FFT; measured
# on a CPU, for axes of 64 to 8192 nodes.
FEW = 64


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
        kept = [2 * m for m in self.modes[:-1]] + [self.modes[-1]]
        # Modes lead: the product is then one batched matrix product.
        self.weight = nn.Parameter(torch.empty(*kept, in_channels, out_channels, 2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both parts from a centred normal law of variance 1 / (2 C C')."""
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
            # FFTs of half precision exist for powers of two on CUDA only.
            x = x.float()
        with torch.autocast(x.device.type, enabled=False):
            return self._convolve(x).to(dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            # Exported programs may know no complex numbers.
            return self._convolve_by_products(x)
        sizes, kept = x.shape[2:], self._kept(x.shape[2:])
        # The last axis first: few of its frequencies go on to the others.
        spectrum = _real_transform(x, kept[-1])
        others = tuple(range(2, x.dim() - 1))
        if others:
            spectrum = torch.fft.fftn(spectrum, dim=others, norm="forward")
        modes = _Gather.apply(spectrum, kept)
        weight = torch.view_as_complex(self._weight(kept).to(x.dtype))
        mixed = torch.bmm(modes.flatten(0, -3), weight.flatten(0, -3))
        spectrum = _Scatter.apply(mixed.unflatten(0, kept), spectrum.shape[2:])
        if others:
            spectrum = torch.fft.ifftn(spectrum, dim=others, norm="forward")
        return _real_inverse(spectrum, sizes[-1])

    def _convolve_by_products(self, x: Tensor) -> Tensor:
        """The same by products of real matrices alone, parts in a last axis."""
        sizes = x.shape[2:]
        kept, last = self._kept(sizes), len(sizes) - 1
        parts = torch.stack([x, torch.zeros_like(x)], dim=-1)
        for axis, (size, k) in enumerate(zip(sizes, kept, strict=True)):
            waves = _turns(-_frequencies(k, axis == last), size, x)
            parts = _along(axis + 2, parts, waves.transpose(0, 2) / size)
        weight = self._weight(kept).to(x.dtype)
        real, imaginary = weight.flatten(0, -4).unbind(-1)
        # What a complex number does to the parts of another.
        turn = torch.stack([real, imaginary, -imaginary, real], dim=-1)
        turn = turn.unflatten(-1, (2, 2)).transpose(2, 3)
        modes = parts.movedim((0, 1), (-3, -2)).flatten(-2).flatten(0, -3)
        modes = torch.bmm(modes, turn.flatten(3, 4).flatten(1, 2))
        parts = modes.unflatten(0, kept).unflatten(-1, (-1, 2))
        parts = parts.movedim((-3, -2), (0, 1))
        for axis, (size, k) in enumerate(zip(sizes, kept, strict=True)):
            frequency = _frequencies(k, axis == last)
            waves = _turns(frequency, size, x)
            if axis == last:
                times = _times(frequency, size, x.dtype).to(x.device)
                waves = waves * times[:, None, None, None]
            parts = _along(axis + 2, parts, waves)
        return parts[..., 0]

    def _kept(self, sizes: Sequence[int]) -> list[int]:
        """Frequencies on every axis, of those that a grid has."""
        kept = [min(2 * m, n) for m, n in zip(self.modes[:-1], sizes[:-1], strict=True)]
        return [*kept, min(self.modes[-1], sizes[-1] // 2 + 1)]

    def _weight(self, kept: list[int]) -> Tensor:
        """The weights of the frequencies that a grid has, ``[*k, C, C', 2]``."""
        weight: Tensor = self.weight
        for axis, size in enumerate(kept):
            if size < weight.size(axis):
                high, low = (size + 1) // 2, size // 2
                if axis == len(kept) - 1:
                    high, low = size, 0
                ends = (weight.narrow(axis, 0, high), weight.narrow(axis, -low, low))
                weight = torch.cat(ends, dim=axis)
        return weight

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, modes={self.modes}"


def _real_transform(x: Tensor, kept: int) -> Tensor:
    """Frequencies 0 to ``kept - 1`` of the last axis, over its length: complex."""
    size = x.size(-1)
    if not _by_product(kept):
        return torch.fft.rfft(x, norm="forward")[..., :kept]
    analysis, _ = real_waves(size, kept, x)
    return torch.view_as_complex((x @ analysis).unflatten(-1, (kept, 2)))


def _real_inverse(spectrum: Tensor, size: int) -> Tensor:
    """The real field with these lowest frequencies along the last axis."""
    kept = spectrum.size(-1)
    if not _by_product(kept):
        return torch.fft.irfft(spectrum, n=size, norm="forward")
    parts = torch.view_as_real(spectrum)
    return parts.flatten(-2) @ real_waves(size, kept, parts)[1]


def real_waves(size: int, kept: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """The real Fourier transform of few frequencies, and its inverse, as matrices.

    Args:
        size: nodes of the axis, :math:`n`.
        kept: frequencies 0 to :math:`k - 1`.
        like: a tensor of the type and device wanted.

    Returns:
        ``[n, 2 k]`` over the length, real and imaginary parts alternating, and
        ``[2 k, n]``.
    """
    # Nothing is made on the host and copied in a step.
    place, frequency = (
        torch.arange(num, dtype=torch.float64, device=like.device)
        for num in (size, kept)
    )
    angle = torch.outer(place, frequency) * (2 * math.pi / size)
    waves = torch.stack([angle.cos(), -angle.sin()], dim=-1)
    times = _times(frequency, size, waves.dtype)[:, None]
    return (waves.flatten(1) / size).to(like), (waves * times).flatten(1).T.to(like)


def _times(frequency: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Multiplicity of every frequency in the half spectrum of a real field.

    All but the first, and the last of an even size, represent their negatives, too.
    """
    return 1 + ((frequency > 0) & (2 * frequency != size)).to(dtype)


def _frequencies(kept: int, last: bool) -> Tensor:
    """Those that an axis keeps, in their order: only the last has no negative ones."""
    low = 0 if last else kept // 2
    return torch.cat([torch.arange(kept - low), torch.arange(-low, 0)])


def _turns(frequency: Tensor, size: int, like: Tensor) -> Tensor:
    """Complex waves of a frequency at every node, acting on parts ``[k, 2, n, 2]``."""
    places = torch.arange(size, dtype=torch.float64)
    angle = torch.outer(frequency.double(), places) * (2 * math.pi / size)
    cosine, sine = angle.cos(), angle.sin()
    turn = torch.stack([cosine, sine, -sine, cosine], dim=-1)
    return turn.unflatten(-1, (2, 2)).transpose(1, 2).to(like)


def _along(axis: int, parts: Tensor, matrix: Tensor) -> Tensor:
    """Parts ``[..., 2]`` with one axis mapped by ``[from, 2, to, 2]``."""
    rows = parts.movedim(axis, -2).flatten(-2)
    mapped = rows @ matrix.flatten(2).flatten(0, 1)
    return mapped.unflatten(-1, (-1, 2)).movedim(-2, axis)


def _by_product(kept: int) -> bool:
    """Whether a matrix product gives few frequencies faster than an FFT.

    Above all in the backward pass: the gradient of a real FFT is a complex one of all
    frequencies.
    """
    if torch.compiler.is_compiling():
        return False
    exact = torch.get_float32_matmul_precision() == "highest"
    return exact and kept <= FEW


def _corners(
    sizes: Sequence[int], kept: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Blocks of low frequencies in a spectrum of ``sizes``, and in what is kept of it.

    Of ``k`` frequencies, the first ``ceil(k / 2)`` are 0, 1, ... and the others ...,
    -2, -1; on the last axis all are 0, 1, ....
    """
    axes = []
    for n, k in zip(sizes[:-1], kept[:-1], strict=True):
        high, low = (k + 1) // 2, k // 2
        blocks = [(slice(0, high), slice(0, high))]
        if low:
            blocks.append((slice(n - low, n), slice(k - low, k)))
        axes.append(blocks)
    axes.append([(slice(0, kept[-1]), slice(0, kept[-1]))])
    for corner in itertools.product(*axes):
        whole, part = zip(*corner, strict=True)
        yield whole, part


class _Gather(torch.autograd.Function):
    """Kept frequencies of a spectrum: ``[B, C, *n]`` to ``[*k, B, C]``."""

    @staticmethod
    def forward(ctx: Any, spectrum: Tensor, kept: list[int]) -> Tensor:
        ctx.sizes = spectrum.shape[2:]
        # Modes lead, so that mixing channels is one batched matrix product.
        spectrum = spectrum.movedim((0, 1), (-2, -1))
        out = spectrum.new_empty(*kept, *spectrum.shape[-2:])
        for whole, part in _corners(ctx.sizes, kept):
            out[part] = spectrum[whole]
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Scatter.apply(grad, ctx.sizes), None


class _Scatter(torch.autograd.Function):
    """The adjoint of :class:`_Gather`: other frequencies are zero."""

    @staticmethod
    def forward(ctx: Any, modes: Tensor, sizes: Sequence[int]) -> Tensor:
        ctx.kept = list(modes.shape[:-2])
        modes = modes.movedim((-2, -1), (0, 1))
        out = modes.new_zeros(*modes.shape[:2], *sizes)
        full = (slice(None), slice(None))
        for whole, part in _corners(sizes, ctx.kept):
            out[full + whole] = modes[full + part]
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Gather.apply(grad, ctx.kept), None
