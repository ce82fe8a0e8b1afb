"""Losses against closed forms."""

import math

import pytest
import torch
from torch import Tensor

from nfsgeo.forecast.transforms import FieldNormaliser
from nfsgeo.training.losses import FLOOR, LOSSES, LossPoints

# Two samples of one and of three points, one time step, two components.
SIZES = (1, 3)
SCALE = FieldNormaliser(torch.tensor([10.0, -2.0]), torch.tensor([2.0, 4.0]))
TRUTH = torch.tensor([[3.0, 4.0], [0.0, 3.0], [2.0, 0.0], [0.0, 4.0]])[:, None]
ERROR = torch.tensor([[1.5, 1.0], [1.0, 3.0], [0.0, 0.0], [0.0, 4.0]])[:, None]
WEIGHT = torch.tensor([1.0, 0.5, 0.5, 2.0])

UNIFORM = {
    # Errors over the standard deviations 2 and 4; relative ones over distances from
    # the means 10 and -2.
    "mse": ((1.5**2 + 1) / 4 + (1 + 9 + 16) / 16) / 8,
    "mae": ((1.5 + 1) / 2 + (1 + 3 + 4) / 4) / 8,
    "relative_l2": (1.5 / 7 + 1 / 6 + 1 / 264**0.5 + 5 / 65**0.5) / 4,
}
QUADRATURE = {
    "mse": ((1.5**2 + 0.5) / 4 + (1 + 4.5 + 32) / 16) / 8,
    "mae": ((1.5 + 0.5) / 2 + (1 + 1.5 + 8) / 4) / 8,
    "relative_l2": (1.5 / 7 + 1 / 6 + (0.5 / 282) ** 0.5 + (36.5 / 86.5) ** 0.5) / 4,
}


def loss(name: str, truth: Tensor, error: Tensor, weight: Tensor | None = None):
    prediction = SCALE.normalise(truth + error)
    target = SCALE.normalise(truth)
    return LOSSES[name](prediction, target, LossPoints(SIZES, weight))


@pytest.mark.parametrize("name", LOSSES)
def test_closed_forms(name):
    assert loss(name, TRUTH, ERROR).item() == pytest.approx(UNIFORM[name], rel=1e-5)
    weighted = loss(name, TRUTH, ERROR, WEIGHT).item()
    assert weighted == pytest.approx(QUADRATURE[name], rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_a_perfect_prediction_has_no_loss_and_no_gradient(name):
    target = SCALE.normalise(TRUTH)
    prediction = target.clone().requires_grad_()
    value = LOSSES[name](prediction, target, LossPoints(SIZES))
    (gradient,) = torch.autograd.grad(value, prediction)
    assert value.item() < 1e-15 and not gradient.any()


@pytest.mark.parametrize("name", LOSSES)
def test_weights_are_those_of_an_integral(name):
    """A mesh four times as dense on one half gives the integral when weighed."""
    left = (torch.arange(400, dtype=torch.float64) + 0.5) / 800
    right = 0.5 + (torch.arange(100) + 0.5) / 200
    pos = torch.cat([left, right])
    weight = torch.cat([torch.full((400,), 0.625), torch.full((100,), 2.5)])
    target, error = torch.ones(500, 1, 1, dtype=torch.float64), pos[:, None, None]
    value = LOSSES[name](target + error, target, LossPoints((500,), weight))
    exact = {"mse": 1 / 3, "mae": 1 / 2, "relative_l2": math.sqrt(1 / 3)}
    assert value.item() == pytest.approx(exact[name], rel=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_units_and_offsets_change_nothing(name):
    """Pascals for hectopascals, degrees Celsius for kelvins, in double precision."""
    truth, error, weight = TRUTH.double(), ERROR.double(), WEIGHT.double()
    factor, offset = torch.tensor([[100.0, 1.0], [0.0, -273.15]]).double()
    scale = FieldNormaliser(SCALE.mean.double() * factor + offset, SCALE.std * factor)
    target = scale.normalise(truth * factor + offset)
    prediction = scale.normalise((truth + error) * factor + offset)
    value = LOSSES[name](prediction, target, LossPoints(SIZES, weight))
    torch.testing.assert_close(value, loss(name, truth, error, weight))


def test_the_relative_loss_of_a_field_that_is_the_mean_is_finite():
    error = torch.zeros(4, 1, 2)
    error[0, 0, 0] = 3.0
    value = loss("relative_l2", SCALE.mean.expand(4, 1, 2), error)
    assert value.item() == pytest.approx(3.0 / (2 * FLOOR) / 4, rel=1e-3)
