"""The matrices that the cells of recurrent graph models multiply by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import BipartiteGraph, GraphCache
from nfsgeo.nn import AdaptiveGRU

__all__ = ["LearnedSupports", "RadiusSupports", "Supports"]


class Supports(Protocol):
    """Gives every cell its matrix, at the points of a batch."""

    def __call__(
        self, pos: Tensor, batch: Tensor | None, cells: Sequence[Any]
    ) -> Sequence[Any]: ...


class RadiusSupports:
    """The same matrix for every cell, of the graph of all pairs within a radius.

    Args:
        graphs: of that radius.
        make: the matrix of a graph, in a floating-point type.
    """

    def __init__(
        self, graphs: GraphCache, make: Callable[[BipartiteGraph, torch.dtype], Any]
    ) -> None:
        self.graphs, self.make = graphs, make

    def __call__(
        self, pos: Tensor, batch: Tensor | None, cells: Sequence[Any]
    ) -> Sequence[Any]:
        """The matrix at the points ``[N, d]``, once for each cell."""
        support = self.make(self.graphs.points_to_points(pos, batch), pos.dtype)
        return [support] * len(cells)


class LearnedSupports(nn.Module):
    """The graph that every cell has learned, at the points that it was learned at.

    Args:
        num_points: of the mesh.
        dim: space dimensions.
    """

    mesh: Tensor

    def __init__(self, num_points: int, dim: int) -> None:
        super().__init__()
        # Filled by the first points that come; weights mean nothing at others.
        self.register_buffer("mesh", torch.full((num_points, dim), torch.nan))

    def forward(
        self, pos: Tensor, batch: Tensor | None, cells: Sequence[AdaptiveGRU]
    ) -> Sequence[Tensor]:
        """The graph of each cell.

        Raises:
            UserError: when a sample has other points than the first of all.
        """
        samples, rest = divmod(len(pos), len(self.mesh))
        if samples and self.mesh.isnan().any():
            self.mesh.copy_(pos[: len(self.mesh)].detach())
        mesh = self.mesh.to(pos.dtype).repeat(samples, 1)
        if rest or not torch.allclose(mesh, pos):
            raise UserError(
                "agcrn on another mesh",
                f"in every sample the {len(self.mesh)} points that it learned on, in "
                "their order",
                "observe all samples there, or train gcgru, dcrnn, mppde or nfs",
            )
        return [cell.adjacency() for cell in cells]
