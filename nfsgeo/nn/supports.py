"""Fixed sparse matrices on the nodes of a graph: its Laplacian, its random walks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.neighbour_sum import neighbour_sum

__all__ = [
    "Support",
    "chebyshev_support",
    "chebyshev_terms",
    "diffusion_supports",
    "node_graph",
]


@dataclass(frozen=True, eq=False)
class Support:
    r"""A sparse matrix on the nodes of a graph.

    .. math:: (S x)_j = \sum_{(i, j) \in E} w_{ij} \, x_i

    Attributes:
        graph: edges from nodes to nodes.
        weight: :math:`w`, ``[E]``, in the edge order of the graph.
    """

    graph: BipartiteGraph
    weight: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """The product with ``x [N, D]``."""
        return neighbour_sum(x[None], self.weight[None], self.graph)[0]


def node_graph(edge_index: Tensor, num_nodes: int) -> BipartiteGraph:
    """A graph in PyTorch Geometric's format, for the supports below.

    Args:
        edge_index: ``[2, E]``, sources and targets, in any order.
        num_nodes: number of nodes.

    Raises:
        ValueError: when an index is not that of a node.
    """
    if edge_index.numel() and not (
        int(edge_index.min()) >= 0 and int(edge_index.max()) < num_nodes
    ):
        raise ValueError(
            f"edges between nodes {int(edge_index.min())} to "
            f"{int(edge_index.max())}; expected 0 to {num_nodes - 1}"
        )
    nowhere = torch.empty(num_nodes, 0, device=edge_index.device)
    return BipartiteGraph.from_edges(edge_index, (nowhere, nowhere))


def chebyshev_support(
    graph: BipartiteGraph, dtype: torch.dtype = torch.float32
) -> Support:
    r"""The scaled Laplacian of a graph, for Chebyshev polynomials.

    .. math:: \tilde L = \frac{2}{\lambda_{max}} L - I = -D^{-1/2} A D^{-1/2}

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
    with the bound :math:`\lambda_{max} = 2` of the symmetric normalisation. Self-loops
    do not count.

    Args:
        graph: edges from nodes to nodes.
        dtype: of the weights.
    """

    source, target = graph.edge_index
    loop = source == target
    degree = torch.zeros(graph.num_source, dtype=torch.float64, device=source.device)
    degree = degree.index_add(0, source, (~loop).to(torch.float64))
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    weight = (-scale[source] * scale[target]).masked_fill(loop, 0)
    return Support(graph, weight.to(dtype))


def diffusion_supports(
    graph: BipartiteGraph, dtype: torch.dtype = torch.float32
) -> tuple[Support, Support]:
    r"""Random walks along the edges of a graph and against them.

    .. math:: (D_O^{-1} W)^T, \qquad (D_I^{-1} W^T)^T

    The supports of "Diffusion Convolutional Recurrent Neural Network", equation (2),
    in the orientation of its authors' program: the value of a node is distributed among
    its neighbours. On a symmetric graph, such as that of all pairs within a radius,
    both are the same object.

    Args:
        graph: edges from nodes to nodes.
        dtype: of the weights.
    """

    along = Support(graph, _shared_out(graph).to(dtype))
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
    return along, Support(reverse, _shared_out(reverse).to(dtype))


def _shared_out(graph: BipartiteGraph) -> Tensor:
    """One over the number of edges that leave the source of each edge ``[E]``."""
    fraction = graph.transpose.ptr.diff().to(torch.float64).reciprocal()
    return fraction[graph.edge_index[0]]


def chebyshev_terms(
    support: Callable[[Tensor], Tensor], x: Tensor, order: int
) -> list[Tensor]:
    """``T_0(S) x`` to ``T_{order - 1}(S) x``, Chebyshev polynomials of a matrix."""
    terms = [x]
    while len(terms) < order:
        product = support(terms[-1])
        terms.append(product if len(terms) == 1 else 2 * product - terms[-2])
    return terms
