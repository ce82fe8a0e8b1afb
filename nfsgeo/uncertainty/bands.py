r"""Error bands: a scale of the error at each value, times a conformal factor.

.. math:: \hat u_{tc} - q_{tc} \, a^-_{tc} \, \sigma_{tc} \; \text{to} \;
    \hat u_{tc} + q_{tc} \, a^+_{tc} \, \sigma_{tc}, \qquad
    \log \sigma_{tc} = \beta_{tc} + w \cdot \phi(f)

with features :math:`f` of a value (:class:`BandFeatures`) and their products. All but
the factors :math:`q` are fitted to training samples. These are quantiles of
:math:`|u - \hat u| / a^\pm \sigma` on other samples (:func:`conformal`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.uncertainty.band_features import BandFeatures

__all__ = ["Bands", "Scale", "conformal", "needed"]

QUANTILES = 200  # steps between those that are stored
ROWS, NEWTON, PENALTY = 8000, 10, 0.2
TAIL = 0.05  # at the level 0.9, the sides leave out as much below as above
FOLDS = 12  # samples are left out in so many parts


def needed(level: float) -> int:
    """Return the number of samples that a band needs: ``level / (1 - level)``."""
    return math.ceil(level / (1 - level) - 1e-9)


@dataclass(frozen=True)
class Scale:
    r"""The scale :math:`\sigma` of errors, in standard deviations of the fields.

    Attributes:
        intercept: :math:`\beta`, ``[T, C]``.
        weights: :math:`w` of features and their products; empty for a constant scale.
        limits: Lowest and highest value of each feature, to which others are clamped,
            its mean and its standard deviation ``[4, K]``.
        shares: :math:`a^-` and :math:`a^+`, whose mean is 1, ``[2, T, C]``.
    """

    intercept: Tensor
    weights: Tensor
    limits: Tensor
    shares: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Return the scale ``[M, T, C]`` of features ``[M, T, C, K]``."""
        log, num = self.intercept.expand(features.shape[:-1]), features.size(-1)
        if len(self.weights):  # products as a quadratic form, faster than one by one
            x = self._standard(features)
            linear, products = self.weights.tensor_split([num])
            square = torch.zeros(num, num).to(x)
            square[*torch.triu_indices(num, num)] = products
            log = log + x @ linear + ((x @ square) * x).sum(-1)
        return log.clamp(-30, 30).exp()

    def sides(self, features: Tensor) -> Tensor:
        """Return the scale below and above the prediction ``[2, M, T, C]``."""
        return self.shares[:, None] * self(features)

    @classmethod
    def constant(cls, shape: torch.Size) -> Self:
        """Return the scale 1 at all values.

        Args:
            shape: Number of time steps and of components.
        """
        zeros = torch.zeros(shape, dtype=torch.float64)
        shares = zeros.new_ones(2, *shape)
        return cls(zeros, zeros.new_zeros(0), zeros.new_zeros(4, 0), shares)

    @classmethod
    def fit(cls, features: Tensor, error: Tensor) -> Self:
        r"""Fit the scale that minimises the mean of :math:`\log \sigma + |e| / \sigma`.

        Newton's method finds it, with a penalty of squared weights.

        Args:
            features: ``[R, T, C, K]``.
            error: Errors ``[R, T, C]``, NaN where unknown. Infinite ones do not count.
        """
        error = error.where(error.isfinite(), torch.nan)
        if bool(error.isnan().all()):
            return cls.constant(error.shape[1:])
        mean = error.abs().nanmean(0).nan_to_num().clamp_min(1e-9)
        rows = (~error.isnan()).flatten().nonzero()[:, 0]
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        rows = rows[order[:ROWS]]
        some = features.flatten(0, 2)[rows]
        ends = some.quantile(torch.tensor([0.005, 0.995]).to(some), dim=0)
        limits = torch.stack([*ends, some.mean(0), some.std(0, correction=0) + 1e-6])
        x = cls(mean, mean, limits, mean)._standard(some)
        i, j = torch.triu_indices(x.size(1), x.size(1))
        place = nn.functional.one_hot(rows % mean.numel(), mean.numel())
        a = torch.cat([place.to(x), x, x[:, i] * x[:, j]], dim=1)
        e, ridge = (error.abs() / mean).flatten()[rows], torch.full_like(a[0], PENALTY)
        ridge[: mean.numel()] = 1e-6
        w = torch.zeros_like(ridge)
        for _ in range(NEWTON):
            ratio = e * (a @ w).clamp(-8, 8).neg().exp()
            slope = a.T @ (1 - ratio) / len(a) + ridge * w
            curved = (a * ratio.clamp(1e-3, 20)[:, None]).T @ a / len(a) + ridge.diag()
            step = torch.linalg.solve(curved, slope)
            w = w - step * min(1.0, 2 / float(step.abs().max().clamp_min(1e-9)))
        beta, weights = w.tensor_split([mean.numel()])
        made = cls(mean.log() + beta.view_as(mean), weights, limits, mean)
        ratio = error / made(features)
        tails = (-side.nanquantile(TAIL, dim=0) for side in (ratio, -ratio))
        shares = torch.stack([*tails]).nan_to_num(1.0).clamp_min(0.1)
        return replace(made, shares=shares / shares.mean(0))

    def _standard(self, features: Tensor) -> Tensor:
        low, high, mean, std = self.limits
        return (features.clamp(low, high) - mean) / std


def conformal(ratio: Tensor, sample: Tensor) -> Tensor:
    """Return factors ``[T, C, 201]`` by level, whose bands hold for further samples.

    They are leave-one-out split-conformal quantiles: the factor of a level is the least
    one that holds as often as the level in samples left out in turn. With one value for
    each of ``n`` samples it is the quantile at ``1 + 1/n`` times the level, and with
    independent values the quantile at the level itself.

    Args:
        ratio: Absolute errors over their scale ``[R, T, C]``, NaN where unknown.
        sample: The sample of each row ``[R]``.
    """
    ratio = torch.where(ratio.isnan().all(0), torch.inf, ratio)
    number = sample.unique(return_inverse=True)[1]
    fold = number * (num := min(FOLDS, int(number.max()) + 1)) // (number.max() + 1)
    levels, shares = torch.linspace(0, 1, QUANTILES + 1).double(), []
    for out in (fold == k for k in range(num)):
        left, limits = ratio[out, ..., None], _quantiles(ratio[~out], levels)
        inside = torch.where(left.isnan(), left, (left <= limits).to(left))
        shares.append(inside.nanmean(0))
    share = torch.stack(shares).nanmean(0)
    place = torch.searchsorted(share, (levels - 1e-9).expand_as(share).contiguous())
    enough = share.gather(-1, place.clamp_max(QUANTILES))
    place = torch.searchsorted(share, enough, right=True) - 1  # the last that is equal
    return _quantiles(ratio, levels).gather(-1, place)


def _quantiles(x: Tensor, levels: Tensor) -> Tensor:
    """Empirical quantiles over the first axis, without interpolation: ``[T, C, K]``."""
    last = ((~x.isnan()).sum(0) - 1).clamp_min(0)[..., None]
    place = (levels * last - 1e-9).ceil().long()
    return x.sort(0).values.movedim(0, -1).gather(-1, place)


@dataclass(frozen=True)
class Bands:
    """Error bands of a forecaster.

    Factors are quantiles of the ratio of errors to the scale: at observed points
    without and with gaps in the inputs, at unobserved ones likewise.

    Attributes:
        scale: The scale.
        factors: Factors by level ``[4, T, C, 201]``.
        samples: Number of samples that factors are fitted to.
        gaps: Fraction of gaps above which factors are those with gaps.
    """

    scale: Scale
    factors: Tensor
    samples: int
    gaps: float

    def ends(self, features: BandFeatures, level: float) -> Tensor:
        """Return distances from a prediction to the lower and upper end of its band.

        Args:
            features: Features of the predicted points.
            level: Probability with which the band is to hold the true value.

        Returns:
            ``[2, M, T, C]``, in the data's units.

        Raises:
            UserError: The level is not between 0 and 1, or too high for the number of
                samples that the factors were fitted to.
        """
        if not 0 < level < 1:
            raise UserError(f"level {level:g}", "more than 0, less than 1", "change it")
        if self.samples < (num := needed(level)):
            # Rounded down, so that this level is allowed.
            most = math.floor(1e3 * self.samples / (self.samples + 1)) / 1e3
            raise UserError(
                f"level {level:g} of bands that were fitted to {self.samples} samples",
                f"{num} samples, or a level of {most:g} at most",
                "give a lower --level, or nfsgeo calibrate RUN --data FILE",
            )
        sides = self.scale.sides(features.features)
        return self.factor(features, level) * sides * features.unit

    def factor(self, features: BandFeatures, level: float) -> Tensor:
        """Return the conformal factors of a level ``[M, T, C]``."""
        place = math.ceil(QUANTILES * level - 1e-9)
        row = 2 * (~features.observed).long() + (features.gaps > self.gaps).long()
        return self.factors[..., place][row]

    def state(self) -> dict[str, Any]:
        """Return tensors and numbers from which :meth:`of_state` makes the same."""
        return {**vars(self), "scale": dict(vars(self.scale))}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        """Return the bands of a :meth:`state`."""
        return cls(**{**state, "scale": Scale(**state["scale"])})
