"""Attention among the tokens of a field, and among slices of a point set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError, check_shape, check_sizes

__all__ = ["Attention", "MultiHead", "PhysicsAttention", "per_sample"]

# Least sum of weights, which keeps the mean over an empty slice finite.
LEAST_WEIGHT = 1e-5


def per_sample(
    mix: Callable[..., Tensor], sizes: Sequence[int], *fields: Tensor
) -> Tensor:
    """Apply ``mix`` on ``[B, n, ...]`` to fields of samples in a row, ``[N, ...]``.

    Args:
        mix: function that mixes the points of each sample.
        sizes: number of points of each sample; equal sizes are mixed in one call.
        fields: fields at the points of all samples.
    """
    if len(set(sizes)) == 1:
        shape = (len(sizes), sizes[0])
        return mix(*(field.unflatten(0, shape) for field in fields)).flatten(0, 1)
    samples = zip(*(field.split(list(sizes)) for field in fields), strict=True)
    return torch.cat([mix(*(field[None] for field in sample))[0] for sample in samples])


class MultiHead(nn.Module):
    """Base class of multi-head attention.

    Args:
        channels: :math:`C`, a multiple of ``heads``.
        heads: :math:`H`.
        dropout: fraction of the attention weights that are dropped in training.

    Raises:
        UserError: when the heads do not divide the channels.
    """

    def __init__(self, channels: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(heads=heads)
        if channels % heads:
            raise UserError(
                f"{heads} heads for {channels} channels",
                "a number of heads that divides the channels",
                "change heads or width",
            )
        self.heads = heads
        self.dropout = dropout

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
    ) -> Tensor:
        """Attend among tokens ``[..., L, C / H]``.

        Args:
            query: queries of the tokens that attend.
            key: keys of the tokens that are attended to.
            value: values of these.
            scale: factor of the scores; ``None`` for ``(C / H) ** -0.5``.
        """
        dropout = self.dropout if self.training else 0.0
        return nn.functional.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, scale=scale
        )

    def extra_repr(self) -> str:
        return f"heads={self.heads}, dropout={self.dropout}"


class Attention(MultiHead):
    r"""Multi-head self-attention whose tokens are the nodes and time steps of a field.

    .. math:: v' = W_o \, \big\Vert_h \, \mathrm{softmax}\Big(
        \tfrac{q_h k_h^T}{\sqrt{C / H}}\Big) v_h + b_o

    "Attention Is All You Need", equation (1); the token mixing of the Vision
    Transformer. There is no positional encoding, since positions are inputs of the
    lift.

    Shapes:
        ``[B, C, *n]`` to the same.
    """

    def __init__(self, channels: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__(channels, heads, dropout=dropout)
        self.input = nn.Linear(channels, 3 * channels)
        self.output = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from every token to every token."""
        flat = x.flatten(2) if x.dim() > 2 else x
        check_shape("x", flat, "B", self.output.in_features, "n")
        tokens = flat.transpose(1, 2)
        # [B, L, 3 C] to three of [B, H, L, C / H].
        parts = self.input(tokens).unflatten(2, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = self.output(self.attend(query, key, value).transpose(1, 2).flatten(2))
        return mixed.transpose(1, 2).unflatten(2, x.shape[2:])


class PhysicsAttention(MultiHead):
    r"""Multi-head attention among learned slices of a point set, linear in its size.

    "Transolver: A Fast Transformer Solver for PDEs on General Geometries" (Wu et al.,
    2024), section 3.2, equations (2) to (4). In every head each point :math:`i` belongs
    to slice :math:`g` with weight :math:`w_{ig}`. The token of a slice is the mean of
    its points, attention mixes the tokens, and points gather them with the same
    weights:

    .. math::
        w_i = \mathrm{softmax}\big((A x_i + a) / \tau\big), \qquad
        z_g = \frac{\sum_i w_{ig} f_i}{\sum_i w_{ig}}, \qquad
        z' = \mathrm{softmax}\Big(\frac{(Q z)(K z)^T}{\sqrt{C / H}}\Big) V z, \qquad
        v'_i = \sum_g w_{ig} z'_g

    with :math:`x` and :math:`f` linear maps of the input, one temperature
    :math:`\tau` for each head, and :math:`A, Q, K, V` shared by the heads.

    Args:
        num_slices: slices in each head.
        dropout: probability of dropping an attention weight or an output in training.

    Shapes:
        ``x`` ``[N, C]`` to the same; ``sizes`` has the number of points of each
        sample, which are attended to separately.
    """

    def __init__(
        self, channels: int, heads: int, num_slices: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__(channels, heads, dropout=dropout)
        per_head = channels // heads
        # Channels by which points are sliced, and channels that slices average.
        self.input = nn.Linear(channels, 2 * channels)
        self.slices = nn.Linear(per_head, num_slices)
        self.temperature = nn.Parameter(torch.full((heads, 1), 0.5))
        self.query_key_value = nn.Linear(per_head, 3 * per_head, bias=False)
        self.output = nn.Linear(channels, channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights; those of the slices are orthogonal."""
        for layer in (self.input, self.query_key_value, self.output):
            layer.reset_parameters()
        nn.init.orthogonal_(self.slices.weight)
        nn.init.zeros_(self.slices.bias)
        nn.init.constant_(self.temperature, 0.5)

    def forward(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        """Mix the points of each sample through its slices."""
        check_shape("x", x, sum(sizes), self.output.in_features)
        logits, values = self.input(x).unflatten(1, (2, self.heads, -1)).unbind(1)
        weight = torch.softmax(self.slices(logits) / self.temperature, dim=-1)
        mixed = per_sample(self._mixed, sizes, weight, values)
        out: Tensor = self.output(mixed.flatten(1))
        return nn.functional.dropout(out, self.dropout, self.training)

    def _mixed(self, weight: Tensor, values: Tensor) -> Tensor:
        """Mix values ``[B, n, H, C / H]`` by the weights of slices ``[B, n, H, G]``."""
        total = weight.sum(1).unsqueeze(-1) + LEAST_WEIGHT
        tokens = torch.einsum("bnhg,bnhc->bhgc", weight, values) / total
        tokens = self.attend(*self.query_key_value(tokens).chunk(3, dim=-1))
        return torch.einsum("bnhg,bhgc->bnhc", weight, tokens)
