"""Climatology: the network sees and predicts anomalies from the season at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Self

import torch
from torch import Tensor

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms import ModelInputs, Transform, TransformOptions
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.missing_values import nearest_graph

__all__ = ["Climatology", "harmonics"]

SAME = 1e-6  # distance of equal points in float32, in the normalised domain


def harmonics(times: Tensor, periods: Sequence[float]) -> Tensor:
    r"""The constant, and cosine and sine of each period: ``[..., 1 + 2 P]``.

    .. math:: (1, \cos 2\pi t / p_1, \sin 2\pi t / p_1, \cos 2\pi t / p_2, \dots)

    ``times`` of any shape, float64, and ``periods`` in their unit.
    """
    found = [torch.ones_like(times)]
    for period in periods:
        phase = 2 * torch.pi * (times / period).frac()
        found += [phase.cos(), phase.sin()]
    return torch.stack(found, dim=-1)


class Climatology(Transform):
    r"""Takes the climatology of each point off the fields, and adds it in the end.

    .. math:: m_c(x, t) = \sum_k \beta_{kc}(x) \, h_k(t)

    with a constant and harmonics :math:`h` of the year and the day. At other points
    than those of the training file, which are in the same order, the coefficients are
    means of the nearest ones, weighted by 1 / distance².

    Args:
        pos: points of the training file ``[S, d]``, in the normalised domain.
        periods: of the harmonics, in the unit of the times.
        coefficients: ``[S, 1 + 2 P, C]``.
    """

    def __init__(
        self,
        *,
        pos: Sequence[Sequence[float]],
        periods: Sequence[float],
        coefficients: Sequence[Sequence[Sequence[float]]],
    ) -> None:
        super().__init__(pos=pos, periods=periods, coefficients=coefficients)
        self.periods = tuple(periods)
        self.register_buffer("pos", torch.tensor(pos, dtype=torch.float64))
        values = torch.tensor(coefficients, dtype=torch.float64)
        self.register_buffer("coefficients", values)

    pos: Tensor
    coefficients: Tensor

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        if (series := options.series) is None:
            return None
        pos, values = series.pos.tolist(), series.coefficients.tolist()
        return cls(pos=pos, periods=[*series.periods], coefficients=values)

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        known, numbers = self.pos.to(graphs.pos.device), graphs.numbers
        numbers = torch.arange(len(known)) if numbers is None else numbers

        def edges(pos: Tensor) -> BipartiteGraph:
            # Of stations at one place each has its own.
            own = numbers[: len(pos)].clamp(max=len(known) - 1).to(known.device)
            if len(own) < len(pos) or (known[own] - pos).abs().max() > SAME:
                return nearest_graph(known, pos, self.domain)
            pairs = torch.stack([own, torch.arange(len(pos)).to(own)])
            return BipartiteGraph.from_edges(pairs, (known, pos.double()), self.domain)

        made = graphs.with_edges("climatology", lambda pos, _: edges(pos))
        if graphs.query_pos is None:
            return made
        return made.with_edges("climatology_queries", lambda _, pos: edges(pos))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        num, steps = self.coefficients.size(-1), batch.x.size(1)
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
        return self.mean(graphs, batch.times, steps, graphs.query_pos is not None)

    def unaware_of(self, queries: Tensor) -> Climatology:
        there = (torch.cdist(self.pos.cpu(), queries).amin(1) > 1e-6).tolist()
        known = dict(self.settings)
        for key in ("pos", "coefficients"):
            known[key] = [*compress(known[key], there)]
        made = Climatology(**known).to(self.pos.device)
        made.domain = self.domain
        return made

    @property
    def sources(self) -> dict[str, tuple[int, str]]:
        num = len(self.pos)
        return {
            "climatology": (num, "points"),
            "climatology_queries": (num, "queries"),
        }

    def mean(
        self, graphs: Graphs, times: Tensor | None, steps: slice, queries: bool = False
    ) -> Tensor:
        """The climatology ``[N, T, C]``, or one ``[N, 1, C]`` that is always the same.

        On ``graphs`` of :meth:`connect` at the observed points or ``queries``, at those
        ``steps`` of the ``times`` of each sample ``[S, T']``; ``None`` without periods.
        """
        num, name = graphs.num_samples, "climatology" + "_queries" * queries
        known = self.coefficients.repeat(num, 1, 1)
        here = interpolate_along(known, graphs.edges[name])
        if times is None:
            return here[:, :1]
        basis = harmonics(times[:, steps].to(here), self.periods).expand(num, -1, -1)
        of = graphs.query_batch if queries else graphs.batch
        if of is None:
            return torch.einsum("tk,nkc->ntc", basis[0], here)
        return torch.einsum("ntk,nkc->ntc", basis[of], here)
