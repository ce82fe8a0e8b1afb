"""Errors of predicted fields."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchmetrics import Metric

__all__ = ["ErrorByTimeStep", "FieldErrors"]

NAMES = ("mae", "rmse", "rel_l2")


class FieldErrors(Metric):
    r"""Mean over samples of each sample's own error over points and time steps.

    With :math:`e = \hat u - u` of one sample, ``mae`` is the mean of :math:`|e|`,
    ``rmse`` the root of the mean of :math:`e^2` and ``rel_l2`` is
    :math:`\|e\|_2 / \|u\|_2`. Sums are kept in double precision.

    Values of all components are taken together, unless their statistics are given.
    Then each of the ``C`` components has errors of its own, its ``rel_l2`` being
    :math:`\|e\|_2 / \|u - \bar u\|_2`, in which an offset :math:`\bar u` makes no
    error look small. The pooled ``mae`` and ``rmse`` are means over the components of
    errors that are each divided by the component's standard deviation, and the pooled
    ``rel_l2`` is the mean of theirs.

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
        count = torch.zeros((), dtype=torch.float64)
        self.add_state("count", count, dist_reduce_fx="sum")

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
        if batch is None:
            batch = torch.zeros(len(truth), dtype=torch.long, device=truth.device)
        truth = truth.double()
        error = prediction.double() - truth
        points = torch.bincount(batch)
        if self.mean is None:
            size = points[points > 0] * truth[0].numel()
        else:
            size = (points[points > 0] * truth.size(1))[:, None]
            truth = truth - truth.new_tensor(self.mean)
        absolute, square, energy = (
            self._sum_by_sample(values, batch)[points > 0]
            for values in (error.abs(), error.square(), truth.square())
        )
        self.mae += (absolute / size).sum(0)
        self.rmse += (square / size).sqrt().sum(0)
        # A sample that is zero everywhere is held against the smallest double.
        tiny = torch.finfo(torch.float64).tiny
        self.rel_l2 += (square / energy.clamp_min(tiny)).sqrt().sum(0)
        self.count += len(size)

    def compute(self) -> dict[str, float]:
        """``mae``, ``rmse`` and ``rel_l2``; NaN before the first sample."""
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
            {name: float(getattr(self, name)[c] / self.count) for name in NAMES}
            for c in range(len(self.std or ()))
        ]

    def _sum_by_sample(self, values: Tensor, batch: Tensor) -> Tensor:
        """Of ``[N, n_t, C]``: ``[S]``, or ``[S, C]`` where components stay apart."""
        values = values.sum(dim=(1, 2) if self.std is None else 1)
        sums = values.new_zeros(int(batch[-1]) + 1, *values.shape[1:])
        return sums.index_add(0, batch, values)


class ErrorByTimeStep(Metric):
    """Mean absolute error at each predicted time step.

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
        count = torch.zeros((), dtype=torch.float64)
        self.add_state("count", count, dist_reduce_fx="sum")

    def update(self, prediction: Tensor, truth: Tensor) -> None:
        """Adds fields ``[N, n_t, C]``.

        Args:
            prediction: In the units of the data.
            truth: Likewise.
        """
        error = (prediction.double() - truth.double()).abs()
        self.total += error.sum(dim=0 if self.apart else (0, 2))
        self.count += len(error) if self.apart else error[:, 0].numel()

    def compute(self) -> Tensor:
        """The errors so far, ``[n_t]``, or ``[n_t, C]`` of each component."""
        return self.total / self.count
