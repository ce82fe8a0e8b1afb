r"""Error bands: a scale that is known with a prediction, times a conformal factor.

.. math:: \hat u_{tc} \pm q_{tc} \, \sigma_{tc}, \qquad
    \log \sigma_{tc} = \beta_{tc} + w \cdot \phi(f)

of features :math:`f` of a value (:class:`Surroundings`) and their products. The factors
:math:`q` are quantiles of :math:`|u - \hat u| / \sigma` on samples that neither network
nor scale was fitted to. Of :math:`n` samples with as many values each, that at
:math:`(1 + 1/n)` times the level holds for a further one (Lee, Barber and Willett,
"Distribution-free inference with hierarchical data", 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.forecast.surroundings import Surroundings

__all__ = ["QUANTILES", "Bands", "Scale", "needed"]

QUANTILES = 200  # steps between those that are stored
ROWS, NEWTON = 8000, 10


def needed(level: float) -> int:
    """The number of samples that a band of a level needs: ``level / (1 - level)``."""
    return math.ceil(level / (1 - level) - 1e-9)


@dataclass(frozen=True)
class Scale:
    r"""The scale :math:`\sigma` of errors, in standard deviations of the fields.

    Attributes:
        intercept: :math:`\beta`, ``[T, C]``.
        weights: :math:`w` of features and perhaps their products; none if constant.
        limits: Lowest and highest feature, to which others are moved, mean and standard
            deviation, ``[4, K]``.
    """

    intercept: Tensor
    weights: Tensor
    limits: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """The scale ``[M, T, C]`` of features ``[M, T, C, K]``."""
        found, num = self.intercept.expand(features.shape[:-1]), features.size(-1)
        if len(self.weights):
            x = _terms(features, self.limits, False)
            own, products = self.weights.tensor_split([num])
            found = found + x @ own
            if len(products):  # as a quadratic form, faster than term by term
                i, j = torch.triu_indices(num, num)
                square = x.new_zeros(num, num).index_put((i, j), products)
                found = found + ((x @ square) * x).sum(-1)
        return found.clamp(-30, 30).exp()

    @classmethod
    def fit(
        cls,
        features: Tensor,
        error: Tensor,
        limits: Tensor,
        penalty: float,
        products: bool,
    ) -> Self:
        r"""Minimises the mean of :math:`\log \sigma + |e| / \sigma` by Newton's method.

        From features ``[R, T, C, K]`` and errors ``[R, T, C]``, NaN where unknown, with
        a penalty of squared weights of the terms, 0 for a constant, and perhaps the
        ``products`` of two features as terms.
        """
        mean = error.abs().nanmean(0).nan_to_num().clamp_min(1e-9)
        if not penalty:
            return cls(mean.log(), mean.new_zeros(0), limits)
        rows = (~error.isnan()).flatten().nonzero()[:, 0]
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        rows = rows[order[:ROWS]]
        terms = _terms(features.flatten(0, 2)[rows], limits, products)
        place = nn.functional.one_hot(rows % mean.numel(), mean.numel())
        a, e = torch.cat([place.to(terms), terms], 1), (error.abs() / mean).flatten()
        ridge = torch.full_like(a[0], penalty)
        ridge[: mean.numel()] = 1e-6
        w = torch.zeros_like(ridge)
        for _ in range(NEWTON):
            ratio = e[rows] * (a @ w).clamp(-8, 8).neg().exp()
            slope = a.T @ (1 - ratio) / len(a) + ridge * w
            curved = (a * ratio.clamp(1e-3, 20)[:, None]).T @ a / len(a) + ridge.diag()
            step = torch.linalg.solve(curved, slope)
            w = w - step * min(1.0, 2 / float(step.abs().max().clamp_min(1e-9)))
        beta, weights = w.tensor_split([mean.numel()])
        return cls(mean.log() + beta.view_as(mean), weights, limits)

    @classmethod
    def mean(cls, scales: Sequence[Self]) -> Self:
        """The geometric mean of scales with the same terms."""
        each = zip(*(vars(scale).values() for scale in scales), strict=True)
        return cls(*(torch.stack(of).mean(0) for of in each))


def _terms(features: Tensor, limits: Tensor, products: bool) -> Tensor:
    low, high, mean, std = limits
    x = (features.clamp(low, high) - mean) / std
    i, j = torch.triu_indices(x.size(-1), x.size(-1))
    return torch.cat([x, x[..., i] * x[..., j]], dim=-1) if products else x


@dataclass(frozen=True)
class Bands:
    """Error bands of a forecaster.

    Attributes:
        scale: Of errors.
        factors: Quantiles of the ratio of errors to it ``[4, T, C, 201]``: at observed
            points without and with gaps in the inputs, at unobserved ones likewise.
        samples: How many samples they are of.
        gaps: Share of gaps above which factors are those with gaps.
    """

    scale: Scale
    factors: Tensor
    samples: int
    gaps: float

    def half_width(self, around: Surroundings, level: float) -> Tensor:
        """Half the width of the band of a level ``[M, T, C]``, in the data's units.

        Raises:
            UserError: There were too few samples for the level.
        """
        if self.samples < (num := needed(level)):
            raise UserError(
                f"level {level:g} of bands that were fitted to {self.samples} samples",
                f"{num}, or a level of {self.samples / (self.samples + 1):.3g} at most",
                "give a lower --level, or nfsgeo calibrate RUN --data FILE",
            )
        return self.factor(around, level) * self.scale(around.features) * around.unit

    def factor(self, around: Surroundings, level: float) -> Tensor:
        """The conformal factor ``[M, T, C]``, the largest for levels beyond that."""
        place = math.ceil(QUANTILES * level * (1 + 1 / self.samples) - 1e-9)
        cell = 2 * (~around.observed).long() + (around.gaps > self.gaps).long()
        return self.factors[..., min(QUANTILES, place)][cell]

    def state(self) -> dict[str, Any]:
        """Tensors and numbers, of which :meth:`of_state` makes the same again."""
        return {**vars(self), "scale": dict(vars(self.scale))}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        """The bands of a :meth:`state`."""
        return cls(**{**state, "scale": Scale(**state["scale"])})
