"""Sums over neighbourhoods, every neighbour under a matrix of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
            x.to(exact).contiguous(), weight.to(exact), matrix.to(exact), graph
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
        source, target = graph.edge_index
        out = x.new_zeros(graph.num_target, x.size(1), matrix.size(2))
        for edges, of_edge in _blocks(x, weight, matrix):
            field = x.index_select(0, source[edges])
            out.index_add_(0, target[edges], torch.bmm(field, of_edge))
        return out

    @staticmethod
    @twice_differentiable(matrix_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (x, weight, matrix), grad = ctx.saved_tensors, grad.contiguous()
        source, target = ctx.graph.edge_index
        grad_x, grad_matrix = torch.zeros_like(x), torch.zeros_like(matrix).flatten(1)
        grad_weight, flat = torch.empty_like(weight), matrix.flatten(1)
        for edges, of_edge in _blocks(x, weight, matrix):
            given = grad.index_select(0, target[edges])
            back = torch.bmm(given, of_edge.transpose(1, 2))
            grad_x.index_add_(0, source[edges], back)
            field = x.index_select(0, source[edges])
            of_matrix = torch.bmm(field.transpose(1, 2), given).flatten(1)
            torch.mm(flat, of_matrix.t(), out=grad_weight[:, edges])
            grad_matrix.addmm_(weight[:, edges], of_matrix)
        return grad_x, grad_weight, grad_matrix.view_as(matrix), None


def _blocks(
    x: Tensor, weight: Tensor, matrix: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Edges whose matrices and messages are held at a time, and their matrices."""
    num_edges, an_edge = weight.size(1), matrix[0].numel() + x[0].numel()
    size = max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // an_edge)
    for begin in range(0, num_edges, size):
        edges = slice(begin, min(begin + size, num_edges))
        of_edge = weight[:, edges].t() @ matrix.flatten(1)
        yield edges, of_edge.unflatten(1, matrix.shape[1:])
