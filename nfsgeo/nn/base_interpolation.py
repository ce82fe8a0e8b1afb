"""Interpolation of scattered data without learned parameters."""

from __future__ import annotations

from torch import Tensor

from nfsgeo.errors import check_shape
from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph
from nfsgeo.nn.neighbour_sums import neighbour_sum

__all__ = ["interpolate", "interpolate_along", "spline_graph"]


def interpolate(
    x: Tensor,
    pos: Tensor,
    query_pos: Tensor,
    domain: Domain,
    *,
    batch: Tensor | None = None,
    query_batch: Tensor | None = None,
) -> Tensor:
    """Interpolate scattered fields to query points by local polyharmonic splines.

    The result is exact for quadratic fields where neighbours surround a query; see
    :func:`nfsgeo.geometry.polyharmonic_spline`.

    Args:
        x: fields at the points, ``[N, T, F]``.
        pos: positions of the points, ``[N, d]``.
        query_pos: positions of the queries, ``[M, d]``.
        domain: the box, with its periodic axes.
        batch: sample of each point, ``[N]``, sorted; ``None`` for one sample.
        query_batch: sample of each query, ``[M]``, sorted; given with the other.

    Returns:
        ``[M, T, F]``.
    """
    if x.dim() != 3 or len(x) != len(pos):
        check_shape("x", x, len(pos), "T", "F")
    graph = bipartite_graph(
        pos,
        query_pos,
        None,
        domain,
        source_batch=batch,
        target_batch=query_batch,
        interpolation="spline",
    )
    return interpolate_along(x, graph)


def interpolate_along(x: Tensor, graph: BipartiteGraph) -> Tensor:
    """Apply the base interpolation of a graph, ``[n, T, F]`` to ``[m, T, F]``."""
    weight = graph.base_weight.to(x.dtype)
    values = neighbour_sum(x.flatten(1)[None], weight[None], graph)
    return values[0].unflatten(1, x.shape[1:])


def spline_graph(pos: Tensor, query_pos: Tensor, domain: Domain) -> BipartiteGraph:
    """Make the graph of :func:`interpolate` for one sample."""
    return bipartite_graph(pos, query_pos, None, domain, interpolation="spline")
