"""The graphs of one sample: between its points and a grid, and among its points."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nfsgeo.geometry.bipartite import BipartiteGraph
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.quadrature import quadrature_weights
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
        quadrature: Whether means over points take quadrature weights, see
            :func:`~nfsgeo.geometry.quadrature_weights`.
        ball_to_grid: Whether the nodes of a grid have neighbours within the radius; if
            not, only those of a spline.
    """

    domain: Domain
    radius: float
    backend: str = "auto"
    max_neighbours: int | None = None
    interpolation: Interpolation = "mean"
    quadrature: bool = False
    ball_to_grid: bool = True

    def points_to_grid(self, pos: Tensor, grid: Tensor) -> BipartiteGraph:
        """Points ``pos [n, d]`` to the nodes of a ``grid [m, d]``.

        Raises:
            ValueError: If there is no point, and as
                :func:`~nfsgeo.geometry.bipartite_graph` does.
        """
        if not len(pos):
            raise ValueError("no point; expected at least one; leave the sample out")
        radius = self.radius if self.ball_to_grid else None
        # The nodes of a grid have equal quadrature weights; points do not.
        weights = quadrature_weights(pos, self.domain) if self.quadrature else None
        return self._graph(pos, grid, radius, weights=weights)

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
        radius: float | None,
        *,
        nearest: int | None = None,
        weights: Tensor | None = None,
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
            quadrature_weights=weights,
        )
