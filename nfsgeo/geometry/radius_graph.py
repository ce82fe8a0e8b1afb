"""Radius graphs between points, and their base interpolation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from nfsgeo.geometry.bipartite import (
    BipartiteGraph,
    batch_graphs,
    outside_inference,
    pointers,
)
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.graphs import by_sample
from nfsgeo.geometry.search import Search
from nfsgeo.geometry.splines import (
    moving_least_squares,
    polyharmonic_spline,
    spline_neighbours,
)

__all__ = [
    "GraphBuilder",
    "Interpolation",
    "bipartite_graph",
    "nearest_neighbour_graph",
]

logger = logging.getLogger(__name__)

Interpolation = Literal["mean", "linear", "quadratic", "spline"]

POLYNOMIAL_DEGREE: dict[Interpolation, int] = {"linear": 1, "quadratic": 2}


@outside_inference
def bipartite_graph(
    source: Tensor,
    target: Tensor,
    radius: float | None,
    domain: Domain,
    *,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
    backend: str = "auto",
    interpolation: Interpolation = "mean",
    nearest: int | None = None,
) -> BipartiteGraph:
    """Make a radius graph without empty neighbourhoods.

    A target without a source in its ball is joined to the nearest source of its sample;
    the number of such targets is logged. Walls separate neighbours. A target that sees
    no source takes the nearest source of the nearest target that does, and so on around
    corners. A target in an obstacle, or cut off from all sources, has no neighbours.

    If positions require gradients and gradients are recorded, the displacements and
    base weights have first and second derivatives, for fixed neighbours. Where a target
    coincides with a source, the derivatives of a spline are those nearby.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates; with a spline,
            None for the k nearest neighbours only.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; None for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.
        backend: Backend of the search, see :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: The base interpolation: the ``mean`` of a neighbourhood, moving
            least squares that are exact for ``linear`` or ``quadratic`` polynomials,
            see :func:`~nfsgeo.geometry.moving_least_squares`, or a local polyharmonic
            ``spline`` on the k nearest neighbours, see
            :func:`~nfsgeo.geometry.polyharmonic_spline`. The latter are neighbours even
            outside the ball; other points in the ball have weight 0.
        nearest: The number k of a spline; None for as many as scattered points need.

    Raises:
        UserError: See :func:`~nfsgeo.geometry.radius_edges`.
        ValueError: Likewise, and if a sample has targets but no source, or the radius
            is None without a spline.
    """
    if interpolation not in get_args(Interpolation):
        choices = ", ".join(get_args(Interpolation))
        raise ValueError(f"interpolation {interpolation!r}; expected one of {choices}")
    if radius is None and interpolation != "spline":
        raise ValueError(
            f"no radius with interpolation {interpolation}; expected a spline, which "
            "has its own neighbours; give a radius"
        )
    if not torch.is_grad_enabled():
        source, target = source.detach(), target.detach()
    samples = _samples(source, target, source_batch, target_batch)
    return batch_graphs(
        [
            _sample_graph(
                sources, targets, radius, domain, backend, interpolation, nearest
            )
            for sources, targets in samples
        ]
    )


@outside_inference
def nearest_neighbour_graph(
    source: Tensor,
    target: Tensor,
    num: int,
    domain: Domain,
    *,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
) -> BipartiteGraph:
    """Join each target to the ``num`` nearest sources of its sample.

    A source at a target is one of them. All sources at the place of the last one are
    neighbours, too, so that the order of the points does not matter. The base
    interpolation is the mean. If positions require gradients and gradients are
    recorded, displacements have derivatives, for fixed neighbours. Walls separate
    neighbours.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        num: Neighbours of a target; all sources if there are fewer.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; None for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.

    Raises:
        UserError: If a point is outside the domain or not a number.
        ValueError: If there is one batch vector without the other, or it is not sorted,
            or if a sample has targets but no source.
    """
    samples = _samples(source, target, source_batch, target_batch)
    return batch_graphs([_nearest_graph(*ends, num, domain) for ends in samples])


def _samples(
    source: Tensor, target: Tensor, *batches: Tensor | None
) -> list[tuple[Tensor, Tensor]]:
    """Split sources and targets by sample, each with a source."""
    samples = by_sample(source, target, *batches)
    if any(len(points) and not len(sources) for sources, points in samples):
        raise ValueError(
            "a sample without a source: expected at least one source in every sample; "
            "add points or drop the sample"
        )
    return samples


def _nearest_graph(
    source: Tensor, target: Tensor, num: int, domain: Domain
) -> BipartiteGraph:
    """Make the graph of :func:`nearest_neighbour_graph` for one sample."""
    # Rounding to float32 must not choose among sources as far.
    search = Search(source, target, domain)
    near = search.nearest(num, same=1e-5, whole_places=True).to(source.device)
    exists = near >= 0
    edges = torch.stack([near[exists], exists.nonzero()[:, 0]])
    ends = source, target
    if not any(end.requires_grad and torch.is_grad_enabled() for end in ends):
        ends = source.detach().double(), target.detach().double()
    graph = BipartiteGraph.from_edges(edges, ends, domain)
    if not graph.differentiable:
        graph.displacement = graph.displacement.to(source.dtype)
        graph.base_weight = graph.base_weight.to(source.dtype)
    return graph


@dataclass(frozen=True)
class GraphBuilder:
    """Makes the graphs between the points, grid and query points of a sample.

    Args:
        domain: The box, with its periodic axes.
        radius: Radius of every ball, in the units of the coordinates.
        interpolation: Base interpolation, see
            :func:`~nfsgeo.geometry.bipartite_graph`.
        ball_to_grid: Whether nodes of a grid have all points within the radius as
            neighbours; if not, only those of a spline.
        ball_from_grid: Whether points have all nodes within the radius, likewise.
    """

    domain: Domain
    radius: float
    interpolation: Interpolation = "mean"
    ball_to_grid: bool = True
    ball_from_grid: bool = True

    def points_to_grid(self, pos: Tensor, grid: Tensor) -> BipartiteGraph:
        """Return the graph from points ``[n, d]`` to nodes of a grid ``[m, d]``."""
        return self._graph(pos, grid, ball=self.ball_to_grid)

    def grid_to_points(self, grid: Tensor, pos: Tensor) -> BipartiteGraph:
        """Return the graph from nodes of a grid ``[m, d]`` to points ``[n, d]``."""
        num = spline_neighbours(self.domain, on_grid=True)
        return self._graph(grid, pos, ball=self.ball_from_grid, nearest=num)

    def points_to_queries(self, pos: Tensor, query_pos: Tensor) -> BipartiteGraph:
        """Return the graph from points ``[n, d]`` to query points ``[m, d]``."""
        return self._graph(pos, query_pos, ball=self.interpolation != "spline")

    def points_to_points(self, pos: Tensor) -> BipartiteGraph:
        """Return the graph among points ``[n, d]``, with self-loops."""
        # The spline at a point is the value there, or the mean of all values there.
        return self._graph(pos, pos, ball=True, nearest=1)

    def _graph(
        self, source: Tensor, target: Tensor, ball: bool, nearest: int | None = None
    ) -> BipartiteGraph:
        return bipartite_graph(
            source,
            target,
            self.radius if ball else None,
            self.domain,
            interpolation=self.interpolation,
            nearest=nearest,
        )


def _sample_graph(
    source: Tensor,
    target: Tensor,
    radius: float | None,
    domain: Domain,
    backend: str,
    interpolation: Interpolation,
    nearest: int | None,
) -> BipartiteGraph:
    """Make the :func:`bipartite_graph` of one sample."""
    search = Search(source, target, domain)
    edges = torch.empty(2, 0, dtype=torch.int64)
    if radius is not None:
        edges = search.within(radius, backend)
    if interpolation == "spline":
        num = nearest or spline_neighbours(domain)
        near = search.nearest(num, whole_places=True)
        edges, weight = _with_splines(edges, near, source, target, domain)
    else:
        edges = widened(edges, search)
    edges = edges.to(source.device)
    precise = source.double()[edges[0]], target.double()[edges[1]]
    delta = domain.displacement(*precise)
    if interpolation == "mean":
        weight = (1 / torch.bincount(edges[1], minlength=len(target)))[edges[1]]
    elif interpolation != "spline":
        assert radius is not None
        served, place = edges[1].unique(return_inverse=True)
        flat = domain.tangent(*precise[::-1]) if domain.curved else delta
        degree = POLYNOMIAL_DEGREE[interpolation]
        weight = moving_least_squares(flat, place, len(served), radius, degree)
    return BipartiteGraph(
        edges,
        pointers(edges[1], len(target)),
        delta if delta.requires_grad else delta.float(),
        weight.to(source.device, torch.promote_types(source.dtype, torch.float32)),
        len(source),
        len(target),
    )


def widened(edges: Tensor, search: Search) -> Tensor:
    """Add an edge from the nearest source to each target without an edge."""
    num = len(search.target)
    empty = torch.bincount(edges[1], minlength=num) == 0
    if not empty.any():
        return edges
    logger.info(
        "%d of %d neighbourhoods were empty and widened to the nearest point",
        int(empty.sum()),
        num,
    )
    # A target behind a corner takes the source of another target.
    asking = empty if search.domain.walls is None else torch.ones_like(empty)
    empty_search = search.among(search.source, search.target[asking])
    nearest = empty_search.nearest(1, whole_places=True)
    targets = asking.nonzero().expand_as(nearest)
    exists = empty[asking][:, None] & (nearest >= 0)
    added = torch.stack([nearest[exists], targets[exists]])
    edges = torch.cat([edges, added], dim=1)
    return edges[:, edges[1].argsort(stable=True)]


def _with_splines(
    edges: Tensor, near: Tensor, source: Tensor, target: Tensor, domain: Domain
) -> tuple[Tensor, Tensor]:
    """Add the neighbours of splines to edges, and return their weights, too.

    Other edges have weight 0.
    """
    # The positions of the search have no gradients.
    here = target.cpu().double()[:, None].expand(*near.shape, -1)
    away = domain.tangent(here, source.cpu().double()[near])
    counts = (near >= 0).sum(1)
    splines = away.new_zeros(near.shape)
    for count in counts[counts > 0].unique().tolist():
        rows = (counts == count).nonzero()
        solved = polyharmonic_spline(away[rows.squeeze(1), :count])
        splines = splines.index_put((rows, torch.arange(count)), solved)
    # Keys that sort edges by target and then source.
    size = max(1, len(source))
    place = (torch.arange(len(target))[:, None] * size + near)[near >= 0]
    keys = torch.cat([place, edges[1] * size + edges[0]]).unique()
    weight = splines.new_zeros(len(keys))
    weight = weight.index_put((torch.searchsorted(keys, place),), splines[near >= 0])
    return torch.stack([keys % size, keys // size]), weight
