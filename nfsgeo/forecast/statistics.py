"""Everything that is fitted to the training windows, in one pass over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["Moments", "Statistics"]

POINTS = 64  # of a window, whose static inputs are kept


class Moments:
    """Mean and standard deviation of each component, added up tensor by tensor.

    Missing values, NaN, do not count. In float64 and stable for any order and size, by
    the update of Chan, Golub and LeVeque.
    """

    def __init__(self) -> None:
        self.count, self.rounding = torch.zeros(1).double(), 0.0
        self.mean = self.spread = torch.zeros((), dtype=torch.float64)

    def add(self, field: Tensor) -> None:
        """Adds a field ``[..., F]``."""
        # Of the mean: a standard deviation that rounding amounts to.
        rounding = 1e-12 if field.dtype == torch.float64 else 1e-7
        self.rounding = max(self.rounding, rounding)
        values = field.detach().to("cpu", torch.float64).flatten(0, -2)
        num = (~values.isnan()).sum(dim=0).double()
        here = values.nanmean(dim=0).nan_to_num()
        total = self.count + num
        step, least = here - self.mean, total.clamp_min(1)
        self.spread = self.spread + (values - here).square().nansum(dim=0)
        self.spread = self.spread + step.square() * (self.count * num / least)
        self.mean = self.mean + step * (num / least)
        self.count = total

    @property
    def std(self) -> Tensor:
        """The standard deviation ``[F]``; 0 where it is no more than rounding.

        Raises:
            ValueError: there is no value of some component.
        """
        if not bool((self.count > 0).all()):
            raise ValueError("a normaliser needs at least one value to be fitted on")
        std = (self.spread / self.count).sqrt()
        return std.masked_fill(std <= self.rounding * self.mean.abs(), 0)

    @property
    def scale(self) -> Tensor:
        """The standard deviation, or 1 of a component that never changes."""
        return torch.where(self.std == 0, torch.ones_like(self.std), self.std)


@dataclass
class Statistics:
    """Statistics of training windows, each of all components at once.

    Attributes:
        n_in: input time steps; 0 without time.
        n_out: predicted time steps; targets may go on after them.
        any_time: whether the model predicts any time that is asked for.
        categories: components of the input that are categories, and their names.
        values: values of each of these, by the number of the component.
        inputs: of the input, fields and what does not change in time.
        fields: of the fields at the time steps of inputs and targets.
        changes: of the targets less the last input.
        rates: of these changes, each divided by the time it takes.
        forcings: of what is known ahead, for any time with the lead time as the last.
        longest_lead: time from the last input to the last target.
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
        """Adds a training window, see :class:`~nfsgeo.data.windows.WindowDataset`."""
        self.inputs.add(window.x)
        for column in self.categories:
            there = window.x[:, 0, column].unique().long().tolist()
            self.values.setdefault(column, set()).update(there)
        if window.x.size(-1) > (first := window.y.size(-1) * (self.n_in > 0)):
            drawn = torch.Generator().manual_seed(len(self._static))
            chosen = torch.randperm(len(window.x), generator=drawn)[:POINTS]
            self._static.append(window.x[chosen, 0, first:].double())
        forcing = window.get("forcing")
        if self.n_in == 0:
            self.fields.add(window.y)
        else:
            own = window.x[..., : window.y.size(-1)]
            fields = torch.cat([own, window.y], dim=1)
            self.fields.add(fields)
            steps = fields.double().diff(dim=1)
            pairs = steps[:, 1:] * steps[:, :-1]
            squares = steps[:, :-1].square().where(~pairs.isnan(), 0)
            self._product = self._product + pairs.nansum((0, 1))
            self._square = self._square + squares.sum((0, 1))
            change = window.y[:, : self.n_out] - own[:, -1:]
            self.changes.add(change)
            leads = window.times - window.times[self.n_in - 1]
            self.longest_lead = max(self.longest_lead, float(leads[-1]))
            if self.any_time:
                self.rates.add(change.double() / leads[self.n_in :, None])
                time = leads[:, None].expand(len(own), -1, -1)
                forcing = time if forcing is None else torch.cat([forcing, time], -1)
        if forcing is not None:
            self.forcings.add(forcing)

    @property
    def first_static(self) -> int:
        """Number of the first component of the input that does not change in time."""
        return len(self.fields.mean) if self.n_in else 0

    def static(self) -> Tensor:
        """Values of what does not change in time at some points ``[K, C_a]``."""
        return torch.cat(self._static) if self._static else torch.empty(0, 0)

    @property
    def trend(self) -> list[float]:
        r"""The damped trend of each component, from 0 to 1; empty without time.

        .. math:: \phi = \frac{\sum (x_{t+1} - x_t)(x_t - x_{t-1})}{\sum (x_t -
            x_{t-1})^2}

        Near 1 for fields that are smooth in time; 0 for noisy ones, whose last value is
        held.
        """
        if self.n_in == 0:
            return []
        trend = self._product / self._square.clamp_min(1e-300)
        return torch.atleast_1d(trend.clamp(0, 1)).tolist()
