"""Convolutions on graphs, by Chebyshev polynomials."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.graph_shift import chebyshev_terms, shifted

__all__ = ["AdaptiveConv", "ChebyshevConv", "DiffusionConv"]


class GraphConvolution(nn.Module):
    """What these convolutions have in common: their parameters.

    Args:
        weight: shape of the weights, ``[..., K, C, C']``.
        bias: shape of the bias; ``None`` for ``[C']``.
        gates: number of convolutions side by side, for their initialisation.
    """

    def __init__(
        self,
        weight: tuple[int, ...],
        bias: tuple[int, ...] | None = None,
        *,
        gates: int = 1,
    ) -> None:
        super().__init__()
        self.gates = gates
        self.weight = nn.Parameter(torch.empty(weight))
        self.bias = nn.Parameter(torch.empty(bias or weight[-1:]))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As Glorot and Bengio, each convolution as if alone; the bias is zero."""
        fan_in, fan_out = self.weight.shape[-2:]
        bound = (6 / (fan_in + fan_out / self.gates)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        order, fan_in, fan_out = self.weight.shape[-3:]
        return f"{fan_in}, {fan_out}, order={order}"


class ChebyshevConv(GraphConvolution):
    r"""Chebyshev polynomial of a graph's scaled Laplacian.

    .. math:: y = b + \sum_{k=0}^{K-1} T_k(\tilde L) \, x \, \Theta_k

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
    equation (4).

    Args:
        in_channels: channels of :math:`x`.
        out_channels: channels of :math:`y`, those of all gates together.
        order: :math:`K`.
        gates: number of convolutions side by side, for their initialisation.

    Shapes:
        ``[N, in_channels]`` to ``[N, out_channels]``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int = 2, *, gates: int = 1
    ) -> None:
        super().__init__((order, in_channels, out_channels), gates=gates)

    def forward(self, x: Tensor, laplacian: BipartiteGraph) -> Tensor:
        """Convolve ``x``; ``laplacian`` is a :func:`~nfsgeo.nn.scaled_laplacian`."""
        product = partial(shifted, shift=laplacian)
        terms = chebyshev_terms(product, x, self.weight.size(0))
        return torch.cat(terms, dim=-1) @ self.weight.flatten(0, 1) + self.bias


class DiffusionConv(GraphConvolution):
    r"""Random walks along and against the edges of a graph.

    .. math:: y = b + \sum_{k=0}^{K-1} T_k(P_O) \, x \, \Theta_{0k}
        + T_k(P_I) \, x \, \Theta_{1k}

    "Diffusion Convolutional Recurrent Neural Network", equation (2), its powers
    replaced by Chebyshev polynomials as in its authors' program; up to :math:`K = 2`
    they are the same.

    Args:
        in_channels: channels of :math:`x`.
        out_channels: channels of :math:`y`, those of all gates together.
        order: :math:`K`.
        gates: number of convolutions side by side, for their initialisation.

    Shapes:
        ``[N, in_channels]`` to ``[N, out_channels]``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int = 2, *, gates: int = 1
    ) -> None:
        super().__init__((2, order, in_channels, out_channels), gates=gates)

    def forward(self, x: Tensor, walks: tuple[BipartiteGraph, ...]) -> Tensor:
        """Convolve ``x``; ``walks`` are of :func:`~nfsgeo.nn.transition_matrices`."""
        along, against = walks
        order = self.weight.size(1)
        terms = chebyshev_terms(partial(shifted, shift=along), x, order)
        if against is along:
            # Both directions multiply the same terms, so their weights add up.
            weight = self.weight.sum(0).flatten(0, 1)
        else:
            terms += chebyshev_terms(partial(shifted, shift=against), x, order)
            weight = self.weight.flatten(0, 2)
        return torch.cat(terms, dim=-1) @ weight + self.bias


class AdaptiveConv(GraphConvolution):
    r"""Convolution on a learned graph, with weights of its own for every node.

    .. math:: y_n = E_n b + \sum_{k=0}^{K-1} (T_k(S) \, x)_n \, (E_n W_k), \qquad
        S = \mathrm{softmax}(\mathrm{relu}(E E^T))

    "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting",
    sections 3.2 and 3.3. The weights of the nodes are never formed: what every
    column of the embedding contributes is computed first and weighted after.

    Args:
        in_channels: channels of :math:`x`.
        out_channels: channels of :math:`y`.
        order: :math:`K`.
        embedding_size: columns of :math:`E`.

    Shapes:
        ``x`` ``[B, n, in_channels]``, ``embedding`` ``[n, embedding_size]``,
        ``adjacency`` ``[n, n]``; result ``[B, n, out_channels]``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        order: int = 2,
        embedding_size: int = 2,
    ) -> None:
        super().__init__(
            (embedding_size, order, in_channels, out_channels),
            (embedding_size, out_channels),
        )

    def forward(self, x: Tensor, embedding: Tensor, adjacency: Tensor) -> Tensor:
        """Convolve the fields of all samples."""
        size, order = self.weight.shape[:2]
        terms = torch.cat(chebyshev_terms(adjacency.matmul, x, order), dim=-1)
        weight = self.weight.flatten(1, 2).transpose(0, 1).flatten(1)
        parts = (terms @ weight).unflatten(-1, (size, -1))
        return torch.einsum("nd,bndo->bno", embedding, parts) + embedding @ self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, embedding_size={self.weight.size(0)}"
