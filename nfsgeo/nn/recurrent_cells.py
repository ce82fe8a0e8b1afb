"""Recurrent cells made of convolutions on graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.graph_convolutions import AdaptiveConv, ChebyshevConv, DiffusionConv

__all__ = ["AdaptiveGRU", "ChebConvGRU", "DiffusionGRU", "adjacency_bytes"]


class ChebConvGRU(nn.Module):
    r"""Gated recurrent unit whose products are Chebyshev convolutions.

    .. math::
        z &= \sigma(x * \Theta_{xz} + h * \Theta_{hz}) \\
        r &= \sigma(x * \Theta_{xr} + h * \Theta_{hr}) \\
        c &= \tanh(x * \Theta_{xc} + (r \odot h) * \Theta_{hc}) \\
        h' &= z \odot h + (1 - z) \odot c

    Model 2 of "Structured Sequence Modeling with Graph Convolutional Recurrent
    Networks", with gated recurrent units for its LSTM. In a pipeline on PyTorch
    Geometric's graphs::

        laplacian = scaled_laplacian(node_graph(edge_index, num_nodes))
        h = cell(x, h, laplacian)

    Args:
        in_channels: channels of :math:`x`.
        hidden_channels: channels of :math:`h`.
        order: :math:`K` of every convolution.

    Shapes:
        ``x`` ``[N, in_channels]``, ``h`` ``[N, hidden_channels]``, of the nodes of all
        samples of a batch, whose ``laplacian`` is a graph.
    """

    def __init__(self, in_channels: int, hidden_channels: int, order: int = 2) -> None:
        super().__init__()
        self.hidden_channels = hidden_channels
        width = hidden_channels
        self.inputs = ChebyshevConv(in_channels, 3 * width, order, gates=3)
        self.gates = ChebyshevConv(width, 2 * width, order, gates=2)
        self.candidate = ChebyshevConv(width, width, order)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for convolution in (self.inputs, self.gates, self.candidate):
            convolution.reset_parameters()

    def forward(self, x: Tensor, h: Tensor, laplacian: BipartiteGraph) -> Tensor:
        """The next hidden state."""
        *of_gates, of_candidate = self.inputs(x, laplacian).chunk(3, dim=-1)
        gates = torch.cat(of_gates, dim=-1) + self.gates(h, laplacian)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = torch.tanh(of_candidate + self.candidate(r * h, laplacian))
        return z * h + (1 - z) * candidate


class DiffusionGRU(nn.Module):
    r"""Gated recurrent unit whose products are diffusion convolutions.

    .. math::
        z &= \sigma([x, h] * \Theta_z) \\
        r &= \sigma([x, h] * \Theta_r) \\
        c &= \tanh([x, r \odot h] * \Theta_c) \\
        h' &= z \odot h + (1 - z) \odot c

    The DCGRU of "Diffusion Convolutional Recurrent Neural Network", section 2.3. In
    a pipeline on PyTorch Geometric's graphs::

        walks = transition_matrices(node_graph(edge_index, num_nodes))
        h = cell(x, h, walks)

    Args:
        in_channels: channels of :math:`x`.
        hidden_channels: channels of :math:`h`.
        order: :math:`K` of every convolution.

    Shapes:
        ``x`` ``[N, in_channels]``, ``h`` ``[N, hidden_channels]``, of the nodes of all
        samples of a batch, and the two ``walks``.
    """

    def __init__(self, in_channels: int, hidden_channels: int, order: int = 2) -> None:
        super().__init__()
        self.hidden_channels = hidden_channels
        both, width = in_channels + hidden_channels, hidden_channels
        self.gates = DiffusionConv(both, 2 * width, order, gates=2)
        self.candidate = DiffusionConv(both, width, order)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.gates.reset_parameters()
        self.candidate.reset_parameters()

    def forward(
        self, x: Tensor, h: Tensor, walks: tuple[BipartiteGraph, ...]
    ) -> Tensor:
        """The next hidden state."""
        gates = self.gates(torch.cat([x, h], dim=-1), walks)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = self.candidate(torch.cat([x, r * h], dim=-1), walks)
        return z * h + (1 - z) * torch.tanh(candidate)


def adjacency_bytes(num_nodes: int, num_cells: int = 1) -> int:
    """Memory that the dense graphs of cells need in a training step, at least.

    Scores, their softmax and the gradients of both, in single precision.

    Args:
        num_nodes: nodes of the mesh.
        num_cells: cells that have graphs of their own.
    """
    return num_cells * 4 * 4 * num_nodes**2


class AdaptiveGRU(nn.Module):
    r"""Gated recurrent unit on a learned graph of the nodes of one mesh.

    .. math::
        z &= \sigma([x, h] * W_z) \\
        r &= \sigma([x, h] * W_r) \\
        c &= \tanh([x, z \odot h] * W_c) \\
        h' &= r \odot h + (1 - r) \odot c

    "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting",
    section 3.4. Every node has an embedding of its own, so that the cell holds for
    one mesh alone, and the graph is dense: see :func:`adjacency_bytes`.

    Args:
        num_nodes: nodes of the mesh, :math:`n`.
        in_channels: channels of :math:`x`.
        hidden_channels: channels of :math:`h`.
        order: :math:`K` of every convolution.
        embedding_size: numbers that describe a node.

    Shapes:
        ``x`` ``[B n, in_channels]``, ``h`` ``[B n, hidden_channels]``, sample by
        sample, the nodes always in the same order; ``adjacency`` ``[n, n]``.
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
        self.hidden_channels = hidden_channels
        both = in_channels + hidden_channels
        self.embedding = nn.Parameter(torch.empty(num_nodes, embedding_size))
        self.gates = AdaptiveConv(both, 2 * hidden_channels, order, embedding_size)
        self.candidate = AdaptiveConv(both, hidden_channels, order, embedding_size)
        nn.init.normal_(self.embedding)

    def reset_parameters(self) -> None:
        """Draw embedding and weights anew."""
        nn.init.normal_(self.embedding)
        self.gates.reset_parameters()
        self.candidate.reset_parameters()

    def adjacency(self) -> Tensor:
        """The learned graph ``[n, n]``, to be computed once for a sequence."""
        scores = torch.relu(self.embedding @ self.embedding.T)
        return torch.softmax(scores, dim=1)

    def forward(self, x: Tensor, h: Tensor, adjacency: Tensor) -> Tensor:
        """The next hidden state.

        Raises:
            UserError: when the nodes are not those of whole samples.
        """
        num_nodes = self.embedding.size(0)
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
