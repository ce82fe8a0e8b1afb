"""Weights of edges by a small network, without a hidden layer held for every edge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu

__all__ = ["edge_weights", "edge_weights_reference"]

# Numbers of a hidden layer that are held at a time: what fits a core's cache, and on
# a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 25


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

    The hidden layer is computed a block of edges at a time, and once more in the
    backward pass, so that it never leaves the cache; what a training step keeps is
    its arguments.

    Args:
        relative: features of the edges :math:`r` ``[E, k]``, which are data: no
            gradient goes to them.
        node: what the sources add to the hidden layer, :math:`z` ``[n, h]``.
        source: source of each edge ``[E]``.
        edge_weight, edge_bias: :math:`W` ``[h, k]`` and :math:`b` ``[h]``.
        mix_weight, mix_bias: :math:`M` ``[R, h]``, without which the hidden layer
            itself is the result, and :math:`c` ``[R]``.

    Returns:
        ``[R, E]``.
    """
    if torch.compiler.is_compiling():
        # What is compiled is put together by the compiler, for any number of edges.
        return edge_weights_reference(
            relative, node, source, edge_weight, edge_bias, mix_weight, mix_bias
        )
    with torch.autocast(relative.device.type, enabled=False):
        weights: Tensor = _EdgeWeights.apply(
            relative, node, source, edge_weight, edge_bias, mix_weight, mix_bias
        )
    return weights


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


class _EdgeWeights(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        relative: Tensor,
        node: Tensor | None,
        source: Tensor,
        edge_weight: Tensor,
        edge_bias: Tensor,
        mix_weight: Tensor | None,
        mix_bias: Tensor | None,
    ) -> Tensor:
        # Under mixed precision the arguments come in several.
        dtype = edge_weight.dtype
        node = None if node is None else node.to(dtype)
        relative = relative.to(dtype)
        ctx.save_for_backward(
            relative, node, source, edge_weight, edge_bias, mix_weight
        )
        size = edge_weight.size(0) if mix_weight is None else mix_weight.size(0)
        out = relative.new_empty(size, relative.size(0))
        for rows in _blocks(relative, edge_weight):
            hidden = gelu(
                _activation(relative, node, source, edge_weight, edge_bias, rows)
            )
            if mix_weight is None:
                out[:, rows] = hidden.t()
            elif mix_bias is None:
                torch.mm(mix_weight, hidden.t(), out=out[:, rows])
            else:
                torch.addmm(mix_bias[:, None], mix_weight, hidden.t(), out=out[:, rows])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        relative, node, source, edge_weight, edge_bias, mix_weight = ctx.saved_tensors
        grad_node = None if node is None else torch.zeros_like(node)
        grad_edge_weight = torch.zeros_like(edge_weight)
        grad_edge_bias = torch.zeros_like(edge_bias)
        grad_mix = None if mix_weight is None else torch.zeros_like(mix_weight)
        for rows in _blocks(relative, edge_weight):
            activation = _activation(
                relative, node, source, edge_weight, edge_bias, rows
            )
            part = grad[:, rows]
            if mix_weight is None:
                part = part.t().contiguous()
            else:
                assert grad_mix is not None
                grad_mix.addmm_(part, gelu(activation))
                part = part.t() @ mix_weight
            part = torch.ops.aten.gelu_backward(part, activation)
            grad_edge_weight.addmm_(part.t(), relative[rows])
            grad_edge_bias += part.sum(0)
            if grad_node is not None:
                grad_node.index_add_(0, source[rows], part)
        grad_mix_bias = grad.sum(1) if ctx.needs_input_grad[6] else None
        return (
            None,
            grad_node,
            None,
            grad_edge_weight,
            grad_edge_bias,
            grad_mix,
            grad_mix_bias,
        )


def _activation(
    relative: Tensor,
    node: Tensor | None,
    source: Tensor,
    edge_weight: Tensor,
    edge_bias: Tensor,
    rows: slice,
) -> Tensor:
    activation = torch.addmm(edge_bias, relative[rows], edge_weight.t())
    if node is not None:
        activation += node[source[rows]]
    return activation


def _blocks(relative: Tensor, edge_weight: Tensor) -> Iterator[slice]:
    """Runs of edges whose hidden layers are held at a time."""
    most = BLOCK_CUDA if relative.is_cuda else BLOCK_CPU
    size = max(1, most // edge_weight.size(0))
    for begin in range(0, relative.size(0), size):
        yield slice(begin, begin + size)
