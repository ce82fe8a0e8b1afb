"""Polynomial graph convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.errors import check_shape
from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.graph_shift import chebyshev_terms

__all__ = ["AdaptiveConv", "ChebyshevConv", "DiffusionConv"]


class GraphConvolution(nn.Module):
    """Base class of graph convolutions, which holds their parameters.

    Args:
        in_channels: channels of :math:`x`.
        out_channels: channels of :math:`y`, those of all gates together.
        order: :math:`K`, the number of terms.
        gates: number of gates whose weights are concatenated, for the initialisation.
        several: number of weight matrices per term; ``None`` for one, without an axis.

    Shapes:
        ``[N, in_channels]`` to ``[N, out_channels]``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        order: int = 2,
        *,
        gates: int = 1,
        several: int | None = None,
    ) -> None:
        super().__init__()
        self.gates = gates
        size: tuple[int, ...] = () if several is None else (several,)
        size = (*size, order, in_channels, out_channels)
        self.weight = nn.Parameter(torch.empty(size))
        self.bias = nn.Parameter(self._bias())
        self.reset_parameters()

    def _bias(self) -> Tensor:
        return torch.empty(self.weight.size(-1))

    def reset_parameters(self) -> None:
        """Redraw the weights as Glorot and Bengio do, gate by gate; zero the bias."""
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

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering"
    (Defferrard et al., 2016), equation (4).
    """

    def forward(self, x: Tensor, laplacian: BipartiteGraph) -> Tensor:
        """Convolve ``x``; ``laplacian`` is a :func:`~nfsgeo.nn.scaled_laplacian`."""
        check_shape("x", x, "...", "N", self.weight.size(-2))
        terms = chebyshev_terms(laplacian, x, self.weight.size(0))
        return torch.cat(terms, dim=-1) @ self.weight.flatten(0, 1) + self.bias


class DiffusionConv(GraphConvolution):
    r"""Random walks along and against the edges of a graph.

    .. math:: y = b + \sum_{k=0}^{K-1} T_k(P_O) \, x \, \Theta_{0k}
        + T_k(P_I) \, x \, \Theta_{1k}

    "Diffusion Convolutional Recurrent Neural Network" (Li et al., 2018), equation (2),
    with Chebyshev polynomials instead of powers, as in its authors' program. They agree
    up to :math:`K = 2`.
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int = 2, *, gates: int = 1
    ) -> None:
        super().__init__(in_channels, out_channels, order, gates=gates, several=2)

    def forward(self, x: Tensor, walks: tuple[BipartiteGraph, ...]) -> Tensor:
        """Convolve ``x``, with ``walks`` of :func:`~nfsgeo.nn.transition_matrices`."""
        check_shape("x", x, "...", "N", self.weight.size(-2))
        along, against = walks
        order = self.weight.size(1)
        terms = chebyshev_terms(along, x, order)
        if against is along:
            # Both directions multiply the same terms, so their weights add up.
            weight = self.weight.sum(0).flatten(0, 1)
        else:
            terms += chebyshev_terms(against, x, order)
            weight = self.weight.flatten(0, 2)
        return torch.cat(terms, dim=-1) @ weight + self.bias


class AdaptiveConv(GraphConvolution):
    r"""Convolution on a learned graph, with separate weights for every node.

    .. math:: y_n = E_n b + \sum_{k=0}^{K-1} (T_k(S) \, x)_n \, (E_n W_k), \qquad
        S = \mathrm{softmax}(\mathrm{relu}(E E^T))

    "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting" (Bai et
    al., 2020), sections 3.2 and 3.3. The weights of the nodes are never formed.
    Instead, the terms of every column of the embedding are computed and then summed.

    Args:
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
        super().__init__(in_channels, out_channels, order, several=embedding_size)

    def _bias(self) -> Tensor:
        return torch.empty(self.weight.size(0), self.weight.size(-1))

    def forward(self, x: Tensor, embedding: Tensor, adjacency: Tensor) -> Tensor:
        """Convolve the fields of all samples; see the class for shapes."""
        size, order = self.weight.shape[:2]
        num = check_shape("embedding", embedding, "N", size).size(0)
        check_shape("adjacency", adjacency, num, num)
        check_shape("x", x, "B", num, self.weight.size(-2))
        terms = torch.cat(chebyshev_terms(adjacency, x, order), dim=-1)
        weight = self.weight.flatten(1, 2).transpose(0, 1).flatten(1)
        parts = (terms @ weight).unflatten(-1, (size, -1))
        return torch.einsum("nd,bndo->bno", embedding, parts) + embedding @ self.bias
