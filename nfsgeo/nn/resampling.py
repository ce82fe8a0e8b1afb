"""From the points of a sample to the grid on which mixers work, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    GraphBuilder,
    Graphs,
    Interpolation,
    equispaced_grid,
)
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.interpolation import KernelInterpolation

__all__ = [
    "GridResampling",
    "InterpolationResampling",
    "LiftedBy",
    "Resampling",
    "grid_shape",
]

# From inputs ``[n, F]`` and positions ``[n, d]`` to a field at time zero ``[n, C]`` and
# its rate of change ``[C]``, the same everywhere; ``None`` for a problem without time.
LiftedBy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]


class Resampling(nn.Module, ABC):
    """Brings fields from points to a grid, and from the grid to points.

    The field of a problem without time has no time axis on the grid.
    """

    @abstractmethod
    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """The lifted field on the grid, ``[B, C, *grid(, T)]``.

        Args:
            features: inputs at the points, time steps and components flattened,
                ``[N, F]``.
            graphs: positions of a batch, and the edges that :meth:`connect` made.
            lift: makes the field ``value + t slope``, affine in inputs and positions.
            times: those of the time steps to predict, ``[T]``.
        """

    @abstractmethod
    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """A field ``[B, C, *grid(, T)]`` at the query points, ``[M, T, C]``.

        ``T`` is 1 for a problem without time.

        Args:
            field: on the grid.
            features: as for :meth:`forward`.
            graphs: likewise.
            some: which of the query points; ``None`` for all.
        """


class GridResampling(Resampling):
    """No resampling: the points are the grid, in row-major order.

    Any equispaced grid is accepted, so that a network without fixed sizes may change
    resolution between training and inference; see :func:`grid_shape`.
    """

    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        assert graphs.grid_shape is not None, "graphs of points that were not checked"
        value, slope = lift(features, graphs.pos)
        field = value.view(graphs.num_samples, *graphs.grid_shape, -1).movedim(-1, 1)
        if slope is None:
            return field
        # The result lies as the field does, and mixers work on what is contiguous.
        slope = slope.view(-1, *(1 for _ in graphs.grid_shape), 1)
        return torch.addcmul(field.contiguous().unsqueeze(-1), slope, times)

    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """The field at the grid's own nodes; see :class:`Resampling`."""
        if field.dim() == graphs.pos.size(1) + 2:
            field = field.unsqueeze(-1)
        at_points = field.movedim(1, -1).flatten(0, -3)
        return at_points if some is None else at_points[some]


def grid_shape(pos: Tensor) -> tuple[int, ...]:
    """Shape of the equispaced grid that the points of a sample are, row-major.

    Args:
        pos: ``[n, d]``.

    Raises:
        UserError: when the points are anything else.
    """
    axes = [column.unique() for column in pos.unbind(1)]
    shape = tuple(map(len, axes))
    if math.prod(shape) == len(pos):
        steps = torch.stack([(a[-1] - a[0]) / max(1, len(a) - 1) for a in axes])
        numbers = torch.cartesian_prod(*(torch.arange(n) for n in shape))
        place = numbers.view(len(pos), -1).to(pos) * steps
        low = torch.stack([a[0] for a in axes])
        if ((pos - low - place).abs() <= 1e-3 * steps).all():
            return shape
    raise UserError(
        f"{len(pos)} points that are no grid",
        "an equispaced grid, in row-major order",
        "train with --grid, or use a model that takes points, such as nfs",
    )


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
        to_grid: interpolation from points to grid; ``None`` for the base interpolation
            alone, where nothing is to be learned.
        from_grid: interpolation from grid to query points; the same.
        domain: the box of the points.
        shape: sizes of the grid.
        radius: radius of the neighbourhoods, in the units of the positions.
        interpolation: the base interpolation to which the learned one adds; see
            :func:`nfsgeo.geometry.bipartite_graph`.
        kernel_at: where ``to_grid`` has its sources: at the ``points``, or at the
            ``nodes``, to which the base interpolation has brought the field. No learned
            weight then depends on the mesh.
        wider: further kernels among the nodes, each after the radius of its
            neighbourhoods; what they learn is added. They need ``kernel_at="nodes"``.

    Raises:
        ValueError: for ``wider`` kernels without a learned ``to_grid`` at the nodes.
    """

    grid: Tensor
    mask: Tensor | None

    def __init__(
        self,
        to_grid: KernelInterpolation | None,
        from_grid: KernelInterpolation | None,
        domain: Domain,
        shape: Sequence[int],
        radius: float,
        *,
        interpolation: Interpolation = "mean",
        kernel_at: Literal["points", "nodes"] = "points",
        wider: Sequence[tuple[float, KernelInterpolation]] = (),
    ) -> None:
        super().__init__()
        self.to_grid = to_grid
        self.wider = nn.ModuleList(kernel for _, kernel in wider)
        self._wider_radii = [radius for radius, _ in wider]
        self.from_grid = from_grid
        self.shape = tuple(shape)
        self.kernel_at = kernel_at
        self.kernel_among_nodes = kernel_at == "nodes" and to_grid is not None
        if wider and not self.kernel_among_nodes:
            raise ValueError(
                f"{len(wider)} wider kernels with kernel_at={kernel_at!r}, to_grid "
                f"{to_grid}; expected a KernelInterpolation at the nodes"
            )
        self.builder = GraphBuilder(
            domain,
            radius,
            interpolation=interpolation,
            # If kernels are among nodes, a spline needs no neighbours but its own.
            ball_to_grid=interpolation != "spline"
            or (kernel_at == "points" and to_grid is not None),
            ball_from_grid=interpolation != "spline" or from_grid is not None,
        )
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)
        # Nodes in obstacles hold nothing.
        mask = None if domain.walls is None else domain.contains(grid)[:, None, None]
        self.register_buffer("mask", mask, persistent=False)
        self._nodes: dict[torch.device, dict[str, BipartiteGraph]] = {}

    def connect(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Points to nodes (``up``), nodes to queries (``down``), among nodes.

        Args:
            pos: positions of the observed points of one sample ``[n, d]``, normalised
                or in latent coordinates.
            query_pos: those of the query points ``[m, d]``.
        """
        # Not the buffer, which may be on another device than the positions.
        grid = equispaced_grid(self.builder.domain, self.shape).to(pos)
        return {
            "up": self.builder.points_to_grid(pos, grid),
            "down": self.builder.grid_to_points(grid, query_pos),
            **self.among_nodes(pos.device),
        }

    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        if self.kernel_at == "points":
            field, up = _stacked(*lift(features, graphs.pos)), graphs.edges["up"]
            if self.to_grid is None:
                field = interpolate_along(field, up)
            else:
                field = self.to_grid(field, graphs.pos, up, features)
        else:
            # Affine maps commute with weights that add up to 1. Lifted at the nodes,
            # a field has few components to interpolate, none of which is trained, and
            # positions are exact: interpolated ones show the mesh where axes wrap.
            known, nodes = self._at_nodes(features, graphs)
            field = fields = _stacked(*lift(known, nodes))
            if self.to_grid is not None:
                field = self.to_grid(fields, nodes, graphs.edges["nodes-0"], known)
            for number, kernel in enumerate(self.wider, 1):
                edges = graphs.edges[f"nodes-{number}"]
                field = field + kernel(fields, nodes, edges, known) - fields
        if self.mask is not None:
            field = field * self.mask.repeat(graphs.num_samples, 1, 1)
        field = self.on_grid(field, graphs)
        if field.size(-1) == 1:
            return field.squeeze(-1)
        # A product of matrices, whose gradient is a product of matrices, too.
        return field @ torch.stack([torch.ones_like(times), times])

    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """The field at any points; see :class:`Resampling`."""
        if field.dim() == len(self.shape) + 2:
            field = field.unsqueeze(-1)
        # Channels first, as they lie: kernels take any order.
        field = field.transpose(0, 1).flatten(1, -2).permute(1, 2, 0)
        down = graphs.edges["down"]
        if some is not None:
            down = down.rows(some.start, some.stop)
        if self.from_grid is None:
            return interpolate_along(field, down)
        known, nodes = self._at_nodes(features, graphs)
        found: Tensor = self.from_grid(field, nodes, down, known)
        return found

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

    def _at_nodes(self, features: Tensor, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """Inputs at the nodes of all samples, and these, ``[B m, F]``, ``[B m, d]``."""
        known = interpolate_along(features[:, None], graphs.edges["up"])[:, 0]
        if graphs.nodes is not None:
            return known, graphs.nodes.to(self.grid.dtype)
        return known, self.grid.repeat(graphs.num_samples, 1)

    def on_grid(self, values: Tensor, graphs: Graphs) -> Tensor:
        """The ``values`` at all nodes ``[B m, C]``, as ``[B, C, *grid]``.

        Args:
            values: at the nodes.
            graphs: as for :meth:`forward`.
        """
        return values.unflatten(0, (graphs.num_samples, *self.shape)).movedim(-1, 1)

    def extra_repr(self) -> str:
        radius = f"radius={self.builder.radius:.4g}"
        return f"shape={self.shape}, {radius}, kernel_at={self.kernel_at}"


def _stacked(value: Tensor, slope: Tensor | None) -> Tensor:
    """Value and slope as time steps ``[n, 2, C]``, the value alone without time."""
    if slope is None:
        return value.unsqueeze(1)
    return torch.stack([value, slope.expand_as(value)], dim=1)
