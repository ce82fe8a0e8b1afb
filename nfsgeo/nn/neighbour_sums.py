"""Sums over neighbourhoods without storing a value per edge and time step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from nfsgeo.geometry import BipartiteGraph, SparseRows

__all__ = [
    "matrix_sum",
    "matrix_sum_reference",
    "neighbour_sum",
    "neighbour_sum_reference",
    "sparse_matrix",
    "twice_differentiable",
]

# Numbers in a block of matrices and messages: few enough for the cache of a core, and
# on a GPU enough to keep it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 19, 1 << 26
# Fields with fewer columns are concatenated for a product sampled at the edges, and
# padded to a register: one of 4 columns takes nine times as long as one of 8.
COLUMNS, VECTOR = 32, 8

Backward = Callable[..., tuple[Any, ...]]


def neighbour_sum(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
    r"""Sum the neighbours of every target under several edge weights.

    .. math:: s_{f,j} = \sum_{i \in N(j)} w_{r(f),ij} \, x_{f,i}

    Every weight :math:`r` is a sparse matrix. The sum is a product of a sparse with a
    dense matrix, and its gradients are the product with the transpose and a product
    sampled at the edges (SDDMM). A training step stores ``x`` and ``weight`` but no
    copy of a source per edge. Second derivatives are those of the reference.

    Args:
        x: fields ``[F, n, D]``, with ``F / R`` consecutive fields for every weight, or
            one field ``[1, n, D]`` for all weights.
        weight: edge weights ``[R, E]``, in the edge order of ``graph``.
        graph: edges sorted by target.

    Returns:
        Sums ``[F, m, D]``, or ``[R, m, D]`` for a shared field.
    """
    _check(x, weight, graph)
    if torch.compiler.is_exporting():
        # Exported programs have no sparse matrices.
        return neighbour_sum_reference(x, weight, graph)
    dtype = torch.promote_types(x.dtype, weight.dtype)
    # Sparse products exist in single and double precision.
    exact = torch.promote_types(dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        # They need contiguous fields and weights.
        summed: Tensor = _NeighbourSum.apply(
            x.to(exact).contiguous(), weight.to(exact).contiguous(), graph
        )
    return summed.to(dtype)


def neighbour_sum_reference(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
    """Reference for :func:`neighbour_sum`, which stores all messages.

    Args:
        x: fields at the sources ``[F, n, D]``.
        weight: edge weights ``[R, E]``.
        graph: edges sorted by target.
    """
    _check(x, weight, graph)
    source, target = graph.edge_index
    weight = weight.repeat_interleave(max(1, x.size(0) // weight.size(0)), 0)
    message = weight.unsqueeze(-1) * x[:, source]
    out = message.new_zeros(message.size(0), graph.num_target, message.size(2))
    return out.index_add(1, target, message)


def _check(x: Tensor, weight: Tensor, graph: BipartiteGraph) -> None:
    num_edges = graph.edge_index.size(1)
    if x.dim() != 3 or x.size(1) != graph.num_source:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; expected [F, {graph.num_source}, D], "
            "an entry for each source of the graph"
        )
    if weight.dim() != 2 or weight.size(1) != num_edges:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; expected [R, {num_edges}], "
            "an entry for each edge of the graph"
        )
    if x.size(0) != 1 and x.size(0) % weight.size(0):
        raise ValueError(
            f"x has {x.size(0)} fields for {weight.size(0)} weights; expected one "
            "field that all share, or as many for each weight"
        )


def twice_differentiable(
    reference: Callable[..., Tensor],
) -> Callable[[Backward], Backward]:
    """Decorate the ``backward`` of a fast path, as ``once_differentiable`` does.

    With ``create_graph=True``, gradients are computed by ``reference`` instead, so that
    they can be differentiated again.

    Args:
        reference: function of the arguments of ``forward``, which sets ``ctx.inputs``
            to a function that returns them from the saved tensors.
    """

    def decorate(backward: Backward) -> Backward:
        def either(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
            if not torch.is_grad_enabled():
                return backward(ctx, grad)
            inputs, leaves = list(ctx.inputs(*ctx.saved_tensors)), {}
            for i, needed in enumerate(ctx.needs_input_grad):
                if needed:  # A view, since one tensor may be several arguments.
                    inputs[i] = leaves[i] = inputs[i].view_as(inputs[i])
            gradients = torch.autograd.grad(
                reference(*inputs), list(leaves.values()), grad, create_graph=True
            )
            by_argument = dict(zip(leaves, gradients, strict=True))
            return tuple(by_argument.get(i) for i in range(len(inputs)))

        return either

    return decorate


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.graph = graph
        ctx.inputs = lambda *saved: (*saved, graph)
        out = x.new_zeros(max(x.size(0), weight.size(0)), graph.num_target, x.size(2))
        repeats = out.size(0) // weight.size(0)
        for r, values in enumerate(weight):
            matrix = sparse_matrix(graph.csr, values, graph.num_source)
            for f in range(r * repeats, (r + 1) * repeats):
                # In place, since a product with ``out=`` allocates memory as well.
                out[f].addmm_(matrix, x[min(f, x.size(0) - 1)])
        return out

    @staticmethod
    @twice_differentiable(neighbour_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        graph: BipartiteGraph = ctx.graph
        grad = grad.contiguous()
        repeats = grad.size(0) // weight.size(0)
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.zeros_like(x)
            by_source, order = torch.empty_like(weight[0]), graph.transpose.permutation
            for r, values in enumerate(weight):
                torch.index_select(values, 0, order, out=by_source)
                matrix = sparse_matrix(
                    graph.transposed_csr, by_source, graph.num_target
                )
                for f in range(r * repeats, (r + 1) * repeats):
                    grad_x[min(f, x.size(0) - 1)].addmm_(matrix, grad[f])
        if ctx.needs_input_grad[1]:
            grad_weight = torch.zeros_like(weight)
            for r, values in enumerate(grad_weight):
                pattern = sparse_matrix(graph.csr, values, graph.num_source)
                fields = x if x.size(0) == 1 else x[r * repeats : (r + 1) * repeats]
                grads = grad[r * repeats : (r + 1) * repeats]
                pairs = zip(_side_by_side(grads), _side_by_side(fields), strict=True)
                for left, right in pairs:
                    # The values of the pattern are a row of grad_weight.
                    torch.sparse.sampled_addmm(pattern, left, right.t(), out=pattern)
        return grad_x, grad_weight, None


def _side_by_side(fields: Tensor) -> Sequence[Tensor]:
    """Concatenate or pad fields with too few columns for a fast sampled product."""
    if fields.size(0) > 1 and fields.size(2) < COLUMNS:
        fields = torch.cat(fields.unbind(), dim=1)[None]
    if fields.size(2) < VECTOR:
        fields = pad(fields, (0, VECTOR - fields.size(2)))
    return fields.unbind()


def sparse_matrix(rows: SparseRows, values: Tensor, num_columns: int) -> Tensor:
    """Make a sparse matrix from a pattern and values, without checks."""
    with warnings.catch_warnings():
        # Torch warns once per process that the layout is in beta.
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(
            rows.ptr,
            rows.column,
            values,
            (rows.ptr.numel() - 1, num_columns),
            check_invariants=False,
        )


def matrix_sum(
    x: Tensor, weight: Tensor, matrix: Tensor, graph: BipartiteGraph
) -> Tensor:
    r"""Sum the neighbours of every target, multiplied by matrices of the edges.

    .. math:: s_j = \sum_{i \in N(j)} x_i \sum_r w_{r,ij} \, M_r

    Matrices and messages are computed block by block, and again in the backward pass. A
    training step stores only the arguments.

    Args:
        x: field at the sources ``[n, T, C]``.
        weight: edge weights ``[R, E]``, in the edge order of ``graph``.
        matrix: matrices that all edges share ``[R, C, C']``.
        graph: edges from sources to targets.

    Returns:
        Sums ``[m, T, C']``.
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
    """Reference for :func:`matrix_sum`, which stores all messages."""
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
        for edges, edge_matrices in _blocks(x, weight, matrix):
            field = x.index_select(0, source[edges])
            out.index_add_(0, target[edges], torch.bmm(field, edge_matrices))
        return out

    @staticmethod
    @twice_differentiable(matrix_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (x, weight, matrix), grad = ctx.saved_tensors, grad.contiguous()
        source, target = ctx.graph.edge_index
        grad_x, grad_matrix = torch.zeros_like(x), torch.zeros_like(matrix).flatten(1)
        grad_weight, flat = torch.empty_like(weight), matrix.flatten(1)
        for edges, edge_matrices in _blocks(x, weight, matrix):
            arrived = grad.index_select(0, target[edges])
            back = torch.bmm(arrived, edge_matrices.transpose(1, 2))
            grad_x.index_add_(0, source[edges], back)
            field = x.index_select(0, source[edges])
            grad_edges = torch.bmm(field.transpose(1, 2), arrived).flatten(1)
            torch.mm(flat, grad_edges.t(), out=grad_weight[:, edges])
            grad_matrix.addmm_(weight[:, edges], grad_edges)
        return grad_x, grad_weight, grad_matrix.view_as(matrix), None


def _blocks(
    x: Tensor, weight: Tensor, matrix: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of edges and their matrices."""
    num_edges, an_edge = weight.size(1), matrix[0].numel() + x[0].numel()
    size = max(1, (BLOCK_CUDA if x.is_cuda else BLOCK_CPU) // an_edge)
    for begin in range(0, num_edges, size):
        edges = slice(begin, min(begin + size, num_edges))
        edge_matrices = weight[:, edges].t() @ matrix.flatten(1)
        yield edges, edge_matrices.unflatten(1, matrix.shape[1:])
