"""Sums over neighbourhoods, every neighbour under a matrix of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.second_derivatives import twice_differentiable

__all__ = ["matrix_sum", "matrix_sum_reference"]

# Numbers of matrices and messages stored at a time: what fits a core's cache,
# and on a GPU what keeps it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26


def matrix_sum(
    x: Tensor, weight: Tensor, matrix: Tensor, graph: BipartiteGraph
) -> Tensor:
    r"""Sum the neighbours of every target, mapped by their edges' matrices.

    .. math:: s_j = \sum_{i \in N(j)} x_i \sum_r w_{r,ij} \, M_r

    Matrices and messages exist for a block of edges at a time, and once more in the
    backward pass; what a training step keeps is its arguments.

    Args:
        x: the field at the sources ``[n, T, C]``.
        weight: ``[R, E]``, in the edge order of ``graph``.
        matrix: the matrices that all edges share ``[R, C, C']``.
        graph: edges from sources to targets.

    Returns:
        ``[m, T, C']``.
    """
    dtype = torch.promote_types(x.dtype, weight.dtype)
    exact = torch.promote_types(dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        summed: Tensor = _MatrixSum.apply(
            x.to(exact), weight.to(exact), matrix.to(exact), graph
        )
    return summed.to(dtype)


def matrix_sum_reference(
    x: Tensor, weight: Tensor, matrix: Tensor, graph: BipartiteGraph
) -> Tensor:
    """The same as :func:`matrix_sum`, all edges at a time."""
    source, target = graph.edge_index
    message = torch.einsum("etc,re,rcd->etd", x[source], weight, matrix)
    out = message.new_zeros(graph.num_target, *message.shape[1:])
    return out.index_add(0, target, message)


class _MatrixSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, matrix: Tensor, graph: BipartiteGraph
    ) -> Tensor:
        ctx.save_for_backward(x, weight, matrix)
        ctx.graph = graph
        ctx.inputs = lambda *saved: (*saved, graph)
        edges = _Edges(x, weight, matrix, graph)
        out = x.new_zeros(graph.num_target, matrix.size(2), x.size(1))
        for block in edges.blocks():
            of_edge, field = edges.matrices(block), edges.fields(block)
            out[block.targets] = torch.bmm(of_edge.transpose(1, 2), field)
        return out.transpose(1, 2)

    @staticmethod
    @twice_differentiable(matrix_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, matrix = ctx.saved_tensors
        edges = _Edges(x, weight, matrix, ctx.graph)
        flat, by_step = edges.flat.t().contiguous(), grad.contiguous()
        by_channel = grad.transpose(1, 2).contiguous()
        grad_x = torch.zeros_like(edges.x)
        grad_weight = torch.zeros_like(edges.weight)
        grad_flat = torch.zeros_like(edges.flat)
        for block in edges.blocks():
            given = by_step.index_select(0, block.targets)
            of_edge = torch.bmm(edges.fields(block), given).view(-1, flat.size(0))
            torch.mm(of_edge, flat, out=grad_weight[block.edges])
            grad_flat.addmm_(edges.weight[block.edges].t(), of_edge)
            given = by_channel.index_select(0, block.targets)
            of_source = torch.bmm(edges.matrices(block), given)
            of_source = of_source.view(-1, *grad_x.shape[1:])
            grad_x.index_add_(0, edges.source[block.edges], of_source)
        back = torch.empty_like(grad_weight).index_copy_(0, edges.order, grad_weight)
        return (
            grad_x.transpose(1, 2),
            back.t().contiguous(),
            grad_flat.view_as(matrix),
            None,
        )


class _Block(NamedTuple):
    """Some targets of as many edges each, and these edges."""

    targets: Tensor
    edges: slice


class _Edges:
    """Edges in such an order that targets of equally many follow each other.

    The sum over the neighbours of a target is then a product of matrices: those of
    its edges above each other, and its neighbours', whose channels are rows.
    """

    def __init__(
        self, x: Tensor, weight: Tensor, matrix: Tensor, graph: BipartiteGraph
    ) -> None:
        degree, self.targets = graph.ptr.diff().sort(stable=True)
        begin = graph.ptr[:-1].index_select(0, self.targets)
        # From places in the new order to those in the old one.
        moved = begin - (degree.cumsum(0) - degree)
        self.order = moved.repeat_interleave(degree)
        self.order += torch.arange(graph.num_edges, device=self.order.device)
        self.source = graph.edge_index[0].index_select(0, self.order)
        self.x = x.transpose(1, 2).contiguous()
        self.weight = weight.t().index_select(0, self.order)
        self.flat, self.out_channels = matrix.flatten(1), matrix.size(2)
        self._degrees = torch.unique_consecutive(degree, return_counts=True)

    def blocks(self) -> Iterator[_Block]:
        """Edges whose matrices and messages are held at a time."""
        most = BLOCK_CUDA if self.x.is_cuda else BLOCK_CPU
        an_edge = self.flat.size(1) + self.x[0].numel()
        target = edge = 0
        for degree, count in zip(*(n.tolist() for n in self._degrees), strict=True):
            size, last = max(1, most // max(1, degree * an_edge)), target + count
            while degree and target < last:
                several = min(size, last - target)
                edges = slice(edge, edge + several * degree)
                yield _Block(self.targets[target : target + several], edges)
                target, edge = target + several, edges.stop
            target = last

    def matrices(self, block: _Block) -> Tensor:
        """Of the edges, those of a target above each other ``[b, D C, C']``."""
        of_edge = self.weight[block.edges] @ self.flat
        return of_edge.view(block.targets.numel(), -1, self.out_channels)

    def fields(self, block: _Block) -> Tensor:
        """Of the neighbours, those of a target above each other ``[b, D C, T]``."""
        field = self.x.index_select(0, self.source[block.edges])
        return field.view(block.targets.numel(), -1, self.x.size(2))
