"""Resampling by learned interpolation: any points, a fixed grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    GraphBuilder,
    Interpolation,
    equispaced_grid,
)
from nfsgeo.nn.base_interpolation import BaseInterpolation, interpolate_along
from nfsgeo.nn.interpolation import KernelInterpolation
from nfsgeo.nn.resampling import LiftedBy, Points, Resampling

__all__ = ["InterpolationResampling"]


class InterpolationResampling(Resampling):
    r"""Interpolates to a fixed equispaced grid, and from it to any points.

    The two operators :math:`H_\eta` and :math:`H'_\zeta` of section 3.2 in
    "Non-equispaced Fourier Neural Solvers for PDEs". Since the lifted field is affine
    in time, only two fields are interpolated to the grid, whatever the number of time
    steps; if kernels have their sources at the nodes, inputs are interpolated before
    they are lifted. On the way back the sources are the grid's nodes, so
    :math:`a(x_i)` is the input interpolated to them: of a query point, only its
    position is needed.

    The graphs are made once per mesh, by :meth:`connect`; the samples of a batch may
    have different meshes.

    Args:
        to_grid: interpolation from points to grid; a
            :class:`~nfsgeo.nn.BaseInterpolation` where nothing is to be learned.
        from_grid: interpolation from grid to query points; the same.
        domain: the box of the points.
        shape: sizes of the grid.
        radius: radius of the neighbourhoods, in the units of the positions.
        interpolation: the base interpolation to which the learned one adds; see
            :func:`nfsgeo.geometry.bipartite_graph`.
        quadrature: whether means over points take quadrature weights.
        kernel_at: where ``to_grid`` has its sources: at the ``points``, or at the
            ``nodes``, to which the base interpolation has brought the field. No learned
            weight then depends on the mesh.
        wider: further kernels among the nodes, each after the radius of its
            neighbourhoods; what they learn is added. They need ``kernel_at="nodes"``.
        backend: of the radius search; see :func:`nfsgeo.geometry.radius_edges`.

    Raises:
        ValueError: for ``wider`` kernels without a learned ``to_grid`` at the nodes.
    """

    grid: Tensor
    mask: Tensor | None

    def __init__(
        self,
        to_grid: KernelInterpolation | BaseInterpolation,
        from_grid: KernelInterpolation | BaseInterpolation,
        domain: Domain,
        shape: Sequence[int],
        radius: float,
        *,
        interpolation: Interpolation = "mean",
        quadrature: bool = False,
        kernel_at: Literal["points", "nodes"] = "points",
        wider: Sequence[tuple[float, KernelInterpolation]] = (),
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.to_grid = to_grid
        self.wider = nn.ModuleList(kernel for _, kernel in wider)
        self._wider_radii = [radius for radius, _ in wider]
        self.from_grid = from_grid
        self.shape = tuple(shape)
        self.kernel_at = kernel_at
        learned = [
            isinstance(each, KernelInterpolation) for each in (to_grid, from_grid)
        ]
        self.kernel_among_nodes = kernel_at == "nodes" and learned[0]
        if wider and not self.kernel_among_nodes:
            raise ValueError(
                f"{len(wider)} wider kernels with kernel_at={kernel_at!r} and a "
                f"{type(to_grid).__name__}; expected a KernelInterpolation at the nodes"
            )
        self.builder = GraphBuilder(
            domain,
            radius,
            interpolation=interpolation,
            quadrature=quadrature,
            # If kernels are among nodes, a spline needs no neighbours but its own.
            ball_to_grid=interpolation != "spline"
            or (kernel_at == "points" and learned[0]),
            ball_from_grid=interpolation != "spline" or learned[1],
            backend=backend,
        )
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)
        # Nodes in obstacles hold nothing.
        mask = None if domain.region is None else domain.contains(grid)[:, None, None]
        self.register_buffer("mask", mask, persistent=False)
        self._nodes: dict[torch.device, dict[str, BipartiteGraph]] = {}

    def connect(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Points to nodes (``up``), nodes to queries (``down``), among nodes."""
        # Not the buffer, which may be on another device than the positions.
        grid = equispaced_grid(self.builder.domain, self.shape).to(pos)
        return {
            "up": self.builder.points_to_grid(pos, grid),
            "down": self.builder.grid_to_points(grid, query_pos),
            **self.among_nodes(pos.device),
        }

    def prepare(self, points: Points) -> Points:
        """The points, with inputs at the nodes by base interpolation."""
        known, graph = points.features[:, None], points.graphs.edges["up"]
        return replace(points, at_nodes=interpolate_along(known, graph)[:, 0])

    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        graphs = points.graphs
        if self.kernel_at == "points":
            fields = _stacked(*lift(points.features, graphs.pos))
            field = self.to_grid(
                fields, graphs.pos, graphs.edges["up"], points.features
            )
        else:
            # Affine maps commute with weights that add up to 1. Lifted at the nodes,
            # a field has few components to interpolate, none of which is trained, and
            # positions are exact: interpolated ones show the mesh where axes wrap.
            features, nodes = self._at_nodes(points)
            fields = _stacked(*lift(features, nodes))
            field = fields
            if self.kernel_among_nodes:
                field = self.to_grid(fields, nodes, graphs.edges["nodes-0"], features)
            for number, kernel in enumerate(self.wider, 1):
                edges = graphs.edges[f"nodes-{number}"]
                field = field + kernel(fields, nodes, edges, features) - fields
        if self.mask is not None:
            field = field * self.mask.repeat(graphs.num_samples, 1, 1)
        field = field.unflatten(0, (graphs.num_samples, *self.shape)).movedim(-1, 1)
        if field.size(-1) == 1:
            return field.squeeze(-1)
        # A product of matrices, whose gradient is a product of matrices, too.
        return field @ torch.stack([torch.ones_like(times), times])

    def back(self, field: Tensor, points: Points, some: slice | None = None) -> Tensor:
        """The field at any points; see :class:`Resampling`."""
        if field.dim() == len(self.shape) + 2:
            field = field.unsqueeze(-1)
        # Channels first, as they lie: kernels take any order.
        at_nodes = field.transpose(0, 1).flatten(1, -2).permute(1, 2, 0)
        graph = points.graphs.edges["down"]
        if some is not None:
            graph = graph.rows(some.start, some.stop)
        features, nodes = self._at_nodes(points)
        return self.from_grid(at_nodes, nodes, graph, features)

    def among_nodes(self, device: torch.device) -> dict[str, BipartiteGraph]:
        """The graphs among the nodes, by name, on a ``device``; none without a kernel.

        They do not depend on the mesh.
        """
        if not self.kernel_among_nodes:
            return {}
        if device not in self._nodes:
            grid = equispaced_grid(self.builder.domain, self.shape)
            # With a spline, the base interpolation of a node is its own value.
            builders = [self.builder] + [
                replace(self.builder, radius=radius, interpolation="spline")
                for radius in self._wider_radii
            ]
            self._nodes[device] = {
                f"nodes-{number}": builder.points_to_points(grid).to(device)
                for number, builder in enumerate(builders)
            }
        return self._nodes[device]

    def _at_nodes(self, points: Points) -> tuple[Tensor, Tensor]:
        """Inputs at the nodes of all samples, and these, ``[B m, F]``, ``[B m, d]``."""
        assert points.at_nodes is not None, "points that were not prepared"
        return points.at_nodes, self.grid.repeat(points.graphs.num_samples, 1)

    def extra_repr(self) -> str:
        radius = f"radius={self.builder.radius:.4g}"
        return f"shape={self.shape}, {radius}, kernel_at={self.kernel_at}"


def _stacked(value: Tensor, slope: Tensor | None) -> Tensor:
    """Value and slope as time steps ``[n, 2, C]``, the value alone without time."""
    if slope is None:
        return value.unsqueeze(1)
    return torch.stack([value, slope.expand_as(value)], dim=1)
