r"""Error bands: a scale of the error at each value, times a conformal factor.

.. math:: \hat u_{tc} - q_{tc} \, a^-_{tc} \, \sigma_{tc} \; \text{to} \;
    \hat u_{tc} + q_{tc} \, a^+_{tc} \, \sigma_{tc}, \qquad
    \log \sigma_{tc} = \beta_{tc} + w \cdot \phi(f)

of features :math:`f` of a value (:class:`BandFeatures`) and their products. All but the
factors :math:`q` are fitted to training samples. These are quantiles of
:math:`|u - \hat u| / a^\pm \sigma` on others (:func:`conformal`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.forecast.transforms import MissingValues, ModelInputs
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.missing_values import nearest_graph

__all__ = ["Bands", "Scale", "BandFeatures", "conformal", "needed", "with_nearest"]

QUANTILES = 200  # steps between those that are stored
ROWS, NEWTON, PENALTY = 8000, 10, 0.2
TAIL = 0.05  # at the level 0.9, the sides leave out as much below as above
FOLDS = 12  # samples are left out in so many parts
SAME = 3e-6  # distance of equal points in float32, over that of neighbours


def needed(level: float) -> int:
    """The number of samples that a band of a level needs: ``level / (1 - level)``."""
    return math.ceil(level / (1 - level) - 1e-9)


def with_nearest(graphs: Graphs, domain: Domain) -> Graphs:
    """Graphs with the nearest observed points of each point to predict at."""
    return graphs.with_edges("nearest", partial(nearest_graph, domain=domain))


@dataclass(frozen=True)
class BandFeatures:
    """Features of predicted values by which the scale of their errors is told.

    They have no units and lie on the CPU: the distance to the nearest points, gaps, the
    variation of the inputs in time and space, size and roughness of the predicted
    change and of the prediction, and what is predicted without a network.
    """

    features: Tensor  # [M, T, C, K]
    unit: Tensor  # standard deviation of the fields in the data's units [M, T, C]
    gaps: Tensor  # share of gaps in the inputs of the sample [M]
    observed: Tensor  # whether the point is, or one at the same place [M]

    @classmethod
    def of(
        cls,
        forecaster: Any,
        u: Tensor,
        given: ModelInputs,
    ) -> BandFeatures:
        """The features of a prediction; its query points begin with the observed ones.

        Args:
            forecaster: The model that predicts.
            u: The prediction ``[M, T, C]``.
            given: Inputs of the prediction, in the units of the data.
        """
        graphs, x = given.graphs, given.x
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
        done = []
        for transform in forecaster.stack:
            given = transform.inputs(given)
            if isinstance(transform, MissingValues):
                break
            done.append((transform, given))
        zero, one = torch.zeros_like(u).double(), torch.ones_like(u).double()
        for transform, handed_on in reversed(done):
            zero, one = (transform.outputs(end, handed_on) for end in (zero, one))
        unit = (one - zero).where(one > zero, 1)  # of what never changes
        z, num, timed = (u - zero) / unit, u.size(-1), forecaster.task.has_time
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
            zero / unit,
        ]
        features = torch.stack([feature.expand_as(z) for feature in each], dim=-1)
        gaps = of_sample(at(absent).mean((1, 2)))
        # A query point at an observed one is that point, but for rounding in float32.
        observed = observed | (nearest < SAME * spacing.exp())
        return cls(*(v.cpu() for v in (features, unit, gaps, observed)))


def _log(x: Tensor) -> Tensor:
    return (x.abs() + 1e-3).log()


@dataclass(frozen=True)
class Scale:
    r"""The scale :math:`\sigma` of errors, in standard deviations of the fields.

    ``limits`` are the lowest and the highest value of each feature, to which others are
    clamped, its mean and its standard deviation.
    """

    intercept: Tensor  # beta [T, C]
    weights: Tensor  # w of features and their products; none of a constant
    limits: Tensor  # [4, K]
    shares: Tensor  # a^- and a^+ [2, T, C], whose mean is 1

    def __call__(self, features: Tensor) -> Tensor:
        """The scale ``[M, T, C]`` of features ``[M, T, C, K]``."""
        found, num = self.intercept.expand(features.shape[:-1]), features.size(-1)
        if len(self.weights):  # products as a quadratic form, faster than each
            x = self._standard(features)
            own, products = self.weights.tensor_split([num])
            square = torch.zeros(num, num).to(x)
            square[*torch.triu_indices(num, num)] = products
            found = found + x @ own + ((x @ square) * x).sum(-1)
        return found.clamp(-30, 30).exp()

    def sides(self, features: Tensor) -> Tensor:
        """The scale below and above the prediction ``[2, M, T, C]``."""
        return self.shares[:, None] * self(features)

    @classmethod
    def constant(cls, shape: torch.Size) -> Self:
        """The scale 1 at all values.

        Args:
            shape: Number of time steps and of components.
        """
        zeros = torch.zeros(shape, dtype=torch.float64)
        shares = zeros.new_ones(2, *shape)
        return cls(zeros, zeros.new_zeros(0), zeros.new_zeros(4, 0), shares)

    @classmethod
    def fit(cls, features: Tensor, error: Tensor) -> Self:
        r"""The scale that minimises the mean of :math:`\log \sigma + |e| / \sigma`.

        Newton's method finds it, with a penalty of squared weights.

        Args:
            features: ``[R, T, C, K]``.
            error: Errors ``[R, T, C]``, NaN where unknown.
        """
        mean = error.abs().nanmean(0).nan_to_num().clamp_min(1e-9)
        known = (~error.isnan()).flatten().nonzero()[:, 0]
        order = torch.randperm(len(known), generator=torch.Generator().manual_seed(0))
        rows = known[order[:ROWS]]
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
        tails = (-each.nanquantile(TAIL, dim=0) for each in (ratio, -ratio))
        shares = torch.stack([*tails]).nan_to_num(1.0).clamp_min(0.1)
        return replace(made, shares=shares / shares.mean(0))

    def _standard(self, features: Tensor) -> Tensor:
        low, high, mean, std = self.limits
        return (features.clamp(low, high) - mean) / std


def conformal(ratio: Tensor, sample: Tensor) -> Tensor:
    """Factors ``[T, C, 201]`` whose bands hold in further samples, by level.

    They are leave-one-out split-conformal quantiles: that of a level is the least one
    that holds as often as the level in samples left out in turn. With one value for
    each of ``n`` samples it is the quantile at ``1 + 1/n`` times the level, and with
    independent values that at the level itself.

    Args:
        ratio: Absolute errors over their scale ``[R, T, C]``, NaN where unknown.
        sample: The sample of each ``[R]``.
    """
    ratio = torch.where(ratio.isnan().all(0), torch.inf, ratio)
    number = sample.unique(return_inverse=True)[1]
    fold = number * (num := min(FOLDS, int(number.max()) + 1)) // (number.max() + 1)
    levels, held = torch.linspace(0, 1, QUANTILES + 1).double(), []
    for out in (fold == k for k in range(num)):
        left, limits = ratio[out, ..., None], _quantiles(ratio[~out], levels)
        inside = torch.where(left.isnan(), left, (left <= limits).to(left))
        held.append(inside.nanmean(0))
    share = torch.stack(held).nanmean(0)
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
    """

    scale: Scale
    factors: Tensor  # [4, T, C, 201]
    samples: int  # that the factors are of
    gaps: float  # share of gaps above which factors are those with gaps

    def ends(self, around: BandFeatures, level: float) -> Tensor:
        """Distances from a prediction to the lower and upper end of its band.

        Args:
            around: Features of the predicted points.
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
            raise UserError(
                f"level {level:g} of bands that were fitted to {self.samples} samples",
                f"{num}, or a level of {self.samples / (self.samples + 1):.3g} at most",
                "give a lower --level, or nfsgeo calibrate RUN --data FILE",
            )
        sides = self.scale.sides(around.features)
        return self.factor(around, level) * sides * around.unit

    def factor(self, around: BandFeatures, level: float) -> Tensor:
        """The conformal factor ``[M, T, C]``."""
        place = math.ceil(QUANTILES * level - 1e-9)
        cell = 2 * (~around.observed).long() + (around.gaps > self.gaps).long()
        return self.factors[..., place][cell]

    def state(self) -> dict[str, Any]:
        """Tensors and numbers, of which :meth:`of_state` makes the same again."""
        return {**vars(self), "scale": dict(vars(self.scale))}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        """The bands of a :meth:`state`."""
        return cls(**{**state, "scale": Scale(**state["scale"])})
