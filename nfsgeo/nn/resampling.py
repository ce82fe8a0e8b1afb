"""From the points of a sample to the grid on which mixers work, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

__all__ = ["LiftedBy", "Points", "Resampling"]

# Inputs ``[n, F]`` and positions ``[n, d]`` to a field at time zero ``[n, C]``, and its
# change with time ``[C]``, the same everywhere; ``None`` for a problem without time.
LiftedBy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Points:
    """The observed points of a batch.

    Attributes:
        features: inputs at the points, records and components flattened, ``[N, F]``.
        pos: positions ``[N, d]``.
        batch: sample of each point ``[N]``, sorted; ``None`` for one sample.
        num_samples: number of samples, :math:`B`.
        at_nodes: features and positions interpolated to the nodes of a grid,
            ``[B m, F + d]``, where a resampling wants them.
    """

    features: Tensor
    pos: Tensor
    batch: Tensor | None
    num_samples: int
    at_nodes: Tensor | None = None


class Resampling(nn.Module, ABC):
    """Brings fields from points to a grid, and from the grid to points.

    The field of a problem without time has no time axis on the grid.

    Attributes:
        splits: whether :meth:`back` may be called for some of the query points.
    """

    splits = False

    def prepare(self, points: Points) -> Points:
        """The points, with what both ways need and is had but once."""
        return points

    @abstractmethod
    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The lifted field on the grid, ``[B, C, *grid(, T)]``.

        Args:
            points: where the field is known, prepared.
            lift: makes the field ``value + t slope``, affine in inputs and positions.
            times: the records that are wanted, ``[T]``.
        """

    @abstractmethod
    def back(
        self,
        field: Tensor,
        points: Points,
        query_pos: Tensor,
        query_batch: Tensor | None,
    ) -> Tensor:
        """A field ``[B, C, *grid(, T)]`` at the query points, ``[M, T, C]``.

        ``T`` is 1 for a problem without time.

        Args:
            field: on the grid.
            points: where the inputs are known, prepared.
            query_pos: positions of the query points, ``[M, d]``.
            query_batch: sample of each, ``[M]``, sorted; ``None`` for one sample.
        """
