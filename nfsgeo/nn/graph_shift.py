"""Graph shift operators: the scaled Laplacian of a graph, and its random walks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.neighbour_sums import neighbour_sum

__all__ = [
    "chebyshev_terms",
    "node_graph",
    "scaled_laplacian",
    "shifted",
    "transition_matrices",
]


def shifted(x: Tensor, shift: BipartiteGraph) -> Tensor:
    r"""The product of a graph shift operator with a signal on the nodes.

    .. math:: (S x)_j = \sum_{(i, j) \in E} w_{ij} \, x_i

    Args:
        x: the signal ``[N, D]``.
        shift: a graph from nodes to nodes, its ``base_weight`` the entries of ``S``.
    """
    return neighbour_sum(x[None], shift.base_weight[None].to(x.dtype), shift)[0]


def node_graph(edge_index: Tensor, num_nodes: int) -> BipartiteGraph:
    """A graph in PyTorch Geometric's format, for the operators below.

    Args:
        edge_index: ``[2, E]``, sources and targets, in any order.
        num_nodes: number of nodes.
    """
    nowhere = torch.empty(num_nodes, 0, device=edge_index.device)
    return BipartiteGraph.from_edges(edge_index, (nowhere, nowhere))


def scaled_laplacian(
    graph: BipartiteGraph, dtype: torch.dtype = torch.float32
) -> BipartiteGraph:
    r"""The scaled Laplacian of a graph, for Chebyshev polynomials.

    .. math:: \tilde L = \frac{2}{\lambda_{max}} L - I = -D^{-1/2} A D^{-1/2}

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
    with the bound :math:`\lambda_{max} = 2` of the symmetric normalisation. Self-loops
    do not count.

    Args:
        graph: edges from nodes to nodes.
        dtype: of the entries, which the result has as its ``base_weight``.
    """
    source, target = graph.edge_index
    loop = source == target
    degree = torch.zeros(graph.num_source, dtype=torch.float64, device=source.device)
    degree = degree.index_add(0, source, (~loop).to(torch.float64))
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    weight = (-scale[source] * scale[target]).masked_fill(loop, 0)
    return replace(graph, base_weight=weight.to(dtype))


def transition_matrices(
    graph: BipartiteGraph, dtype: torch.dtype = torch.float32
) -> tuple[BipartiteGraph, BipartiteGraph]:
    r"""Transition matrices of random walks along the edges of a graph and against them.

    .. math:: (D_O^{-1} W)^T, \qquad (D_I^{-1} W^T)^T

    Those of "Diffusion Convolutional Recurrent Neural Network", equation (2), in the
    orientation of its authors' program: the value of a node is distributed among its
    neighbours. On a symmetric graph, such as that of all pairs within a radius, both
    are the same object.

    Args:
        graph: edges from nodes to nodes.
        dtype: of the entries, which the results have as their ``base_weight``.
    """
    along = _walk(graph, dtype)
    order, ptr = graph.transpose
    reverse = BipartiteGraph(
        graph.edge_index[:, order].flip(0),
        ptr,
        -graph.displacement[order],
        graph.base_weight[order],
        graph.num_target,
        graph.num_source,
    )
    if torch.equal(reverse.edge_index, graph.edge_index):
        return along, along
    return along, _walk(reverse, dtype)


def _walk(graph: BipartiteGraph, dtype: torch.dtype) -> BipartiteGraph:
    """Every edge weighs one over the number of edges that leave its source."""
    fraction = graph.transpose.ptr.diff().to(torch.float64).reciprocal()
    return replace(graph, base_weight=fraction[graph.edge_index[0]].to(dtype))


def chebyshev_terms(
    product: Callable[[Tensor], Tensor], x: Tensor, order: int
) -> list[Tensor]:
    """``T_0(S) x`` to ``T_{order - 1}(S) x``, Chebyshev polynomials of a matrix.

    Args:
        product: of the matrix with what it is called with.
        x: the signal.
        order: number of terms.
    """
    terms = [x]
    while len(terms) < order:
        term = product(terms[-1])
        terms.append(term if len(terms) == 1 else 2 * term - terms[-2])
    return terms
