r"""Training losses by name.

A loss is a function ``loss(prediction, target, points)`` of normalised fields
``[M, n_t, C]``, standardised by the training data, at :class:`LossPoints`. To add one,
write the function and name it in :data:`LOSSES`. Each is a mean over the batch of one
device. Data-parallel training averages the gradients of the devices, weighted by their
numbers of samples: a device whose meshes have fewer points has no less weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss

__all__ = ["LOSSES", "Loss", "LossPoints", "mae", "mse", "relative_l2"]

# Smallest root mean square of a normalised field that an error is relative to.
FLOOR = 1e-3
# Smallest sum of weights that is divided by.
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
        """Return the weighted mean of observed values; 0 if there are none.

        Args:
            values: Values ``[M, n_t, C]``.
        """
        weight = self._weights(values)
        return (weight * values).sum() / weight.sum().clamp_min(TINY)

    def by_sample(self, values: Tensor) -> Tensor:
        """Return the weighted mean of observed values of each sample ``[S, C]``.

        Args:
            values: Values ``[M, n_t, C]``.
        """
        weight = self._weights(values)
        total, weights = (
            torch.stack([part.sum((0, 1)) for part in terms.split(list(self.sizes))])
            for terms in (weight * values, weight)
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

    Every point has the same weight, so that a sample with more points counts for more.

    Args:
        prediction: Prediction ``[M, n_t, C]``.
        target: True fields, likewise.
        points: Where they are.
    """
    return points.mean(mse_loss(prediction, target, reduction="none"))


def mae(prediction: Tensor, target: Tensor, points: LossPoints) -> Tensor:
    r"""Mean absolute error of normalised fields, over all values of the batch.

    .. math:: \frac{1}{M n_t C} \sum_{i,t,c} w_i \, |\hat u_{itc} - u_{itc}|

    Args:
        prediction: Prediction ``[M, n_t, C]``.
        target: True fields, likewise.
        points: Where they are.
    """
    return points.mean(l1_loss(prediction, target, reduction="none"))


def relative_l2(prediction: Tensor, target: Tensor, points: LossPoints) -> Tensor:
    r"""Relative :math:`L^2` error of each sample, averaged.

    .. math:: \frac{1}{S C} \sum_{s,c}
        \frac{\|\hat u_{sc} - u_{sc}\|}{\|u_{sc}\|},
        \qquad \|v_{sc}\|^2 = \sum_{i \in s,\,t} w_i \, v_{itc}^2

    Normalised fields have mean zero, so that an offset, such as degrees Celsius instead
    of kelvins, changes nothing. All samples have the same weight, whatever the sizes of
    their meshes. If the root mean square of the normalised field is below 1e-3, the
    error is relative to 1e-3.

    Args:
        prediction: Prediction ``[M, n_t, C]``.
        target: True fields, likewise.
        points: Where they are.
    """
    errors = points.by_sample((prediction - target).square())
    energies = points.by_sample(target.square())
    # The square root has no finite derivative at zero.
    tiny = torch.finfo(errors.dtype).tiny
    return (errors / energies.clamp_min(FLOOR**2)).clamp_min(tiny).sqrt().mean()


LOSSES: dict[str, Loss] = {"mse": mse, "relative_l2": relative_l2, "mae": mae}
