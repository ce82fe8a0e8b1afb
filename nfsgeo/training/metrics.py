"""Errors of predicted fields."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torchmetrics import Metric

__all__ = ["ErrorByTimeStep", "FieldErrors", "errors_by_sample"]

NAMES = ("mae", "rmse", "rel_l2", "rel_l1")


def errors_by_sample(
    prediction: Tensor,
    truth: Tensor,
    batch: Tensor | None = None,
    *,
    mean: Tensor | None = None,
) -> dict[str, Tensor]:
    """Errors of each sample, as :class:`FieldErrors` defines them.

    Args:
        prediction: ``[N, n_t, C]``, in the units of the data.
        truth: ``[N, n_t, C]``.
        batch: Sample of each point ``[N]``, sorted; None for one sample.
        mean: Removed from the truth in relative errors, ``[C]``; components then stay
            apart. None to take the values of all components together.

    Returns:
        ``[S]`` by name, or ``[S, C]`` where components stay apart, each in its own
        unit. Samples without points are left out; without a value that is not missing,
        an error is NaN.
    """
    if batch is None:
        batch = torch.zeros(len(truth), dtype=torch.long, device=truth.device)
    size = _num_observed(truth, batch, apart=mean is not None)
    points = torch.bincount(batch)
    missing, truth = truth.isnan(), truth.double()
    error = (prediction.double() - truth).masked_fill(missing, 0)
    truth = (truth if mean is None else truth - mean).masked_fill(missing, 0)

    def total(values: Tensor) -> Tensor:
        values = values.sum(dim=(1, 2) if mean is None else 1)
        sums = values.new_zeros(len(points), *values.shape[1:])
        return sums.index_add(0, batch, values)

    absolute, square = total(error.abs()), total(error.square())
    sizes = torch.ones_like(absolute)
    sizes[points > 0] = size.clamp_min(1)
    # A sample that is zero everywhere is held against the smallest double.
    tiny = torch.finfo(torch.float64).tiny
    found = {
        "mae": absolute / sizes,
        "rmse": (square / sizes).sqrt(),
        "rel_l2": (square / total(truth.square()).clamp_min(tiny)).sqrt(),
        "rel_l1": absolute / total(truth.abs()).clamp_min(math.sqrt(tiny)),
    }
    # Without any value the numbers are NaN, whatever they are divided by.
    nan = torch.full_like(size, torch.nan)
    return {
        name: torch.where(size > 0, values[points > 0], nan)
        for name, values in found.items()
    }


def _num_observed(truth: Tensor, batch: Tensor | None, *, apart: bool) -> Tensor:
    """Values of each sample with points that are not missing, ``[S]`` or ``[S, C]``."""
    if batch is None:
        batch = torch.zeros(len(truth), dtype=torch.long, device=truth.device)
    points = torch.bincount(batch)
    observed = (~truth.isnan()).double().sum(dim=1 if apart else (1, 2))
    sums = observed.new_zeros(len(points), *observed.shape[1:])
    return sums.index_add(0, batch, observed)[points > 0]


class FieldErrors(Metric):
    r"""Mean over samples of each sample's own error over points and time steps.

    With :math:`e = \hat u - u` of one sample, ``mae`` is the mean of :math:`|e|`,
    ``rmse`` the root of the mean of :math:`e^2`, ``rel_l2`` is
    :math:`\|e\|_2 / \|u\|_2` and ``rel_l1`` is :math:`\|e\|_1 / \|u\|_1`. Sums are
    kept in double precision. Missing values of the truth, NaN, do not count, nor do
    samples without any other.

    Values of all components are taken together, unless their statistics are given.
    Then each of the ``C`` components has errors of its own, its ``rel_l2`` being
    :math:`\|e\|_2 / \|u - \bar u\|_2`, in which an offset :math:`\bar u` makes no
    error look small, and its ``rel_l1`` likewise. The pooled ``mae`` and ``rmse`` are
    means over the components of errors that are each divided by the component's
    standard deviation, and the pooled ``rel_l2`` and ``rel_l1`` are the means of
    theirs.

    Args:
        mean: Mean of each component in the training data, ``C`` numbers.
        std: Standard deviation of each component there, positive.

    Raises:
        ValueError: One of the two comes without the other.
    """

    full_state_update = False
    mae: Tensor
    rmse: Tensor
    rel_l2: Tensor
    rel_l1: Tensor
    count: Tensor

    def __init__(
        self, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        if (mean is None) != (std is None):
            raise ValueError("mean and std of the components: give both or none")
        self.mean = None if mean is None else tuple(mean)
        self.std = None if std is None else tuple(std)
        zeros = torch.zeros(
            () if self.std is None else len(self.std), dtype=torch.float64
        )
        for name in NAMES:
            self.add_state(name, zeros.clone(), dist_reduce_fx="sum")
        self.add_state("count", zeros.clone(), dist_reduce_fx="sum")

    def update(
        self, prediction: Tensor, truth: Tensor, batch: Tensor | None = None
    ) -> None:
        """Adds the samples of a batch.

        Args:
            prediction: ``[N, n_t, C]``, in the units of the data.
            truth: ``[N, n_t, C]``.
            batch: Sample of each point ``[N]``, sorted; None for one sample.
        """
        if not len(truth):
            return
        mean = None if self.mean is None else truth.new_tensor(self.mean).double()
        errors = errors_by_sample(prediction, truth, batch, mean=mean)
        there = _num_observed(truth, batch, apart=mean is not None) > 0
        for name, values in errors.items():
            counted = values.masked_fill(~there, 0)
            setattr(self, name, getattr(self, name) + counted.sum(0))
        self.count = self.count + there.sum(0)

    def compute(self) -> dict[str, float]:
        """The errors by name; NaN before the first sample."""
        errors = {name: getattr(self, name) / self.count for name in NAMES}
        if self.std is not None:
            for name in ("mae", "rmse"):
                errors[name] = errors[name] / errors[name].new_tensor(self.std)
        return {name: float(error.mean()) for name, error in errors.items()}

    def by_component(self) -> list[dict[str, float]]:
        """Errors of each component in its own unit.

        Empty where the values of all components are taken together.
        """
        return [
            {name: float(getattr(self, name)[c] / self.count[c]) for name in NAMES}
            for c in range(len(self.std or ()))
        ]


class ErrorByTimeStep(Metric):
    """Mean absolute error at each predicted time step, missing values left out.

    Args:
        num_steps: Time steps ``n_t``.
        num_components: ``C``, for the errors of each component; 1 to take the values
            of all components together.
    """

    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, num_steps: int, num_components: int = 1) -> None:
        super().__init__()
        self.apart = num_components > 1
        shape = (num_steps, num_components) if self.apart else (num_steps,)
        zeros = torch.zeros(shape, dtype=torch.float64)
        self.add_state("total", zeros, dist_reduce_fx="sum")
        self.add_state("count", zeros.clone(), dist_reduce_fx="sum")

    def update(self, prediction: Tensor, truth: Tensor) -> None:
        """Adds fields ``[N, n_t, C]``.

        Args:
            prediction: In the units of the data.
            truth: Likewise.
        """
        missing = truth.isnan()
        error = (prediction.double() - truth.double()).abs().masked_fill(missing, 0)
        dim = (0,) if self.apart else (0, 2)
        self.total += error.sum(dim)
        self.count += (~missing).sum(dim)

    def compute(self) -> Tensor:
        """The errors so far, ``[n_t]``, or ``[n_t, C]`` of each component."""
        return self.total / self.count
