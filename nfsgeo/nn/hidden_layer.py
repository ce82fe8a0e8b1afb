"""A network of one hidden layer, which is never stored for all rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["hidden_layer", "hidden_layer_reference"]

# Numbers of the hidden layer that are computed at a time: what fits a core's cache, and
# on a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


def hidden_layer(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    r"""A network of one hidden layer, applied to every row.

    .. math:: y = V \, \mathrm{GELU}(W x + b) + c

    The hidden layer is computed for a block of rows at a time, and again in the
    backward pass; a training step stores the arguments alone.

    Args:
        x: ``[N, C]``.
        weight, bias: :math:`W` ``[h, C]`` and :math:`b` ``[h]``.
        out_weight, out_bias: :math:`V` ``[C', h]`` and :math:`c` ``[C']``.

    Returns:
        ``[N, C']``.
    """
    kind = x.device.type
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(kind):
        # Compilers fuse plain layers, and mixed precision chooses their types.
        return hidden_layer_reference(x, weight, bias, out_weight, out_bias)
    result: Tensor = _Blocks.apply(x, weight, bias, out_weight, out_bias)
    return result


def hidden_layer_reference(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    """The same as :func:`hidden_layer`, all rows at a time."""
    return linear(gelu(linear(x, weight, bias)), out_weight, out_bias)


class _Blocks(torch.autograd.Function):
    """:func:`torch.utils.checkpoint.checkpoint` of every block costs 10 % of a step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(x, *weights)
        ctx.inputs = lambda *saved: saved
        rows = (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // weights[0].size(0)
        ctx.rows = max(1, rows)
        blocks = x.split(ctx.rows)
        return torch.cat([hidden_layer_reference(each, *weights) for each in blocks])

    @staticmethod
    @twice_differentiable(hidden_layer_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, *weights = (each.detach().requires_grad_() for each in ctx.saved_tensors)
        grad_x, *totals = (torch.zeros_like(each) for each in (x, *weights))
        blocks = [each.detach().split(ctx.rows) for each in (x, grad, grad_x)]
        for rows, given, result in zip(*blocks, strict=True):
            rows = rows.detach().requires_grad_()
            with torch.enable_grad():
                out = hidden_layer_reference(rows, *weights)
            of_rows, *found = torch.autograd.grad(out, [rows, *weights], given)
            result.copy_(of_rows)
            for total, each in zip(totals, found, strict=True):
                total += each
        return grad_x, *totals
