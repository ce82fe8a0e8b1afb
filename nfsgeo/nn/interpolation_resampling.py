"""Resampling by learned interpolation: any points, a fixed grid."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    GraphCache,
    Interpolation,
    equispaced_grid,
)
from nfsgeo.nn.interpolation import KernelInterpolation
from nfsgeo.nn.neighbour_sum import neighbour_sum
from nfsgeo.nn.resampling import Points, Resampling, with_time

__all__ = ["InterpolationResampling"]


class InterpolationResampling(Resampling):
    r"""Interpolates to a fixed equispaced grid, and from it to any points.

    The two operators :math:`H_\eta` and :math:`H'_\zeta` of section 3.2 in
    "Non-equispaced Fourier Neural Solvers for PDEs". Since the lifted field is affine
    in time, two fields go up, whatever the number of records. On the way back the
    sources are the grid's nodes, so :math:`a(x_i)` is the input interpolated to them:
    nothing needs to be known of a query point but where it lies.

    Graphs are searched once for each mesh and kept; the samples of a batch may have
    different meshes.

    Args:
        to_grid: interpolation from points to grid.
        from_grid: interpolation from grid to query points.
        domain: the box of the points.
        shape: sizes of the grid.
        radius: radius of the neighbourhoods, in the units of the positions.
        interpolation: the fixed interpolation that the learned one adds to; see
            :func:`nfsgeo.geometry.bipartite_graph`.
        backend: of the radius search; see :func:`nfsgeo.geometry.radius_edges`.
    """

    grid: Tensor
    splits = True

    def __init__(
        self,
        to_grid: KernelInterpolation,
        from_grid: KernelInterpolation,
        domain: Domain,
        shape: Sequence[int],
        radius: float,
        *,
        interpolation: Interpolation = "mean",
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.to_grid = to_grid
        self.from_grid = from_grid
        self.shape = tuple(shape)
        self.graphs = GraphCache(
            domain, radius, interpolation=interpolation, backend=backend
        )
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)

    def forward(
        self, value: Tensor, slope: Tensor | None, points: Points, times: Tensor
    ) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        fields = value.unsqueeze(1)
        if slope is not None:
            fields = torch.stack([value, slope.expand_as(value)], dim=1)
        field = self.to_grid(
            fields, self._graph_up(points), points.pos, points.features
        )
        field = field.unflatten(0, (points.num_samples, *self.shape)).movedim(-1, 1)
        if slope is None:
            return field.squeeze(-1)
        return with_time(field[..., 0], field[..., 1], times)

    def back(
        self,
        field: Tensor,
        points: Points,
        query_pos: Tensor,
        query_batch: Tensor | None,
    ) -> Tensor:
        """The field at any points; see :class:`Resampling`."""
        if field.dim() == len(self.shape) + 2:
            field = field.unsqueeze(-1)
        # Channels first, as they lie: kernels take any order.
        nodes = field.transpose(0, 1).flatten(1, -2).permute(1, 2, 0)
        graph = self.graphs.grid_to_points(
            self.grid, query_pos, query_batch, num_samples=points.num_samples
        )
        pos = self.grid.repeat(points.num_samples, 1)
        return self.from_grid(nodes, graph, pos, self._node_features(points))

    def _graph_up(self, points: Points) -> BipartiteGraph:
        return self.graphs.points_to_grid(points.pos, points.batch, self.grid)

    def _node_features(self, points: Points) -> Tensor:
        """The inputs, interpolated to the nodes by fixed weights, ``[B m, F]``."""
        graph = self._graph_up(points)
        features = points.features[None]
        return neighbour_sum(features, graph.weight.to(features.dtype)[None], graph)[0]

    def extra_repr(self) -> str:
        return f"shape={self.shape}, radius={self.graphs.radius:.4g}"
