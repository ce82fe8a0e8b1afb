"""The order of the training samples."""

from __future__ import annotations

import pytest

from nfsgeo.training.datamodule import EpochSampler


def order(seed: int, epoch: int, **devices: int) -> list[int]:
    return list(EpochSampler(10, seed=seed, epoch=epoch, **devices))


def test_each_sample_once() -> None:
    assert sorted(order(0, 0)) == list(range(10))


def test_the_order_is_that_of_the_seed_and_the_epoch() -> None:
    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 1) != order(1, 0)


@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_devices_divide_the_order_evenly(num_devices: int) -> None:
    parts = [order(0, 0, device=d, num_devices=num_devices) for d in range(num_devices)]
    assert len({len(part) for part in parts}) == 1
    together = [sample for step in zip(*parts, strict=True) for sample in step]
    assert together[:10] == order(0, 0)
