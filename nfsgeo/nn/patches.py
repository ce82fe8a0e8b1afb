"""Patches as tokens: resampling of a field to a coarser grid and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.nn.pointwise import Pointwise

__all__ = ["PatchEmbedding", "PatchUnembedding", "patches_of"]


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
