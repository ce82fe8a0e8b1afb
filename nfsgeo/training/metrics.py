"""Errors of predicted fields."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchmetrics import Metric

from nfsgeo.measures import MEASURES

__all__ = ["FieldErrors", "MeanLoss", "errors_by_sample"]

# Smallest root mean square that an error is relative to, in standard deviations.
FLOOR = 1e-3
DOUBLE = torch.float64


def errors_by_sample(
    prediction: Tensor,
    truth: Tensor,
    batch: Tensor | None = None,
    *,
    mean: Tensor | None = None,
    std: Tensor | None = None,
) -> dict[str, tuple[Tensor, Tensor]]:
    """Compute the errors of each sample, as :class:`FieldErrors` defines them.

    Args:
        prediction: Prediction ``[N, n_t, C]`` in the units of the data.
        truth: True fields, likewise, NaN where they are missing.
        batch: Sample of each point ``[N]``, sorted; ``None`` for one sample.
        mean: Mean of each component in the training data; then components have errors
            of their own, each in its own unit.
        std: Standard deviation of each component there.

    Returns:
        By name the errors ``[S]``, or ``[S, C]`` by component, and whether they exist:
        NaN marks an error without true values, and a relative error without
        energy. Samples without points are left out.
    """
    if batch is None:
        batch = torch.zeros(len(truth), dtype=torch.long, device=truth.device)
    points = torch.bincount(batch)
    floor = torch.zeros((), dtype=DOUBLE, device=truth.device)
    if mean is not None:
        floor = 4 * torch.finfo(truth.dtype).eps * mean.abs()  # rounding errors
    if std is not None:
        floor = (FLOOR * std).masked_fill(std == 0, torch.inf)
    gaps, truth = truth.isnan(), truth.double()
    error = (prediction.double() - truth).masked_fill(gaps, 0)
    truth = (truth if mean is None else truth - mean).masked_fill(gaps, 0)

    def total(values: Tensor) -> Tensor:
        values = values.sum(dim=(1, 2) if mean is None else 1)
        sums = values.new_zeros(len(points), *values.shape[1:])
        return sums.index_add(0, batch, values)

    absolute, square = total(error.abs()), total(error.square())
    size, energy = total((~gaps).double()), total(truth.square())
    observed, energetic = size > 0, energy > floor.square() * size
    errors = {
        "mae": (absolute / size, observed),
        "rmse": ((square / size).sqrt(), observed),
        "rel_l2": ((square / energy).sqrt(), energetic),
        "rel_l1": (absolute / total(truth.abs()), energetic),
    }
    nonempty = points > 0
    return {
        name: (values.masked_fill(~mask, torch.nan)[nonempty], mask[nonempty])
        for name, (values, mask) in errors.items()
    }


class FieldErrors(Metric):
    r"""Mean over samples of each sample's own error over points and time steps.

    With :math:`e = \hat u - u` of one sample, ``mae`` is the mean of :math:`|e|`,
    ``rmse`` the root of the mean of :math:`e^2`, ``rel_l2`` is
    :math:`\|e\|_2 / \|u\|_2` and ``rel_l1`` is :math:`\|e\|_1 / \|u\|_1`. Missing
    values of the truth, NaN, do not count, nor do samples without any other. A sample
    that is zero everywhere has no relative error and leaves their means.

    Values of all components are taken together, unless their statistics are given.
    Then each of the ``C`` components has errors of its own, its ``rel_l2`` being
    :math:`\|e\|_2 / \|u - \bar u\|_2`, in which an offset :math:`\bar u` makes no
    error look small, and its ``rel_l1`` likewise. The pooled ``mae`` and ``rmse`` are
    means over the components of errors that are each divided by the component's
    standard deviation, and the pooled ``rel_l2`` and ``rel_l1`` are the means of
    theirs. A component that is constant in the training data is in none of these. A
    sample that deviates from the mean of a component by less than 1e-3 standard
    deviations has no relative error of that component.

    Args:
        mean: Mean of each component in the training data, ``C`` numbers.
        std: Standard deviation of each component there, 0 of a constant one.

    Raises:
        ValueError: Only one of the two is given.
    """

    full_state_update = False
    total: Tensor
    count: Tensor
    mean: Tensor | None
    std: Tensor | None

    def __init__(
        self, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        if (mean is None) != (std is None):
            raise ValueError("mean and std of the components: give both or none")
        for name, values in (("mean", mean), ("std", std)):
            buffer = None if values is None else torch.tensor(values, dtype=DOUBLE)
            self.register_buffer(name, buffer, persistent=False)
        shape = (len(MEASURES), *(() if std is None else (len(std),)))
        for name in ("total", "count"):
            zeros = torch.zeros(shape, dtype=DOUBLE)
            self.add_state(name, zeros, dist_reduce_fx="sum")

    def update(
        self, prediction: Tensor, truth: Tensor, batch: Tensor | None = None
    ) -> None:
        """Add the samples of a batch.

        Args:
            prediction: ``[N, n_t, C]``, in the units of the data.
            truth: ``[N, n_t, C]``.
            batch: Sample of each point ``[N]``, sorted; None for one sample.
        """
        if len(truth):
            by_name = errors_by_sample(
                prediction, truth, batch, mean=self.mean, std=self.std
            )
            errors, exist = map(torch.stack, zip(*by_name.values(), strict=True))
            self.total = self.total + errors.masked_fill(~exist, 0).sum(1)
            self.count = self.count + exist.sum(1)

    def compute(self) -> dict[str, float]:
        """Return the errors by name; NaN before the first sample.

        Means are over the components with any true value that vary in the training
        data, or over all of them where none does.
        """
        errors = dict(zip(MEASURES, self.total / self.count, strict=True))
        exist = dict(zip(MEASURES, self.count > 0, strict=True))
        if self.std is not None and bool((self.std > 0).any()):
            for name in ("mae", "rmse"):
                errors[name] = errors[name] / self.std
                exist[name] = exist[name] & (self.std > 0)
        return {n: float(error[exist[n]].mean()) for n, error in errors.items()}

    def by_component(self) -> list[dict[str, float]]:
        """Return the errors of each component in its own unit.

        The list is empty if the values of all components are taken together.
        """
        if self.std is None:
            return []
        components = (self.total / self.count).T.tolist()
        return [dict(zip(MEASURES, errors, strict=True)) for errors in components]

    def without_energy(self) -> list[int]:
        """Return the number of samples without a relative error, by component."""
        counts = dict(zip(MEASURES, self.count, strict=True))
        return [int(n) for n in (counts["mae"] - counts["rel_l2"]).flatten()]


class MeanLoss(Metric):
    """Mean of the losses of batches over the samples of all devices.

    Lightning's own means average numbers of samples over devices as whole numbers.
    """

    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "count"):
            self.add_state(name, torch.zeros((), dtype=DOUBLE), dist_reduce_fx="sum")

    def update(self, loss: Tensor, num_samples: int) -> None:
        """Add a batch.

        Args:
            loss: Its loss, a number.
            num_samples: How many samples it has that count.
        """
        self.total = self.total + loss.detach().double() * num_samples
        self.count = self.count + num_samples

    def compute(self) -> Tensor:
        """Return the mean; NaN before the first sample."""
        return self.total / self.count
