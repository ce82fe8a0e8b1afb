"""Noise on the inputs, in training alone."""

from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Batch, Data

from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import TrainingNoise


def test_fields_are_noisy_in_training_and_static_inputs_never(
    forecaster_of: Callable[..., Forecaster],
) -> None:
    module = forecaster_of(
        lambda x, graphs: x[..., :1].expand(-1, 2, -1),
        TrainingNoise(std=0.3, components=1),
        static=("a",),
    )
    x, pos = torch.randn(20_000, 1, 2), torch.rand(20_000, 2)
    batch = Batch.from_data_list([Data(x=x, pos=pos)])
    torch.manual_seed(0)
    assert torch.equal(module.network_inputs(batch), x)
    module.train()
    noise = module.network_inputs(batch) - x
    assert not noise[..., 1].any()
    assert noise[..., 0].mean().abs() < 0.01
    assert float(noise[..., 0].std()) == pytest.approx(0.3, rel=0.02)
    assert not torch.equal(module.network_inputs(batch) - x, noise)
