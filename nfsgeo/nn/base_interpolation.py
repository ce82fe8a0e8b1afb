"""Interpolation of scattered data without anything learned."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, bipartite_graph
from nfsgeo.nn.neighbour_sum import neighbour_sum

__all__ = ["gaussian_means", "interpolate", "interpolate_along", "spline_graph"]


def interpolate(
    x: Tensor,
    pos: Tensor,
    query_pos: Tensor,
    domain: Domain,
    *,
    batch: Tensor | None = None,
    query_batch: Tensor | None = None,
) -> Tensor:
    """Values of scattered fields at other points, by local polyharmonic splines.

    Exact for quadratic fields where neighbours surround a query; see
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
    graph = spline_graph(pos, query_pos, domain, batch=batch, query_batch=query_batch)
    return interpolate_along(x, graph)


def interpolate_along(x: Tensor, graph: BipartiteGraph) -> Tensor:
    """Fields at the targets of a graph by its base interpolation: ``[m, T, F]``."""
    weight = graph.base_weight.to(x.dtype)
    values = neighbour_sum(x.flatten(1)[None], weight[None], graph)
    return values[0].unflatten(1, x.shape[1:])


def gaussian_means(
    x: Tensor, graph: BipartiteGraph, sharpness: Sequence[float]
) -> Tensor:
    r"""Means of the neighbours of each target under Gaussians of several widths.

    .. math:: z^r_j = \frac{\sum_i g^r_{ij} \, x_i}{\sum_i g^r_{ij}}, \qquad
        g^r_{ij} = e^{-\beta_r |x_j - x_i|^2 / \ell_j^2}

    with the spacing of the sources :math:`\ell_j`, the root mean square distance of
    the neighbours.

    Args:
        x: ``[n, F]``.
        graph: in which each target has neighbours.
        sharpness: :math:`\beta`.

    Returns:
        ``[m, R, F]``.
    """
    ones, tiny = x.new_ones(1, x.size(0), 1), torch.finfo(x.dtype).tiny
    square = graph.offset(x.dtype)[:, -1].square()
    mean = (square * graph.mean_weight(x.dtype))[None]
    spacing = neighbour_sum(ones, mean, graph).flatten().clamp_min(tiny)
    square = square / spacing[graph.edge_index[1]]
    weight = torch.exp(-square * x.new_tensor(sharpness)[:, None])
    sums = neighbour_sum(torch.cat([x[None], ones], dim=-1), weight, graph)
    means = sums[..., :-1] / sums[..., -1:].clamp_min(tiny)
    return means.transpose(0, 1)


def spline_graph(
    pos: Tensor,
    query_pos: Tensor,
    domain: Domain,
    *,
    batch: Tensor | None = None,
    query_batch: Tensor | None = None,
) -> BipartiteGraph:
    """The graph of :func:`interpolate`, with the same arguments."""
    return bipartite_graph(
        pos,
        query_pos,
        None,
        domain,
        source_batch=batch,
        target_batch=query_batch,
        interpolation="spline",
    )
