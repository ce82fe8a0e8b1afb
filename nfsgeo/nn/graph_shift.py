"""Graph shift operators: Laplacians and random walks of graphs between nodes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nfsgeo.errors import check_shape
from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.neighbour_sums import neighbour_sum

__all__ = ["chebyshev_terms", "node_graph", "scaled_laplacian", "shifted"]
__all__ += ["transition_matrices"]


def shifted(x: Tensor, shift: BipartiteGraph | Tensor) -> Tensor:
    r"""Multiply a signal on the nodes by a graph shift operator.

    .. math:: (S x)_j = \sum_{(i, j) \in E} w_{ij} \, x_i

    Args:
        x: the signal ``[N, D]``, or several, ``[B, N, D]``.
        shift: a graph from nodes to nodes, its ``base_weight`` the entries of ``S``; or
            the matrix itself.
    """
    if isinstance(shift, Tensor):
        return shift @ x
    signals = x if x.dim() == 3 else x[None]
    summed = neighbour_sum(signals, shift.base_weight[None].to(x.dtype), shift)
    return summed if x.dim() == 3 else summed[0]


def chebyshev_terms(
    shift: BipartiteGraph | Tensor, x: Tensor, order: int
) -> list[Tensor]:
    """Return ``T_0(S) x`` to ``T_{order - 1}(S) x``, with Chebyshev polynomials."""
    terms = [x]
    while len(terms) < order:
        term = shifted(terms[-1], shift)
        terms.append(term if len(terms) == 1 else 2 * term - terms[-2])
    return terms


def node_graph(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
) -> BipartiteGraph:
    """Make a graph from edges in PyTorch Geometric's format.

    Args:
        edge_index: ``[2, E]``, sources and targets, in any order.
        num_nodes: number of nodes.
        edge_weight: weights ``[E]`` of the edges, the ``base_weight`` of the graph;
            None for those of the mean over neighbours.
    """
    nowhere = torch.empty(num_nodes, 0, device=edge_index.device)
    ends = nowhere, nowhere
    return BipartiteGraph.from_edges(edge_index, ends, edge_weight=edge_weight)


def scaled_laplacian(
    graph: BipartiteGraph,
    dtype: torch.dtype = torch.float32,
    edge_weight: Tensor | None = None,
) -> BipartiteGraph:
    r"""Return the scaled Laplacian of a graph, for Chebyshev polynomials.

    .. math:: \tilde L = \frac{2}{\lambda_{max}} L - I = -D^{-1/2} W D^{-1/2}

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering"
    (Defferrard et al., 2016), with the bound :math:`\lambda_{max} = 2` of the symmetric
    normalisation. Self-loops are ignored.

    Args:
        graph: edges from nodes to nodes.
        dtype: type of the entries, the ``base_weight`` of the result.
        edge_weight: weights ``[E]`` in the edge order of ``graph``, not negative; None
            for 1.
    """
    source, target = graph.edge_index
    weight = _weights(graph, edge_weight).masked_fill(source == target, 0)
    degree = weight.new_zeros(graph.num_source).index_add(0, source, weight)
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    weight = -scale[source] * weight * scale[target]
    return replace(graph, base_weight=weight.to(dtype))


def _weights(graph: BipartiteGraph, edge_weight: Tensor | None) -> Tensor:
    """The weights of the edges in double precision, 1 where there are none.

    Raises:
        ValueError: when there is not one for each edge, or sources are not the targets.
    """
    if graph.num_source != graph.num_target:
        given = f"a graph from {graph.num_source} sources to {graph.num_target} targets"
        raise ValueError(f"{given}; expected one among the same nodes")
    if edge_weight is None:
        shape = graph.edge_index.shape[1:]
        return graph.ptr.new_ones(shape, dtype=torch.float64)
    check_shape("edge_weight", edge_weight, graph.num_edges)
    return edge_weight.to(torch.float64)


def transition_matrices(
    graph: BipartiteGraph,
    dtype: torch.dtype = torch.float32,
    edge_weight: Tensor | None = None,
) -> tuple[BipartiteGraph, BipartiteGraph]:
    r"""Return transition matrices of random walks along and against the edges.

    .. math:: (D_O^{-1} W)^T, \qquad (D_I^{-1} W^T)^T

    They are those of "Diffusion Convolutional Recurrent Neural Network" (Li et al.,
    2018), equation (2), in the orientation of its authors' program: the value of a node
    is distributed among its neighbours. For a symmetric graph, such as that of all
    pairs within a radius, both are the same object.

    Args:
        graph: edges from nodes to nodes.
        dtype: type of the entries, the ``base_weight`` of the results.
        edge_weight: weights ``[E]`` in the edge order of ``graph``, not negative; None
            for 1.
    """
    weight = _weights(graph, edge_weight)
    along = _walk(graph, weight, dtype)
    reverse = node_graph(graph.edge_index.flip(0), graph.num_source, weight)
    alike = torch.equal(reverse.edge_index, graph.edge_index)
    if alike and torch.equal(reverse.base_weight, weight):
        return along, along
    return along, _walk(reverse, reverse.base_weight, dtype)


def _walk(graph: BipartiteGraph, weight: Tensor, dtype: torch.dtype) -> BipartiteGraph:
    """Divide the weight of every edge by the sum of those from its source."""
    source = graph.edge_index[0]
    total = weight.new_zeros(graph.num_source).index_add(0, source, weight)
    fraction = torch.where(total > 0, weight.new_ones(()) / total, 0)[source] * weight
    return replace(graph, base_weight=fraction.to(dtype))
