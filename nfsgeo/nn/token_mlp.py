"""A linear map over all tokens of a field."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from nfsgeo.errors import UserError

__all__ = ["TokenMLP"]


class TokenMLP(nn.Module):
    r"""A full matrix over tokens, the same for every channel.

    .. math:: v'(x) = \sum_{x'} W_{x x'} \, v(x') + b_x

    The token mixing of "MLP-Mixer: An all-MLP Architecture for Vision" with one
    layer. It has the square of the number of tokens in weights, and holds for one
    grid and number of records.

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
        if x.shape[2:] != self.sizes:
            raise UserError(
                f"tokens {tuple(x.shape[2:])} (grid, time)",
                f"{self.sizes}, for which the linear map over tokens is made",
                "use the grid and records of training, or a model such as nfs",
            )
        return self.linear(x.flatten(2)).unflatten(2, self.sizes)

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}"
