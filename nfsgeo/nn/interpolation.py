"""Learned interpolation between two sets of points."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from nfsgeo.geometry import BipartiteGraph
from nfsgeo.nn.kernels import InterpolationKernel

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
        fused: whether to sum by sparse products.

    Shapes:
        ``x`` ``[n, T, C]``, ``pos`` ``[n, d]``, ``features`` ``[n, F]`` or ``None``;
        result ``[m, T, C]``.

    Raises:
        ValueError: for ``x`` of another shape.
    """

    def __init__(
        self, kernel: InterpolationKernel, *, bias: bool = True, fused: bool = True
    ) -> None:
        super().__init__(aggr="mean", flow="source_to_target", node_dim=0)
        self.kernel = kernel
        self.bias = nn.Parameter(torch.zeros(kernel.channels)) if bias else None
        self.use_fused = fused

    def reset_parameters(self) -> None:
        """Draw the kernel anew and set the bias to zero."""
        super().reset_parameters()
        self.kernel.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        graph: BipartiteGraph,
        pos: Tensor,
        features: Tensor | None = None,
    ) -> Tensor:
        r"""Interpolate ``x`` along the edges of ``graph``.

        Args:
            x: field at the sources.
            graph: edges from sources to targets.
            pos: positions of the sources.
            features: inputs :math:`a(x_i)` at the sources.
        """
        if x.dim() != 3 or x.size(-1) != self.kernel.channels:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; expected [n, T, "
                f"{self.kernel.channels}], a field with time records"
            )
        source = graph.edge_index[0]
        displacement = graph.displacement.to(x.dtype)
        weight = self.kernel.weights(displacement, pos, features, source)
        fixed, target = graph.weight.to(x.dtype), graph.edge_index[1]
        degree = graph.degree().to(x.dtype)
        if self.use_fused:
            share = degree.reciprocal()[target]
            out = self.kernel(x, weight, fixed, share, graph)
        else:
            size = (graph.num_source, graph.num_target)
            matrix = self.kernel.matrices(weight, fixed * degree[target])
            out = self.propagate(
                graph.edge_index, x=(x, None), matrix=matrix, size=size
            )
        return out if self.bias is None else out + self.bias

    def message(self, x_j: Tensor, matrix: Tensor) -> Tensor:
        """Apply each edge's matrix to its source: ``[E, T, C]``."""
        return torch.einsum("eoc,etc->eto", matrix, x_j)

    def extra_repr(self) -> str:
        return f"fused={self.use_fused}"
