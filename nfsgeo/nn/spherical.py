"""Spherical-harmonic transforms and convolutions on the sphere."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nfsgeo.errors import check_shape, check_sizes
from nfsgeo.geometry import spherical_harmonics
from nfsgeo.nn.spectral import mixed_modes, real_waves

__all__ = ["SphericalConv", "SphericalTransform"]


class SphericalTransform(nn.Module):
    r"""Spherical-harmonic transform at the nodes of a sphere, and its inverse.

    .. math:: \hat v = Y^+ v, \qquad v = Y \hat v

    with the harmonics :math:`Y` at the nodes. This is the transform of "Computing
    Fourier transforms and convolutions on the 2-sphere" (Driscoll and Healy, 1994), by
    least squares instead of quadrature, so that analysis inverts synthesis exactly for
    any nodes. The nodes should be spread evenly, at least two for each harmonic.

    Args:
        nodes: unit vectors ``[n, 3]``.
        degrees: number of degrees :math:`L`.

    Attributes:
        degree: degree of each of the :math:`L^2` coefficients.
    """

    analysis: Tensor
    synthesis: Tensor
    degree: Tensor

    def __init__(self, nodes: Tensor, degrees: int) -> None:
        super().__init__()
        self.degrees = degrees
        check_shape("nodes", nodes, "n", 3)
        check_sizes(degrees=degrees)
        matrix = spherical_harmonics(nodes, degrees)
        inverse = torch.linalg.solve(matrix.T @ matrix, matrix.T)
        dtype, numbers = torch.get_default_dtype(), torch.arange(degrees)
        self.register_buffer("analysis", inverse.T.to(dtype), persistent=False)
        self.register_buffer("synthesis", matrix.T.to(dtype), persistent=False)
        degree = numbers.repeat_interleave(2 * numbers + 1)
        self.register_buffer("degree", degree, persistent=False)

    def analyse(self, x: Tensor) -> Tensor:
        """Transform fields ``[..., n, T]`` to coefficients ``[..., L^2, T]``."""
        check_shape("x", x, "...", self.analysis.size(0), "T")
        return _along_rows(x, self.analysis)

    def forward(self, coefficients: Tensor) -> Tensor:
        """Evaluate fields ``[..., n, T]`` from coefficients ``[..., L^2, T]``."""
        num = self.synthesis.size(0)
        check_shape("coefficients", coefficients, "...", num, "T")
        return _along_rows(coefficients, self.synthesis)

    def extra_repr(self) -> str:
        return f"{self.analysis.size(0)} nodes, degrees={self.degrees}"


def _along_rows(x: Tensor, matrix: Tensor) -> Tensor:
    """Multiply the last axis but one by ``matrix [from, to]``, in one product."""
    return (x.transpose(-1, -2) @ matrix.to(x.dtype)).transpose(-1, -2)


class SphericalConv(nn.Module):
    r"""Convolution on the sphere and in time, with mixing of channels.

    .. math:: \hat w_{l, m}(k) = R_l(k) \, \hat v_{l, m}(k), \qquad
        l < L, \quad k \le k_{max}

    The weights depend only on the degree, so that the layer commutes with rotations, as
    in "Spherical Fourier Neural Operators: Learning Stable Dynamics on the Sphere"
    (Bonev et al., 2023). In time it is the Fourier layer of
    :class:`~nfsgeo.nn.SpectralConv`.

    Args:
        in_channels: channels of the input, :math:`C`.
        out_channels: channels of the result, :math:`C'`.
        transform: transform of the nodes up to degree :math:`L`, which layers may
            share.
        time_modes: frequencies kept in time; ``None`` without a time axis.

    Shapes:
        ``[B, C, n(, T)]`` to ``[B, C', n(, T)]``, real.

    Raises:
        ValueError: when the input does not fit.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        transform: SphericalTransform,
        time_modes: int | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.transform, self.time_modes = transform, time_modes
        parts = 1 if time_modes is None else 2 * time_modes
        self.weight = nn.Parameter(
            torch.empty(transform.degrees, parts, in_channels, out_channels)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights, as SpectralConv does, to preserve variances."""
        parts = 1 if self.time_modes is None else 2
        std = 1 / math.sqrt(parts * self.in_channels * self.out_channels)
        nn.init.normal_(self.weight, std=std)

    def forward(self, x: Tensor) -> Tensor:
        """Mix nodes, time steps and channels; see the class for shapes."""
        nodes, timeless = self.transform.analysis.size(0), self.time_modes is None
        if x.dim() != 4 - timeless or x.shape[1:3] != (self.in_channels, nodes):
            raise ValueError(
                f"input has shape {tuple(x.shape)}; expected [B, {self.in_channels}, "
                f"{nodes}{'' if timeless else ', T'}]"
            )
        with torch.autocast(x.device.type, enabled=False):
            field = x.unsqueeze(3) if timeless else x
            field = field.to(torch.promote_types(x.dtype, torch.float32))
            return self._convolve(field).view(x.size(0), -1, *x.shape[2:]).to(x.dtype)

    def _convolve(self, x: Tensor) -> Tensor:
        waves, back = self._waves(x)
        modes = self.transform.analyse(x) @ waves
        # From [B, C, L^2, k parts] to [L^2, k, B, C, parts].
        parts = 1 if self.time_modes is None else 2
        modes = modes.unflatten(3, (-1, parts)).permute(2, 3, 0, 1, 4)
        weight = self.weight[:, : waves.size(1)].to(x.dtype)
        weight = weight.unflatten(1, (-1, parts)).movedim(2, -1)
        weight = weight.index_select(0, self.transform.degree).flatten(0, 1)
        if parts == 1:
            mixed = (modes.flatten(0, 1)[..., 0] @ weight[..., 0])[..., None]
        else:
            mixed = mixed_modes(modes.flatten(0, 1), weight)
        mixed = mixed.unflatten(0, modes.shape[:2]).permute(2, 3, 0, 1, 4).flatten(3)
        result: Tensor = self.transform(mixed @ back)
        return result

    def _waves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the transform in time ``[T, 2 k]`` and its inverse ``[2 k, T]``."""
        if self.time_modes is None:
            return x.new_ones(1, 1), x.new_ones(1, 1)
        steps = x.size(3)
        return real_waves(steps, min(self.time_modes, steps // 2 + 1), x)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, time_modes={self.time_modes}"
