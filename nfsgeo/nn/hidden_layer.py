"""A network of one hidden layer, which is never stored for all rows or edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["hidden_layer", "hidden_layer_reference"]

# Numbers of the hidden layer that are computed at a time: what fits a core's cache, and
# on a GPU what keeps it busy. Edges take half of it, for their sources lie elsewhere.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


def hidden_layer(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    source: Tensor | None = None,
) -> Tensor:
    r"""A network of one hidden layer, applied to every row.

    .. math:: y = V \, \mathrm{GELU}(W x + b) + c

    The hidden layer is computed for a block of rows at a time, and again in the
    backward pass; a training step stores the arguments alone. Rows may be edges, which
    have the bias of their sources.

    Args:
        x: ``[N, C]``.
        weight, bias: :math:`W` ``[h, C]`` and :math:`b` ``[h]``; ``[n, h]`` of sources.
        out_weight, out_bias: :math:`V` ``[C', h]`` and :math:`c` ``[C']``.
        source: which bias every row has ``[N]``; ``None`` where all have one.

    Returns:
        ``[N, C']``; of edges the transpose of a contiguous matrix.
    """
    kind = x.device.type
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(kind):
        # Compilers fuse plain layers, and mixed precision chooses their types.
        return hidden_layer_reference(x, weight, bias, out_weight, out_bias, source)
    result: Tensor = _Blocks.apply(x, weight, bias, out_weight, out_bias, source)
    return result


def hidden_layer_reference(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    source: Tensor | None = None,
) -> Tensor:
    """The same as :func:`hidden_layer`, all rows at a time."""
    before = linear(x, weight) + (bias if source is None else bias[source])
    return linear(gelu(before), out_weight, out_bias)


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
        source: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias, out_weight, out_bias, source)
        ctx.inputs = lambda *saved: saved
        size = (x.size(0), out_weight.size(0))
        out = x.new_empty(size) if source is None else x.new_empty(size[::-1]).t()
        for rows, (hidden,) in _blocks(x, weight, bias, source, 1):
            torch.ops.aten.gelu.out(hidden, out=hidden)
            torch.addmm(out_bias, hidden, out_weight.t(), out=out[rows])
        return out

    @staticmethod
    @twice_differentiable(hidden_layer_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, out_weight, _, source = ctx.saved_tensors
        # In the memory layout of x, since its gradient goes on to what x was made of.
        grad_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        grad_weight, grad_bias, grad_out = map(
            torch.zeros_like, (weight, bias, out_weight)
        )
        for rows, (pre, post, given) in _blocks(x, weight, bias, source, 3):
            torch.ops.aten.gelu.out(pre, out=post)
            grad_out.addmm_(grad[rows].t(), post)
            if out_weight.size(0) == 1:
                # Faster than the matrix product of a column and a row.
                torch.mul(grad[rows], out_weight, out=given)
            else:
                torch.mm(grad[rows], out_weight, out=given)
            torch.ops.aten.gelu_backward.grad_input(given, pre, grad_input=given)
            grad_weight.addmm_(given.t(), x[rows])
            if source is None:
                grad_bias += given.sum(0)
            else:
                grad_bias.index_add_(0, source[rows], given)
            if grad_x is not None:
                torch.mm(given, weight, out=grad_x[rows])
        return grad_x, grad_weight, grad_bias, grad_out, grad.sum(0), None


def _blocks(
    x: Tensor, weight: Tensor, bias: Tensor, source: Tensor | None, number: int
) -> Iterator[tuple[slice, list[Tensor]]]:
    """Blocks of rows, and memory for them; in the first what GELU is applied to."""
    most = (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // (1 if source is None else 2)
    size = min(max(1, most // weight.size(0)), x.size(0))
    buffers = [x.new_empty(size, weight.size(0)) for _ in range(number)]
    for begin in range(0, x.size(0), max(1, size)):
        rows = slice(begin, min(begin + size, x.size(0)))
        parts = [each[: rows.stop - begin] for each in buffers]
        if source is None:
            torch.addmm(bias, x[rows], weight.t(), out=parts[0])
        else:
            torch.index_select(bias, 0, source[rows], out=parts[0])
            parts[0].addmm_(x[rows], weight.t())
        yield rows, parts
