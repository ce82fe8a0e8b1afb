"""Ranks of static inputs whose values differ by orders of magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import (
    ModelInputs,
    Transform,
    TransformOptions,
)
from nfsgeo.models import Problem

__all__ = ["Ranks"]

# Interquartile range below which an input has a rank, in standard deviations. That of a
# normal distribution is 1.35, that of an exponential one 1.10.
NARROW = 0.75
FEWEST = 64  # different values
KNOTS = 64
UNIT = 3**0.5  # standard deviations to an end of a uniform distribution


class Ranks(Transform):
    r"""Adds the rank of static inputs whose values differ by orders of magnitude.

    .. math:: r = \sqrt 3 \, (2 F(a) - 1)

    with the distribution :math:`F` of the training data, linear between 64 quantiles;
    :math:`r` has mean zero and standard deviation one. On a mesh graded towards a wall
    most distances from it are a small fraction of their standard deviation, and
    networks hardly distinguish them. An input has a rank if its quartiles are closer
    than 0.75 standard deviations, and a distance from a boundary always.

    Args:
        columns: Numbers of these inputs among the components of the normalised input.
        knots: Increasing quantiles ``[64]`` of each of them.
    """

    def __init__(
        self, *, columns: Sequence[int], knots: Sequence[Sequence[float]]
    ) -> None:
        super().__init__(columns=columns, knots=knots)
        self.columns = tuple(columns)
        at = torch.tensor(knots, dtype=torch.float64)
        self.register_buffer("knots", at, persistent=False)

    knots: Tensor

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        first, columns, knots = statistics.first_static, [], []
        scale = statistics.inputs.scale
        for number, values in enumerate(statistics.static().T, first):
            if number in statistics.categories or len(values.unique()) < FEWEST:
                continue
            low, high = np.quantile(values, [0.25, 0.75])
            narrow = bool(high - low < NARROW * scale[number])
            if options.ranked.get(number - first, narrow):
                quantiles = np.quantile(values, np.linspace(0, 1, KNOTS))
                quantiles -= float(statistics.inputs.mean[number])
                columns.append(number)
                knots.append((quantiles / float(scale[number])).tolist())
        return cls(columns=columns, knots=knots) if columns else None

    def sizes(self, problem: Problem) -> Problem:
        more = len(self.columns)
        return replace(problem, in_components=problem.in_components + more)

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        queries = batch.query_x
        return batch.with_feature(
            self._ranks(batch.x), None if queries is None else self._ranks(queries)
        )

    def _ranks(self, x: Tensor) -> Tensor:
        """Return ranks ``[..., k]`` of inputs ``x [..., F]``; NaN stays NaN."""
        values = x[..., list(self.columns)].movedim(-1, 0)
        flat = values.flatten(1).contiguous()
        # Points of equal value have the mean of their ranks. ONNX has comparisons but
        # no search; one quantile at a time needs little memory.
        below = above = torch.zeros_like(flat, dtype=torch.long)
        for at in self.knots.to(flat).unbind(1):
            below = below + (at[:, None] < flat)
            above = above + (at[:, None] <= flat)
        low = (below - 1).clamp(0, KNOTS - 2)
        start, width = self.knots.gather(1, low), self.knots.diff(dim=1).gather(1, low)
        # Equal quantiles have zero width; a value beyond them is at their upper end.
        width = width.clamp_min(torch.finfo(width.dtype).tiny)
        inside = ((flat - start) / width).clamp(0, 1)
        level = torch.where(above > below, (below + above - 1) / 2, low + inside)
        rank = UNIT * (2 * level / (KNOTS - 1) - 1)
        rank = torch.where(flat.isnan(), flat, rank)
        return rank.unflatten(1, values.shape[1:]).movedim(0, -1)
