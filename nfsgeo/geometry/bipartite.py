"""Bipartite graphs from source points to target points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.moving_least_squares import moving_least_squares
from nfsgeo.geometry.nearest import nearest_neighbours, nearest_sources
from nfsgeo.geometry.polynomials import orthonormal_polynomials
from nfsgeo.geometry.query import RadiusQuery
from nfsgeo.geometry.radius import radius_edges
from nfsgeo.geometry.splines import polyharmonic_spline, spline_neighbours

__all__ = [
    "BipartiteGraph",
    "Interpolation",
    "SparseRows",
    "Transpose",
    "batch_graphs",
    "bipartite_graph",
]

logger = logging.getLogger(__name__)

Interpolation = Literal["mean", "linear", "quadratic", "spline"]

POLYNOMIAL_DEGREE: dict[Interpolation, int | None] = {
    "mean": None,
    "linear": 1,
    "quadratic": 2,
}

# A graph built while validating serves training too: it holds no inference tensors.
outside_inference = torch.inference_mode(False)


class Transpose(NamedTuple):
    """The edges of a graph, sorted by source.

    Attributes:
        permutation: Edge numbers ``[E]`` such that ``edge_index[:, permutation]`` is
            sorted by source and then target.
        ptr: Where each source's edges begin in ``permutation`` ``[n + 1]``.
    """

    permutation: Tensor
    ptr: Tensor


class SparseRows(NamedTuple):
    """Pattern of a sparse matrix, as libraries for these want it.

    Attributes:
        ptr: Where each row begins; int32 if there are not too many edges for it.
        column: Column of each entry, of the same type.
    """

    ptr: Tensor
    column: Tensor


@dataclass(eq=False)
class BipartiteGraph:
    """Edges from sources to targets in CSR form.

    Args:
        edge_index: Edges ``[2, E]``, int64, row 0 the source and row 1 the target,
            sorted by target and then source.
        ptr: Where each target's edges begin ``[m + 1]``.
        displacement: ``x_target - x_source`` of every edge to the nearest image,
            ``[E, d]``, float32, in the units of the coordinates.
        weight: Weights of a fixed interpolation ``[E]``, float64 where positions are
            and else float32; those of every target add up to 1.
        num_source: Number of sources ``n``.
        num_target: Number of targets ``m``.
        volume: How much of the domain every source stands for ``[n]``; None if all
            for as much.
    """

    edge_index: Tensor
    ptr: Tensor
    displacement: Tensor
    weight: Tensor
    num_source: int
    num_target: int
    volume: Tensor | None = None
    _kept: dict[Hashable, Tensor] = field(default_factory=dict, init=False)

    @property
    def num_edges(self) -> int:
        """Number of edges ``E``."""
        return self.edge_index.size(1)

    def degree(self) -> Tensor:
        """Number of edges of each target ``[m]``, int64."""
        return self.ptr.diff()

    def offset(self, dtype: torch.dtype) -> Tensor:
        """Displacements and their lengths ``[E, d + 1]``, computed once.

        Args:
            dtype: Of the result.
        """
        return self._once(("offset", dtype), lambda: self._offset(dtype))

    def share(self, dtype: torch.dtype) -> Tensor:
        """What every edge counts in a mean over its target's neighbours ``[E]``.

        In proportion to the volumes of the sources, where these are known: the mean is
        then that of an integral.

        Args:
            dtype: Of the result.
        """
        source, target = self.edge_index
        if self.volume is None:
            return self.degree().to(dtype).reciprocal().index_select(0, target)
        volume = self.volume.to(dtype)[source]
        total = volume.new_zeros(self.num_target).index_add(0, target, volume)
        return volume / total[target]

    def polynomials(self, degree: int) -> Tensor:
        """Polynomials of displacements ``[E, K]``, computed once for each degree.

        See :func:`~nfsgeo.geometry.orthonormal_polynomials`.
        """
        return self._once(
            ("polynomials", degree),
            lambda: orthonormal_polynomials(
                self.displacement,
                self.edge_index[1],
                self.share(torch.float64),
                self.num_target,
                degree,
            ),
        )

    def _once(self, name: Hashable, make: Callable[[], Tensor]) -> Tensor:
        if torch.compiler.is_compiling():
            return make()  # What stands for a tensor there must not be kept.
        if name not in self._kept:
            self._kept[name] = outside_inference(make)()
        return self._kept[name]

    def _offset(self, dtype: torch.dtype) -> Tensor:
        displacement = self.displacement.to(dtype)
        return torch.cat([displacement, displacement.norm(dim=1, keepdim=True)], dim=1)

    @cached_property
    @outside_inference
    def transpose(self) -> Transpose:
        """The edges sorted by source, computed once: backward passes need it."""
        source, permutation = self.edge_index[0].sort(stable=True)
        return Transpose(permutation, _ptr(source, self.num_source))

    @cached_property
    @outside_inference
    def csr(self) -> SparseRows:
        """Targets as rows and sources as columns, computed once."""
        return _sparse_rows(self.ptr, self.edge_index[0])

    @cached_property
    @outside_inference
    def transposed_csr(self) -> SparseRows:
        """Sources as rows and targets as columns, computed once."""
        order, ptr = self.transpose
        return _sparse_rows(ptr, self.edge_index[1].index_select(0, order))

    @outside_inference
    def to(self, device: torch.device | str) -> BipartiteGraph:
        """The same graph on ``device``; this one if it is there already."""
        if self.edge_index.device == torch.empty(0, device=device).device:
            return self
        graph = BipartiteGraph(
            self.edge_index.to(device),
            self.ptr.to(device),
            self.displacement.to(device),
            self.weight.to(device),
            self.num_source,
            self.num_target,
            None if self.volume is None else self.volume.to(device),
        )
        if "transpose" in self.__dict__:
            graph.transpose = Transpose(*(t.to(device) for t in self.transpose))
        return graph


@outside_inference
def bipartite_graph(
    source: Tensor,
    target: Tensor,
    radius: float,
    domain: Domain,
    *,
    source_batch: Tensor | None = None,
    target_batch: Tensor | None = None,
    backend: str = "auto",
    max_neighbours: int | None = None,
    interpolation: Interpolation = "mean",
    nearest: int | None = None,
    volume: Tensor | None = None,
) -> BipartiteGraph:
    """The radius graph, with no empty neighbourhood.

    A target without a source in its ball is joined to the nearest source of its
    sample (of several as near, the lowest index); their number is logged.

    Args:
        source: Source points ``[n, d]``.
        target: Target points ``[m, d]``.
        radius: Radius of the ball, in the units of the coordinates.
        domain: The box, with its periodic axes.
        source_batch: Sample of each source ``[n]``, sorted; none for one sample.
        target_batch: Sample of each target ``[m]``, sorted; given with the other.
        backend: As in :func:`~nfsgeo.geometry.radius_edges`.
        max_neighbours: As in :func:`~nfsgeo.geometry.radius_edges`.
        interpolation: The fixed interpolation: the ``mean`` of a neighbourhood, or
            one that is exact for ``linear`` or ``quadratic`` polynomials, see
            :func:`~nfsgeo.geometry.moving_least_squares`, or a ``spline``
            through the nearest points, see
            :func:`~nfsgeo.geometry.polyharmonic_spline`. With a spline these are
            neighbours as well, however far they are: the weights of others in the
            ball are 0.
        nearest: Neighbours of a spline; None for as many as scattered points need.
        volume: How much of the domain every source stands for ``[n]``; none if all
            for as much. See :func:`~nfsgeo.geometry.cell_volumes`.

    Raises:
        UserError, ValueError: As :func:`~nfsgeo.geometry.radius_edges`, and if a
            sample has targets but no source.
    """
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
    if interpolation == "spline":
        num = nearest or spline_neighbours(domain.dim)
        batches = (source_batch, target_batch)
        graph = _with_spline(edges, source, target, domain, *batches, num)
        graph.volume = None if volume is None else volume.to(edges.device)
        return graph
    counts = torch.bincount(edges[1], minlength=target.size(0))
    lonely = (counts == 0).nonzero().squeeze(1)
    if lonely.numel():
        logger.info(
            "%d of %d neighbourhoods were empty and widened to the nearest point",
            lonely.numel(),
            target.size(0),
        )
        query = RadiusQuery.create(
            source,
            target[lonely],
            radius,
            domain,
            source_batch,
            None if target_batch is None else target_batch[lonely],
            torch.device("cpu"),
        )
        found = nearest_sources(query).to(edges.device)
        edges = torch.cat([edges, torch.stack([found, lonely])], dim=1)
        edges = edges[:, edges[1].argsort(stable=True)]
    delta = domain.displacement(
        source.detach().to(torch.float64)[edges[0]],
        target.detach().to(torch.float64)[edges[1]],
    )
    ptr = _ptr(edges[1], target.size(0))
    degree = POLYNOMIAL_DEGREE[interpolation]
    if degree is None:
        weight = (1 / ptr.diff())[edges[1]]
    else:
        weight = moving_least_squares(delta, edges[1], target.size(0), radius, degree)
    return BipartiteGraph(
        edges,
        ptr,
        delta.to(torch.float32),
        weight.to(torch.promote_types(source.dtype, torch.float32)),
        source.size(0),
        target.size(0),
        None if volume is None else volume.to(edges.device),
    )


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
    away = domain.displacement(
        query.target[:, None].expand(*near.shape, -1), query.source[near]
    )
    found = polyharmonic_spline(away)
    # An edge's place in the order by target and then source.
    targets = torch.arange(target.size(0))[:, None].expand_as(near)
    splines = (targets * source.size(0) + near).flatten()
    ball = edges[1].cpu() * source.size(0) + edges[0].cpu()
    keys = torch.cat([splines, ball]).unique()
    weight = found.new_zeros(keys.numel())
    weight[torch.searchsorted(keys, splines)] = found.flatten()
    joined = torch.stack([keys % source.size(0), keys // source.size(0)])
    delta = domain.displacement(query.source[joined[0]], query.target[joined[1]])
    return BipartiteGraph(
        joined,
        _ptr(joined[1], target.size(0)),
        delta.to(torch.float32),
        weight.to(torch.promote_types(source.dtype, torch.float32)),
        source.size(0),
        target.size(0),
    ).to(edges.device)


@outside_inference
def batch_graphs(graphs: Sequence[BipartiteGraph]) -> BipartiteGraph:
    """One graph of several ``graphs``, sources and targets numbered on from each.

    Volumes are known of all of them, or of none.

    The transposes are joined likewise, so that each is sorted only once.
    """
    if len(graphs) == 1:
        return graphs[0]
    edges, displacements, weights, permutations = [], [], [], []
    ptrs, source_ptrs = [graphs[0].ptr[:1]], [graphs[0].ptr[:1]]
    num_source = num_target = num_edges = 0
    for graph in graphs:
        offset = graph.ptr.new_tensor([[num_source], [num_target]])
        edges.append(graph.edge_index + offset)
        displacements.append(graph.displacement)
        weights.append(graph.weight)
        permutations.append(graph.transpose.permutation + num_edges)
        ptrs.append(graph.ptr[1:] + num_edges)
        source_ptrs.append(graph.transpose.ptr[1:] + num_edges)
        num_source += graph.num_source
        num_target += graph.num_target
        num_edges += graph.num_edges
    volumes = [graph.volume for graph in graphs if graph.volume is not None]
    joined = BipartiteGraph(
        torch.cat(edges, dim=1),
        torch.cat(ptrs),
        torch.cat(displacements),
        torch.cat(weights),
        num_source,
        num_target,
        torch.cat(volumes) if volumes else None,
    )
    joined.transpose = Transpose(torch.cat(permutations), torch.cat(source_ptrs))
    return joined


def _sparse_rows(ptr: Tensor, column: Tensor) -> SparseRows:
    # Given anything longer, MKL gets a copy that is made for every product.
    fits = max(column.numel(), ptr.numel()) < 2**31
    kind = torch.int32 if fits else torch.int64
    return SparseRows(ptr.to(kind), column.to(kind))


def _ptr(sorted_index: Tensor, size: int) -> Tensor:
    counts = torch.bincount(sorted_index, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
