"""Learned interpolation between two sets of points."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset

from nfsgeo.errors import check_sizes
from nfsgeo.geometry import BipartiteGraph, Domain, GraphTensors
from nfsgeo.nn.edge_messages import graph_along
from nfsgeo.nn.kernels import ChannelKernel, EdgeNetwork, InterpolationKernel

__all__ = ["KernelInterpolation"]


class KernelInterpolation(MessagePassing):
    r"""Interpolates a field from source points to target points by a learned kernel.

    Equation (7) of "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et al., 2022),
    restricted to neighbourhoods:

    .. math::
        (H_\eta(a) v)(x_j) = \frac{1}{|N(x_j)|} \sum_{x_i \in N(x_j)}
        h_\eta(x_j - x_i, x_i, a(x_i)) \, v(x_i) + b

    It is made from numbers of channels, or from a kernel, and called as PyTorch
    Geometric's bipartite layers are::

        layer = KernelInterpolation(3, 16, dim=2, scale=radius)
        layer = KernelInterpolation(DenseKernel(16, EdgeNetwork(2, 0, 32)))
        layer(x, (pos_source, pos_target), edge_index, features=a)
        layer(x, pos_source, graph, features=a)

    From numbers of channels the kernel is a :class:`~nfsgeo.nn.ChannelKernel`, before
    which a linear map changes the channels if they differ.

    Learned kernels add to a base interpolation. With ``edge_index`` it is the mean of
    the neighbours. The second form takes a graph prepared by
    :func:`~nfsgeo.geometry.bipartite_graph`, with its ``base_weight``, so that nothing
    is sorted or computed from positions again.

    The kernel does not depend on time. By default neighbours are summed before channels
    are mixed, and nothing is stored per edge and time step; ``fused=False`` computes
    equation (7) by messages, for comparison.

    First and second derivatives exist with respect to ``x``, ``features``, positions
    and parameters, for fixed neighbours. Positions get gradients through
    ``edge_index``, or through a graph that :func:`~nfsgeo.geometry.bipartite_graph`
    made from positions that require them, including those of base weights.

    Args:
        kernel: the kernel :math:`h_\eta`, or the number of channels of ``x``; -1 to
            learn it from the first ``x``.
        out_channels: channels of the result, with a number of channels only; by default
            as many.
        dim: space dimensions, likewise.
        num_features: length of ``features``, likewise.
        hidden: width of the network of the edges, likewise.
        scale: length by which displacements are divided, usually the radius of the
            graph, likewise.
        bias: whether to add :math:`b`, one number per channel.
        fused: whether to sum by sparse products.
        domain: the box with its periodic axes, for displacements along an
            ``edge_index``; ``None`` for open space. A prepared graph has its own.

    Shapes:
        ``x`` ``[n, C]`` or ``[n, T, C]``; result ``[m, C']`` or ``[m, T, C']``.

    Raises:
        TypeError: for another kind of graph.
        ValueError: for sizes below 1, for ``x``, ``pos``, ``edge_index`` or
            ``features`` of another shape, for edges of no points, and for positions
            that require gradients with a constant graph.
    """

    def __init__(
        self,
        kernel: InterpolationKernel | int,
        out_channels: int | None = None,
        *,
        dim: int = 2,
        num_features: int = 0,
        hidden: int = 32,
        scale: float = 1.0,
        bias: bool = True,
        fused: bool = True,
        domain: Domain | None = None,
    ) -> None:
        super().__init__(aggr="sum", flow="source_to_target", node_dim=0)
        self.lift: nn.Module | None = None
        if isinstance(kernel, int):
            width = kernel if out_channels is None else out_channels
            if width == -1:
                raise ValueError("out_channels is unknown; expected it, as x sets -1")
            check_sizes(out_channels=width, kernel=1 if kernel == -1 else kernel)
            if kernel == -1:
                self.lift = nn.LazyLinear(width, bias=False)
            elif kernel != width:
                self.lift = nn.Linear(kernel, width, bias=False)
            network = EdgeNetwork(dim, num_features, hidden, scale=scale)
            kernel = ChannelKernel(width, network)
        elif not isinstance(kernel, InterpolationKernel):
            given = type(kernel).__name__
            raise TypeError(f"kernel is a {given}; expected a kernel or channels")
        elif out_channels is not None:
            raise ValueError("a kernel has its own channels; expected no out_channels")
        self.kernel = kernel
        self.bias = nn.Parameter(torch.zeros(kernel.channels)) if bias else None
        self.use_fused = fused
        self.domain = domain

    def reset_parameters(self) -> None:
        """Redraw the kernel and the linear map, and set the bias to zero."""
        super().reset_parameters()
        reset(self.lift)
        self.kernel.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        pos: Tensor | tuple[Tensor, Tensor],
        edge_index: Tensor | BipartiteGraph | GraphTensors,
        features: Tensor | None = None,
    ) -> Tensor:
        r"""Interpolate a field along edges.

        Args:
            x: field at the sources, or a pair whose first entry it is.
            pos: positions of sources and targets, ``[n, d]`` and ``[m, d]``; one
                tensor if they are the same points. With a prepared graph, those of the
                sources suffice.
            edge_index: sources and targets of the edges ``[2, E]`` in any order, or a
                prepared graph. A target without edges gets :math:`b`.
            features: inputs :math:`a(x_i)` at the sources ``[n, F]``.
        """
        x = x if isinstance(x, Tensor) else x[0]
        ends = (pos, pos) if isinstance(pos, Tensor) else pos
        graph = graph_along(pos, edge_index, self.domain)
        self._check(x, ends, graph)
        x = x if self.lift is None else self.lift(x)
        field = x.unsqueeze(1) if x.dim() == 2 else x
        out = self._sum(graph, field, ends[0], features)
        out = out if self.bias is None else out + self.bias
        return out.squeeze(1) if x.dim() == 2 else out

    def _sum(
        self, graph: BipartiteGraph, x: Tensor, pos: Tensor, features: Tensor | None
    ) -> Tensor:
        offset, source = graph.offset(x.dtype), graph.edge_index[0]
        weight = self.kernel.weights(offset, pos, features, source)
        if self.use_fused:
            out: Tensor = self.kernel(x, weight, graph)
            return out
        size = (graph.num_source, graph.num_target)
        matrix = self.kernel.matrices(weight, graph)
        return self.propagate(graph.edge_index, x=(x, None), matrix=matrix, size=size)

    def _check(
        self, x: Tensor, ends: tuple[Tensor, Tensor], graph: BipartiteGraph
    ) -> None:
        sources, channels = graph.num_source, self.kernel.channels
        steps = x.size(1) if x.dim() == 3 else 1
        if isinstance(self.lift, nn.Linear):
            channels = self.lift.in_features or x.size(-1)  # 0 before the first call
        fits = x.dim() in (2, 3) and x.size(0) == sources and x.size(-1) == channels
        if not fits or steps == 0:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; expected [{sources}, {channels}] or "
                f"[{sources}, T, {channels}]: sources, one or more time steps, "
                "channels of the layer"
            )
        if ends[0].size(0) != sources:
            raise ValueError(
                f"pos has shape {tuple(ends[0].shape)}; expected the positions of the "
                f"graph's {sources} sources, [{sources}, d]"
            )
        needs_grad = torch.is_grad_enabled() and any(end.requires_grad for end in ends)
        if needs_grad and not graph.differentiable:
            raise ValueError(
                "positions require gradients and the graph is a constant; expected a "
                "graph that bipartite_graph makes of these positions while gradients "
                "are recorded, or edge_index in its place; else detach the positions"
            )

    def message(self, x_j: Tensor, matrix: Tensor) -> Tensor:
        """Multiply each source by the matrix of its edge: ``[E, T, C]``."""
        return torch.einsum("eoc,etc->eto", matrix, x_j)

    def extra_repr(self) -> str:
        return f"fused={self.use_fused}"

    # MessagePassing's own representation lacks the options.
    __repr__ = nn.Module.__repr__
