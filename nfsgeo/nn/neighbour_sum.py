"""Weighted sums over neighbourhoods without a tensor per edge and record."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nfsgeo.geometry import BipartiteGraph

__all__ = ["neighbour_sum", "neighbour_sum_reference"]


def neighbour_sum(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
    r"""Sum the neighbours of every target under several edge weights.

    .. math:: s_{r,j} = \sum_{i \in N(j)} w_{r,ij} \, x_{r,i}

    Every weight :math:`r` makes one sparse matrix, so the sum is a product of a
    sparse with a dense matrix, and its gradients are the product with the transpose
    and a product sampled at the edges. The memory that a training step keeps is
    that of ``x`` and ``weight``; no edge ever holds a copy of its source.

    Args:
        x: ``[R, n, D]``, or ``[1, n, D]`` for a field that all weights share.
        weight: ``[R, E]``, in the edge order of ``graph``.
        graph: edges sorted by target.

    Returns:
        ``[R, m, D]``.
    """
    _check(x, weight, graph)
    dtype = torch.promote_types(x.dtype, weight.dtype)
    # Sparse products know single and double precision.
    exact = torch.promote_types(dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        summed: Tensor = _NeighbourSum.apply(x.to(exact), weight.to(exact), graph)
    return summed.to(dtype)


def neighbour_sum_reference(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
    """The same as :func:`neighbour_sum`, written out edge by edge.

    Args:
        x: as there.
        weight: as there.
        graph: as there.
    """
    _check(x, weight, graph)
    source, target = graph.edge_index
    message = weight.unsqueeze(-1) * x[:, source]
    out = message.new_zeros(message.size(0), graph.num_target, message.size(2))
    return out.index_add(1, target, message)


def _check(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> None:
    num_edges = graph.edge_index.size(1)
    if x.dim() != 3 or x.size(1) != graph.num_source:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; expected [R or 1, {graph.num_source}, D], "
            "an entry for each source of the graph"
        )
    if weight.dim() != 2 or weight.size(1) != num_edges:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; expected [R, {num_edges}], "
            "an entry for each edge of the graph"
        )
    if x.size(0) not in (1, weight.size(0)):
        raise ValueError(
            f"x has {x.size(0)} fields for {weight.size(0)} weights; expected one "
            "field that all share, or as many as weights"
        )


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        # Sparse products want every field, and every weight, contiguous.
        x, weight = x.contiguous(), weight.contiguous()
        ctx.save_for_backward(x, weight)
        ctx.graph = graph
        out = x.new_empty(weight.size(0), graph.num_target, x.size(2))
        for r, values in enumerate(weight):
            matrix = _csr(graph.ptr, graph.edge_index[0], values, graph.num_source)
            torch.mm(matrix, x[min(r, x.size(0) - 1)], out=out[r])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        graph: BipartiteGraph = ctx.graph
        grad = grad.contiguous()
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            order, ptr = graph.transpose
            target = graph.edge_index[1].index_select(0, order)
            shared = x.size(0) < weight.size(0)
            grad_x = torch.zeros_like(x) if shared else torch.empty_like(x)
            for r, values in enumerate(weight.index_select(1, order)):
                matrix = _csr(ptr, target, values, graph.num_target)
                if shared:
                    grad_x[0].addmm_(matrix, grad[r])
                else:
                    torch.mm(matrix, grad[r], out=grad_x[r])
        if ctx.needs_input_grad[1]:
            grad_weight = torch.zeros_like(weight)
            for r, values in enumerate(grad_weight):
                pattern = _csr(graph.ptr, graph.edge_index[0], values, graph.num_source)
                field = x[min(r, x.size(0) - 1)]
                # Writes to the row of grad_weight that the pattern's values are.
                torch.sparse.sampled_addmm(
                    pattern, grad[r], field.t(), beta=0.0, out=pattern
                )
        return grad_x, grad_weight, None


def _csr(ptr: Tensor, column: Tensor, values: Tensor, num_columns: int) -> Tensor:
    with warnings.catch_warnings():
        # Torch calls the layout a beta at its first use in every process.
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(
            ptr,
            column,
            values,
            (ptr.numel() - 1, num_columns),
            check_invariants=False,
        )
