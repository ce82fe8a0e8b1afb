"""Weights of edges by a small network, without a hidden layer held for every edge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["edge_weights", "edge_weights_reference"]

# Numbers of a hidden layer that are held at a time: what fits a core's cache, and on
# a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 18, 1 << 25


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
        relative: features of the edges :math:`r` ``[E, k]``; where they require
            gradients, all edges are computed at a time.
        node: what the sources add to the hidden layer, :math:`z` ``[n, h]``.
        source: source of each edge ``[E]``.
        edge_weight, edge_bias: :math:`W` ``[h, k]`` and :math:`b` ``[h]``.
        mix_weight, mix_bias: :math:`M` ``[R, h]``, without which the hidden layer
            itself is the result, and :math:`c` ``[R]``.

    Returns:
        ``[R, E]``.
    """
    if torch.compiler.is_compiling() or relative.requires_grad:
        # Compilers fuse this, for any number of edges.
        return edge_weights_reference(
            relative, node, source, edge_weight, edge_bias, mix_weight, mix_bias
        )
    # Under mixed precision the arguments come in several types.
    relative = relative.to(edge_weight.dtype)
    node = None if node is None else node.to(edge_weight.dtype)
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
        ctx.save_for_backward(
            relative, node, source, edge_weight, edge_bias, mix_weight
        )
        ctx.inputs = lambda *saved: (*saved, mix_bias)
        layer = _HiddenLayer(relative, node, source, edge_weight, edge_bias)
        size = edge_weight.size(0) if mix_weight is None else mix_weight.size(0)
        out = relative.new_empty(size, relative.size(0))
        for rows in layer.blocks():
            hidden = layer.activation(rows)
            hidden = torch.ops.aten.gelu.out(hidden, out=hidden).t()
            if mix_weight is None:
                out[:, rows] = hidden
            elif mix_bias is None:
                torch.mm(mix_weight, hidden, out=out[:, rows])
            else:
                torch.addmm(mix_bias[:, None], mix_weight, hidden, out=out[:, rows])
        return out

    @staticmethod
    @twice_differentiable(edge_weights_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        relative, node, source, edge_weight, edge_bias, mix_weight = ctx.saved_tensors
        grad_node = None if node is None else torch.zeros_like(node)
        grad_edge_weight = torch.zeros_like(edge_weight)
        grad_edge_bias = torch.zeros_like(edge_bias)
        grad_mix = None if mix_weight is None else torch.zeros_like(mix_weight)
        layer = _HiddenLayer(relative, node, source, edge_weight, edge_bias)
        hidden, of_block = layer.buffer(), layer.buffer()
        for rows in layer.blocks():
            activation = layer.activation(rows)
            given, part = grad[:, rows].t(), of_block[: activation.size(0)]
            if grad_mix is None:
                part.copy_(given)
            else:
                post = torch.ops.aten.gelu.out(activation, out=hidden[: len(part)])
                grad_mix.addmm_(given.t(), post)
                torch.mm(given, mix_weight, out=part)
            torch.ops.aten.gelu_backward.grad_input(part, activation, grad_input=part)
            grad_edge_weight.addmm_(part.t(), relative[rows])
            if grad_node is None:
                grad_edge_bias += part.sum(0)
            else:
                grad_node.index_add_(0, source[rows], part)
        if grad_node is not None:
            # Every edge has one source.
            grad_edge_bias = grad_node.sum(0)
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


class _HiddenLayer:
    """What goes into the GELU, for a block of edges at a time.

    Blocks share their memory: what is allocated for each would leave the cache.
    """

    def __init__(
        self,
        relative: Tensor,
        node: Tensor | None,
        source: Tensor,
        edge_weight: Tensor,
        edge_bias: Tensor,
    ) -> None:
        self.relative, self.source = relative, source
        self.weight, self.bias = edge_weight.t(), edge_bias
        # Points are fewer than edges.
        self.node = None if node is None else node + edge_bias
        most = BLOCK_CUDA if relative.is_cuda else BLOCK_CPU
        size = max(1, most // edge_weight.size(0))
        self.size = min(size, relative.size(0))
        self._activation = self.buffer()

    def buffer(self) -> Tensor:
        """Room for a block."""
        return self.relative.new_empty(self.size, self.weight.size(1))

    def blocks(self) -> Iterator[slice]:
        """Runs of edges."""
        num_edges = self.relative.size(0)
        for begin in range(0, num_edges, max(1, self.size)):
            yield slice(begin, min(begin + self.size, num_edges))

    def activation(self, rows: slice) -> Tensor:
        """Of a block; the next one overwrites it."""
        relative = self.relative[rows]
        out = self._activation[: relative.size(0)]
        if self.node is None:
            return torch.addmm(self.bias, relative, self.weight, out=out)
        torch.index_select(self.node, 0, self.source[rows], out=out)
        return out.addmm_(relative, self.weight)
