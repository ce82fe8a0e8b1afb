"""What is known ahead reaches the network, normalised."""

from collections.abc import Callable

import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Forcings


def test_each_time_step_has_its_own_normalised_forcing(
    forecaster_of: Callable[..., Forecaster],
) -> None:
    module = forecaster_of(
        lambda x, graphs: module.model.problem.split(x)[1][:, 2:, :1],
        Forcings(mean=[1.0, 0.0], std=[4.0, 1.0]),
        n_in=2,
        n_out=3,
        forcings=("f", "g"),
    )
    # The field, and two components at three input lengths: 2 + 3 time steps.
    assert module.model.problem.in_components == 1 + 2 * 3
    x, pos = torch.randn(6, 2, 1), torch.rand(6, 2)
    forcing = torch.randn(6, 5, 2, requires_grad=True)
    found = module(x, pos, forcing=forcing)
    torch.testing.assert_close(found, (forcing[:, 2:, :1] - 1) / 4)
    (gradient,) = torch.autograd.grad(found.sum(), forcing)
    expected = torch.zeros(6, 5, 2)
    expected[:, 2:, 0] = 0.25
    torch.testing.assert_close(gradient, expected)
    for wrong, message in (
        ({}, r"expected .*forcing \[points, 2 \+ 3, 2\] \(f, g\)"),
        ({"forcing": forcing[:, :4]}, r"forcing of shape \[6, 4, 2\]"),
        (
            {"forcing": forcing, "times": torch.arange(5.0)},
            r"times of shape \[5\]: expected",
        ),
    ):
        with pytest.raises(UserError, match=message):
            module(x, pos, **wrong)
