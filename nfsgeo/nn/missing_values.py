"""Imputation of missing values, NaN, from values nearby in time and space."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain, nearest_neighbour_graph
from nfsgeo.nn.base_interpolation import interpolate_along

__all__ = ["fill_in_space", "fill_in_time", "nearest_graph", "neighbour_graph"]

NEIGHBOURS = 12


def fill_in_time(x: Tensor, trend: Tensor | None = None) -> Tensor:
    r"""Fill gaps by linear interpolation in time.

    Before the first observed time step, its value is used. :math:`k` time steps after
    the last one, the result is

    .. math:: x_{t+k} = x_t + s \, (\phi + \phi^2 + \dots + \phi^k)

    with the slope :math:`s` between the last two observed values and the damping factor
    :math:`\phi`. A point without any value keeps NaN. Complete fields are returned bit
    for bit.

    Args:
        x: fields ``[N, T, F]`` at equispaced time steps, NaN where missing.
        trend: damping factor :math:`\phi` of each component ``[F]``, from 0 to 1; None
            for 0.
    """
    num = x.size(1)
    observed = ~x.isnan()
    step = torch.arange(num, device=x.device)[:, None].expand_as(x)
    before = torch.where(observed, step, -1).cummax(1).values
    after = torch.where(observed, step, num).flip(1).cummin(1).values.flip(1)
    ended = (after == num) & (before >= 0)
    first = torch.where(before < 0, after, before).clamp(max=num - 1)
    second = torch.where(after == num, before, after).clamp(min=0)
    place = (step - first) / (second - first).clamp_min(1)
    filled = torch.lerp(x.gather(1, first), x.gather(1, second), place.to(x.dtype))
    if trend is not None:
        earlier = before.gather(1, (first - 1).clamp_min(0))
        slope = x.gather(1, first) - x.gather(1, earlier.clamp_min(0))
        slope = slope / (first - earlier).clamp_min(1)
        # Partial sums of the powers, by number of steps after the last.
        powers = trend.to(x) ** torch.arange(1, num + 1).to(x)[:, None]
        sums = torch.cat([torch.zeros_like(powers[:1]), powers.cumsum(0)])
        ahead = sums.expand(x.size(0), -1, -1).gather(1, (step - first).clamp_min(0))
        follows = ended & (first > 0) & (earlier >= 0)
        filled = filled + torch.where(follows, slope * ahead, 0)
    return torch.where(observed, x, filled)


def fill_in_space(x: Tensor, graph: BipartiteGraph) -> Tensor:
    r"""Fill gaps by weighted means over the observed neighbours.

    .. math:: x_i = \frac{\sum_j w_{ij} m_j x_j}{\sum_j w_{ij} m_j}

    at each time step and in each component, where :math:`m_j` is 1 if :math:`x_j` is
    observed and else 0. Without any observed neighbour the result is zero, the mean of
    normalised fields.

    Args:
        x: normalised fields ``[N, T, F]``, NaN where missing.
        graph: from :func:`neighbour_graph`.
    """
    observed = ~x.isnan()
    values = torch.cat([x.masked_fill(~observed, 0), observed.to(x)], dim=-1)
    total, weight = interpolate_along(values, graph).chunk(2, dim=-1)
    mean = total / weight.clamp_min(torch.finfo(x.dtype).tiny)
    return torch.where(observed, x, mean.masked_fill(weight <= 0, 0))


def nearest_graph(pos: Tensor, query_pos: Tensor, domain: Domain) -> BipartiteGraph:
    """Join each query of one sample to its nearest points, weighted by 1 / distance².

    The weights of a query add up to 1. A query at a point has that point's value.

    Args:
        pos: positions of the points ``[n, d]``.
        query_pos: positions of the queries ``[m, d]``.
        domain: the box, with its periodic axes.
    """
    graph, weight = _nearest(pos, query_pos, domain, NEIGHBOURS)
    total = weight.new_zeros(len(query_pos)).index_add(0, graph.edge_index[1], weight)
    weight = weight / total[graph.edge_index[1]]
    return replace(graph, base_weight=weight).to(pos.device)


def neighbour_graph(pos: Tensor, domain: Domain) -> BipartiteGraph:
    """Join each point of one sample to its neighbours, weighted by 1 / distance².

    Args:
        pos: positions ``[n, d]``.
        domain: the box, with its periodic axes.
    """
    graph, weight = _nearest(pos, pos, domain, NEIGHBOURS + 1)
    # A point cannot fill its own gap, but one at the same place can.
    itself = graph.edge_index[0] == graph.edge_index[1]
    return replace(graph, base_weight=weight.masked_fill(itself, 0)).to(pos.device)


def _nearest(
    pos: Tensor, query_pos: Tensor, domain: Domain, num: int
) -> tuple[BipartiteGraph, Tensor]:
    """Return the graph of the nearest points, and 1 / distance² of its edges."""
    ends = pos.detach().cpu().double(), query_pos.detach().cpu().double()
    graph = nearest_neighbour_graph(*ends, num, domain)
    square = graph.displacement.double().square().sum(1)
    return graph, square.clamp_min(1e-12).reciprocal()
