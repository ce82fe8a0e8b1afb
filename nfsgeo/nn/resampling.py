"""Resampling from the points of a sample to the grid of a mixer, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError, option
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

# Function from inputs ``[n, F]`` and positions ``[n, d]`` to a field at time zero
# ``[n, C]`` and its constant rate of change ``[C]``, or ``None`` without time.
LiftedBy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]


class Resampling(nn.Module, ABC):
    """Base class of resampling from points to a grid, and from the grid to points.

    Without time, the field has no time axis on the grid.
    """

    @abstractmethod
    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """Return the lifted field on the grid, ``[B, C, *grid(, T)]``.

        Args:
            features: inputs at the points, with time steps and components flattened,
                ``[N, F]``.
            graphs: graphs of a batch.
            lift: function that makes the field ``value + t slope``, affine in inputs
                and positions.
            times: times of the time steps to predict, ``[T]``.
        """

    @abstractmethod
    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """Return a field at the query points, ``[M, T, C]``; without time, T is 1.

        Args:
            field: field on the grid ``[B, C, *grid(, T)]``.
            features: inputs at the points, as for :meth:`forward`.
            graphs: graphs of the batch, likewise.
            some: range of query points; ``None`` for all.
        """


class GridResampling(Resampling):
    """No resampling: the points are the nodes of a grid, in row-major order.

    Any equispaced grid is accepted, so that a network without fixed sizes can change
    resolution between training and inference; see :func:`grid_shape`.
    """

    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """Return the field on the grid; see :class:`Resampling`."""
        assert graphs.grid_shape is not None, "graphs of points that were not checked"
        value, slope = lift(features, graphs.pos)
        field = value.view(graphs.num_samples, *graphs.grid_shape, -1).movedim(-1, 1)
        if slope is None:
            return field
        # The result has the memory layout of the field, which mixers need contiguous.
        slope = slope.view(-1, *(1 for _ in graphs.grid_shape), 1)
        return torch.addcmul(field.contiguous().unsqueeze(-1), slope, times)

    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """Return the field at the nodes of the grid; see :class:`Resampling`."""
        if field.dim() == graphs.pos.size(1) + 2:
            field = field.unsqueeze(-1)
        at_points = field.movedim(1, -1).flatten(0, -3)
        return at_points if some is None else at_points[some]


def grid_shape(pos: Tensor) -> tuple[int, ...]:
    """Return the shape of the equispaced grid that points form in row-major order.

    Args:
        pos: points of a sample ``[n, d]``.

    Raises:
        UserError: when the points do not form such a grid.
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
        f"train on a grid, {option('grid', 'N')}, or use a model that takes points, "
        "such as nfs",
    )


class InterpolationResampling(Resampling):
    r"""Interpolates to a fixed equispaced grid, and from it to any points.

    The operators :math:`H_\eta` and :math:`H'_\zeta` of section 3.2 in "Non-equispaced
    Fourier Neural Solvers for PDEs" (Lin et al., 2022). Since the lifted field is
    affine in time, only two fields are interpolated to the grid, for any number of time
    steps. If kernels have their sources at the nodes, inputs are interpolated before
    they are lifted. On the way back the sources are the nodes, so that :math:`a(x_i)`
    is the input interpolated to them, and only the position of a query point is needed.

    :meth:`connect` makes the graphs once per mesh. The samples of a batch may have
    different meshes.

    Args:
        to_grid: learned interpolation from points to grid; ``None`` for the base
            interpolation only.
        from_grid: learned interpolation from grid to query points, likewise.
        domain: the box of the points.
        shape: sizes of the grid.
        radius: radius of the neighbourhoods, in the units of the positions.
        interpolation: the base interpolation to which the learned one adds; see
            :func:`nfsgeo.geometry.bipartite_graph`.
        kernel_at: whether ``to_grid`` has its sources at the ``points``, or at the
            ``nodes``, to which the base interpolation has brought the inputs. Then no
            learned weight depends on the mesh.
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
    ) -> None:
        super().__init__()
        self.to_grid = to_grid
        self.from_grid = from_grid
        self.shape = tuple(shape)
        self.kernel_at = kernel_at
        self.kernel_among_nodes = kernel_at == "nodes" and to_grid is not None
        self.builder = GraphBuilder(
            domain,
            radius,
            interpolation=interpolation,
            # If kernels are among nodes, a spline needs only its own neighbours.
            ball_to_grid=interpolation != "spline"
            or (kernel_at == "points" and to_grid is not None),
            ball_from_grid=interpolation != "spline" or from_grid is not None,
        )
        grid = equispaced_grid(domain, self.shape)
        self.register_buffer("grid", grid, persistent=False)
        # Fields are zero at nodes in obstacles.
        mask = None if domain.walls is None else domain.contains(grid)[:, None, None]
        self.register_buffer("mask", mask, persistent=False)
        self._nodes: dict[torch.device, dict[str, BipartiteGraph]] = {}

    def connect(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Make the graphs of a sample, by name.

        They lead from points to nodes (``up``), from nodes to query points (``down``),
        and among nodes.

        Args:
            pos: positions of the observed points of one sample ``[n, d]``, normalised
                or in latent coordinates.
            query_pos: positions of the query points ``[m, d]``, likewise.
        """
        # The buffer may be on another device than the positions.
        grid = equispaced_grid(self.builder.domain, self.shape).to(pos)
        return {
            "up": self.builder.points_to_grid(pos, grid),
            "down": self.builder.grid_to_points(grid, query_pos),
            **self.among_nodes(pos.device),
        }

    def forward(
        self, features: Tensor, graphs: Graphs, lift: LiftedBy, times: Tensor
    ) -> Tensor:
        """Return the field on the grid; see :class:`Resampling`."""
        if self.kernel_at == "points":
            field, up = _stacked(*lift(features, graphs.pos)), graphs.edges["up"]
            if self.to_grid is None:
                field = interpolate_along(field, up)
            else:
                field = self.to_grid(field, graphs.pos, up, features)
        else:
            # Affine maps commute with weights that add up to 1. Inputs have fewer
            # components to interpolate than the lifted field, and positions of nodes
            # are exact, while interpolated ones depend on the mesh where axes wrap.
            inputs, nodes = self._at_nodes(features, graphs)
            field = _stacked(*lift(inputs, nodes))
            if self.to_grid is not None:
                field = self.to_grid(field, nodes, graphs.edges["nodes"], inputs)
        if self.mask is not None:
            field = field * self.mask.repeat(graphs.num_samples, 1, 1)
        field = self.on_grid(field, graphs)
        if field.size(-1) == 1:
            return field.squeeze(-1)
        # The gradient of a matrix product is a matrix product.
        return field @ torch.stack([torch.ones_like(times), times])

    def back(
        self,
        field: Tensor,
        features: Tensor,
        graphs: Graphs,
        some: slice | None = None,
    ) -> Tensor:
        """Return the field at the query points; see :class:`Resampling`."""
        if field.dim() == len(self.shape) + 2:
            field = field.unsqueeze(-1)
        # Channels stay where they are in memory, since kernels take any layout.
        if field.stride(1) == 1:
            field = field.movedim(1, -1).flatten(0, -3)
        else:
            field = field.transpose(0, 1).flatten(1, -2).permute(1, 2, 0)
        down = graphs.edges["down"]
        if some is not None:
            down = down.rows(some.start, some.stop)
        if self.from_grid is None:
            return interpolate_along(field, down)
        inputs, nodes = self._at_nodes(features, graphs)
        result: Tensor = self.from_grid(field, nodes, down, inputs)
        return result

    def among_nodes(self, device: torch.device) -> dict[str, BipartiteGraph]:
        """Return the graph among the nodes by its name; none without a kernel.

        It does not depend on the mesh, and is cached for each device.
        """
        if not self.kernel_among_nodes:
            return {}
        if device not in self._nodes:
            grid = equispaced_grid(self.builder.domain, self.shape)
            graph = self.builder.points_to_points(grid).to(device)
            self._nodes[device] = {"nodes": graph}
        return self._nodes[device]

    def _at_nodes(self, features: Tensor, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """Return inputs ``[B m, F]`` at the nodes of all samples, and the nodes."""
        inputs = interpolate_along(features[:, None], graphs.edges["up"])[:, 0]
        if graphs.nodes is not None:
            return inputs, graphs.nodes.to(self.grid.dtype)
        return inputs, self.grid.repeat(graphs.num_samples, 1)

    def on_grid(self, values: Tensor, graphs: Graphs) -> Tensor:
        """Return values at all nodes ``[B m, C]`` as ``[B, C, *grid]``.

        Args:
            values: values at the nodes.
            graphs: graphs of the batch.
        """
        return values.unflatten(0, (graphs.num_samples, *self.shape)).movedim(-1, 1)

    def extra_repr(self) -> str:
        radius = f"radius={self.builder.radius:.4g}"
        return f"shape={self.shape}, {radius}, kernel_at={self.kernel_at}"


def _stacked(value: Tensor, slope: Tensor | None) -> Tensor:
    """Stack value and slope to ``[n, 2, C]``, or ``[n, 1, C]`` without a slope."""
    if slope is None:
        return value.unsqueeze(1)
    return torch.stack([value, slope.expand_as(value)], dim=1)
