"""Climatology: the network sees and predicts anomalies from the season at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from nfsgeo.forecast.transforms import ModelInputs, Transform
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.missing_values import nearest_graph

__all__ = ["Climatology", "at_times", "phases_of"]

SAME = 1e-6  # distance of equal points in float32, in the normalised domain

# Period, in the unit of the times, and number of phases.
Cycle = tuple[float, int]


def phases_of(times: Tensor, cycle: Cycle) -> tuple[Tensor, Tensor, Tensor]:
    """Return the phases before and after each time, and the weight of the latter.

    Args:
        times: Times of any shape, float64.
        cycle: Its period, infinite for a constant, and its number of phases.
    """
    period, phases = cycle
    place = phases * torch.remainder(times / period, 1)
    before = place.floor()
    low = before.long() % phases
    return low, (low + 1) % phases, place - before


def at_times(table: Tensor, cycles: Sequence[Cycle], times: Tensor) -> Tensor:
    """Return the climatology at some times ``[S, ..., C]``, linear between the phases.

    Args:
        table: Values of all phases, one cycle after the other, ``[S, K, C]``.
        cycles: The cycles, whose values add up.
        times: Times of any shape ``[...]``, float64.
    """
    total = table.new_zeros(len(table), *times.shape, table.size(-1))
    for cycle, values in zip(
        cycles, table.split([phases for _, phases in cycles], dim=1), strict=True
    ):
        low, high, share = phases_of(times, cycle)
        total = total + torch.lerp(values[:, low], values[:, high], share[..., None])
    return total


class Climatology(Transform):
    r"""Subtracts the climatology of each point from the fields, and adds it in the end.

    .. math:: m_c(x, t) = \sum_k \mu_{kc}(x, t \bmod p_k)

    with a value for each phase of the cycles :math:`p_k`, such as the time of day, and
    linear between these. At other points than those of the training file, which are in
    the same order, values are means of those at the nearest ones, weighted by
    1 / distance². A linear trend in the static inputs, such as the height, is added for
    the difference between the inputs of a query point and those means of them.

    Args:
        shape: number of points of the training file, dimension, components.
        cycles: period, in the unit of the times, and number of phases of each. The
            first one is infinite, with one phase: the mean of a point.
        static: number of static inputs with a trend.

    Attributes:
        pos: points of the training file ``[S, d]``, in the normalised domain.
        table: values of all phases, one cycle after the other, ``[S, K, C]``.
        static: static inputs of the points ``[S, C_s]``.
        trend: derivatives of the values by the static inputs ``[C_s, K, C]``.
    """

    may_need_times = True

    def __init__(
        self,
        *,
        shape: Sequence[int],
        cycles: Sequence[Sequence[float]],
        static: int = 0,
    ) -> None:
        super().__init__(shape=shape, cycles=cycles, static=static)
        (points, dim, components), self.cycles = shape, [(p, int(n)) for p, n in cycles]
        phases = sum(num for _, num in self.cycles)
        self.register_buffer("pos", torch.zeros(points, dim).double())
        self.register_buffer("table", torch.zeros(points, phases, components).double())
        if static:
            self.register_buffer("static", torch.zeros(points, static).double())
            trend = torch.zeros(static, phases, components).double()
            self.register_buffer("trend", trend)

    pos: Tensor
    table: Tensor
    static: Tensor
    trend: Tensor

    @classmethod
    def of(
        cls,
        pos: Tensor,
        cycles: Sequence[Cycle],
        table: Tensor,
        static: Tensor | None = None,
        trend: Tensor | None = None,
    ) -> Self:
        """Return the transform with the attributes of such names."""
        num = 0 if static is None else static.size(1)
        shape = [*pos.shape, table.size(-1)]
        made = cls(shape=shape, cycles=[[*c] for c in cycles], static=num)
        made.pos, made.table = pos.double(), table.double()
        if num and static is not None and trend is not None:
            made.static, made.trend = static.double(), trend.double()
        return made

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        stations, numbers = self.pos.to(graphs.pos.device), graphs.numbers
        numbers = torch.arange(len(stations)) if numbers is None else numbers

        def edges(pos: Tensor) -> BipartiteGraph:
            # Stations at one place have climatologies of their own.
            same = numbers[: len(pos)].clamp(max=len(stations) - 1).to(stations.device)
            if len(same) < len(pos) or (stations[same] - pos).abs().max() > SAME:
                return nearest_graph(stations, pos, self.domain)
            pairs, ends = (
                torch.stack([same, torch.arange(len(pos)).to(same)]),
                pos.double(),
            )
            return BipartiteGraph.from_edges(pairs, (stations, ends), self.domain)

        made = graphs.with_edges("climatology", lambda pos, _: edges(pos))
        if graphs.query_pos is None:
            return made
        return made.with_edges("climatology_queries", lambda _, pos: edges(pos))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        num, steps = self.table.size(-1), batch.x.size(1)
        mean = self.mean(batch.graphs, batch.times, slice(steps))
        x = torch.cat([batch.x[..., :num] - mean, batch.x[..., num:]], dim=-1)
        return replace(batch, x=x)

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        return target - self._ahead(batch)

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        return prediction + self._ahead(batch)

    def _ahead(self, batch: ModelInputs) -> Tensor:
        """The climatology at the predicted times, at the points of the prediction."""
        steps, graphs = slice(batch.x.size(1), None), batch.graphs
        queries = graphs.query_pos is not None
        mean = self.mean(graphs, batch.times, steps, queries)
        if queries and batch.query_x is not None and self.settings["static"]:
            mean = mean + self._by_static(batch.query_x, graphs, batch.times, steps)
        return mean

    def _by_static(
        self, query_x: Tensor, graphs: Graphs, times: Tensor | None, steps: slice
    ) -> Tensor:
        """The trend times the difference of static inputs from those of neighbours."""
        around = self.static[:, None].repeat(graphs.num_samples, 1, 1)
        around = interpolate_along(around, graphs.edges["climatology_queries"])[:, 0]
        first, num = self.table.size(-1), self.static.size(1)
        # Inputs that are unknown at a query point are those of its neighbours.
        away = (query_x[:, first : first + num] - around).nan_to_num(0.0)
        if times is None:
            return torch.einsum("ms,sc->mc", away, self.trend[:, 0])[:, None]
        moments = times[:, steps].to(self.trend)
        slopes = at_times(self.trend, self.cycles, moments)  # [C_s, S, T, C]
        if graphs.query_batch is None:
            return torch.einsum("ms,stc->mtc", away, slopes[:, 0])
        slopes = slopes[:, graphs.query_batch]
        return torch.einsum("ms,smtc->mtc", away, slopes)

    def unaware_of(self, queries: Tensor) -> Climatology:
        others = torch.cdist(self.pos.cpu(), queries).amin(1) > SAME
        others = others.to(self.pos.device)
        linear = (self.static[others], self.trend) if self.settings["static"] else ()
        made = self.of(self.pos[others], self.cycles, self.table[others], *linear)
        made.domain = self.domain
        return made

    @property
    def sources(self) -> dict[str, tuple[int, str]]:
        ends = {"climatology": "points", "climatology_queries": "queries"}
        return {name: (len(self.pos), target) for name, target in ends.items()}

    def mean(
        self, graphs: Graphs, times: Tensor | None, steps: slice, queries: bool = False
    ) -> Tensor:
        """Return the climatology ``[N, T, C]``, or ``[N, 1, C]`` without cycles.

        Args:
            graphs: Graphs of :meth:`connect`.
            times: Times of each sample ``[S, T']``; ``None`` without cycles.
            steps: The time steps of these.
            queries: Whether at the query points instead of the observed ones.
        """
        if times is None:
            means = self.table[None, :, :1]
        else:
            moments = times[:, steps].to(self.table)
            means = at_times(self.table, self.cycles, moments).transpose(0, 1)
        means = means.expand(graphs.num_samples, -1, -1, -1).flatten(0, 1)
        name = "climatology" + "_queries" * queries
        return interpolate_along(means, graphs.edges[name])
