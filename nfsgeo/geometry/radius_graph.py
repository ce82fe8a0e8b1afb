"""Radius graphs between points, and their base interpolation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from nfsgeo.geometry.bipartite import BipartiteGraph
from nfsgeo.geometry.csr import outside_inference, pointers
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.moving_least_squares import moving_least_squares
from nfsgeo.geometry.nearest import nearest_neighbours, nearest_sources
from nfsgeo.geometry.quadrature import quadrature_weights as voronoi_weights
from nfsgeo.geometry.query import RadiusQuery
from nfsgeo.geometry.radius import radius_edges
from nfsgeo.geometry.splines import polyharmonic_spline, spline_neighbours

__all__ = ["GraphBuilder", "Interpolation", "bipartite_graph"]

logger = logging.getLogger(__name__)

Interpolation = Literal["mean", "linear", "quadratic", "spline"]

POLYNOMIAL_DEGREE: dict[Interpolation, int | None] = {
    "mean": None,
    "linear": 1,
    "quadratic": 2,
}


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
    max_neighbours: int | None = None,
    interpolation: Interpolation = "mean",
    nearest: int | None = None,
    quadrature_weights: Tensor | None = None,
) -> BipartiteGraph:
    """The radius graph, with no empty neighbourhood.

    A target without a source in its ball is joined to the nearest source of its
    sample (of equally near ones, to that of the lowest index); their number is logged.
    In a domain with a region, neighbours see each other, and a target in an obstacle or
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
        max_neighbours: As in :func:`~nfsgeo.geometry.radius_edges`.
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
            max_neighbours=max_neighbours,
        )
    ends, batches = (source, target), (source_batch, target_batch)
    if interpolation == "spline":
        num = nearest or spline_neighbours(domain.intrinsic_dim)
        graph = _with_spline(edges, *ends, domain, *batches, num)
    else:
        assert radius is not None
        degree = POLYNOMIAL_DEGREE[interpolation]
        graph = _with_mean(edges, *ends, radius, domain, *batches, degree)
    if quadrature_weights is not None:
        graph.quadrature_weights = quadrature_weights.to(edges.device)
    return graph


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
        ball_from_grid: The same for points among the nodes of a grid.
    """

    domain: Domain
    radius: float
    backend: str = "auto"
    max_neighbours: int | None = None
    interpolation: Interpolation = "mean"
    quadrature: bool = False
    ball_to_grid: bool = True
    ball_from_grid: bool = True

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
        weights = voronoi_weights(pos, self.domain) if self.quadrature else None
        return self._graph(pos, grid, radius, weights=weights)

    def grid_to_points(self, grid: Tensor, pos: Tensor) -> BipartiteGraph:
        """The nodes of a ``grid [m, d]`` to points ``pos [n, d]``."""
        nearest = spline_neighbours(self.domain.intrinsic_dim, on_grid=True)
        radius = self.radius if self.ball_from_grid else None
        return self._graph(grid, pos, radius, nearest=nearest)

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


def _with_mean(
    edges: Tensor,
    source: Tensor,
    target: Tensor,
    radius: float,
    domain: Domain,
    source_batch: Tensor | None,
    target_batch: Tensor | None,
    degree: int | None,
) -> BipartiteGraph:
    """The radius graph, empty balls widened; exact for polynomials of a ``degree``."""
    counts = torch.bincount(edges[1], minlength=target.size(0))
    lonely = (counts == 0).nonzero().squeeze(1)
    if lonely.numel():
        logger.info(
            "%d of %d neighbourhoods were empty and widened to the nearest point",
            lonely.numel(),
            target.size(0),
        )
        # Behind a corner, a target takes what others see.
        all_of_them = torch.arange(target.size(0), device=lonely.device)
        asking = lonely if domain.region is None else all_of_them
        query = RadiusQuery.create(
            source,
            target[asking],
            radius,
            domain,
            source_batch,
            None if target_batch is None else target_batch[asking],
            torch.device("cpu"),
        )
        found = nearest_sources(query).to(edges.device)
        added = torch.stack([found, asking])
        added = added[:, (counts[asking] == 0) & (found >= 0)]
        edges = torch.cat([edges, added], dim=1)
        edges = edges[:, edges[1].argsort(stable=True)]
    delta = _displacement(source, target, edges, domain)
    if degree is None:
        weight = (1 / torch.bincount(edges[1], minlength=target.size(0)))[edges[1]]
    else:
        served, place = edges[1].unique(return_inverse=True)
        flat = delta
        if domain.curved:
            ends = target.double()[edges[1]], source.double()[edges[0]]
            flat = domain.tangent(*ends)
        weight = moving_least_squares(flat, place, len(served), radius, degree)
    return _graph(edges, delta, weight, source, target)


def _with_spline(
    edges: Tensor,
    source: Tensor,
    target: Tensor,
    domain: Domain,
    source_batch: Tensor | None,
    target_batch: Tensor | None,
    num: int,
) -> BipartiteGraph:
    """The radius graph and the nearest neighbours, which alone have weights."""
    query = RadiusQuery.create(
        source, target, 1.0, domain, source_batch, target_batch, torch.device("cpu")
    )
    size = int(query.source_ptr().diff().min())
    if size == 0 and target.size(0):
        raise ValueError(
            "a sample without a source: expected at least one source in every sample; "
            "add points or drop the sample"
        )
    near = nearest_neighbours(query, min(size, num))
    # Of the positions themselves: those of the search have no gradients.
    precise = source.cpu().double(), target.cpu().double()
    away = domain.tangent(precise[1][:, None].expand(*near.shape, -1), precise[0][near])
    found = _splines(away, (near >= 0).sum(1))
    # An edge's place in the order by target and then source.
    targets = torch.arange(target.size(0))[:, None].expand_as(near)
    splines = (targets * source.size(0) + near)[near >= 0]
    found = found[near >= 0]
    ball = edges[1].cpu() * source.size(0) + edges[0].cpu()
    keys = torch.cat([splines, ball]).unique()
    weight = found.new_zeros(keys.numel())
    weight = weight.index_put((torch.searchsorted(keys, splines),), found)
    joined = torch.stack([keys % source.size(0), keys // source.size(0)])
    delta = _displacement(*precise, joined, domain)
    return _graph(joined, delta, weight, source, target).to(edges.device)


def _splines(displacement: Tensor, counts: Tensor) -> Tensor:
    """Weights ``[m, k]`` of the splines through the first neighbours of each target.

    Args:
        displacement: from the target to each of ``k`` neighbours ``[m, k, d]``.
        counts: how many of these it has ``[m]``.
    """
    weight = displacement.new_zeros(displacement.shape[:2])
    for count in counts[counts > 0].unique().tolist():
        rows = (counts == count).nonzero()
        found = polyharmonic_spline(displacement[rows.squeeze(1), :count])
        weight = weight.index_put((rows, torch.arange(count)), found)
    return weight


def _displacement(
    source: Tensor, target: Tensor, edges: Tensor, domain: Domain
) -> Tensor:
    """From source to target of every edge ``[E, d]``, float64."""
    ends = source.to(torch.float64)[edges[0]], target.to(torch.float64)[edges[1]]
    return domain.displacement(*ends)


def _graph(
    edges: Tensor, displacement: Tensor, weight: Tensor, source: Tensor, target: Tensor
) -> BipartiteGraph:
    if not displacement.requires_grad:
        displacement = displacement.to(torch.float32)
    return BipartiteGraph(
        edges,
        pointers(edges[1], target.size(0)),
        displacement,
        weight.to(torch.promote_types(source.dtype, torch.float32)),
        source.size(0),
        target.size(0),
    )
