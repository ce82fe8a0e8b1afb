"""Errors of predicted fields."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric

__all__ = ["ErrorByRecord", "FieldErrors"]


class FieldErrors(Metric):
    r"""Mean over samples of each sample's own error over points, records, components.

    With :math:`e = \hat u - u` of one sample, ``mae`` is the mean of :math:`|e|`,
    ``rmse`` the root of the mean of :math:`e^2` and ``rel_l2`` is
    :math:`\|e\|_2 / \|u\|_2`. Sums are kept in double precision.
    """

    full_state_update = False
    mae: Tensor
    rmse: Tensor
    rel_l2: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("mae", "rmse", "rel_l2", "count"):
            zero = torch.zeros((), dtype=torch.float64)
            self.add_state(name, zero, dist_reduce_fx="sum")

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
        size = points[points > 0] * truth[0].numel()
        absolute, square, energy = (
            _sum_by_sample(values, batch)[points > 0]
            for values in (error.abs(), error.square(), truth.square())
        )
        self.mae += (absolute / size).sum()
        self.rmse += (square / size).sqrt().sum()
        # A sample that is zero everywhere is held against the smallest double.
        tiny = torch.finfo(torch.float64).tiny
        self.rel_l2 += (square / energy.clamp_min(tiny)).sqrt().sum()
        self.count += len(size)

    def compute(self) -> dict[str, float]:
        """``mae``, ``rmse`` and ``rel_l2``; NaN before the first sample."""
        return {
            name: float(getattr(self, name) / self.count)
            for name in ("mae", "rmse", "rel_l2")
        }


class ErrorByRecord(Metric):
    """Mean absolute error of each predicted record, ``[n_t]``.

    Args:
        num_records: ``n_t``.
    """

    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, num_records: int) -> None:
        super().__init__()
        zeros = torch.zeros(num_records, dtype=torch.float64)
        self.add_state("total", zeros, dist_reduce_fx="sum")
        self.add_state("count", zeros[0].clone(), dist_reduce_fx="sum")

    def update(self, prediction: Tensor, truth: Tensor) -> None:
        """Adds fields ``[N, n_t, C]``.

        Args:
            prediction: In the units of the data.
            truth: Likewise.
        """
        error = (prediction.double() - truth.double()).abs()
        self.total += error.sum(dim=(0, 2))
        self.count += error[:, 0].numel()

    def compute(self) -> Tensor:
        """The errors so far, ``[n_t]``."""
        return self.total / self.count


def _sum_by_sample(values: Tensor, batch: Tensor) -> Tensor:
    sums = values.new_zeros(int(batch[-1]) + 1)
    return sums.index_add(0, batch, values.sum(dim=(1, 2)))
