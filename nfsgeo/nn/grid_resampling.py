"""For data that lie on an equispaced grid already."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.nn.resampling import LiftedBy, Points, Resampling

__all__ = ["GridResampling", "grid_shape"]


class GridResampling(Resampling):
    """No resampling: the points are the grid, in row-major order.

    Any equispaced grid is accepted, so that a network without fixed sizes may change
    resolution between training and inference.

    Raises:
        UserError: when the points of a batch are no equispaced grid, the same for all
            samples, or when queries are not at the observed points.
    """

    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The field on the grid; see :class:`Resampling`."""
        shape = grid_shape(points.pos, points.num_samples)
        value, slope = lift(points.features, points.pos)
        field = value.view(points.num_samples, *shape, -1).movedim(-1, 1)
        if slope is None:
            return field
        # The result lies as the field does, and mixers work on what is contiguous.
        slope = slope.view(-1, *(1 for _ in shape), 1)
        return torch.addcmul(field.contiguous().unsqueeze(-1), slope, times)

    def back(
        self,
        field: Tensor,
        points: Points,
        query_pos: Tensor,
        query_batch: Tensor | None,
    ) -> Tensor:
        """The field at the grid's own nodes; see :class:`Resampling`."""
        if query_pos is not points.pos and not torch.equal(query_pos, points.pos):
            raise UserError(
                f"{query_pos.size(0)} query points",
                "the points of the grid, for a model that works on grids only",
                "use a model that takes points, such as nfs",
            )
        if field.dim() == query_pos.size(1) + 2:
            field = field.unsqueeze(-1)
        return field.movedim(1, -1).flatten(0, -3)


def grid_shape(pos: Tensor, num_samples: int) -> tuple[int, ...]:
    """Shape of the equispaced grid that each sample's points are, row-major.

    Args:
        pos: ``[N, d]``, ``num_samples`` times the same grid.
        num_samples: number of samples in the batch.

    Raises:
        UserError: when the points are anything else.
    """
    first = pos[: pos.size(0) // max(num_samples, 1)]
    shape = [int(column.unique().numel()) for column in first.unbind(1)]
    total = 1
    for size in shape:
        total *= size
    if total == first.size(0) and total * num_samples == pos.size(0):
        axes = [column.unique() for column in first.unbind(1)]
        grid = torch.cartesian_prod(*axes).view(total, -1)
        tolerance = 1e-4 * _spacing(axes)
        if (
            _equispaced(axes)
            and ((pos.view(num_samples, total, -1) - grid).abs() <= tolerance).all()
        ):
            return tuple(shape)
    raise UserError(
        f"{pos.size(0)} points in {num_samples} samples that are no grid",
        "the same equispaced grid in every sample, in row-major order",
        "train with --grid, or use a model that takes points, such as nfs",
    )


def _spacing(axes: list[Tensor]) -> Tensor:
    gaps = [a.diff().amin() if a.numel() > 1 else a.new_ones(()) for a in axes]
    return torch.stack(gaps)


def _equispaced(axes: list[Tensor]) -> bool:
    gaps = [axis.diff() for axis in axes if axis.numel() > 2]
    return all(bool((g - g.mean()).abs().amax() <= 1e-3 * g.mean()) for g in gaps)
