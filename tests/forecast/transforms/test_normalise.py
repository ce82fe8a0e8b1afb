"""Normalisation of inputs and outputs, in double precision."""

from collections.abc import Callable

import torch

from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Normalise

Make = Callable[..., Forecaster]
SCALES = Normalise(mean=[1.0, 5.0], std=[2.0, 10.0], out_mean=[7.0], out_std=[3.0])
X = torch.tensor([[[5.0, 25.0]]])


def test_the_network_sees_normalised_fields_and_gives_them(forecaster_of: Make) -> None:
    seen = []
    module = forecaster_of(
        lambda x, graphs: seen.append(x) or x[:, :, :1].expand(-1, 2, -1),
        SCALES,
        static=("a",),
    )
    x = X.clone().requires_grad_()
    result = module(x, torch.zeros(1, 2))
    assert seen[0].tolist() == [[[2.0, 2.0]]]
    assert result.flatten().tolist() == [13.0, 13.0]  # 2 * 3 + 7
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert gradient.tolist() == [[[2 * 3.0 / 2.0, 0.0]]]


def test_small_changes_of_a_large_value_keep_their_digits(forecaster_of: Make) -> None:
    large = {"mean": [101325.0], "std": [0.01]}
    scales = Normalise(**large, out_mean=large["mean"], out_std=large["std"])
    module = forecaster_of(lambda x, graphs: x.expand(-1, 2, -1), scales)
    x = torch.tensor([[[101325.001]]], dtype=torch.float64)
    found = module(x, torch.zeros(1, 2))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, x.expand(-1, 2, -1), rtol=0, atol=1e-9)
