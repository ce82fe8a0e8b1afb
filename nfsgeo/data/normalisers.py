"""Fields of mean zero and standard deviation one, component by component."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import torch
from torch import Tensor, nn

__all__ = ["FieldNormaliser", "mean_and_std"]

# Of the mean: a standard deviation that rounding amounts to, in each precision.
ROUNDING = {torch.float64: 1e-12}


class FieldNormaliser(nn.Module):
    """Shifts and scales each component of a field, the same at every point.

    A statistic held per point would belong to one mesh; these hold on any. Scaling is
    in double precision, so that small changes of a large value keep their digits.

    Args:
        mean: Mean of each component, ``[F]``.
        std: Standard deviation of each component, ``[F]``, positive.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        if mean.shape != std.shape or mean.ndim != 1 or not bool((std > 0).all()):
            raise ValueError(
                f"mean {tuple(mean.shape)} and std {tuple(std.shape)}: expected two "
                "vectors of one length, std positive"
            )
        self.register_buffer("mean", mean.to(torch.float64))
        self.register_buffer("std", std.to(torch.float64))

    @classmethod
    def fit(cls, fields: Iterable[Tensor]) -> Self:
        """Statistics over all values of each component, in one pass and in float64.

        A component that never changes gets a standard deviation of one. Missing values,
        NaN, do not count.

        Args:
            fields: Tensors ``[..., F]``, for example ``data.x`` of each training
                sample; nothing but training data belongs here.

        Raises:
            ValueError: There is no value of some component to fit on.
        """
        mean, std = mean_and_std(fields)
        return cls(mean, torch.where(std == 0, torch.ones_like(std), std))

    def normalise(self, x: Tensor) -> Tensor:
        """Field ``[..., F]`` less its mean, in standard deviations, float64."""
        return (x - self.mean) / self.std

    def denormalise(self, y: Tensor) -> Tensor:
        """A normalised field ``y [..., F]``, back in the units of the data, float64."""
        return y * self.std + self.mean

    def extra_repr(self) -> str:
        return f"mean={self.mean.tolist()}, std={self.std.tolist()}"


def mean_and_std(fields: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each component, see :meth:`FieldNormaliser.fit`.

    The standard deviation is 0 where it is no more than rounding.
    """
    count, mean, spread = torch.zeros(1).double(), torch.zeros(()), torch.zeros(())
    rounding = 0.0
    for field in fields:
        rounding = max(rounding, ROUNDING.get(field.dtype, 1e-7))
        values = field.detach().to("cpu", torch.float64).flatten(0, -2)
        num = (~values.isnan()).sum(dim=0).double()
        whole = bool((num == len(values)).all())
        here = values.mean(dim=0) if whole else values.nanmean(dim=0).nan_to_num()
        values = torch.where(values.isnan(), here, values)
        # Chan, Golub and LeVeque's update: stable for any order and size.
        total = count + num
        step, least = here - mean, total.clamp_min(1)
        spread = spread + (values - here).square().sum(dim=0)
        spread = spread + step.square() * (count * num / least)
        mean = mean + step * (num / least)
        count = total
    if not bool((count > 0).all()):
        raise ValueError("a normaliser needs at least one value to be fitted on")
    std = (spread / count).sqrt()
    return mean, std.masked_fill(std <= rounding * mean.abs(), 0)
