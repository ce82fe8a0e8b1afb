r"""Training losses by name.

Predictions and targets are normalised fields, ``[M, n_t, C]``. Each loss is a mean over
the batch that one device holds: in data-parallel training the gradients of the devices
are averaged, so that devices whose meshes have fewer points count as much as others.
To add a loss, write a function with the signature of :class:`Loss` and name it in
:data:`LOSSES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss

from nfsgeo.data.normalisers import FieldNormaliser

__all__ = ["LOSSES", "Loss", "mae", "mse", "relative_l2"]

# The smallest root mean square that a relative error refers to, in units of ``scale``.
FLOOR = 1e-3


class Loss(Protocol):
    """A function of normalised predictions and targets that training minimises."""

    def __call__(
        self,
        prediction: Tensor,
        target: Tensor,
        *,
        sizes: Sequence[int],
        scale: FieldNormaliser,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar.

        Args:
            prediction: normalised fields ``[M, n_t, C]``.
            target: likewise.
            sizes: number of points of each sample, ``M`` in all.
            scale: the normaliser of these fields, ``C`` components.
            weight: quadrature weight of each point ``[M]``, on average 1 in each
                sample; ``None`` for uniform weights.
        """
        ...


def mse(
    prediction: Tensor,
    target: Tensor,
    *,
    sizes: Sequence[int],
    scale: FieldNormaliser,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Mean squared error of normalised fields, over all values of the batch.

    .. math:: \frac{1}{M n_t C} \sum_{i,t,c} w_i \, |\hat u_{itc} - u_{itc}|^2

    Every point counts alike, so that a sample with more points counts for more.
    ``prediction``, ``target``, ``sizes``, ``scale`` and ``weight`` as :class:`Loss` has
    them.
    """
    return _mean(mse_loss(prediction, target, reduction="none"), weight)


def mae(
    prediction: Tensor,
    target: Tensor,
    *,
    sizes: Sequence[int],
    scale: FieldNormaliser,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Mean absolute error of normalised fields, over all values of the batch.

    .. math:: \frac{1}{M n_t C} \sum_{i,t,c} w_i \, |\hat u_{itc} - u_{itc}|

    Every point counts alike, as for :func:`mse`. ``prediction``, ``target``,
    ``sizes``, ``scale`` and ``weight`` as :class:`Loss` has them.
    """
    return _mean(l1_loss(prediction, target, reduction="none"), weight)


def relative_l2(
    prediction: Tensor,
    target: Tensor,
    *,
    sizes: Sequence[int],
    scale: FieldNormaliser,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Relative :math:`L^2` error of each sample in the units of the data, averaged.

    .. math:: \frac{1}{S C} \sum_{s,c} \frac{\|\hat u_{sc} - u_{sc}\|}{\|u_{sc}\|},
        \qquad \|u_{sc}\|^2 = \sum_{i \in s,\,t} w_i \, u_{itc}^2

    Norms are over the points and time steps of one sample and component of the fields
    themselves, not of the normalised ones, whose mean is shifted. All samples count
    alike, whatever the sizes of their meshes. Where the root mean square of the true
    field is below 1e-3 times ``scale.std``, the error refers to that value.
    ``prediction``, ``target``, ``sizes``, ``scale`` and ``weight`` as :class:`Loss` has
    them.
    """
    # The standard deviation cancels in the ratio, the mean does not.
    truth = target + (scale.mean / scale.std).to(target.dtype)
    errors = _by_sample((prediction - target).square(), sizes, weight)
    energies = _by_sample(truth.square(), sizes, weight).clamp_min(FLOOR**2)
    # The square root has no finite derivative at zero.
    tiny = torch.finfo(errors.dtype).tiny
    return (errors / energies).clamp_min(tiny).sqrt().mean()


LOSSES: dict[str, Loss] = {"mse": mse, "relative_l2": relative_l2, "mae": mae}


def _mean(values: Tensor, weight: Tensor | None) -> Tensor:
    values = values.flatten(1)
    if weight is not None:
        values = values * weight.to(values.dtype)[:, None]
    return values.mean()


def _by_sample(values: Tensor, sizes: Sequence[int], weight: Tensor | None) -> Tensor:
    """Means over points and time steps of each sample, ``[S, C]``."""
    if weight is not None:
        values = values * weight.to(values.dtype)[:, None, None]
    return torch.stack([each.mean((0, 1)) for each in values.split(list(sizes))])
