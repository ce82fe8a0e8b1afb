"""The graphs of one sample: between its points and a grid, and among its points."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nfsgeo.geometry.bipartite import BipartiteGraph
from nfsgeo.geometry.cells import cell_volumes
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.radius_graph import Interpolation, bipartite_graph
from nfsgeo.geometry.splines import spline_neighbours

__all__ = ["GraphBuilder"]


@dataclass(frozen=True)
class GraphBuilder:
    """How the points of a sample are joined. Every method is a function of positions.

    Args:
        domain: The box, with its periodic axes.
        radius: Radius of every ball, in the units of the coordinates.
        backend: As in :func:`~nfsgeo.geometry.radius_edges`.
        max_neighbours: As in :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: As in :func:`~nfsgeo.geometry.bipartite_graph`.
        cells: Whether means over points are taken by the volumes of their cells, see
            :func:`~nfsgeo.geometry.cell_volumes`.
        to_grid_radius: Radius of the balls around the nodes of a grid; None for
            ``radius``.
    """

    domain: Domain
    radius: float
    backend: str = "auto"
    max_neighbours: int | None = None
    interpolation: Interpolation = "mean"
    cells: bool = False
    to_grid_radius: float | None = None

    def points_to_grid(self, pos: Tensor, grid: Tensor) -> BipartiteGraph:
        """Points ``pos [n, d]`` to the nodes of a ``grid [m, d]``.

        Raises:
            ValueError: If there is no point, and as
                :func:`~nfsgeo.geometry.bipartite_graph` does.
        """
        if not len(pos):
            raise ValueError("no point; expected at least one; leave the sample out")
        radius = self.radius if self.to_grid_radius is None else self.to_grid_radius
        # The cells of a grid's nodes are alike; those of points are not.
        volume = cell_volumes(pos, self.domain) if self.cells else None
        return self._graph(pos, grid, radius, volume=volume)

    def grid_to_points(self, grid: Tensor, pos: Tensor) -> BipartiteGraph:
        """The nodes of a ``grid [m, d]`` to points ``pos [n, d]``."""
        nearest = spline_neighbours(self.domain.dim, on_grid=True)
        return self._graph(grid, pos, self.radius, nearest=nearest)

    def points_to_points(self, pos: Tensor) -> BipartiteGraph:
        """Points ``pos [n, d]`` to each other, themselves included."""
        # Every point has its own value.
        return self._graph(pos, pos, self.radius, nearest=1)

    def _graph(
        self,
        source: Tensor,
        target: Tensor,
        radius: float,
        *,
        nearest: int | None = None,
        volume: Tensor | None = None,
    ) -> BipartiteGraph:
        return bipartite_graph(
            source,
            target,
            radius,
            self.domain,
            backend=self.backend,
            max_neighbours=self.max_neighbours,
            interpolation=self.interpolation,
            nearest=nearest,
            volume=volume,
        )
