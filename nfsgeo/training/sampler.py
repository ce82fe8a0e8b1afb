"""The order in which training samples come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch.utils.data import Sampler

__all__ = ["EpochSampler"]


class EpochSampler(Sampler[int]):
    """A shuffle that depends on nothing but the seed and the epoch.

    An interrupted epoch is repeated in the same order without any stored state. With
    several devices each takes every ``num_devices``-th sample; the first samples come
    again at the end where they do not divide evenly.

    Args:
        num_samples: Samples to choose from.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.
        device: Number of this device.
        num_devices: How many devices share an epoch.
    """

    def __init__(
        self,
        num_samples: int,
        *,
        seed: int,
        epoch: int,
        device: int = 0,
        num_devices: int = 1,
    ) -> None:
        order = np.random.default_rng([seed, epoch]).permutation(num_samples)
        share = -(-num_samples // num_devices)
        self.order = np.resize(order, share * num_devices)[device::num_devices]

    def __iter__(self) -> Iterator[int]:
        return iter(self.order.tolist())

    def __len__(self) -> int:
        return len(self.order)
