"""Features of predicted values by which the scale of their errors is estimated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nfsgeo.evaluation.scored_model import points_of
from nfsgeo.forecast.transforms import MissingValues, ModelInputs
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.missing_values import nearest_graph

__all__ = ["BandFeatures", "with_nearest"]

SAME = 3e-6  # distance of equal points in float32, over that of neighbours


def with_nearest(graphs: Graphs, domain: Domain) -> Graphs:
    """Add the nearest observed points of each point to the graphs of a batch."""
    return graphs.with_edges("nearest", partial(nearest_graph, domain=domain))


@dataclass(frozen=True)
class BandFeatures:
    """Features of predicted values, without units, on the CPU.

    They are the distance to the nearest points, gaps, the variation of the inputs in
    time and space, size and roughness of the predicted change and of the prediction,
    and what is predicted without a network.

    Attributes:
        features: The features ``[M, T, C, K]``.
        unit: Standard deviation of the fields in the data's units ``[M, T, C]``.
        gaps: Fraction of gaps in the inputs of the sample ``[M]``.
        observed: Whether the point, or one at the same place, is observed ``[M]``.
    """

    features: Tensor
    unit: Tensor
    gaps: Tensor
    observed: Tensor

    @classmethod
    def of(
        cls,
        forecaster: Any,
        u: Tensor,
        inputs: ModelInputs,
    ) -> BandFeatures:
        """Return the features of a prediction.

        Args:
            forecaster: The model that predicts.
            u: The prediction ``[M, T, C]``.
            inputs: Inputs of the prediction, in the units of the data. Query points
                begin with the observed ones.
        """
        graphs, x = inputs.graphs, inputs.x
        if "nearest" not in graphs.edges:
            graphs = with_nearest(graphs, forecaster.model.problem.domain.normalised)
        near, counts = graphs.edges["nearest"], [*graphs.predicted_sizes]
        target, degree = near.edge_index[1], near.degree().clamp_min(1).double()
        even = replace(near, base_weight=degree.reciprocal()[target])
        observed = points_of(counts, graphs.sizes)[1].to(u.device)

        def nearby(values: Tensor) -> Tensor:
            return interpolate_along(values, even)

        def spread(values: Tensor) -> Tensor:
            square = nearby(values * values) - nearby(values).square()
            return square.clamp_min(0).sqrt()

        def over_sample(values: Tensor) -> Tensor:
            parts = zip(values.split(counts), observed.split(counts), strict=True)
            return torch.cat([v[seen].mean(0).expand_as(v) for v, seen in parts])

        # Inputs as the network sees them, but for gaps; the prediction likewise.
        before = forecaster.transforms.before(MissingValues)
        *_, inputs = handed_on = before.inputs(inputs)
        if (missing_values := forecaster.find(MissingValues)) is not None:
            inputs = missing_values.inputs(inputs)
        ends = torch.zeros_like(u).double(), torch.ones_like(u).double()
        zero, one = (before.outputs(end, handed_on) for end in ends)
        unit = (one - zero).where(one > zero, 1)  # 1 for a constant component
        z, num, timed = (u - zero) / unit, u.size(-1), forecaster.task.has_time
        fields = inputs.x[..., :num] if timed else inputs.x.mean(-1, keepdim=True)
        absent = x[..., : num * timed].isnan().any(-1, keepdim=True).double()
        length = near.displacement.double().norm(dim=1)
        nearest = torch.ones_like(degree).scatter_reduce(0, target, length, "amin")
        distance = torch.zeros_like(degree).index_add(0, target, length) / degree
        spacing = over_sample(distance.clamp_min(1e-9).log())
        last, missing = (interpolate_along(v, near) for v in (fields[:, -1:], absent))
        recent = interpolate_along(fields.std(1, correction=0, keepdim=True), near)
        seen = z[observed]
        sizes = z - (last if timed else nearby(seen)), z, spread(seen)
        columns = [
            (1 + 3 * nearest / spacing.exp()).log()[:, None, None],
            distance.clamp_min(1e-9).log()[:, None, None],
            spacing[:, None, None],
            missing.mean(1, keepdim=True),
            missing[:, -1:],
            nearby(absent).mean(1, keepdim=True),
            _log(recent),
            _log(spread(fields[:, -1:])),
            *map(_log, sizes),
            *(_log(over_sample(size.abs())) for size in sizes),
            zero / unit,
        ]
        features = torch.stack([column.expand_as(z) for column in columns], dim=-1)
        gaps = over_sample(missing.mean((1, 2)))
        # A query point at an observed one is that point, but for rounding in float32.
        observed = observed | (nearest < SAME * spacing.exp())
        return cls(*(v.cpu() for v in (features, unit, gaps, observed)))


def _log(x: Tensor) -> Tensor:
    return (x.abs() + 1e-3).log()
