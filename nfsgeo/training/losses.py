r"""Training losses by name.

A loss is a function ``loss(prediction, target, points)`` of normalised fields
``[M, n_t, C]``, less their mean in the training data, at :class:`LossPoints`. To add
one, write the function and name it in :data:`LOSSES`. Each is a mean over the batch
that one device holds: in data-parallel training the gradients of the devices are
averaged, so that a device whose meshes have fewer points counts as much as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss

__all__ = ["LOSSES", "Loss", "LossPoints", "mae", "mse", "relative_l2"]

# The smallest root mean square of a normalised field that an error may refer to.
FLOOR = 1e-3
# The smallest sum of weights, of no value.
TINY = 1e-12


@dataclass(frozen=True)
class LossPoints:
    """The points of a batch that a loss is taken over.

    Attributes:
        sizes: number of points of each sample, ``M`` in all.
        weight: quadrature weight of each point ``[M]``, on average 1 in each sample;
            ``None`` for uniform weights.
        observed: whether each value of the target ``[M, n_t, C]`` is known. Where it is
            not, target and prediction are equal. ``None`` for all of them.
    """

    sizes: Sequence[int]
    weight: Tensor | None = None
    observed: Tensor | None = None

    def mean(self, values: Tensor) -> Tensor:
        """Weighted mean of the observed ``values`` ``[M, n_t, C]``; 0 without any."""
        weight = self._weights(values)
        return (weight * values).sum() / weight.sum().clamp_min(TINY)

    def by_sample(self, values: Tensor) -> Tensor:
        """Weighted means of the observed ``values`` of each sample, ``[S, C]``."""
        weight = self._weights(values)
        total, weights = (
            torch.stack([each.sum((0, 1)) for each in summed.split(list(self.sizes))])
            for summed in (weight * values, weight)
        )
        return total / weights.clamp_min(TINY)

    def _weights(self, values: Tensor) -> Tensor:
        observed = torch.ones_like(values) if self.observed is None else self.observed
        weight = observed.to(values.dtype)
        if self.weight is None:
            return weight
        return weight * self.weight.to(values.dtype)[:, None, None]


Loss = Callable[[Tensor, Tensor, LossPoints], Tensor]


def mse(prediction: Tensor, target: Tensor, points: LossPoints) -> Tensor:
    r"""Mean squared error of normalised fields, over all values of the batch.

    .. math:: \frac{1}{M n_t C} \sum_{i,t,c} w_i \, |\hat u_{itc} - u_{itc}|^2

    Every point counts alike, so that a sample with more points counts for more. The
    ``prediction`` and the ``target`` are ``[M, n_t, C]`` at the ``points``.
    """
    return points.mean(mse_loss(prediction, target, reduction="none"))


def mae(prediction: Tensor, target: Tensor, points: LossPoints) -> Tensor:
    r"""Mean absolute error of normalised fields, over all values of the batch.

    .. math:: \frac{1}{M n_t C} \sum_{i,t,c} w_i \, |\hat u_{itc} - u_{itc}|

    Of ``prediction``, ``target`` and ``points`` as for :func:`mse`.
    """
    return points.mean(l1_loss(prediction, target, reduction="none"))


def relative_l2(prediction: Tensor, target: Tensor, points: LossPoints) -> Tensor:
    r"""Relative :math:`L^2` error of each sample, averaged.

    .. math:: \frac{1}{S C} \sum_{s,c}
        \frac{\|\hat u_{sc} - u_{sc}\|}{\|u_{sc}\|},
        \qquad \|v_{sc}\|^2 = \sum_{i \in s,\,t} w_i \, v_{itc}^2

    Of ``prediction``, ``target`` and ``points`` as for :func:`mse`. Normalised fields
    have no mean: an offset of the field, such as degrees Celsius in place of kelvins,
    changes nothing. All samples count alike, whatever the sizes of their meshes. Where
    the root mean square of the normalised field is below 1e-3, that is referred to.
    """
    errors = points.by_sample((prediction - target).square())
    energies = points.by_sample(target.square())
    # The square root has no finite derivative at zero.
    tiny = torch.finfo(errors.dtype).tiny
    return (errors / energies.clamp_min(FLOOR**2)).clamp_min(tiny).sqrt().mean()


LOSSES: dict[str, Loss] = {"mse": mse, "relative_l2": relative_l2, "mae": mae}
