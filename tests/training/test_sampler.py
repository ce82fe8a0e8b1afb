"""The order of the training samples."""

from types import SimpleNamespace
from typing import Any

import pytest

from nfsgeo.training import RunConfig
from nfsgeo.training.module import WindowData


class Numbers(list[int]):
    turn = 0


def order(seed: int, epoch: int, device: int = 0, num_devices: int = 1) -> list[int]:
    parts: Any = {"train": Numbers(range(10))}
    data = WindowData(parts, Any, RunConfig(seed=seed))
    names = ("current_epoch", "global_rank", "world_size")
    values = (epoch, device, num_devices)
    data.trainer = SimpleNamespace(**dict(zip(names, values, strict=True)))
    return list(data.train_dataloader().sampler)


def test_the_order_is_that_of_the_seed_and_the_epoch() -> None:
    assert sorted(order(0, 0)) == list(range(10))
    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 1) != order(1, 0)


@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_devices_divide_the_order_evenly(num_devices: int) -> None:
    parts = [order(0, 0, device, num_devices) for device in range(num_devices)]
    assert len({len(part) for part in parts}) == 1
    together = [sample for step in zip(*parts, strict=True) for sample in step]
    assert together[:10] == order(0, 0)
