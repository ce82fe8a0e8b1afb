"""Statistics of the training windows, in one pass over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["Moments", "Statistics"]

POINTS = 64  # points of a window whose static inputs are kept


class Moments:
    """Running mean and standard deviation of each component.

    Missing values, NaN, do not count. The update of Chan, Golub and LeVeque in float64
    is stable for any order and size of the tensors.
    """

    def __init__(self) -> None:
        self.count, self.rounding = torch.zeros(1).double(), 0.0
        self.mean = self.spread = torch.zeros((), dtype=torch.float64)

    def add(self, field: Tensor) -> None:
        """Add the values of a field.

        Args:
            field: Values ``[..., F]``.
        """
        # Standard deviation, relative to the mean, that is due to rounding alone.
        rounding = 1e-12 if field.dtype == torch.float64 else 1e-7
        self.rounding = max(self.rounding, rounding)
        values = field.detach().to("cpu", torch.float64).flatten(0, -2)
        num = (~values.isnan()).sum(dim=0).double()
        mean = values.nanmean(dim=0).nan_to_num()
        total = self.count + num
        step, least = mean - self.mean, total.clamp_min(1)
        self.spread = self.spread + (values - mean).square().nansum(dim=0)
        self.spread = self.spread + step.square() * (self.count * num / least)
        self.mean = self.mean + step * (num / least)
        self.count = total

    @property
    def std(self) -> Tensor:
        """The standard deviation ``[F]``; 0 if it is due to rounding alone.

        Raises:
            ValueError: Some component has no value.
        """
        if not bool((self.count > 0).all()):
            raise ValueError("a normaliser needs at least one value to be fitted on")
        std = (self.spread / self.count).sqrt()
        return std.masked_fill(std <= self.rounding * self.mean.abs(), 0)

    @property
    def scale(self) -> Tensor:
        """The standard deviation, or 1 for a component that never changes."""
        return torch.where(self.std == 0, torch.ones_like(self.std), self.std)


@dataclass
class Statistics:
    """Statistics of the training windows.

    Attributes:
        n_in: Number of input time steps; 0 without time.
        n_out: Number of predicted time steps; targets may go on after them.
        any_time: Whether the model predicts any requested time.
        categories: Names of the categories by their component of the input.
        values: Values of the categories by their component of the input.
        inputs: Moments of the inputs, fields and static ones.
        fields: Moments of the fields at the time steps of inputs and targets.
        changes: Moments of the targets minus the last input.
        rates: Moments of these changes, each divided by its lead time.
        forcings: Moments of the forcings; with ``any_time`` the lead time is the last.
        longest_lead: Time from the last input to the last target.
    """

    n_in: int
    n_out: int
    any_time: bool = False
    categories: Mapping[int, str] = field(default_factory=dict)
    values: dict[int, set[int]] = field(default_factory=dict)
    inputs: Moments = field(default_factory=Moments)
    fields: Moments = field(default_factory=Moments)
    changes: Moments = field(default_factory=Moments)
    rates: Moments = field(default_factory=Moments)
    forcings: Moments = field(default_factory=Moments)
    longest_lead: float = 0.0
    _static: list[Tensor] = field(default_factory=list)
    _product: Tensor = field(default_factory=lambda: torch.zeros(()))
    _square: Tensor = field(default_factory=lambda: torch.zeros(()))

    def add(self, window: Data) -> None:
        """Add a training window.

        Args:
            window: Item of a :class:`~nfsgeo.data.windows.WindowDataset`.
        """
        self.inputs.add(window.x)
        for column in self.categories:
            values = window.x[:, 0, column].unique().long().tolist()
            self.values.setdefault(column, set()).update(values)
        if window.x.size(-1) > (first := window.y.size(-1) * (self.n_in > 0)):
            drawn = torch.Generator().manual_seed(len(self._static))
            chosen = torch.randperm(len(window.x), generator=drawn)[:POINTS]
            self._static.append(window.x[chosen, 0, first:].double())
        forcing = window.get("forcing")
        if self.n_in == 0:
            self.fields.add(window.y)
        else:
            observed = window.x[..., : window.y.size(-1)]
            fields = torch.cat([observed, window.y], dim=1)
            self.fields.add(fields)
            steps = fields.double().diff(dim=1)
            pairs = steps[:, 1:] * steps[:, :-1]
            squares = steps[:, :-1].square().where(~pairs.isnan(), 0)
            self._product = self._product + pairs.nansum((0, 1))
            self._square = self._square + squares.sum((0, 1))
            change = window.y[:, : self.n_out] - observed[:, -1:]
            self.changes.add(change)
            leads = window.times - window.times[self.n_in - 1]
            self.longest_lead = max(self.longest_lead, float(leads[-1]))
            if self.any_time:
                self.rates.add(change.double() / leads[self.n_in :, None])
                time = leads[:, None].expand(len(observed), -1, -1)
                forcing = time if forcing is None else torch.cat([forcing, time], -1)
        if forcing is not None:
            self.forcings.add(forcing)

    @property
    def first_static(self) -> int:
        """Number of the first static component of the input."""
        return len(self.fields.mean) if self.n_in else 0

    def static(self) -> Tensor:
        """Return the static inputs at a sample of points ``[K, C_a]``."""
        return torch.cat(self._static) if self._static else torch.empty(0, 0)

    @property
    def trend(self) -> list[float]:
        r"""The damped trend of each component, from 0 to 1; empty without time.

        .. math:: \phi = \frac{\sum (x_{t+1} - x_t)(x_t - x_{t-1})}{\sum (x_t -
            x_{t-1})^2}

        It is near 1 for fields that are smooth in time, and 0 for noisy ones, whose
        last value is held.
        """
        if self.n_in == 0:
            return []
        trend = self._product / self._square.clamp_min(1e-300)
        return torch.atleast_1d(trend.clamp(0, 1)).tolist()
