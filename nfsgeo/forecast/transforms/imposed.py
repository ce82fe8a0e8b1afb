"""Known boundary values instead of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nfsgeo.data import Fields
from nfsgeo.data.boundary import types_of
from nfsgeo.data.conventions import FORCING
from nfsgeo.errors import UserError
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.geometry import BipartiteGraph, Domain, Graphs
from nfsgeo.geometry.search import Search
from nfsgeo.models import Problem

__all__ = ["ImposedValues", "imposed_values"]

SAME = 1e-6  # distance of equal points in float32, in the normalised domain


class ImposedValues(Transform):
    """Replaces the prediction at points of some node types by known values.

    A component ``u`` with a forcing ``forcing_u`` in the data has the value of the
    forcing at each time step, others that of the last input time step. In an
    autoregressive rollout every window does so, and the values persist. A query point
    has them if it coincides with an observed point of such a type. If the known value
    is missing, the prediction stays.

    Args:
        column: Number of the node type among the components of the input.
        types: Node types at which values are imposed.
        components: Components that are imposed, for each of the types.
        forcings: Number of the forcing of each component, -1 if it has none.
    """

    query_edges = ("imposed",)

    def __init__(
        self,
        *,
        column: int,
        types: Sequence[int],
        components: Sequence[Sequence[int]],
        forcings: Sequence[int],
    ) -> None:
        super().__init__(
            column=column, types=types, components=components, forcings=forcings
        )
        self.column, self.types, self.forcings = column, types, forcings
        chosen = torch.zeros(len(types), len(forcings), dtype=torch.bool)
        for number, columns in enumerate(components):
            chosen[number, list(columns)] = True
        self.register_buffer("chosen", chosen, persistent=False)

    chosen: Tensor

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        return None if options.imposed is None else cls(**options.imposed)

    def sizes(self, problem: Problem) -> Problem:
        self.domain = problem.domain.normalised
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        if graphs.query_pos is None:
            return graphs
        return graphs.with_edges("imposed", partial(_nearest, domain=self.domain))

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        # Imposed values are left out of the loss.
        return target.masked_fill(self._imposed(target, batch)[1], torch.nan)

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        values, mask = self._imposed(prediction, batch)
        return torch.where(mask, values.to(prediction), prediction)

    def _imposed(self, fields: Tensor, batch: ModelInputs) -> tuple[Tensor, Tensor]:
        """Return imposed values, and a mask of where they replace the fields."""
        steps, num, n_in = fields.size(1), fields.size(2), batch.x.size(1)
        values = batch.x[:, -1:, :num].expand(-1, steps, -1)
        if any(number >= 0 for number in self.forcings):
            assert batch.forcing is not None
            ahead = batch.forcing[:, n_in : n_in + steps].to(values)
            columns = [
                values[..., c] if number < 0 else ahead[..., number]
                for c, number in enumerate(self.forcings)
            ]
            values = torch.stack(columns, dim=-1)
        types = batch.x[:, 0, self.column]
        mask = torch.zeros_like(types[:, None], dtype=torch.bool).expand(-1, num)
        for kind, chosen in zip(self.types, self.chosen, strict=True):
            mask = mask | ((types == kind)[:, None] & chosen)
        mask = mask[:, None] & ~values.isnan()
        if batch.graphs.query_pos is not None:
            edges = batch.graphs.edges["imposed"]
            source = edges.edge_index[0]
            near = edges.displacement.square().sum(1) <= SAME**2
            values, mask = values[source], mask[source] & near[:, None, None]
        return values, mask


def _nearest(pos: Tensor, queries: Tensor, domain: Domain) -> BipartiteGraph:
    """Make an edge to each query point from the nearest observed point."""
    nearest = Search(pos, queries, domain).nearest(1)[:, 0].clamp(min=0)
    pairs = torch.stack([nearest, torch.arange(len(nearest))]).to(pos.device)
    return BipartiteGraph.from_edges(pairs, (pos, queries), domain)


def imposed_values(
    file: Fields, impose: Sequence[int | str] | Mapping[Any, Sequence[str]], n_in: int
) -> dict[str, Any] | None:
    """Return settings of :class:`ImposedValues`, or ``None`` if nothing is imposed.

    Args:
        file: The training data.
        impose: Node types by their number or meaning, for all components, or the names
            of components by node type.
        n_in: Number of input time steps.

    Raises:
        UserError: There are no node types, no time, or no such type or component.
    """
    if not impose:
        return None
    asked = f"data.impose={impose}"
    if not n_in or file.node_types is None:
        how = "with" if n_in else "without input time steps of"
        came = f"{asked} {how} {file.path}"
        came += ", which has no node_type" * (file.node_types is None)
        raise UserError(came, "fields in time with node types", "leave it out")
    names, meanings = file.component_names, file.categories[file.node_types]
    numbers = {text: value for value, text in meanings.items()}
    every = range(file.num_samples)
    present = {int(kind) for s in every for kind in np.unique(types_of(file, s))}
    by_type = impose if isinstance(impose, Mapping) else dict.fromkeys(impose, names)
    types, components = [], []
    for kind, imposed in by_type.items():
        number = numbers.get(str(kind))
        if number is None and str(kind).lstrip("-").isdigit():
            number = int(kind)
        if number not in present:
            called = (meanings.get(value, str(value)) for value in sorted(present))
            expected = f"one of {', '.join(called)}, which the points have"
            raise UserError(f"{asked} with the type {kind}", expected, "change it")
        if wrong := [name for name in imposed if name not in names]:
            came = f"{asked} with the component {wrong[0]}"
            raise UserError(came, f"one of {', '.join(names)}", "change it")
        types.append(number)
        components.append([names.index(name) for name in imposed])
    ahead = file.forcing_names
    forced = [FORCING + name for name in names]
    return {
        "column": len(names) + file.input_names.index(file.node_types),
        "types": types,
        "components": components,
        "forcings": [ahead.index(n) if n in ahead else -1 for n in forced],
    }
