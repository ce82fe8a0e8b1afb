"""Self-attention over all tokens of a field."""

from __future__ import annotations

from torch import Tensor, nn

from nfsgeo.errors import UserError

__all__ = ["Attention"]


class Attention(nn.Module):
    r"""Multi-head self-attention, every node and record of a field a token.

    .. math:: v' = W_o \, \big\Vert_h \, \mathrm{softmax}\Big(
        \tfrac{q_h k_h^T}{\sqrt{C / H}}\Big) v_h + b_o

    "Attention Is All You Need", equation (1); the token mixing of the Vision
    Transformer. No bias by position: positions are inputs of the lift.

    Args:
        channels: :math:`C`, a multiple of ``heads``.
        heads: :math:`H`.
        dropout: share of the attention weights that are dropped in training.

    Shapes:
        ``[B, C, *n]`` to the same.

    Raises:
        UserError: when the heads do not divide the channels.
    """

    def __init__(self, channels: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if channels % heads:
            raise UserError(
                f"{heads} heads for {channels} channels",
                "a number of heads that divides the channels",
                "change heads or width",
            )
        self.heads = heads
        self.dropout = dropout
        self.input = nn.Linear(channels, 3 * channels)
        self.output = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Attend from every token to every token."""
        tokens = x.flatten(2).transpose(1, 2)
        # [B, L, 3 C] to three of [B, H, L, C / H].
        parts = self.input(tokens).unflatten(2, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropout if self.training else 0.0
        )
        mixed = self.output(mixed.transpose(1, 2).flatten(2))
        return mixed.transpose(1, 2).unflatten(2, x.shape[2:])

    def extra_repr(self) -> str:
        return f"heads={self.heads}, dropout={self.dropout}"
