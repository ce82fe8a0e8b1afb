"""What is known of a predicted value when it is predicted: inputs and points nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nfsgeo.forecast.transforms import Given, MissingValues
from nfsgeo.geometry import Domain, Graphs, batch_graphs
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.missing_values import nearest_graph

if TYPE_CHECKING:
    from nfsgeo.forecast.forecaster import Forecaster

__all__ = ["Surroundings", "with_nearest"]


def with_nearest(graphs: Graphs, domain: Domain) -> Graphs:
    """Graphs with the nearest observed points of each point to predict at."""
    queries = graphs.queries.split([*(graphs.query_sizes or graphs.sizes)])
    pairs = zip(graphs.pos.split(graphs.sizes), queries, strict=True)
    near = batch_graphs([nearest_graph(*pair, domain) for pair in pairs])
    return replace(graphs, edges={**graphs.edges, "nearest": near})


@dataclass(frozen=True)
class Surroundings:
    """What is known of predicted values, on the CPU.

    Attributes:
        features: Without units ``[M, T, C, K]``: distances to the nearest points, gaps,
            how inputs vary in time and space, size and roughness of what is predicted.
        unit: Standard deviation of the fields in the units of the data ``[M, T, C]``.
        gaps: Share of gaps in the inputs of the sample ``[M]``.
        observed: Whether the point is ``[M]``.
    """

    features: Tensor
    unit: Tensor
    gaps: Tensor
    observed: Tensor

    @classmethod
    def of(
        cls,
        forecaster: Forecaster,
        u: Tensor,
        x: Tensor,
        graphs: Graphs,
        known: Tensor | None = None,
        times: Tensor | None = None,
    ) -> Surroundings:
        """Of a prediction ``u [M, T, C]`` from ``x``, what is ``known`` and so on.

        Query points of a sample begin with its observed points.
        """
        if "nearest" not in graphs.edges:
            graphs = with_nearest(graphs, forecaster.model.problem.domain.normalised)
        near, counts = graphs.edges["nearest"], [*(graphs.query_sizes or graphs.sizes)]
        target, degree = near.edge_index[1], near.degree().clamp_min(1).double()
        even = replace(near, base_weight=degree.reciprocal()[target])
        numbers = zip(counts, graphs.sizes, strict=True)
        observed = torch.cat([torch.arange(n) < first for n, first in numbers])
        observed = observed.to(u.device)

        def at(values: Tensor) -> Tensor:
            return interpolate_along(values, near)

        def nearby(values: Tensor) -> Tensor:
            return interpolate_along(values, even)

        def spread(values: Tensor) -> Tensor:
            square = nearby(values * values) - nearby(values).square()
            return square.clamp_min(0).sqrt()

        def of_sample(values: Tensor) -> Tensor:
            parts = zip(values.split(counts), observed.split(counts), strict=True)
            return torch.cat([v[seen].mean(0).expand_as(v) for v, seen in parts])

        # Inputs as the network sees them, but for gaps; the prediction likewise.
        times = None if times is None else torch.atleast_2d(times)
        given, done = Given(x.double(), graphs, known, times), []
        for transform in forecaster.stack:
            given = transform.inputs(given)
            if isinstance(transform, MissingValues):
                break
            done.append((transform, given))
        zero, one = torch.zeros_like(u).double(), torch.ones_like(u).double()
        for transform, handed_on in reversed(done):
            zero, one = (transform.outputs(end, handed_on) for end in (zero, one))
        z, num, timed = (u - zero) / (one - zero), u.size(-1), forecaster.task.has_time
        fields = given.x[..., :num] if timed else given.x.mean(-1, keepdim=True)
        absent = x[..., : num * timed].isnan().any(-1, keepdim=True).double()
        away = near.displacement.double().norm(dim=1)
        nearest = torch.ones_like(degree).scatter_reduce(0, target, away, "amin")
        distance = torch.zeros_like(degree).index_add(0, target, away) / degree
        spacing = of_sample(distance.clamp_min(1e-9).log())
        last, seen = at(fields[:, -1:]), z[observed]
        sizes = z - (last if timed else nearby(seen)), z, spread(seen)
        each = [
            (1 + 3 * nearest / spacing.exp()).log()[:, None, None],
            distance.clamp_min(1e-9).log()[:, None, None],
            spacing[:, None, None],
            at(absent).mean(1, keepdim=True),
            at(absent[:, -1:]),
            nearby(absent).mean(1, keepdim=True),
            _log(at(fields.std(1, correction=0, keepdim=True))),
            _log(spread(fields[:, -1:])),
            *map(_log, sizes),
            *(_log(of_sample(size.abs())) for size in sizes),
        ]
        features = torch.stack([feature.expand_as(z) for feature in each], dim=-1)
        gaps = of_sample(at(absent).mean((1, 2)))
        return cls(*(v.cpu() for v in (features, one - zero, gaps, observed)))


def _log(x: Tensor) -> Tensor:
    return (x.abs() + 1e-3).log()
