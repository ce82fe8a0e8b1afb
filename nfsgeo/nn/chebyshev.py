"""Chebyshev graph convolution, and the recurrent cell made of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.nn.supports import Support, chebyshev_terms

__all__ = ["ChebConvGRU", "ChebyshevConv"]


class ChebyshevConv(nn.Module):
    r"""Chebyshev polynomial of a graph's scaled Laplacian.

    .. math:: y = b + \sum_{k=0}^{K-1} T_k(\tilde L) \, x \, \Theta_k

    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
    equation (4).

    Args:
        in_channels: channels of :math:`x`.
        out_channels: channels of :math:`y`, those of all gates together.
        order: :math:`K`.
        gates: convolutions side by side, drawn as if each were alone.

    Shapes:
        ``[N, in_channels]`` to ``[N, out_channels]``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int = 2, *, gates: int = 1
    ) -> None:
        super().__init__()
        self.gates = gates
        self.weight = nn.Parameter(torch.empty(order, in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias starts at zero."""
        _, fan_in, fan_out = self.weight.shape
        bound = (6 / (fan_in + fan_out / self.gates)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, support: Support) -> Tensor:
        """Convolve ``x`` on the graph of ``support``."""
        terms = chebyshev_terms(support, x, self.weight.size(0))
        return torch.cat(terms, dim=-1) @ self.weight.flatten(0, 1) + self.bias

    def extra_repr(self) -> str:
        order, fan_in, fan_out = self.weight.shape
        return f"{fan_in}, {fan_out}, order={order}"


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

        support = chebyshev_support(node_graph(edge_index, num_nodes))
        h = cell(x, h, support)

    Args:
        in_channels: channels of :math:`x`.
        hidden_channels: channels of :math:`h`.
        order: :math:`K` of every convolution.

    Shapes:
        ``x`` ``[N, in_channels]``, ``h`` ``[N, hidden_channels]``, of the nodes of all
        samples of a batch.
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

    def forward(self, x: Tensor, h: Tensor, support: Support) -> Tensor:
        """The next hidden state."""
        *of_gates, of_candidate = self.inputs(x, support).chunk(3, dim=-1)
        gates = torch.cat(of_gates, dim=-1) + self.gates(h, support)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = torch.tanh(of_candidate + self.candidate(r * h, support))
        return z * h + (1 - z) * candidate
