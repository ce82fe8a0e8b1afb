"""Sums over neighbourhoods, every neighbour under a matrix of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nfsgeo.geometry import BipartiteGraph

__all__ = ["matrix_sum", "matrix_sum_reference"]

# Numbers of matrices and messages that are held at a time: what fits a core's cache,
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
        x, matrix = x.contiguous(), matrix.contiguous()
        ctx.save_for_backward(x, weight, matrix)
        ctx.graph = graph
        source, target = graph.edge_index
        out = x.new_zeros(graph.num_target, x.size(1), matrix.size(2))
        # Transposed, for products of small matrices are quicker so.
        matrix = matrix.transpose(1, 2).contiguous()
        for rows in _blocks(x, matrix, source.size(0)):
            of_edge = _of_edges(weight, matrix, rows).transpose(1, 2)
            message = torch.bmm(x.index_select(0, source[rows]), of_edge)
            out.index_add_(0, target[rows], message)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, matrix = ctx.saved_tensors
        source, target = ctx.graph.edge_index
        grad = grad.contiguous()
        flat = matrix.flatten(1)
        grad_x, grad_weight = torch.zeros_like(x), torch.empty_like(weight)
        grad_flat = torch.zeros_like(flat)
        for rows in _blocks(x, matrix, source.size(0)):
            of_edge = _of_edges(weight, matrix, rows)
            message = grad.index_select(0, target[rows])
            grad_x.index_add_(
                0, source[rows], torch.bmm(message, of_edge.transpose(1, 2))
            )
            field = x.index_select(0, source[rows]).transpose(1, 2)
            grad_of_edge = torch.bmm(field, message).flatten(1)
            grad_weight[:, rows] = flat @ grad_of_edge.t()
            grad_flat.addmm_(weight[:, rows], grad_of_edge)
        return grad_x, grad_weight, grad_flat.view_as(matrix), None


def _of_edges(weight: Tensor, matrix: Tensor, rows: slice) -> Tensor:
    """Matrices of a block of edges ``[e, C, C']``."""
    return (weight[:, rows].t() @ matrix.flatten(1)).unflatten(1, matrix.shape[1:])


def _blocks(x: Tensor, matrix: Tensor, num_edges: int) -> Iterator[slice]:
    """Runs of edges whose matrices and messages are held at a time."""
    most = BLOCK_CUDA if x.is_cuda else BLOCK_CPU
    channels, out_channels = matrix.shape[1:]
    an_edge = channels * out_channels + x.size(1) * (channels + out_channels)
    size = max(1, most // max(an_edge, 1))
    for begin in range(0, num_edges, size):
        yield slice(begin, begin + size)
