"""A network of one hidden layer, which is never stored for all rows."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Blocks share their memory: a new allocation for each would leave the cache."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        out_weight: Tensor,
        out_bias: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias, out_weight, out_bias)
        ctx.inputs = lambda *saved: saved
        out, buffer = x.new_empty(x.size(0), out_weight.size(0)), _buffer(x, weight)
        for rows in _blocks(x, buffer):
            hidden = buffer[: x[rows].size(0)]
            torch.addmm(bias, x[rows], weight.t(), out=hidden)
            torch.ops.aten.gelu.out(hidden, out=hidden)
            torch.addmm(out_bias, hidden, out_weight.t(), out=out[rows])
        return out

    @staticmethod
    @twice_differentiable(hidden_layer_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, weight, bias, out_weight, _ = ctx.saved_tensors
        # In the memory layout of x, since its gradient goes on to what x was made of.
        grad_x = torch.empty_like(x)
        grad_weight, grad_bias, grad_out = map(
            torch.zeros_like, (weight, bias, out_weight)
        )
        before, after, part = (_buffer(x, weight) for _ in range(3))
        for rows in _blocks(x, before):
            num = x[rows].size(0)
            pre, post, given = before[:num], after[:num], part[:num]
            torch.addmm(bias, x[rows], weight.t(), out=pre)
            torch.ops.aten.gelu.out(pre, out=post)
            grad_out.addmm_(grad[rows].t(), post)
            if out_weight.size(0) == 1:
                # Faster than the matrix product of a column and a row.
                torch.mul(grad[rows], out_weight, out=given)
            else:
                torch.mm(grad[rows], out_weight, out=given)
            torch.ops.aten.gelu_backward.grad_input(given, pre, grad_input=given)
            grad_weight.addmm_(given.t(), x[rows])
            grad_bias += given.sum(0)
            torch.mm(given, weight, out=grad_x[rows])
        return grad_x, grad_weight, grad_bias, grad_out, grad.sum(0)


def _buffer(x: Tensor, weight: Tensor) -> Tensor:
    """Memory for the hidden layer of one block of rows."""
    rows = max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // weight.size(0))
    return x.new_empty(min(rows, x.size(0)), weight.size(0))


def _blocks(x: Tensor, buffer: Tensor) -> Iterator[slice]:
    size = max(1, buffer.size(0))
    for begin in range(0, x.size(0), size):
        yield slice(begin, begin + size)
