"""The matrices that the cells of recurrent graph models multiply by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import BipartiteGraph, GraphBuilder, Graphs
from nfsgeo.nn import (
    AdaptiveGRU,
    Support,
    chebyshev_support,
    diffusion_supports,
)

__all__ = ["ChebyshevSupports", "DiffusionSupports", "LearnedSupports", "Supports"]


class Supports(Protocol):
    """Gives every cell its matrix, at the points of a batch."""

    def connect(self, pos: Tensor) -> dict[str, BipartiteGraph]:
        """The edges of one sample, by name, from its normalised positions."""
        ...

    def __call__(self, graphs: Graphs, cells: Sequence[Any]) -> Sequence[Any]:
        """The matrix of each cell."""
        ...


@dataclass(frozen=True)
class ChebyshevSupports:
    """The scaled Laplacian of all pairs within a radius, the same for every cell.

    Args:
        builder: of that radius.
    """

    builder: GraphBuilder

    def connect(self, pos: Tensor) -> dict[str, BipartiteGraph]:
        """The Laplacian at the points ``[n, d]`` of a sample."""
        near = self.builder.points_to_points(pos)
        return {"laplacian": _entries(chebyshev_support(near, pos.dtype))}

    def __call__(self, graphs: Graphs, cells: Sequence[Any]) -> Sequence[Support]:
        """The Laplacian of a batch, once for each cell."""
        graph = graphs.edges["laplacian"]
        return [Support(graph, graph.base_weight)] * len(cells)


@dataclass(frozen=True)
class DiffusionSupports:
    """Random walks among all pairs within a radius, the same for every cell.

    Along and against the edges they are one and the same, since a point is within the
    radius of all those that are within the radius of it.

    Args:
        builder: of that radius.
    """

    builder: GraphBuilder

    def connect(self, pos: Tensor) -> dict[str, BipartiteGraph]:
        """The walk at the points ``[n, d]`` of a sample."""
        near = self.builder.points_to_points(pos)
        return {"walk": _entries(diffusion_supports(near, pos.dtype)[0])}

    def __call__(
        self, graphs: Graphs, cells: Sequence[Any]
    ) -> Sequence[tuple[Support, Support]]:
        """The walks of a batch, once for each cell."""
        graph = graphs.edges["walk"]
        walk = Support(graph, graph.base_weight)
        return [(walk, walk)] * len(cells)


def _entries(support: Support) -> BipartiteGraph:
    """A graph whose weights are the entries of a matrix on it."""
    return replace(support.graph, base_weight=support.weight)


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
        self._filled = False

    def connect(self, pos: Tensor) -> dict[str, BipartiteGraph]:
        """No edges: the graph is learned.

        Raises:
            UserError: when a sample has other points than those that it was learned at.
        """
        known = self.mesh.to(pos)
        if len(pos) != len(known) or not (
            known.isnan().any() or torch.allclose(known, pos)
        ):
            raise UserError(
                "agcrn on another mesh",
                f"in every sample the {len(self.mesh)} points that it learned on, in "
                "their order",
                "observe all samples there, or train gcgru, dcrnn, mppde or nfs",
            )
        return {}

    def forward(self, graphs: Graphs, cells: Sequence[AdaptiveGRU]) -> Sequence[Tensor]:
        """The graph of each cell."""
        if not self._filled:
            if self.mesh.isnan().any():
                self.mesh.copy_(graphs.pos[: len(self.mesh)])
            self._filled = True
        return [cell.adjacency() for cell in cells]
