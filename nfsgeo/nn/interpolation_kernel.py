"""What every interpolation kernel offers, and what those of a network share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.edge_network import EdgeNetwork, edge_features

__all__ = ["InterpolationKernel", "NetworkKernel"]


class InterpolationKernel(nn.Module, ABC):
    """A kernel: sums the neighbours of every target, weighted, and mixes channels.

    A kernel of one's own has these four methods; :meth:`forward` is the fast path and
    :meth:`matrices` the plain one. Their arguments:

    - ``x``: the field at the sources ``[n, T, C]``,
    - ``weight``: edge weights ``[R, E]``, the result of :meth:`weights`,
    - ``graph``: the edges, with ``graph.base_weight`` and ``graph.mean_weight(dtype)``,
    - ``offset``: displacements ``x_j - x_i`` and their lengths ``[E, d + 1]``,
    - ``pos``: positions of the sources ``[n, d]``,
    - ``features``: inputs at the sources ``[n, F]``, or ``None``,
    - ``source``: source of each edge ``[E]``.

    Args:
        channels: channels of the field, :math:`C`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the weights anew."""

    @abstractmethod
    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Edge weights ``[R, E]``."""

    @abstractmethod
    def forward(self, x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Mean of the neighbours under the kernel, ``[n, T, C]`` to ``[m, T, C]``."""

    @abstractmethod
    def matrices(self, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Matrices whose products with the neighbours sum to the mean, ``[E, C, C]``.

        Rows belong to channels of the result.
        """

    def interpolate(
        self, x: Tensor, pos: Tensor, features: Tensor | None, graph: BipartiteGraph
    ) -> Tensor:
        """:meth:`weights` and then :meth:`forward`, which kernels may fuse."""
        source = graph.edge_index[0]
        return self(
            x, self.weights(graph.offset(x.dtype), pos, features, source), graph
        )

    def _identity(self, like: Tensor) -> Tensor:
        return torch.eye(self.channels, dtype=like.dtype, device=like.device)


class NetworkKernel(InterpolationKernel):
    """What kernels have in common whose weights a network computes.

    Args:
        channels: :math:`C`.
        network: an :class:`EdgeNetwork`, or any module from the features of edges
            ``[E, 2 d + 1 + F]`` to hidden units ``[E, h]``: displacement, distance,
            position of the source, and inputs there if the layer is called with them.
            The units are those of the positions.
        hidden: :math:`h`; ``None`` for that of an :class:`EdgeNetwork`.

    Raises:
        ValueError: if ``hidden`` is missing.
    """

    def __init__(self, channels: int, network: nn.Module, hidden: int | None) -> None:
        super().__init__(channels)
        if hidden is None:
            if not isinstance(network, EdgeNetwork):
                raise ValueError(
                    f"a {type(network).__name__} of unknown width; expected hidden, "
                    "the number of columns that the network returns; give hidden="
                )
            hidden = network.hidden
        self.network, self.hidden = network, hidden

    def reset_parameters(self) -> None:
        """Draw the weights of the network and of the linear maps anew."""
        for layer in self.children():
            reset(layer)

    @property
    @abstractmethod
    def edge_map(self) -> nn.Linear | None:
        """Linear map of the hidden units of an edge to its weights, if any."""

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Edge weights ``[R, E]``."""
        mix = self.edge_map
        if isinstance(self.network, EdgeNetwork):
            weights: Tensor = self.network(offset, pos, features, source, mix)
            return weights
        hidden = self.network(edge_features(offset, pos, features, source))
        return (hidden if mix is None else mix(hidden)).t()
