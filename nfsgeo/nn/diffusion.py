"""Diffusion convolution, and the recurrent cell made of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.nn.supports import Support, chebyshev_terms

__all__ = ["DiffusionConv", "DiffusionGRU"]


class DiffusionConv(nn.Module):
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
        gates: convolutions side by side, drawn as if each were alone.

    Shapes:
        ``[N, in_channels]`` to ``[N, out_channels]``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int = 2, *, gates: int = 1
    ) -> None:
        super().__init__()
        self.gates = gates
        self.weight = nn.Parameter(torch.empty(2, order, in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias starts at zero."""
        fan_in, fan_out = self.weight.shape[2:]
        bound = (6 / (fan_in + fan_out / self.gates)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, supports: tuple[Support, Support]) -> Tensor:
        """Convolve ``x``; ``supports`` are the two walks on a graph."""
        along, against = supports
        order = self.weight.size(1)
        terms = chebyshev_terms(along, x, order)
        if against is along:
            # Both directions multiply the same terms, so their weights add up.
            weight = self.weight.sum(0).flatten(0, 1)
        else:
            terms += chebyshev_terms(against, x, order)
            weight = self.weight.flatten(0, 2)
        return torch.cat(terms, dim=-1) @ weight + self.bias

    def extra_repr(self) -> str:
        _, order, fan_in, fan_out = self.weight.shape
        return f"{fan_in}, {fan_out}, order={order}"


class DiffusionGRU(nn.Module):
    r"""Gated recurrent unit whose products are diffusion convolutions.

    .. math::
        z &= \sigma([x, h] * \Theta_z) \\
        r &= \sigma([x, h] * \Theta_r) \\
        c &= \tanh([x, r \odot h] * \Theta_c) \\
        h' &= z \odot h + (1 - z) \odot c

    The DCGRU of "Diffusion Convolutional Recurrent Neural Network", section 2.3. In
    a pipeline on PyTorch Geometric's graphs::

        supports = diffusion_supports(node_graph(edge_index, num_nodes))
        h = cell(x, h, supports)

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
        both, width = in_channels + hidden_channels, hidden_channels
        self.gates = DiffusionConv(both, 2 * width, order, gates=2)
        self.candidate = DiffusionConv(both, width, order)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.gates.reset_parameters()
        self.candidate.reset_parameters()

    def forward(
        self, x: Tensor, h: Tensor, supports: tuple[Support, Support]
    ) -> Tensor:
        """The next hidden state."""
        gates = self.gates(torch.cat([x, h], dim=-1), supports)
        z, r = torch.sigmoid(gates).chunk(2, dim=-1)
        candidate = self.candidate(torch.cat([x, r * h], dim=-1), supports)
        return z * h + (1 - z) * torch.tanh(candidate)
