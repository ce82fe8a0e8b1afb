"""Interpolation of scattered data without anything learned."""

from __future__ import annotations

from torch import Tensor

from nfsgeo.geometry import Domain, bipartite_graph, radius_for
from nfsgeo.nn.neighbour_sum import neighbour_sum

__all__ = ["interpolate"]

# Enough neighbours for a parabola almost everywhere, c in E|N| = c log n.
NEIGHBOURS = 2.3


def interpolate(
    x: Tensor,
    pos: Tensor,
    query_pos: Tensor,
    domain: Domain,
    *,
    batch: Tensor | None = None,
    query_batch: Tensor | None = None,
) -> Tensor:
    """Values of scattered fields at other points, by moving least squares.

    Exact for quadratic fields where neighbours surround a query; see
    :func:`nfsgeo.geometry.moving_least_squares`.

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
    num_samples = 1 if batch is None else int(batch[-1]) + 1
    graph = bipartite_graph(
        pos,
        query_pos,
        radius_for(max(2, len(pos) // num_samples), domain, NEIGHBOURS),
        domain,
        source_batch=batch,
        target_batch=query_batch,
        interpolation="quadratic",
    )
    values = neighbour_sum(x.flatten(1)[None], graph.weight.to(x.dtype)[None], graph)
    return values[0].unflatten(1, x.shape[1:])
