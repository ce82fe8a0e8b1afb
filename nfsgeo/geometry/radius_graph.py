"""Radius graphs between points, and their base interpolation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from nfsgeo.geometry.bipartite import BipartiteGraph
from nfsgeo.geometry.csr import outside_inference, pointers
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.moving_least_squares import moving_least_squares
from nfsgeo.geometry.nearest import nearest_neighbours
from nfsgeo.geometry.quadrature import quadrature_weights as voronoi_weights
from nfsgeo.geometry.query import RadiusQuery
from nfsgeo.geometry.radius import radius_edges
from nfsgeo.geometry.splines import polyharmonic_spline, spline_neighbours

__all__ = ["GraphBuilder", "Interpolation", "bipartite_graph"]

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
    quadrature_weights: Tensor | None = None,
) -> BipartiteGraph:
    """The radius graph, with no empty neighbourhood.

    A target without a source in its ball is joined to the nearest source of its sample;
    their number is logged.
    In a domain with walls, neighbours see each other, and a target in an obstacle or
    closed off from all sources has none; see :mod:`nfsgeo.geometry.nearest`.

    If positions require gradients, and gradients are recorded, the displacements and
    the weights of the base interpolation of the graph carry them: first and second
    derivatives for fixed neighbours. Where a target coincides with a source, those of
    the spline are its derivatives nearby.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates; None, with a spline
            alone, for its k nearest neighbours only.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; none for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.
        backend: As in :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: The base interpolation: the ``mean`` of a neighbourhood, moving
            least squares that are exact for ``linear`` or ``quadratic`` polynomials,
            see :func:`~nfsgeo.geometry.moving_least_squares`, or a local polyharmonic
            ``spline`` on the k nearest neighbours, see
            :func:`~nfsgeo.geometry.polyharmonic_spline`. These are then neighbours
            wherever they lie, and the weights of other points in the ball are 0.
        nearest: The number k for a spline; None for as many as scattered points need.
        quadrature_weights: Those of the sources ``[n]``, see
            :func:`~nfsgeo.geometry.quadrature_weights`; None if they are equal.

    Raises:
        UserError, ValueError: As :func:`~nfsgeo.geometry.radius_edges`, and if a
            sample has targets but no source, the radius is None without a spline, or
            there are quadrature weights of sources that require gradients.
    """
    if radius is None and interpolation != "spline":
        raise ValueError(
            f"no radius with interpolation {interpolation}; expected a spline, which "
            "has its own neighbours; give a radius"
        )
    if not torch.is_grad_enabled():
        source, target = source.detach(), target.detach()
    if quadrature_weights is not None and source.requires_grad:
        raise ValueError(
            "quadrature weights of sources that require gradients; expected constant "
            "sources: Voronoi volumes are not differentiated; leave the weights out, "
            "or detach the sources"
        )
    batches = source_batch, target_batch
    query = RadiusQuery.create(source, target, domain, radius or 1.0, batches)
    if ((query.target_ptr().diff() > 0) & (query.source_ptr().diff() == 0)).any():
        raise ValueError(
            "a sample without a source: expected at least one source in every sample; "
            "add points or drop the sample"
        )
    edges = torch.empty(2, 0, dtype=torch.int64, device=source.device)
    if radius is not None:
        edges = radius_edges(
            source,
            target,
            radius,
            domain,
            source_batch=source_batch,
            target_batch=target_batch,
            backend=backend,
        )
    if interpolation == "spline":
        num = nearest or spline_neighbours(domain.intrinsic_dim)
        edges, weight = _with_splines(edges, query, source, target, domain, num)
    else:
        edges = _widened(edges, query)
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
        weight.to(torch.promote_types(source.dtype, torch.float32)),
        len(source),
        len(target),
        None if quadrature_weights is None else quadrature_weights.to(edges.device),
    )


@dataclass(frozen=True)
class GraphBuilder:
    """How the points of a sample are joined. Every method is a function of positions.

    Args:
        domain: The box, with its periodic axes.
        radius: Radius of every ball, in the units of the coordinates.
        backend: As in :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: As in :func:`~nfsgeo.geometry.bipartite_graph`.
        quadrature: Whether means over points take quadrature weights, see
            :func:`~nfsgeo.geometry.quadrature_weights`.
        ball_to_grid: Whether the nodes of a grid have neighbours within the radius; if
            not, only those of a spline.
        ball_from_grid: The same for points among the nodes of a grid.
    """

    domain: Domain
    radius: float
    backend: str = "auto"
    interpolation: Interpolation = "mean"
    quadrature: bool = False
    ball_to_grid: bool = True
    ball_from_grid: bool = True

    def points_to_grid(self, pos: Tensor, grid: Tensor) -> BipartiteGraph:
        """Points ``pos [n, d]`` to the nodes of a ``grid [m, d]``.

        Raises:
            UserError, ValueError: As :func:`~nfsgeo.geometry.bipartite_graph`.
        """
        # The nodes of a grid have equal quadrature weights; points do not.
        weights = voronoi_weights(pos, self.domain) if self.quadrature else None
        radius = self.radius if self.ball_to_grid else None
        return self._graph(pos, grid, radius, quadrature_weights=weights)

    def grid_to_points(self, grid: Tensor, pos: Tensor) -> BipartiteGraph:
        """The nodes of a ``grid [m, d]`` to points ``pos [n, d]``."""
        nearest = spline_neighbours(self.domain.intrinsic_dim, on_grid=True)
        radius = self.radius if self.ball_from_grid else None
        return self._graph(grid, pos, radius, nearest=nearest)

    def points_to_queries(self, pos: Tensor, query_pos: Tensor) -> BipartiteGraph:
        """The nearest of the points ``pos [n, d]`` to ``query_pos [m, d]``."""
        num = spline_neighbours(self.domain.intrinsic_dim) // 2
        graph = replace(self, interpolation="spline")._graph
        return graph(pos, query_pos, None, nearest=num)

    def points_to_points(self, pos: Tensor) -> BipartiteGraph:
        """Points ``pos [n, d]`` to each other, themselves included."""
        # Every point has its own value.
        return self._graph(pos, pos, self.radius, nearest=1)

    @property
    def _graph(self) -> Callable[..., BipartiteGraph]:
        return partial(
            bipartite_graph,
            domain=self.domain,
            backend=self.backend,
            interpolation=self.interpolation,
        )


def _widened(edges: Tensor, query: RadiusQuery) -> Tensor:
    """The edges, and one from the nearest source to each target that had none."""
    num = len(query.target)
    empty = torch.bincount(edges[1], minlength=num).cpu() == 0
    if not empty.any():
        return edges
    logger.info(
        "%d of %d neighbourhoods were empty and widened to the nearest point",
        int(empty.sum()),
        num,
    )
    # Behind a corner, a target takes what others see.
    alone = query.domain.walls is None
    asking = torch.arange(num)[empty] if alone else torch.arange(num)
    batch = query.target_batch[asking]
    some = replace(query, target=query.target[asking], target_batch=batch)
    found = nearest_neighbours(some, 1)[:, 0]
    added = torch.stack([found, asking])[:, empty[asking] & (found >= 0)]
    edges = torch.cat([edges, added.to(edges.device)], dim=1)
    return edges[:, edges[1].argsort(stable=True)]


def _with_splines(
    edges: Tensor,
    query: RadiusQuery,
    source: Tensor,
    target: Tensor,
    domain: Domain,
    num: int,
) -> tuple[Tensor, Tensor]:
    """The edges with those of the nearest neighbours, which alone have weights."""
    near = nearest_neighbours(query, min(int(query.source_ptr().diff().min()), num))
    # Of the positions themselves: those of the search have no gradients.
    here = target.cpu().double()[:, None].expand(*near.shape, -1)
    away = domain.tangent(here, source.cpu().double()[near])
    counts = (near >= 0).sum(1)
    splines = away.new_zeros(near.shape)
    for count in counts[counts > 0].unique().tolist():
        rows = (counts == count).nonzero()
        found = polyharmonic_spline(away[rows.squeeze(1), :count])
        splines = splines.index_put((rows, torch.arange(count)), found)
    # An edge's place in the order by target and then source.
    place = (torch.arange(len(target))[:, None] * len(source) + near)[near >= 0]
    ball = edges[1].cpu() * len(source) + edges[0].cpu()
    keys = torch.cat([place, ball]).unique()
    weight = splines.new_zeros(len(keys))
    weight = weight.index_put((torch.searchsorted(keys, place),), splines[near >= 0])
    union = torch.stack([keys % len(source), keys // len(source)])
    return union.to(edges.device), weight.to(edges.device)
