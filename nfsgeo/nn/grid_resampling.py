"""For data that lie on an equispaced grid already."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.nn.resampling import LiftedBy, Points, Resampling

__all__ = ["GridResampling", "grid_shape"]


class GridResampling(Resampling):
    """No resampling: the points are the grid, in row-major order.

    Any equispaced grid is accepted, so that a network without fixed sizes may change
    resolution between training and inference; see :func:`grid_shape`.
    """

    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        graphs = points.graphs
        assert graphs.grid_shape is not None, "graphs of points that were not checked"
        value, slope = lift(points.features, graphs.pos)
        field = value.view(graphs.num_samples, *graphs.grid_shape, -1).movedim(-1, 1)
        if slope is None:
            return field
        # The result lies as the field does, and mixers work on what is contiguous.
        slope = slope.view(-1, *(1 for _ in graphs.grid_shape), 1)
        return torch.addcmul(field.contiguous().unsqueeze(-1), slope, times)

    def back(self, field: Tensor, points: Points, some: slice | None = None) -> Tensor:
        """The field at the grid's own nodes; see :class:`Resampling`."""
        if field.dim() == points.graphs.pos.size(1) + 2:
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
    shape = tuple(len(axis) for axis in axes)
    if math.prod(shape) == len(pos) and _equispaced(axes):
        grid = torch.cartesian_prod(*axes).view(len(pos), -1)
        if ((pos - grid).abs() <= 1e-4 * _spacing(axes)).all():
            return shape
    raise UserError(
        f"{len(pos)} points that are no grid",
        "an equispaced grid, in row-major order",
        "train with --grid, or use a model that takes points, such as nfs",
    )


def _spacing(axes: list[Tensor]) -> Tensor:
    gaps = [a.diff().amin() if a.numel() > 1 else a.new_ones(()) for a in axes]
    return torch.stack(gaps)


def _equispaced(axes: list[Tensor]) -> bool:
    gaps = [axis.diff() for axis in axes if axis.numel() > 2]
    return all(bool((g - g.mean()).abs().amax() <= 1e-3 * g.mean()) for g in gaps)
