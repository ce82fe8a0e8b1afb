"""Errors against their closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from nfsgeo.training import ErrorByTimeStep, FieldErrors


def test_closed_forms() -> None:
    truth = torch.tensor([3.0, 4.0]).view(2, 1, 1)
    errors = FieldErrors()
    errors.update(truth + torch.tensor([1.0, -3.0]).view(2, 1, 1), truth)
    assert errors.compute() == pytest.approx(
        {
            "mae": 2.0,
            "rmse": math.sqrt(5),
            "rel_l2": math.sqrt(10) / 5,
            "rel_l1": 4 / 7,
        }
    )


def test_rmse_is_the_mean_of_each_samples_own() -> None:
    # Errors of 1 everywhere in a sample of one point, 3 in a sample of three points.
    truth = torch.ones(4, 2, 1)
    prediction = truth + torch.tensor([1.0, 3.0, 3.0, 3.0]).view(4, 1, 1)
    errors = FieldErrors()
    errors.update(prediction, truth, torch.tensor([0, 1, 1, 1]))
    names = ("mae", "rmse", "rel_l2", "rel_l1")
    assert errors.compute() == pytest.approx(dict.fromkeys(names, 2.0))


def test_a_sample_without_points_in_the_batch_does_not_count() -> None:
    truth = torch.ones(4, 1, 1)
    errors = FieldErrors()
    errors.update(truth + 1, truth, torch.tensor([0, 0, 2, 2]))
    assert errors.compute()["mae"] == 1.0
    errors.update(truth[:0], truth[:0], torch.tensor([], dtype=torch.long))
    assert errors.compute()["mae"] == 1.0


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_nothing_measured_is_not_a_number() -> None:
    assert math.isnan(FieldErrors().compute()["mae"])


def test_components_have_errors_of_their_own() -> None:
    # A temperature in °C around 15 and a pressure in hPa around 1013.
    mean, std = (15.0, 1013.0), (4.0, 2.0)
    signal = torch.tensor([[4.0, 2.0], [-4.0, -2.0]]).view(2, 1, 2)
    truth = torch.tensor(mean) + signal
    prediction = truth + torch.tensor([1.0, 2.0])
    errors = FieldErrors(mean, std)
    errors.update(prediction, truth)
    temperature, pressure = errors.by_component()
    expected = {"mae": 1.0, "rmse": 1.0, "rel_l2": 0.25, "rel_l1": 0.25}
    assert temperature == pytest.approx(expected)
    # As wrong as the pressure varies, however large the pressure itself.
    expected = {"mae": 2.0, "rmse": 2.0, "rel_l2": 1.0, "rel_l1": 1.0}
    assert pressure == pytest.approx(expected, rel=1e-4)
    assert errors.compute() == pytest.approx(dict.fromkeys(expected, 0.625), rel=1e-4)
    together = FieldErrors()
    together.update(prediction, truth)
    assert together.compute()["rel_l2"] < 0.003 and together.by_component() == []


def test_the_unit_of_a_component_does_not_change_the_pooled_error() -> None:
    truth, prediction = torch.randn(2, 12, 5, 2).double()
    batch = torch.arange(4).repeat_interleave(3)
    found = []
    for unit, offset in ((1.0, 0.0), (100.0, 101300.0)):
        scale, shift = torch.tensor([1.0, unit]), torch.tensor([0.0, offset])
        errors = FieldErrors([0.0, offset], [1.0, unit])
        errors.update(prediction * scale + shift, truth * scale + shift, batch)
        found.append(errors.compute())
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_batches_do_not_matter_to_components() -> None:
    truth, prediction = torch.randn(2, 12, 5, 2)
    batch = torch.arange(4).repeat_interleave(3)
    at_once, one_by_one = (FieldErrors([0.1, 0.2], [1.0, 3.0]) for _ in range(2))
    at_once.update(prediction, truth, batch)
    for sample in range(4):
        one_by_one.update(prediction[batch == sample], truth[batch == sample])
    assert at_once.compute() == pytest.approx(one_by_one.compute(), rel=1e-12)


def test_a_mean_without_a_standard_deviation_is_refused() -> None:
    with pytest.raises(ValueError, match="give both"):
        FieldErrors([0.0, 1.0])


def test_a_sample_that_is_zero_leaves_relative_errors() -> None:
    errors = FieldErrors()
    truth = torch.tensor([2.0, 2.0, 0.0]).view(3, 1, 1)
    errors.update(truth + 1, truth, torch.tensor([0, 0, 1]))
    assert errors.compute() == {"mae": 1, "rmse": 1, "rel_l2": 0.5, "rel_l1": 0.5}
    assert errors.without_energy() == [1]
    errors.reset()
    errors.update(truth[2:] + 1, truth[2:])
    assert errors.compute()["mae"] == 1 and math.isnan(errors.compute()["rel_l2"])


def test_a_constant_component_leaves_pooled_errors() -> None:
    truth, prediction = torch.randn(2, 12, 5, 2)
    batch = torch.arange(4).repeat_interleave(3)
    alone, both = FieldErrors([0.1], [2.0]), FieldErrors([0.1, 7.0], [2.0, 0.0])
    alone.update(prediction[..., :1], truth[..., :1], batch)
    truth[..., 1] = 7
    both.update(prediction, truth, batch)
    assert both.compute() == pytest.approx(alone.compute(), rel=1e-12)
    constant = both.by_component()[1]
    assert constant["mae"] > 0 and math.isnan(constant["rel_l1"])
    assert both.without_energy() == [0, 4]
    only = FieldErrors([7.0], [0.0])
    only.update(prediction[..., 1:], truth[..., 1:], batch)
    assert only.compute()["mae"] == constant["mae"]


def test_a_sample_at_the_mean_leaves_relative_errors() -> None:
    truth, batch = torch.randn(6, 2, 1), torch.tensor([0, 0, 0, 1, 1, 1])
    truth[3:] = 5 + 1e-5 * truth[3:]
    errors = FieldErrors([5.0], [1.0])
    errors.update(truth + 1, truth, batch)
    assert errors.without_energy() == [1] and errors.compute()["rel_l2"] < 10


def test_a_prediction_that_is_not_a_number_is_seen() -> None:
    truth = torch.randn(6, 2, 2)
    errors = FieldErrors([0.0, 0.0], [1.0, 1.0])
    errors.update(truth * torch.tensor([1.0, math.nan]), truth)
    assert all(math.isnan(value) for value in errors.compute().values())


def test_error_of_each_record_and_component() -> None:
    truth = torch.zeros(3, 2, 2)
    errors = ErrorByTimeStep()
    errors.update(truth + torch.tensor([[1.0, 5.0], [-2.0, 0.0]]), truth)
    errors.update(truth, truth)
    assert errors.compute().tolist() == [[0.5, 2.5], [1.0, 0.0]]
