"""Two linear maps with a GELU between, without a hidden layer held for every row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["hidden_layer", "hidden_layer_reference"]

# Numbers of the hidden layer that are held at a time: what fits a core's cache, and on
# a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


def hidden_layer(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    r"""A network of one hidden layer, applied to every row.

    .. math:: y = V \, \mathrm{GELU}(W x + b) + c

    The hidden layer is computed some rows at a time, and once more in the backward
    pass; what a training step keeps is its arguments.

    Args:
        x: ``[N, C]``; also the transpose of a contiguous matrix is not copied.
        weight, bias: :math:`W` ``[h, C]`` and :math:`b` ``[h]``.
        out_weight, out_bias: :math:`V` ``[C', h]`` and :math:`c` ``[C']``.

    Returns:
        ``[N, C']``.
    """
    kind = x.device.type
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(kind):
        # Compilers and mixed precision know what to do with plain layers.
        return hidden_layer_reference(x, weight, bias, out_weight, out_bias)
    result: Tensor = _HiddenLayer.apply(x, weight, bias, out_weight, out_bias)
    return result


def hidden_layer_reference(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    """The same as :func:`hidden_layer`, all rows at a time."""
    return linear(gelu(linear(x, weight, bias)), out_weight, out_bias)


class _HiddenLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        out_weight: Tensor,
        out_bias: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias, out_weight)
        ctx.inputs = lambda *saved: (*saved, out_bias)
        out = x.new_empty(x.size(0), out_weight.size(0))
        size = _size(x, weight)
        room = x.new_empty(min(size, x.size(0)), weight.size(0))
        for rows, part in zip(x.split(size), out.split(size), strict=True):
            hidden = torch.addmm(bias, rows, weight.t(), out=room[: len(rows)])
            torch.ops.aten.gelu.out(hidden, out=hidden)
            torch.addmm(out_bias, hidden, out_weight.t(), out=part)
        return out

    @staticmethod
    @twice_differentiable(hidden_layer_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, weight, bias, out_weight = ctx.saved_tensors
        # As x lies: its gradient goes on to what x was made of.
        grad_x = torch.empty_like(x)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        grad_out_weight = torch.zeros_like(out_weight)
        size = _size(x, weight)
        rooms = x.new_empty(3, min(size, x.size(0)), weight.size(0))
        for rows, given, of_rows in zip(
            x.split(size), grad.split(size), grad_x.split(size), strict=True
        ):
            before, after, part = rooms[:, : len(rows)]
            torch.addmm(bias, rows, weight.t(), out=before)
            torch.ops.aten.gelu.out(before, out=after)
            grad_out_weight.addmm_(given.t(), after)
            if out_weight.size(0) == 1:
                # A product of a column and a row is no matter for a matrix product.
                torch.mul(given, out_weight, out=part)
            else:
                torch.mm(given, out_weight, out=part)
            torch.ops.aten.gelu_backward.grad_input(part, before, grad_input=part)
            grad_weight.addmm_(part.t(), rows)
            grad_bias += part.sum(0)
            torch.mm(part, weight, out=of_rows)
        return grad_x, grad_weight, grad_bias, grad_out_weight, grad.sum(0)


def _size(x: Tensor, weight: Tensor) -> int:
    """Rows whose hidden layers are held at a time."""
    return max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // weight.size(0))
