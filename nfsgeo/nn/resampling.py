"""From the points of a sample to the grid on which mixers work, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs

__all__ = ["LiftedBy", "Points", "Resampling"]

# From inputs ``[n, F]`` and positions ``[n, d]`` to a field at time zero ``[n, C]`` and
# its rate of change ``[C]``, the same everywhere; ``None`` for a problem without time.
LiftedBy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Points:
    """Fields at the points of a batch, and everything computed from the points.

    Attributes:
        features: inputs at the points, time steps and components flattened, ``[N, F]``.
        graphs: positions of the points and of the queries, and the edges that
            :meth:`Resampling.connect` made of them.
        at_nodes: features interpolated to the nodes of a grid, ``[B m, F]``, where a
            resampling wants them.
    """

    features: Tensor
    graphs: Graphs
    at_nodes: Tensor | None = None


class Resampling(nn.Module, ABC):
    """Brings fields from points to a grid, and from the grid to points.

    The field of a problem without time has no time axis on the grid.
    """

    def connect(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """The edges between the points of one sample and the grid, by name.

        Args:
            pos: normalised positions of the observed points ``[n, d]``.
            query_pos: those of the query points ``[m, d]``.
        """
        return {}

    def prepare(self, points: Points) -> Points:
        """The points, with what both directions need, computed once."""
        return points

    @abstractmethod
    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The lifted field on the grid, ``[B, C, *grid(, T)]``.

        Args:
            points: where the field is known, prepared.
            lift: makes the field ``value + t slope``, affine in inputs and positions.
            times: those of the time steps to predict, ``[T]``.
        """

    @abstractmethod
    def back(self, field: Tensor, points: Points, some: slice | None = None) -> Tensor:
        """A field ``[B, C, *grid(, T)]`` at the query points, ``[M, T, C]``.

        ``T`` is 1 for a problem without time.

        Args:
            field: on the grid.
            points: where the inputs are known, prepared.
            some: which of the query points; ``None`` for all.
        """
