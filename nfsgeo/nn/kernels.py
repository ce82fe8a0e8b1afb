"""Interpolation kernels: how strongly, and through which channels, neighbours act.

Every kernel is a short sum of edge weights times matrices that all edges share,

    h(x_j - x_i, x_i, a(x_i)) = b_ij I + sum_r w_r(edge) M_r,

so neighbours are summed first and mixed afterwards, and no edge holds a matrix. The
first term is the graph's fixed interpolation, times the number of neighbours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.edge_network import EdgeNetwork
from nfsgeo.nn.fused_sum import fused_sum, fused_sum_runs
from nfsgeo.nn.matrix_sum import matrix_sum
from nfsgeo.nn.neighbour_sum import neighbour_sum

__all__ = [
    "ChannelKernel",
    "DenseKernel",
    "GaussianKernel",
    "InterpolationKernel",
]


# Time of a multiplication in a sparse product, and in one of many small matrices, over
# that in a large one; measured on a CPU.
SPARSE, SMALL = 8, 2
# Least that a sparse product should have to be worth its indices.
COLUMNS = 8


class InterpolationKernel(nn.Module, ABC):
    """A kernel: sums the neighbours of every target, weighted, and mixes channels.

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
        """Edge weights ``[R, E]``.

        Args:
            offset: ``x_j - x_i`` and its length, ``[E, d + 1]``.
            pos: positions of the sources, ``[n, d]``.
            features: inputs at the sources, ``[n, F]``.
            source: source of each edge, ``[E]``.
        """

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        weight: Tensor,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        """Mean of the neighbours under the kernel, ``[n, T, C]`` to ``[m, T, C]``.

        Args:
            x: the field at the sources.
            weight: what :meth:`weights` gives.
            fixed: the graph's fixed interpolation ``[E]``.
            share: of every edge in the mean of its target ``[E]``.
            graph: of the edges.
        """

    def at_once(
        self,
        x: Tensor,
        offset: Tensor,
        pos: Tensor,
        features: Tensor | None,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor | None:
        """What the kernel gives with its own :meth:`weights`, which are not stored.

        None where a kernel has no way to, or not on this device. For the arguments
        see there.
        """
        return None

    @abstractmethod
    def matrices(self, weight: Tensor, base: Tensor) -> Tensor:
        """The kernel written out, one matrix an edge: ``[E, C, C]`` (row: result).

        Args:
            weight: what :meth:`weights` gives.
            base: what the kernel adds to, ``[E]``.
        """


class DenseKernel(InterpolationKernel):
    r"""Learned kernel with a full matrix for every edge, as the paper's authors train.

    .. math:: h = b_{ij} I + M_0 + \sum_{r=1}^{R} w_r M_r

    with :math:`w` the hidden layer of an :class:`EdgeNetwork`, or, where ``rank`` is
    given, a linear map of it to :math:`R` weights: the matrices then span a space of
    dimension :math:`R + 1`, and the sum over neighbours is cheaper in proportion.

    Args:
        channels: :math:`C`.
        network: hidden layer of the kernel.
        rank: number of learned matrices :math:`R`; ``None`` for one a hidden unit.
    """

    def __init__(
        self, channels: int, network: EdgeNetwork, *, rank: int | None = None
    ) -> None:
        super().__init__(channels)
        self.network = network
        self.rank = rank
        self.reduce = (
            None if rank is None else nn.Linear(network.hidden, rank, bias=False)
        )
        self.mix = nn.Linear(rank or network.hidden, channels * channels)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.network.reset_parameters()
        if self.reduce is not None:
            self.reduce.reset_parameters()
        self.mix.reset_parameters()

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Edge weights ``[R, E]``."""
        weights: Tensor = self.network(offset, pos, features, source, self.reduce)
        return weights

    def forward(
        self,
        x: Tensor,
        weight: Tensor,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        """The order of sum over neighbours and matrices is the one that costs less."""
        channels = self.channels
        matrix = torch.cat([self.mix.bias.unsqueeze(0), self.mix.weight.t()])
        # Result's channel first in [R + 1, C' C]; last in [R + 1, C, C'].
        matrix = matrix.unflatten(1, (channels, channels)).transpose(1, 2)
        weight = torch.cat([share[None], weight * share])
        if self._matrices_first(x.size(1), graph):
            kept = neighbour_sum(x.flatten(1)[None], fixed[None], graph)[0]
            mixed = matrix_sum(x, weight, matrix, graph)
            return kept.unflatten(1, x.shape[1:]) + mixed
        weight = torch.cat([fixed[None], weight])
        sums = neighbour_sum(x.flatten(1)[None], weight, graph)
        # Targets and records are rows, weights and channels columns: one product.
        sums = sums.unflatten(2, x.shape[1:])
        # Split, so that their gradients are put side by side, not added to zeros.
        kept, mixed = sums.split([1, sums.size(0) - 1])
        mixed = mixed.permute(1, 2, 0, 3).flatten(2)
        return kept[0] + mixed @ matrix.flatten(0, 1)

    def _matrices_first(self, records: int, graph: BipartiteGraph) -> bool:
        """Whether to make every edge's matrix, rather than sum its neighbours first."""
        if torch.compiler.is_compiling():
            return False
        area, rank = self.channels**2, self.mix.in_features + 1
        edges = graph.num_edges * area * (rank + SMALL * records)
        sums = SPARSE * graph.num_edges * rank * records * self.channels
        return edges < sums + graph.num_target * records * rank * area

    def matrices(self, weight: Tensor, base: Tensor) -> Tensor:
        """The kernel written out: ``[E, C, C]``."""
        learned = self.mix(weight.t()).unflatten(1, (self.channels, self.channels))
        identity = torch.eye(self.channels, dtype=weight.dtype, device=weight.device)
        return learned + base[:, None, None] * identity


class ChannelKernel(InterpolationKernel):
    r"""Learned kernel that weighs every channel by itself, as the theorem states it.

    .. math:: h = \mathrm{diag}(b_{ij} + w)

    Theorem 3.1 of the paper has :math:`h_\eta` map to :math:`R^{d_v}`. Channels may
    share weights in groups of equal size.

    Args:
        channels: :math:`C`.
        network: hidden layer of the kernel.
        groups: number of weights an edge, a divisor of ``channels``; ``None`` for one
            a channel.

    Raises:
        ValueError: if ``groups`` does not divide ``channels``.
    """

    def __init__(
        self, channels: int, network: EdgeNetwork, *, groups: int | None = None
    ) -> None:
        super().__init__(channels)
        self.groups = channels if groups is None else groups
        if self.groups < 1 or channels % self.groups:
            raise ValueError(
                f"{groups} groups for {channels} channels; expected a divisor of the "
                "number of channels"
            )
        self.network = network
        self.mix = nn.Linear(network.hidden, self.groups)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.network.reset_parameters()
        self.mix.reset_parameters()

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Edge weights ``[groups, E]``."""
        weights: Tensor = self.network(offset, pos, features, source, self.mix)
        return weights

    def forward(
        self,
        x: Tensor,
        weight: Tensor,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        """Sum over neighbours, each group of channels under its own weight."""
        affine = (fixed, share)
        if x.size(1) >= COLUMNS:
            # Fields on a grid lie in this order: none is copied.
            sums = neighbour_sum(x.permute(2, 0, 1), weight, graph, affine=affine)
            return sums.permute(1, 2, 0)
        # Channels of a group stay side by side: longer runs to copy.
        groups = x.unflatten(2, (self.groups, -1)).permute(2, 0, 1, 3)
        sums = neighbour_sum(groups.flatten(2), weight, graph, affine=affine)
        sums = sums.unflatten(2, (x.size(1), -1)).permute(1, 2, 0, 3)
        return sums.flatten(2)

    def at_once(
        self,
        x: Tensor,
        offset: Tensor,
        pos: Tensor,
        features: Tensor | None,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor | None:
        """Weights and sums by :func:`~nfsgeo.nn.fused_sum.fused_sum` where it runs."""
        if not fused_sum_runs(x, self.groups, graph):
            return None
        return fused_sum(
            x,
            offset,
            self.network.of_source(pos, features),
            self.network.edge.weight / self.network.scale,
            self.network.edge.bias,
            self.mix.weight,
            self.mix.bias,
            fixed,
            share,
            graph,
        )

    def matrices(self, weight: Tensor, base: Tensor) -> Tensor:
        """The kernel written out: ``[E, C, C]``, diagonal."""
        weight = (weight + base).t()
        return torch.diag_embed(
            weight.repeat_interleave(self.channels // self.groups, 1)
        )


class GaussianKernel(InterpolationKernel):
    r"""The paper's predefined kernel, a Gaussian of learned centre and widths.

    .. math::
        h = \beta \exp\left(-(\Delta - \mu)^T \Gamma^{-1} (\Delta - \mu)\right) I,
        \qquad \Delta = (x_j - x_i) / \mathrm{scale}, \quad
        \Gamma = \mathrm{diag}(\gamma_1, \dots, \gamma_d)

    Section 4.3 of the paper. :math:`\beta` and :math:`\gamma` are held by their
    logarithms, hence positive. The residual of the learned kernels is left out.

    Args:
        channels: :math:`C`.
        dim: space dimensions, :math:`d`.
        scale: length by which relative positions are divided; see
            :class:`EdgeNetwork`.
    """

    def __init__(self, channels: int, dim: int, *, scale: float = 1.0) -> None:
        super().__init__(channels)
        self.scale = scale
        self.log_beta = nn.Parameter(torch.empty(()))
        self.centre = nn.Parameter(torch.empty(dim))
        self.log_gamma = nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start centred, with a width of half the scale and a mean weight near 1."""
        nn.init.constant_(self.log_beta, math.log(4.0))
        nn.init.zeros_(self.centre)
        nn.init.constant_(self.log_gamma, math.log(0.25))

    def weights(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Edge weights ``[1, E]``."""
        away = offset[:, :-1] / self.scale - self.centre
        exponent = away.square() @ torch.exp(-self.log_gamma)
        return torch.exp(self.log_beta - exponent)[None]

    def forward(
        self,
        x: Tensor,
        weight: Tensor,
        fixed: Tensor,
        share: Tensor,
        graph: BipartiteGraph,
    ) -> Tensor:
        """Mean of the neighbours; ``fixed`` is not used."""
        sums = neighbour_sum(x.flatten(1)[None], weight * share, graph)
        return sums[0].unflatten(1, x.shape[1:])

    def matrices(self, weight: Tensor, base: Tensor) -> Tensor:
        """The kernel written out: ``[E, C, C]``, a multiple of the identity."""
        identity = torch.eye(self.channels, dtype=weight.dtype, device=weight.device)
        return weight[0, :, None, None] * identity
