"""Fields of mean zero and standard deviation one, component by component."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["FieldNormaliser", "Moments"]


class FieldNormaliser(nn.Module):
    """Shifts and scales each component of a field, the same at every point.

    A statistic held per point would belong to one mesh; these hold on any. Scaling is
    in double precision, so that small changes of a large value keep their digits.

    Args:
        mean: Mean of each component, ``[F]``.
        std: Standard deviation of each component, ``[F]``; 0 of one that is its mean,
            whatever is denormalised.

    Raises:
        ValueError: They are of two lengths, or a std is negative.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, mean: Tensor | Sequence[float], std: Tensor | Sequence[float]
    ) -> None:
        super().__init__()
        mean, std = (torch.as_tensor(each, dtype=torch.float64) for each in (mean, std))
        if mean.shape != std.shape or mean.ndim != 1 or not bool((std >= 0).all()):
            raise ValueError(
                f"mean {tuple(mean.shape)} and std {tuple(std.shape)}: expected two "
                "vectors of one length, std not negative"
            )
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def normalise(self, x: Tensor) -> Tensor:
        """Field ``[..., F]`` less its mean, in standard deviations, float64."""
        return (x - self.mean) / self.std.where(self.std > 0, 1)

    def denormalise(self, y: Tensor) -> Tensor:
        """A normalised field ``y [..., F]``, back in the units of the data, float64."""
        return y * self.std + self.mean

    def extra_repr(self) -> str:
        return f"mean={self.mean.tolist()}, std={self.std.tolist()}"


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
