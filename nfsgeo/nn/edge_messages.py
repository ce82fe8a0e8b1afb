"""Learned messages along the edges of a bipartite graph, and their sums."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from torch_geometric.nn import MessagePassing

from nfsgeo.errors import check_shape, check_sizes
from nfsgeo.geometry import BipartiteGraph, Domain, GraphTensors, SparseRows
from nfsgeo.geometry.bipartite import sparse_rows
from nfsgeo.nn.neighbour_sums import sparse_matrix, twice_differentiable

__all__ = ["BipartiteMessages", "edge_sum", "edge_sum_reference", "graph_along"]

# Numbers in a block of messages: few enough for the cache of a core, and on a GPU
# enough to keep it busy.
BLOCK_CPU, BLOCK_CUDA = 1 << 20, 1 << 27


class BipartiteMessages(MessagePassing):
    r"""Learned messages along edges, averaged over the neighbours of every target.

    .. math::
        y_j = W \sum_{i \in N(j)} \omega_{ij} \,
        \mathrm{GELU}(A x_i + B x_j + C g_{ij}) + b, \qquad
        g_{ij} = (x_j - x_i, |x_j - x_i|) / s_j

    The kernel of equation (7) in "Non-equispaced Fourier Neural Solvers for PDEs" (Lin
    et al., 2022) depends on the input at the source, its position and the displacement.
    Here it also depends on the target, and is not multiplied by the field. :math:`s_j`
    is the mean distance of the neighbours of a target, so that :math:`g_{ij}` does not
    change when a mesh is refined, and :math:`\omega_{ij}` are mean weights. The linear
    maps :math:`A` and :math:`B` are applied to points, of which there are fewer than
    edges, and :math:`W` to the sums.

    It is called as PyTorch Geometric's bipartite layers are::

        layer((x_source, x_target), (pos_source, pos_target), edge_index)
        layer((x_source, x_target), pos_source, graph)

    The second form takes a graph prepared by
    :func:`~nfsgeo.geometry.bipartite_graph` or
    :func:`~nfsgeo.geometry.nearest_neighbour_graph`. Initially W and b are zero, so
    that a model which adds the layer to a base interpolation starts from that.

    Args:
        in_channels: channels of sources and of targets.
        out_channels: channels of the result.
        dim: space dimensions.
        hidden: channels of a message.
        fused: whether to sum one block of edges after the other. If not, the messages
            of all edges are stored, for comparison.
        domain: the box with its periodic axes, for displacements along an
            ``edge_index``; ``None`` for open space. A prepared graph has its own.

    Shapes:
        ``x`` ``[n, in_channels[0]]`` and ``[m, in_channels[1]]``, ``edge_index``
        ``[2, E]``; result ``[m, out_channels]``.

    Raises:
        TypeError: for another kind of graph.
        ValueError: for sizes below 1, for ``x``, ``pos`` or ``edge_index`` of other
            shapes, and for edges of no points.
    """

    def __init__(
        self,
        in_channels: tuple[int, int],
        out_channels: int,
        dim: int,
        *,
        hidden: int = 32,
        fused: bool = True,
        domain: Domain | None = None,
    ) -> None:
        super().__init__(aggr="sum", flow="source_to_target", node_dim=0)
        check_sizes(out_channels=out_channels, dim=dim, hidden=hidden)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.source = nn.Linear(in_channels[0], hidden)
        self.target = nn.Linear(in_channels[1], hidden, bias=False)
        self.edge = nn.Linear(dim + 1, hidden, bias=False)
        self.out = nn.Linear(hidden, out_channels)
        self.use_fused, self.domain = fused, domain
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw the weights of the messages, and set W and b to zero."""
        super().reset_parameters()
        for layer in (self.source, self.target, self.edge):
            layer.reset_parameters()
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        pos: Tensor | tuple[Tensor, Tensor],
        edge_index: Tensor | BipartiteGraph | GraphTensors,
    ) -> Tensor:
        """Return the result at every target.

        Args:
            x: features of sources and targets; one tensor if they are the same points.
            pos: positions of sources and targets ``[n, d]`` and ``[m, d]``, likewise;
                ignored with a prepared graph.
            edge_index: edges ``[2, E]`` in any order, or a prepared graph.
        """
        x = (x, x) if isinstance(x, Tensor) else x
        graph = edge_index
        if not isinstance(graph, BipartiteGraph):
            graph = graph_along(pos, edge_index, self.domain)
        self._check(x, graph)
        place = graph.relative(x[0].dtype)
        if place.size(1) != self.edge.in_features:
            check_shape("the graph's displacement", place, "E", self.edge.in_features)
        weight = graph.mean_weight(x[0].dtype)
        source, target = self.source(x[0]), self.target(x[1])
        if self.use_fused:
            total = edge_sum(source, target, place, self.edge.weight, weight, graph)
        else:
            total = self.propagate(
                graph.edge_index,
                source=source,
                target=target,
                place=self.edge(place),
                weight=weight,
                size=(graph.num_source, graph.num_target),
            )
        result: Tensor = self.out(total)
        return result

    def message(
        self, source_j: Tensor, target_i: Tensor, place: Tensor, weight: Tensor
    ) -> Tensor:
        r"""Return the weighted message of each edge ``[E, hidden]``.

        Args:
            source_j: :math:`A x_i`, ``[E, hidden]``.
            target_i: :math:`B x_j`, likewise.
            place: :math:`C g_{ij}`, likewise.
            weight: :math:`\omega_{ij}`, ``[E]``.
        """
        return weight[:, None] * gelu(source_j + target_i + place)

    def _check(self, x: tuple[Tensor, Tensor], graph: BipartiteGraph) -> None:
        numbers, names = (graph.num_source, graph.num_target), ("sources", "targets")
        for name, features, *size in zip(
            names, x, numbers, self.in_channels, strict=True
        ):
            if features.shape != (*size,):
                check_shape(f"x of the {name}", features, *size)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, fused={self.use_fused}"

    # MessagePassing's own representation lacks the sizes.
    __repr__ = nn.Module.__repr__


def graph_along(
    pos: Tensor | tuple[Tensor, Tensor],
    edge_index: Tensor | BipartiteGraph | GraphTensors,
    domain: Domain | None,
) -> BipartiteGraph:
    """Return the graph that a bipartite layer was called with, or make it of edges.

    Args:
        pos: positions of sources and targets, or one tensor for both; of a prepared
            graph, those of the sources suffice.
        edge_index: edges ``[2, E]``, or a prepared graph.
        domain: the box for displacements along the edges.

    Raises:
        TypeError: for another kind of graph or positions.
    """
    ends = (pos, pos) if isinstance(pos, Tensor) else pos
    if isinstance(ends, tuple | list) and isinstance(ends[0], Tensor):
        if isinstance(edge_index, BipartiteGraph):
            return edge_index
        if isinstance(edge_index, GraphTensors):
            return BipartiteGraph.from_tensors(edge_index, ends[0].size(0))
        if isinstance(edge_index, Tensor):
            return BipartiteGraph.from_edges(edge_index, (ends[0], ends[1]), domain)
    raise TypeError(
        f"pos is a {type(ends).__name__} and edge_index a "
        f"{type(edge_index).__name__}; expected positions and then a tensor [2, E] "
        "or a BipartiteGraph, as bipartite_graph or "
        "nfsgeo.geometry.transforms.graph_between makes it"
    )


def edge_sum(
    source: Tensor,
    target: Tensor,
    place: Tensor,
    matrix: Tensor,
    weight: Tensor,
    graph: BipartiteGraph,
) -> Tensor:
    r"""Sum the messages of every target without storing them.

    .. math:: s_j = \sum_{i \in N(j)} w_{ij} \, \mathrm{GELU}(a_i + b_j + C g_{ij})

    Messages are computed block by block, and again in the backward pass.

    Args:
        source: :math:`a`, ``[n, h]``.
        target: :math:`b`, ``[m, h]``.
        place: :math:`g`, ``[E, k]``.
        matrix: :math:`C`, ``[h, k]``.
        weight: :math:`w`, ``[E]``.
        graph: edges sorted by target.

    Returns:
        ``[m, h]``.
    """
    dtype = torch.promote_types(source.dtype, torch.float32)
    if torch.compiler.is_exporting():
        # Exported programs have no contexts.
        return edge_sum_reference(source, target, place, matrix, weight, graph)
    fused = not (torch.compiler.is_compiling() or graph.differentiable)
    function = _EdgeSum.apply if fused else edge_sum_reference
    tensors = [t.to(dtype) for t in (source, target, place, matrix, weight)]
    with torch.autocast(source.device.type, enabled=False):
        arguments: list[Any] = [*tensors, graph]
        summed: Tensor = function(*arguments)
    return summed.to(source.dtype)


def edge_sum_reference(
    source: Tensor,
    target: Tensor,
    place: Tensor,
    matrix: Tensor,
    weight: Tensor,
    graph: BipartiteGraph,
) -> Tensor:
    """Reference for :func:`edge_sum`, which stores all messages."""
    sources, targets = graph.edge_index
    ends = source.index_select(0, sources) + target.index_select(0, targets)
    message = weight[:, None] * gelu(ends + place @ matrix.t())
    return torch.zeros_like(target).index_add(0, targets, message)


class _EdgeSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        target: Tensor,
        place: Tensor,
        matrix: Tensor,
        weight: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        ctx.save_for_backward(source, target, place, matrix, weight)
        ctx.inputs = lambda *saved: (*saved, graph)
        ctx.graph, out = graph, torch.zeros_like(target)
        ends = torch.cat([source, target])
        for rows, edges in _blocks(graph, source):
            hidden = _hidden(ends, place, matrix, graph, edges)
            out[rows].addmm_(_sums(graph, rows, edges, weight), gelu(hidden))
        return out

    @staticmethod
    @twice_differentiable(edge_sum_reference)
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        source, target, place, matrix, weight = ctx.saved_tensors
        graph, grad, ones = ctx.graph, grad.contiguous(), torch.ones_like(weight)
        grad_target, grad_matrix = torch.zeros_like(target), torch.zeros_like(matrix)
        grad_edges = source.new_empty(graph.num_edges, source.size(1))
        ends = torch.cat([source, target])
        for rows, edges in _blocks(graph, source):
            hidden = _hidden(ends, place, matrix, graph, edges)
            arrived = grad.index_select(0, graph.edge_index[1, edges])
            arrived = arrived.mul_(weight[edges, None])
            some = torch.ops.aten.gelu_backward(arrived, hidden)
            grad_target[rows].addmm_(_sums(graph, rows, edges, ones), some)
            grad_matrix.addmm_(some.t(), place[edges])
            grad_edges[edges] = some
        order, ptr = graph.transpose
        by_source = sparse_matrix(sparse_rows(ptr, order), ones, graph.num_edges)
        return by_source @ grad_edges, grad_target, None, grad_matrix, None, None


def _hidden(
    ends: Tensor, place: Tensor, matrix: Tensor, graph: BipartiteGraph, edges: slice
) -> Tensor:
    """Return the arguments of the activation at some edges ``[e, h]``.

    ``ends`` are the terms of sources and targets, concatenated, ``[n + m, h]``.
    """
    (count, column), hidden = graph.ends, place[edges] @ matrix.t()
    both = SparseRows(
        count[: len(hidden) + 1], column[2 * edges.start : 2 * edges.stop]
    )
    ones = ends.new_ones(2 * len(hidden))
    return hidden.addmm_(sparse_matrix(both, ones, len(ends)), ends)


def _sums(graph: BipartiteGraph, rows: slice, edges: slice, weight: Tensor) -> Tensor:
    """Return the sparse matrix ``[t, e]`` that sums weighted edges by target."""
    weight, ptr = weight[edges], graph.csr.ptr[rows.start : rows.stop + 1]
    numbers = torch.arange(len(weight), dtype=ptr.dtype, device=ptr.device)
    return sparse_matrix(SparseRows(ptr - edges.start, numbers), weight, len(weight))


def _blocks(graph: BipartiteGraph, source: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of targets and their edges."""
    num, size = graph.num_target, BLOCK_CUDA if source.is_cuda else BLOCK_CPU
    size = max(1, size // source.size(1))
    if graph.num_edges <= size:
        yield slice(0, num), slice(0, graph.num_edges)
        return
    ends = torch.arange(size, graph.num_edges, size, device=source.device)
    cuts = torch.searchsorted(graph.ptr, ends, right=True) - 1
    rows = sorted({0, *cuts.tolist(), num})
    edges = graph.ptr[rows].tolist()
    for row_ends, edge_ends in zip(pairwise(rows), pairwise(edges), strict=True):
        yield slice(*row_ends), slice(*edge_ends)
