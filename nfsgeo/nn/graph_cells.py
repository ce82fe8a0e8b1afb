"""Recurrent cells made of graph convolutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.utils import is_sparse

from nfsgeo.errors import UserError, check_shape
from nfsgeo.geometry import BipartiteGraph
from nfsgeo.geometry.bipartite import edges_of
from nfsgeo.nn.graph_convolutions import (
    AdaptiveConv,
    ChebyshevConv,
    DiffusionConv,
    GraphConvolution,
)
from nfsgeo.nn.graph_shift import (
    node_graph,
    scaled_laplacian,
    transition_matrices,
)

__all__ = ["AdaptiveGRU", "ChebConvGRU", "DiffusionGRU"]


class GraphGRU(nn.Module, ABC):
    """Base class of recurrent cells on graphs.

    A cell is called as one of PyTorch Geometric, ``cell(x, edge_index, edge_weight,
    h)``; or, for a sequence on one graph, as ``cell(x, h, prepared)`` with what
    :meth:`prepared` has made of the edges once.

    Args:
        in_channels: channels of :math:`x`.
        hidden_channels: channels of :math:`h`.
        order: :math:`K` of every convolution.

    Shapes:
        ``x`` ``[N, in_channels]`` and ``h`` ``[N, hidden_channels]`` at the nodes of
        all samples of a batch, or ``[B, N, ...]`` of several on one graph; result as
        ``h``.
    """

    in_channels: int
    candidate: GraphConvolution
    operator: Callable[[BipartiteGraph, torch.dtype, Tensor | None], Any]

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Any = None,
        h: Tensor | None = None,
    ) -> Tensor:
        """Return the next hidden state.

        Args:
            x: inputs.
            edge_index: ``[2, E]``, sources and targets in any order; the transposed
                adjacency matrix ``adj_t`` ``[N, N]``, whose values are weights; or
                ``h``, before what :meth:`prepared` returns.
            edge_weight: weights ``[E]`` of the edges, 1 by default.
            h: the hidden state, zeros by default.

        Raises:
            UserError: when edges or weights are missing.
            ValueError: for a tensor of another shape.
        """
        check_shape("x", x, "...", "N", self.in_channels)
        if edge_index is not None and is_sparse(edge_index):
            edge_index, edge_weight = edges_of(edge_index)
        if edge_index is not None and edge_index.is_floating_point():
            if edge_weight is None:
                given, todo = "a hidden state and no graph", "name it: h=..."
                raise UserError(given, "edge_index, or h and a prepared graph", todo)
            h, prepared = edge_index, edge_weight
            check_shape("h", h, *x.shape[:-1], self.hidden_channels)
            return self.step(x, h, prepared)
        if h is None:
            h = x.new_zeros(*x.shape[:-1], self.hidden_channels)
        check_shape("h", h, *x.shape[:-1], self.hidden_channels)
        if edge_weight is not None and edge_weight.dim() > 1:
            given = f"edge_weight of shape {tuple(edge_weight.shape)}"
            todo = "name the hidden state: cell(x, edge_index, h=h)"
            raise UserError(given, "weights [E] of the edges", todo)
        prepared = self.prepared(edge_index, x.size(-2), edge_weight, x.dtype)
        return self.step(x, h, prepared)

    def prepared(
        self,
        edge_index: Tensor | None,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Any:
        """Return the graph shift operator of edges in PyTorch Geometric's format.

        Args:
            edge_index: ``[2, E]``, sources and targets in any order.
            num_nodes: number of nodes.
            edge_weight: weights ``[E]`` of the edges, 1 by default.
            dtype: type of the entries.

        Raises:
            UserError: when there are no edges, or not as many weights.
        """
        if edge_index is None:
            expected = "edge_index of shape [2, E], or a graph that was prepared"
            raise UserError("a cell without edges", expected, "pass edge_index")
        check_shape("edge_index", edge_index, 2, "E")
        if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
            given = f"edge_weight of shape {tuple(edge_weight.shape)}"
            expected = f"a weight of each of {edge_index.size(1)} edges"
            raise UserError(given, expected, "leave out further axes or edges")
        graph = node_graph(edge_index, num_nodes, edge_weight)
        weight = None if edge_weight is None else graph.base_weight
        return self.operator(graph, dtype, weight)

    @abstractmethod
    def step(self, x: Tensor, h: Tensor, prepared: Any) -> Tensor:
        """Return the next hidden state on a graph of :meth:`prepared`."""

    @property
    def hidden_channels(self) -> int:
        """Channels of :math:`h`."""
        return self.candidate.weight.size(-1)

    def reset_parameters(self) -> None:
        """Redraw all weights."""
        for convolution in self.children():
            convolution.reset_parameters()  # type: ignore[operator]


class ChebConvGRU(GraphGRU):
    r"""Gated recurrent unit whose products are Chebyshev convolutions.

    .. math::
        z &= \sigma(x * \Theta_{xz} + h * \Theta_{hz}) \\
        r &= \sigma(x * \Theta_{xr} + h * \Theta_{hr}) \\
        c &= \tanh(x * \Theta_{xc} + (r \odot h) * \Theta_{hc}) \\
        h' &= z \odot h + (1 - z) \odot c

    Model 2 of "Structured Sequence Modeling with Graph Convolutional Recurrent
    Networks" (Seo et al., 2018), with gated recurrent units for its LSTM.
    """

    operator = staticmethod(scaled_laplacian)

    def __init__(self, in_channels: int, hidden_channels: int, order: int = 2) -> None:
        super().__init__()
        self.in_channels = in_channels
        width = hidden_channels
        self.inputs = ChebyshevConv(in_channels, 3 * width, order, gates=3)
        self.gates = ChebyshevConv(width, 2 * width, order, gates=2)
        self.candidate = ChebyshevConv(width, width, order)

    def step(self, x: Tensor, h: Tensor, prepared: BipartiteGraph) -> Tensor:
        """Return the next hidden state for the Laplacian of a graph."""
        *x_gates, x_candidate = self.inputs(x, prepared).chunk(3, dim=-1)
        gates = torch.cat(x_gates, dim=-1) + self.gates(h, prepared)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = torch.tanh(x_candidate + self.candidate(r * h, prepared))
        return z * h + (1 - z) * candidate


class DiffusionGRU(GraphGRU):
    r"""Gated recurrent unit whose products are diffusion convolutions.

    .. math::
        z &= \sigma([x, h] * \Theta_z) \\
        r &= \sigma([x, h] * \Theta_r) \\
        c &= \tanh([x, r \odot h] * \Theta_c) \\
        h' &= z \odot h + (1 - z) \odot c

    The DCGRU of "Diffusion Convolutional Recurrent Neural Network" (Li et al., 2018),
    section 2.3.
    """

    operator = staticmethod(transition_matrices)

    def __init__(self, in_channels: int, hidden_channels: int, order: int = 2) -> None:
        super().__init__()
        self.in_channels = in_channels
        both, width = in_channels + hidden_channels, hidden_channels
        self.gates = DiffusionConv(both, 2 * width, order, gates=2)
        self.candidate = DiffusionConv(both, width, order)

    def step(
        self, x: Tensor, h: Tensor, prepared: tuple[BipartiteGraph, ...]
    ) -> Tensor:
        """Return the next hidden state for walks along and against the edges."""
        gates = self.gates(torch.cat([x, h], dim=-1), prepared)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = self.candidate(torch.cat([x, r * h], dim=-1), prepared)
        return z * h + (1 - z) * torch.tanh(candidate)


class AdaptiveGRU(GraphGRU):
    r"""Gated recurrent unit on a learned graph of the nodes of one mesh.

    .. math::
        z &= \sigma([x, h] * W_z) \\
        r &= \sigma([x, h] * W_r) \\
        c &= \tanh([x, z \odot h] * W_c) \\
        h' &= r \odot h + (1 - r) \odot c

    "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting" (Bai et
    al., 2020), section 3.4. Every node has its own embedding, so that the cell works on
    one mesh only, and the graph is dense.

    Args:
        num_nodes: nodes of the mesh, :math:`n`.
        embedding_size: length of the embedding of a node.

    Shapes:
        ``x`` ``[B n, in_channels]`` and ``h`` ``[B n, hidden_channels]``, sample by
        sample, with nodes in the same order, or ``[B, n, ...]``; ``adjacency``
        ``[n, n]``.

    Raises:
        UserError: when the number of points is not a multiple of ``num_nodes``.
    """

    def __init__(
        self,
        num_nodes: int,
        in_channels: int,
        hidden_channels: int,
        order: int = 2,
        embedding_size: int = 2,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        both = in_channels + hidden_channels
        self.embedding = nn.Parameter(torch.empty(num_nodes, embedding_size))
        self.gates = AdaptiveConv(both, 2 * hidden_channels, order, embedding_size)
        self.candidate = AdaptiveConv(both, hidden_channels, order, embedding_size)
        nn.init.normal_(self.embedding)

    def reset_parameters(self) -> None:
        """Redraw embedding and weights."""
        nn.init.normal_(self.embedding)
        super().reset_parameters()

    def adjacency(self) -> Tensor:
        """Return the learned graph ``[n, n]``, to be computed once for a sequence."""
        scores = torch.relu(self.embedding @ self.embedding.T)
        return torch.softmax(scores, dim=1)

    def prepared(self, *_: Any, **__: Any) -> Tensor:
        """Return the learned graph; edges that are given are not used."""
        return self.adjacency()

    def step(self, x: Tensor, h: Tensor, prepared: Tensor) -> Tensor:
        """Return the next hidden state for the learned graph."""
        if x.dim() == 3:
            after = self.step(x.flatten(0, 1), h.flatten(0, 1), prepared)
            return after.unflatten(0, x.shape[:2])
        num_nodes, adjacency = self.embedding.size(0), prepared
        if x.size(0) % num_nodes:
            raise UserError(
                f"{x.size(0)} points",
                f"{num_nodes} in every sample, those of the mesh it was made for",
                "use that mesh, or a layer that takes any",
            )
        x, h = (field.unflatten(0, (-1, num_nodes)) for field in (x, h))
        gates = self.gates(torch.cat([x, h], dim=-1), self.embedding, adjacency)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = torch.tanh(
            self.candidate(torch.cat([x, z * h], dim=-1), self.embedding, adjacency)
        )
        return (r * h + (1 - r) * candidate).flatten(0, 1)
