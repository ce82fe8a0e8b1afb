"""Errors of predicted fields."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchmetrics import Metric

from nfsgeo.measures import MEASURES

__all__ = ["ErrorByTimeStep", "FieldErrors", "errors_by_sample"]

# The smallest root mean square that an error is relative to, in standard deviations.
FLOOR = 1e-3


def errors_by_sample(
    prediction: Tensor,
    truth: Tensor,
    batch: Tensor | None = None,
    *,
    mean: Tensor | None = None,
    std: Tensor | None = None,
) -> dict[str, Tensor]:
    """Errors of each sample, as :class:`FieldErrors` defines them.

    Args:
        prediction: ``[N, n_t, C]``, in the units of the data.
        truth: ``[N, n_t, C]``.
        batch: Sample of each point ``[N]``, sorted; None for one sample.
        mean: Removed from the truth in relative errors, ``[C]``; components then stay
            apart. None to take the values of all components together.
        std: Standard deviation of each component in the training data, ``[C]``.

    Returns:
        ``[S]`` by name, or ``[S, C]`` where components stay apart, each in its own
        unit. Samples without points are left out; without a value that is not missing,
        an error is NaN, and so is a relative one without energy.
    """
    return _scored(prediction, truth, batch, mean, std)[0]


def _scored(
    prediction: Tensor,
    truth: Tensor,
    batch: Tensor | None,
    mean: Tensor | None,
    std: Tensor | None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Errors of each sample, and whether they are any."""
    if batch is None:
        batch = torch.zeros(len(truth), dtype=torch.long, device=truth.device)
    points = torch.bincount(batch)
    floor = torch.zeros((), dtype=torch.float64, device=truth.device)
    if mean is not None:
        floor = 4 * torch.finfo(truth.dtype).eps * mean.abs()  # rounding is no energy
    if std is not None:
        floor = (FLOOR * std).masked_fill(std == 0, torch.inf)
    missing, truth = truth.isnan(), truth.double()
    error = (prediction.double() - truth).masked_fill(missing, 0)
    truth = (truth if mean is None else truth - mean).masked_fill(missing, 0)

    def total(values: Tensor) -> Tensor:
        values = values.sum(dim=(1, 2) if mean is None else 1)
        sums = values.new_zeros(len(points), *values.shape[1:])
        return sums.index_add(0, batch, values)

    absolute, square = total(error.abs()), total(error.square())
    size = total((~missing).double())
    energy = total(truth.square())
    found = {
        "mae": absolute / size,
        "rmse": (square / size).sqrt(),
        "rel_l2": (square / energy).sqrt(),
        "rel_l1": absolute / total(truth.abs()),
    }
    there = {"mae": size > 0, "rmse": size > 0}
    there["rel_l2"] = there["rel_l1"] = energy > floor.square() * size
    errors = {
        n: v.masked_fill(~there[n], torch.nan)[points > 0] for n, v in found.items()
    }
    return errors, {n: v[points > 0] for n, v in there.items()}


class FieldErrors(Metric):
    r"""Mean over samples of each sample's own error over points and time steps.

    With :math:`e = \hat u - u` of one sample, ``mae`` is the mean of :math:`|e|`,
    ``rmse`` the root of the mean of :math:`e^2`, ``rel_l2`` is
    :math:`\|e\|_2 / \|u\|_2` and ``rel_l1`` is :math:`\|e\|_1 / \|u\|_1`. Sums are
    kept in double precision. Missing values of the truth, NaN, do not count, nor do
    samples without any other. A sample that is zero everywhere has no relative error
    and leaves their means.

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
        ValueError: One of the two comes without the other.
    """

    full_state_update = False
    mae: Tensor
    rmse: Tensor
    rel_l2: Tensor
    rel_l1: Tensor
    count: Tensor
    relative: Tensor

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
        for name in (*MEASURES, "count", "relative"):
            self.add_state(name, zeros.clone(), dist_reduce_fx="sum")

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
        errors, there = _scored(
            prediction, truth, batch, *self.statistics(truth.device)
        )
        for name, values in errors.items():
            counted = values.masked_fill(~there[name], 0)
            setattr(self, name, getattr(self, name) + counted.sum(0))
        self.count = self.count + there["mae"].sum(0)
        self.relative = self.relative + there["rel_l2"].sum(0)

    def statistics(self, device: torch.device) -> tuple[Tensor | None, Tensor | None]:
        """Mean and standard deviation of the components, float64 ``[C]``, or None.

        Args:
            device: Where they are to be.
        """
        if self.mean is None or self.std is None:
            return None, None
        mean, std = torch.tensor(
            [self.mean, self.std], dtype=torch.float64, device=device
        )
        return mean, std

    def compute(self) -> dict[str, float]:
        """The errors by name; NaN before the first sample.

        Means are over the components with any true value that vary in the training
        data, or over all of them where none does.
        """
        errors = self._means()
        there, related = self.count > 0, self.relative > 0
        _, std = self.statistics(there.device)
        if std is not None and bool((std > 0).any()):
            there = there & (std > 0)
            for name in ("mae", "rmse"):
                errors[name] = errors[name] / std
        over = {"mae": there, "rmse": there}
        return {n: float(e[over.get(n, related)].mean()) for n, e in errors.items()}

    def by_component(self) -> list[dict[str, float]]:
        """Errors of each component in its own unit.

        Empty where the values of all components are taken together.
        """
        errors = self._means()
        return [
            {name: float(error[c]) for name, error in errors.items()}
            for c in range(len(self.std or ()))
        ]

    def without_energy(self) -> list[int]:
        """How many samples have no relative error, of each component."""
        return [int(n) for n in (self.count - self.relative).flatten()]

    def _means(self) -> dict[str, Tensor]:
        of = {"rel_l2": self.relative, "rel_l1": self.relative}
        return {
            name: getattr(self, name) / of.get(name, self.count) for name in MEASURES
        }


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
