"""Learned interpolation between two sets of points."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from nfsgeo.geometry import BipartiteGraph, GraphTensors
from nfsgeo.nn.arrangement import in_arrangement
from nfsgeo.nn.kernels import ChannelKernel, InterpolationKernel

__all__ = ["KernelInterpolation"]


class KernelInterpolation(MessagePassing):
    r"""Interpolates a field from source points to target points by a learned kernel.

    Equation (7) of "Non-equispaced Fourier Neural Solvers for PDEs", restricted to
    neighbourhoods:

    .. math::
        (H_\eta(a) v)(x_j) = \frac{1}{|N(x_j)|} \sum_{x_i \in N(x_j)}
        h_\eta(x_j - x_i, x_i, a(x_i)) \, v(x_i) + b

    The kernel does not depend on time: all records of a field share it. Learned
    kernels add to the fixed interpolation of the graph, ``graph.weight``, from which
    training therefore starts. By default
    neighbours are summed before channels are mixed, and nothing is held per edge and
    record; ``fused=False`` writes equation (7) out as messages, for comparison.

    Args:
        kernel: the kernel :math:`h_\eta`.
        bias: whether to add :math:`b`, one number a channel.
        fused: whether to sum by sparse products, or on CUDA, where Triton is
            installed and the kernel has weights alone, in one kernel with its weights.
        exact_for: polynomials that the learned part leaves to the fixed one, as a
            least-squares projection over every neighbourhood: ``constants`` (weights
            that add up to 0) or all that are ``linear``; ``None`` for none. The
            interpolation is then as exact for them as the fixed one, whatever is
            learned.

    Shapes:
        ``x`` ``[n, T, C]``, ``pos`` ``[n, d]``, ``features`` ``[n, F]`` or ``None``;
        result ``[m, T, C]``.

    Raises:
        TypeError: for another kind of graph.
        ValueError: for ``x`` or ``pos`` of another shape, and for ``exact_for`` with
            a kernel other than :class:`ChannelKernel`.
    """

    def __init__(
        self,
        kernel: InterpolationKernel,
        *,
        bias: bool = True,
        fused: bool = True,
        exact_for: Literal["constants", "linear"] | None = None,
    ) -> None:
        if exact_for is not None and not isinstance(kernel, ChannelKernel):
            raise ValueError(
                f"exact_for {exact_for} with {type(kernel).__name__}; expected "
                "ChannelKernel, of which nothing but weights is learned"
            )
        super().__init__(aggr="sum", flow="source_to_target", node_dim=0)
        self.kernel = kernel
        self.bias = nn.Parameter(torch.zeros(kernel.channels)) if bias else None
        self.use_fused = fused
        self.exact_for = exact_for

    def reset_parameters(self) -> None:
        """Draw the kernel anew and set the bias to zero."""
        super().reset_parameters()
        self.kernel.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        graph: BipartiteGraph | GraphTensors,
        pos: Tensor,
        features: Tensor | None = None,
    ) -> Tensor:
        r"""Interpolate ``x`` along the edges of ``graph``.

        Args:
            x: field at the sources.
            graph: edges from sources to targets; as tensors alone they are sorted
                anew for every backward pass.
            pos: positions of the sources, not of the targets. They get no gradient,
                since the graph, which is made of them, passes none.
            features: inputs :math:`a(x_i)` at the sources.
        """
        if isinstance(graph, GraphTensors):
            graph = BipartiteGraph.from_tensors(graph)
        self._check(x, graph, pos)
        out = in_arrangement(graph, self._sum, x, pos.detach(), features)
        return out if self.bias is None else out + self.bias

    def _sum(
        self, graph: BipartiteGraph, x: Tensor, pos: Tensor, features: Tensor | None
    ) -> Tensor:
        offset, share = graph.offset(x.dtype), graph.share(x.dtype)
        fixed = graph.weight.to(x.dtype)
        if self.use_fused and self.exact_for is None:
            out = self.kernel.at_once(x, offset, pos, features, fixed, share, graph)
            if out is not None:
                return out
        weight = self.kernel.weights(offset, pos, features, graph.edge_index[0])
        if self.exact_for is not None:
            weight = self._corrected(weight, share, graph)
        if self.use_fused:
            return self.kernel(x, weight, fixed, share, graph)
        size = (graph.num_source, graph.num_target)
        matrix = self.kernel.matrices(weight, fixed / share) * share[:, None, None]
        return self.propagate(graph.edge_index, x=(x, None), matrix=matrix, size=size)

    def _check(self, x: Tensor, graph: BipartiteGraph, pos: Tensor) -> None:
        if not isinstance(graph, BipartiteGraph):
            raise TypeError(
                f"graph is a {type(graph).__name__}; expected a BipartiteGraph, as "
                "bipartite_graph or nfsgeo.geometry.transforms.graph_between makes it"
            )
        sources, channels = graph.num_source, self.kernel.channels
        if x.dim() != 3 or x.size(0) != sources or x.size(-1) != channels:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; expected [{sources}, T, {channels}]: "
                "sources of the graph, records (1 without time), channels of the kernel"
            )
        if pos.size(0) != sources:
            raise ValueError(
                f"pos has shape {tuple(pos.shape)}; expected the positions of the "
                f"graph's {sources} sources, [{sources}, d]"
            )

    def _corrected(
        self, weight: Tensor, share: Tensor, graph: BipartiteGraph
    ) -> Tensor:
        """Weights ``[R, E]`` that are 0 in the mean over any of the polynomials."""
        target = graph.edge_index[1]
        degree = 0 if self.exact_for == "constants" else 1
        for polynomial in graph.polynomials(degree).to(weight.dtype).unbind(1):
            part = weight.new_zeros(weight.size(0), graph.num_target)
            part = part.index_add(1, target, weight * (share * polynomial))
            weight = weight - part.index_select(1, target) * polynomial
        return weight

    def message(self, x_j: Tensor, matrix: Tensor) -> Tensor:
        """Apply each edge's matrix to its source: ``[E, T, C]``."""
        return torch.einsum("eoc,etc->eto", matrix, x_j)

    def extra_repr(self) -> str:
        return f"fused={self.use_fused}, exact_for={self.exact_for}"

    # MessagePassing's names the class alone.
    __repr__ = nn.Module.__repr__
