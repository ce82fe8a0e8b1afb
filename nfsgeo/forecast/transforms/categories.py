"""Categories, such as node types, as one input for each of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.models import Problem

__all__ = ["Categories"]

SHOWN = 5  # values in a message


class Categories(Transform):
    """Replaces each category by indicators of the values that training has seen.

    The order of the numbers of categories has no meaning. Normalisation leaves these
    columns as they are.

    Args:
        columns: Numbers of the categories among the components of the input.
        names: Their names, for messages.
        values: Increasing values of each category in the training data.
        node_type: Name of the category whose indicators are
            :attr:`~nfsgeo.models.Problem.node_types`; None if there is none.
    """

    def __init__(
        self,
        *,
        columns: Sequence[int],
        names: Sequence[str],
        values: Sequence[Sequence[int]],
        node_type: str | None = None,
    ) -> None:
        super().__init__(
            columns=columns, names=names, values=values, node_type=node_type
        )
        self.columns, self.names = tuple(columns), tuple(names)
        self.node_type = node_type
        for number, numbers in enumerate(values):
            seen = torch.tensor(numbers, dtype=torch.float64)
            self.register_buffer(f"values_{number}", seen, persistent=False)

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        if not (names := statistics.categories):
            return None
        values = [sorted(statistics.values[column]) for column in names]
        return cls(
            columns=[*names],
            names=[*names.values()],
            values=values,
            node_type=options.node_type,
        )

    @property
    def values(self) -> list[Tensor]:
        """The values of each category, float64."""
        return [getattr(self, f"values_{n}") for n in range(len(self.columns))]

    def sizes(self, problem: Problem) -> Problem:
        first = problem.in_components - len(self.columns)
        types = list[int]()
        for name, values in zip(self.names, self.values, strict=True):
            after = first + len(values)
            types += range(first, after) if name == self.node_type else ()
            first = after
        return replace(problem, in_components=first, node_types=tuple(types))

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        others = [n for n in range(batch.x.size(-1)) if n not in self.columns]
        x, queries = batch.x, batch.query_x
        batch = replace(batch, x=x[..., others])
        if queries is not None:
            batch = replace(batch, query_x=queries[..., others])
        for column, name, values in zip(
            self.columns, self.names, self.values, strict=True
        ):
            at_queries = None
            if queries is not None:
                at_queries = self._indicators(name, values, queries[..., column])
            at_points = self._indicators(name, values, x[..., column])
            batch = batch.with_feature(at_points, at_queries)
        return batch

    def _indicators(self, name: str, values: Tensor, x: Tensor) -> Tensor:
        """Return indicators ``[..., k]`` of the values of a category; NaN stays NaN."""
        equal = x[..., None] == values
        # Training data are known; asking would wait for the device.
        if not (self.training or torch.compiler.is_compiling()):
            self._check(name, values, x, equal)
        return equal.to(x).where(~x.isnan()[..., None], torch.nan)

    def _check(self, name: str, values: Tensor, x: Tensor, equal: Tensor) -> None:
        if bool((seen := equal.any(-1) | x.isnan()).all()):
            return
        few = x[~seen].unique()[:SHOWN].tolist()
        odd = ", ".join(f"{value:g}" for value in few)
        trained = ", ".join(f"{value:g}" for value in values.tolist())
        raise UserError(
            f"{name} of {odd}, which training has not seen",
            f"one of {trained}",
            "correct the values, or train on data that have them all",
        )
