"""Interpolation kernels.

Every kernel is a short sum of edge weights times matrices that all edges share,

    h(x_j - x_i, x_i, a(x_i)) = b_ij I + sum_r w_r(edge) M_r,

so that neighbours are summed first and channels are mixed afterwards, without a matrix
per edge. The first term is the base interpolation times the number of neighbours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad
from torch_geometric.nn.inits import reset

from nfsgeo.errors import check_shape, check_sizes
from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.neighbour_sums import matrix_sum, neighbour_sum

__all__ = [
    "ChannelKernel",
    "DenseKernel",
    "EdgeNetwork",
    "GaussianKernel",
    "InterpolationKernel",
]

# Time of a multiplication in a sparse product, and in a product of small matrices, over
# that in a product of large ones, measured on a CPU.
SPARSE, SMALL = 8, 2


class InterpolationKernel(nn.Module, ABC):
    r"""Base class of kernels, which sum weighted neighbours and mix channels.

    By default a kernel is diagonal,

    .. math:: h = \mathrm{diag}(b_{ij} + w_1, \dots, b_{ij} + w_R),

    where ``R`` divides the number of channels and each weight is that of ``C / R``
    consecutive channels. A subclass then implements :meth:`weights` and
    :meth:`reset_parameters`. A kernel that mixes channels also overrides
    :meth:`forward`, the fast path, and :meth:`matrices`, its reference. The arguments
    of these methods are:

    - ``x``: the field at the sources ``[n, T, C]``,
    - ``weight``: edge weights ``[R, E]`` from :meth:`weights`,
    - ``graph``: the edges, with ``graph.base_weight`` and ``graph.mean_weight(dtype)``,
    - ``offset``: displacements ``x_j - x_i`` and their lengths ``[E, d + 1]``,
    - ``pos``: positions of the sources ``[n, d]``,
    - ``features``: inputs at the sources ``[n, F]``, or ``None``,
    - ``source``: source of each edge ``[E]``.

    Args:
        channels: channels of the field, :math:`C`.

    Attributes:
        adds_to_base: whether a diagonal kernel adds to the base interpolation; without
            it, :math:`b_{ij}` is 0.
    """

    adds_to_base = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        check_sizes(channels=channels)
        self.channels = channels

    @abstractmethod
    def reset_parameters(self) -> None:
        """Redraw the parameters."""

    @abstractmethod
    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Return the edge weights ``[R, E]``."""

    def forward(self, x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Return the mean of the neighbours under the kernel, ``[m, T, C]``."""
        weight = self._edge_weights(weight.to(x), graph)
        # Channels of a group stay adjacent in memory, which speeds up copies.
        groups = x.unflatten(2, (len(weight), -1)).permute(2, 0, 1, 3)
        sums = neighbour_sum(groups.flatten(2), weight, graph)
        sums = sums.unflatten(2, (x.size(1), -1)).permute(1, 2, 0, 3)
        return sums.flatten(2)

    def matrices(self, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Return the matrix of each edge, with output channels as rows, ``[E, C, C]``.

        The products with the sources add up to the result of :meth:`forward`.
        """
        weight = self._edge_weights(weight, graph).t()
        repeats = self.channels // weight.size(1)
        return torch.diag_embed(weight.repeat_interleave(repeats, 1))

    def _edge_weights(self, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Return the terms ``[R, E]`` by which sources contribute to the mean."""
        mean_weight = graph.mean_weight(weight.dtype)
        if not self.adds_to_base:
            return weight * mean_weight
        return torch.addcmul(graph.base_weight.to(weight), weight, mean_weight)


def _check_scale(scale: float) -> None:
    if not 0 < scale < math.inf:
        raise ValueError(f"scale={scale}; expected a positive length, as of the radius")


class EdgeNetwork(nn.Module):
    r"""Hidden layer of a learned kernel: GELU of a linear map of the edge features.

    The features are those of equation (7) in "Non-equispaced Fourier Neural Solvers for
    PDEs" (Lin et al., 2022), :math:`(x_j - x_i, x_i, a(x_i))`, and the distance. Terms
    of the source are computed per source, not per edge. All terms are in full
    precision, even under mixed precision.

    Args:
        dim: space dimensions, :math:`d`.
        num_features: length of :math:`a(x_i)`; 0 for a kernel without inputs.
        hidden: width of the result, :math:`h`.
        scale: length by which relative positions are divided, usually the radius of
            the graph.
        absolute_position: whether :math:`x_i` is a feature. Without it, the kernel
            commutes with translations.
        directions: whether the relative position is a feature, in addition to the
            distance. Without both, the kernel also commutes with rotations.

    Shapes:
        ``offset`` ``[E, d + 1]``, ``pos`` ``[n, d]``, ``features`` ``[n, F]``,
        ``source`` ``[E]``; result ``[E, h]``.

    Raises:
        ValueError: for ``pos`` or ``features`` of another shape, for ``features`` that
            are not inputs, and for sizes or a ``scale`` that are not positive.
    """

    def __init__(
        self,
        dim: int,
        num_features: int,
        hidden: int,
        *,
        scale: float = 1.0,
        absolute_position: bool = True,
        directions: bool = True,
    ) -> None:
        super().__init__()
        _check_scale(scale)
        check_sizes(dim=dim, hidden=hidden)
        self.dim = dim
        self.num_features = num_features
        self.hidden = hidden
        self.scale = scale
        self.absolute_position = absolute_position
        self.directions = directions
        self.edge = nn.Linear(dim + 1 if directions else 1, hidden)
        num_source = num_features + (dim if absolute_position else 0)
        self.node = nn.Linear(num_source, hidden, bias=False) if num_source else None

    def reset_parameters(self) -> None:
        """Redraw the weights."""
        self.edge.reset_parameters()
        if self.node is not None:
            self.node.reset_parameters()

    def forward(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Return the hidden units of every edge; see the class for shapes.

        Args:
            offset: :math:`x_j - x_i` and its length; see
                :meth:`nfsgeo.geometry.BipartiteGraph.offset`.
            pos: positions :math:`x_i` of the sources.
            features: inputs :math:`a(x_i)` at the sources.
            source: source of each edge.
        """
        parts = [pos] if self.absolute_position else []
        sizes = pos.size(0), self.num_features
        if pos.dim() != 2 or pos.size(1) != self.dim:
            check_shape("pos", pos, "n", self.dim)
        if self.num_features:
            if features is None or features.shape != sizes:
                features = check_shape("features", features, *sizes)
            parts.append(features)
        elif features is not None:
            raise ValueError(
                f"features has shape {tuple(features.shape)} and num_features is 0; "
                "expected no features, or a layer with num_features"
            )
        # The weight has fewer entries to scale than the offsets.
        weight = self.edge.weight / self.scale
        weight = weight if self.directions else pad(weight, (self.dim, 0))
        with torch.autocast(offset.device.type, enabled=False):
            relative, bias = offset.to(weight.dtype), self.edge.bias
            if self.node is None:
                return gelu(linear(relative, weight, bias)).to(offset.dtype)
            # There are fewer points than edges.
            inputs = torch.cat(parts, dim=-1).to(weight.dtype)
            node = linear(inputs, self.node.weight, bias).index_select(0, source)
            return gelu(torch.addmm(node, relative, weight.t())).to(offset.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale:.4g}, absolute_position={self.absolute_position}"


class NetworkKernel(InterpolationKernel):
    """Base class of kernels whose weights are computed by a network.

    Args:
        channels: :math:`C`.
        network: an :class:`EdgeNetwork`, or any module that maps edge features
            ``[E, 2 d + 1 + F]`` (displacement, distance, position of the source, its
            inputs) to hidden units ``[E, h]``.
        hidden: :math:`h`, needed unless ``network`` is an :class:`EdgeNetwork`.
    """

    mix: nn.Linear

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
        """Redraw the weights of the network and of the linear map."""
        for layer in self.children():
            reset(layer)

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Return the hidden units of every edge ``[h, E]``."""
        if isinstance(self.network, EdgeNetwork):
            hidden: Tensor = self.network(offset, pos, features, source)
        else:
            parts = [offset, pos.to(offset.dtype)[source]]
            if features is not None:
                parts.append(features.to(offset.dtype)[source])
            hidden = self.network(torch.cat(parts, dim=1))
        return hidden.t()


class DenseKernel(NetworkKernel):
    r"""Learned kernel with a full matrix for every edge, as in the paper.

    .. math:: h = b_{ij} I + M_0 + \sum_{r=1}^{R} w_r M_r

    with :math:`w` the :math:`R` hidden units of a network.

    Shapes:
        ``x`` ``[n, T, C]`` to ``[m, T, C]``, ``weight`` ``[R, E]``.
    """

    def __init__(
        self, channels: int, network: nn.Module, *, hidden: int | None = None
    ) -> None:
        super().__init__(channels, network, hidden)
        self.mix = nn.Linear(self.hidden, channels * channels)

    def forward(self, x: Tensor, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Sum over neighbours and apply matrices, in the cheaper order."""
        channels = self.channels
        base_weight = graph.base_weight.to(x.dtype)
        mean_weight = graph.mean_weight(x.dtype)
        matrix = torch.cat([self.mix.bias.unsqueeze(0), self.mix.weight.t()])
        # From [R + 1, C' C], with the output channel first, to [R + 1, C, C'].
        matrix = matrix.unflatten(1, (channels, channels)).transpose(1, 2)
        weight = torch.cat([mean_weight[None], weight * mean_weight])
        if self._matrices_first(x.size(1), graph):
            base = neighbour_sum(x.flatten(1)[None], base_weight[None], graph)[0]
            mixed = matrix_sum(x, weight, matrix, graph)
            return base.unflatten(1, x.shape[1:]) + mixed
        weight = torch.cat([base_weight[None], weight])
        sums = neighbour_sum(x.flatten(1)[None], weight, graph)
        # Targets and time steps are rows, weights and channels columns: one product.
        sums = sums.unflatten(2, x.shape[1:])
        # A split has a cheaper backward pass than two slices.
        base, mixed = sums.split([1, sums.size(0) - 1])
        mixed = mixed.permute(1, 2, 0, 3).flatten(2)
        return base[0] + mixed @ matrix.flatten(0, 1)

    def _matrices_first(self, steps: int, graph: BipartiteGraph) -> bool:
        """Return whether it is cheaper to compute a matrix for every edge."""
        if torch.compiler.is_compiling():
            return False
        area, rank = self.channels**2, self.mix.in_features + 1
        edges = graph.num_edges * area * (rank + SMALL * steps)
        sums = SPARSE * graph.num_edges * rank * steps * self.channels
        return edges < sums + graph.num_target * steps * rank * area

    def matrices(self, weight: Tensor, graph: BipartiteGraph) -> Tensor:
        """Return the matrix of each edge, ``[E, C, C]``."""
        learned = self.mix(weight.t()).unflatten(1, (self.channels, self.channels))
        base_weight = graph.base_weight.to(weight.dtype)[:, None, None]
        mean_weight = graph.mean_weight(weight.dtype)[:, None, None]
        identity = torch.eye(self.channels, dtype=weight.dtype, device=weight.device)
        return base_weight * identity + mean_weight * learned


class ChannelKernel(NetworkKernel):
    r"""Learned kernel with a weight for every channel, as in the paper's theorem.

    .. math:: h = \mathrm{diag}(b_{ij} + w)

    In theorem 3.1 of the paper :math:`h_\eta` maps to :math:`R^{d_v}`. Groups of
    channels of equal size may share weights.

    Args:
        groups: number of weights per edge, a divisor of ``channels``; ``None`` for one
            per channel.

    Raises:
        ValueError: if ``groups`` does not divide ``channels``.
    """

    def __init__(
        self,
        channels: int,
        network: nn.Module,
        *,
        groups: int | None = None,
        hidden: int | None = None,
    ) -> None:
        super().__init__(channels, network, hidden)
        self.groups = channels if groups is None else groups
        if self.groups < 1 or channels % self.groups:
            raise ValueError(
                f"{groups} groups for {channels} channels; expected a divisor of the "
                "number of channels"
            )
        self.mix = nn.Linear(self.hidden, self.groups)

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Return the weights of every edge and group of channels ``[R, E]``."""
        hidden, mix = super().weights(offset, pos, features, source), self.mix
        with torch.autocast(offset.device.type, enabled=False):
            hidden = hidden.to(mix.weight.dtype)
            mixed = torch.addmm(mix.bias[:, None], mix.weight, hidden)
        return mixed.to(offset.dtype)


class GaussianKernel(InterpolationKernel):
    r"""The paper's predefined kernel, a Gaussian of learned centre and widths.

    .. math::
        h = \beta \exp\left(-(\Delta - \mu)^T \Gamma^{-1} (\Delta - \mu)\right) I,
        \qquad \Delta = (x_j - x_i) / \mathrm{scale}, \quad
        \Gamma = \mathrm{diag}(\gamma_1, \dots, \gamma_d)

    Section 4.3 of the paper. The logarithms of :math:`\beta` and :math:`\gamma` are
    parameters, so that both are positive. The base interpolation is not used.

    Args:
        channels: :math:`C`.
        dim: space dimensions, :math:`d`.
        scale: length by which relative positions are divided; see
            :class:`EdgeNetwork`.
    """

    adds_to_base = False

    def __init__(self, channels: int, dim: int, *, scale: float = 1.0) -> None:
        super().__init__(channels)
        _check_scale(scale)
        check_sizes(dim=dim)
        self.scale = scale
        self.log_beta = nn.Parameter(torch.empty(()))
        self.centre = nn.Parameter(torch.empty(dim))
        self.log_gamma = nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Centre the kernel, with a width of half the scale and a mean weight of 1."""
        nn.init.constant_(self.log_beta, math.log(4.0))
        nn.init.zeros_(self.centre)
        nn.init.constant_(self.log_gamma, math.log(0.25))

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Return the edge weights ``[1, E]``."""
        check_shape("pos", pos, "n", len(self.centre))
        away = offset[:, :-1] / self.scale - self.centre
        exponent = away.square() @ torch.exp(-self.log_gamma)
        return torch.exp(self.log_beta - exponent)[None]
