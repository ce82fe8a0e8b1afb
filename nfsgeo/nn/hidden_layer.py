"""Networks of one hidden layer, which is never stored for all rows or edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = [
    "edge_weights",
    "edge_weights_reference",
    "hidden_layer",
    "hidden_layer_reference",
]

# Numbers of the hidden layer that are stored at a time: what fits a core's cache, and
# on a GPU what keeps it busy. Edges take half of it, for their sources lie elsewhere.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


def hidden_layer(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    r"""A network of one hidden layer, applied to every row.

    .. math:: y = V \, \mathrm{GELU}(W x + b) + c

    The hidden layer is computed for a block of rows at a time, and again in the
    backward pass; a training step stores the arguments alone.

    Args:
        x: ``[N, C]``; the transpose of a contiguous matrix is not copied, either.
        weight, bias: :math:`W` ``[h, C]`` and :math:`b` ``[h]``.
        out_weight, out_bias: :math:`V` ``[C', h]`` and :math:`c` ``[C']``.

    Returns:
        ``[N, C']``.
    """
    kind = x.device.type
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(kind):
        # Compilers fuse plain layers, and mixed precision chooses their types.
        return hidden_layer_reference(x, weight, bias, out_weight, out_bias)
    result: Tensor = _Blocks.apply(
        x, None, None, weight, bias, out_weight, out_bias, False
    )
    return result


def hidden_layer_reference(
    x: Tensor, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> Tensor:
    """The same as :func:`hidden_layer`, all rows at a time."""
    return linear(gelu(linear(x, weight, bias)), out_weight, out_bias)


def edge_weights(
    relative: Tensor,
    node: Tensor | None,
    source: Tensor,
    edge_weight: Tensor,
    edge_bias: Tensor,
    mix_weight: Tensor | None = None,
    mix_bias: Tensor | None = None,
) -> Tensor:
    r"""Weights of every edge, by a network of one hidden layer.

    .. math:: w_e = M \, \mathrm{GELU}(W r_e + b + z_{i(e)}) + c

    As :func:`hidden_layer`, for a block of edges at a time.

    Args:
        relative: features of the edges :math:`r` ``[E, k]``.
        node: part of the hidden layer that depends on the source, :math:`z` ``[n, h]``.
        source: source of each edge ``[E]``.
        edge_weight, edge_bias: :math:`W` ``[h, k]`` and :math:`b` ``[h]``.
        mix_weight, mix_bias: :math:`M` ``[R, h]``, without which the hidden layer
            itself is the result, and :math:`c` ``[R]``.

    Returns:
        ``[R, E]``.
    """
    if torch.compiler.is_compiling():
        # Compilers fuse this, for any number of edges.
        return edge_weights_reference(
            relative, node, source, edge_weight, edge_bias, mix_weight, mix_bias
        )
    # Under mixed precision the arguments come in several types.
    relative = relative.to(edge_weight.dtype)
    node = None if node is None else node.to(edge_weight.dtype)
    with torch.autocast(relative.device.type, enabled=False):
        weights: Tensor = _Blocks.apply(
            relative, node, source, edge_weight, edge_bias, mix_weight, mix_bias, True
        )
    return weights.t()


def edge_weights_reference(
    relative: Tensor,
    node: Tensor | None,
    source: Tensor,
    edge_weight: Tensor,
    edge_bias: Tensor,
    mix_weight: Tensor | None = None,
    mix_bias: Tensor | None = None,
) -> Tensor:
    """The same as :func:`edge_weights`, all edges at a time."""
    activation = relative @ edge_weight.t() + edge_bias
    if node is not None:
        activation = activation + node[source]
    hidden = gelu(activation).t()
    if mix_weight is None:
        return hidden
    weights = mix_weight @ hidden
    return weights if mix_bias is None else weights + mix_bias[:, None]


def _reference(*arguments: Any) -> Tensor:
    return edge_weights_reference(*arguments[:-1]).t()


class _Blocks(torch.autograd.Function):
    """Rows ``[N, R]``; those of edges as the transpose of a contiguous matrix."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        node: Tensor | None,
        source: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        out_weight: Tensor | None,
        out_bias: Tensor | None,
        of_edges: bool,
    ) -> Tensor:
        ctx.save_for_backward(x, node, source, weight, bias, out_weight)
        ctx.inputs = lambda *saved: (*saved, out_bias, of_edges)
        ctx.of_edges = of_edges
        size = (x.size(0), (weight if out_weight is None else out_weight).size(0))
        out = x.new_empty(size[::-1]).t() if of_edges else x.new_empty(size)
        layer = _HiddenLayer(x, node, source, weight, bias, of_edges)
        for rows in layer.blocks():
            hidden = layer.activation(rows)
            torch.ops.aten.gelu.out(hidden, out=hidden)
            if out_weight is None:
                out[rows] = hidden
            elif out_bias is None:
                torch.mm(hidden, out_weight.t(), out=out[rows])
            else:
                torch.addmm(out_bias, hidden, out_weight.t(), out=out[rows])
        return out

    @staticmethod
    @twice_differentiable(_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, node, source, weight, bias, out_weight = ctx.saved_tensors
        # In the memory layout of x, since its gradient goes on to what x was made of.
        grad_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        grad_node = None if node is None else torch.zeros_like(node)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        grad_out = None if out_weight is None else torch.zeros_like(out_weight)
        layer = _HiddenLayer(x, node, source, weight, bias, ctx.of_edges)
        after, parts = layer.buffer(), layer.buffer()
        for rows in layer.blocks():
            before, given = layer.activation(rows), grad[rows]
            part = parts[: len(before)]
            if out_weight is None or grad_out is None:
                part.copy_(given)
            else:
                post = torch.ops.aten.gelu.out(before, out=after[: len(before)])
                grad_out.addmm_(given.t(), post)
                if out_weight.size(0) == 1:
                    # Faster than the matrix product of a column and a row.
                    torch.mul(given, out_weight, out=part)
                else:
                    torch.mm(given, out_weight, out=part)
            torch.ops.aten.gelu_backward.grad_input(part, before, grad_input=part)
            grad_weight.addmm_(part.t(), x[rows])
            if grad_node is None:
                grad_bias += part.sum(0)
            else:
                grad_node.index_add_(0, source[rows], part)
            if grad_x is not None:
                torch.mm(part, weight, out=grad_x[rows])
        if grad_node is not None:
            # Every edge has one source.
            grad_bias = grad_node.sum(0)
        of_bias = grad.sum(0) if ctx.needs_input_grad[6] else None
        return grad_x, grad_node, None, grad_weight, grad_bias, grad_out, of_bias, None


class _HiddenLayer:
    """The argument of the GELU, for a block of rows at a time.

    Blocks share their memory: a new allocation for each would leave the cache.
    """

    def __init__(
        self,
        x: Tensor,
        node: Tensor | None,
        source: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        of_edges: bool,
    ) -> None:
        self.x, self.source, self.weight, self.bias = x, source, weight.t(), bias
        # There are fewer points than edges.
        self.node = None if node is None else node + bias
        most = (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // (2 if of_edges else 1)
        self.size = min(max(1, most // weight.size(0)), x.size(0))
        self._activation = self.buffer()

    def buffer(self) -> Tensor:
        """Memory of one block."""
        return self.x.new_empty(self.size, self.weight.size(1))

    def blocks(self) -> Iterator[slice]:
        """Ranges of rows."""
        num = self.x.size(0)
        for begin in range(0, num, max(1, self.size)):
            yield slice(begin, min(begin + self.size, num))

    def activation(self, rows: slice) -> Tensor:
        """Of one block; the next call overwrites it."""
        x = self.x[rows]
        out = self._activation[: x.size(0)]
        if self.node is None or self.source is None:
            return torch.addmm(self.bias, x, self.weight, out=out)
        torch.index_select(self.node, 0, self.source[rows], out=out)
        return out.addmm_(x, self.weight)
