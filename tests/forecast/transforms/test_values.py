"""Normalisation in double precision, and missing values filled in and told."""

import torch

from nfsgeo.forecast.transforms import MissingValues, Normalise

NAN = torch.nan
# Points at 0.1, 0.2 and 0.9 on a line; the second has no value at all.
POS = torch.tensor([[0.1, 0.5], [0.2, 0.5], [0.9, 0.5]])
X = torch.tensor([[1.0, NAN, 5.0, NAN], [NAN] * 4, [NAN, 2.0, 4.0, 6.0]])[..., None]
SCALES = Normalise(mean=[1.0, 5.0], std=[2.0, 10.0], out_mean=[7.0], out_std=[3.0])
FIELD = torch.tensor([[[5.0, 25.0]]])


def test_the_network_sees_normalised_fields_and_gives_them(forecaster_of):
    seen = []
    module = forecaster_of(
        lambda x, graphs: seen.append(x) or x[:, :, :1].expand(-1, 2, -1),
        SCALES,
        static=("a",),
    )
    x = FIELD.clone().requires_grad_()
    result = module(x, torch.zeros(1, 2))
    assert seen[0].tolist() == [[[2.0, 2.0]]]
    assert result.flatten().tolist() == [13.0, 13.0]  # 2 * 3 + 7
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert gradient.tolist() == [[[2 * 3.0 / 2.0, 0.0]]]


def test_small_changes_of_a_large_value_keep_their_digits(forecaster_of):
    large = {"mean": [101325.0], "std": [0.01]}
    scales = Normalise(**large, out_mean=large["mean"], out_std=large["std"])
    module = forecaster_of(lambda x, graphs: x.expand(-1, 2, -1), scales)
    x = torch.tensor([[[101325.001]]], dtype=torch.float64)
    found = module(x, torch.zeros(1, 2))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, x.expand(-1, 2, -1), rtol=0, atol=1e-9)


def stack(gaps: bool) -> list[Normalise | MissingValues]:
    unit = Normalise(mean=[2.0], std=[1.0], out_mean=[0.0], out_std=[1.0])
    return [unit, MissingValues(trend=[0.5] * gaps, indicators=int(gaps), gaps=gaps)]


def test_gaps_are_filled_from_the_same_point_and_else_from_neighbours(
    forecaster_of, network_inputs
):
    module = forecaster_of(lambda x, graphs: x, *stack(True), n_in=4)
    seen = network_inputs(module, X, POS)
    filled, observed = (2 + seen[..., 0]), seen[..., 1]
    assert torch.equal(observed, (~X[..., 0].isnan()).float())
    # Between two values the mean, after the last half of the slope of 2 a step.
    torch.testing.assert_close(filled[0], torch.tensor([1.0, 3.0, 5.0, 6.0]))
    torch.testing.assert_close(filled[2], torch.tensor([2.0, 2.0, 4.0, 6.0]))
    weight = torch.tensor([0.1, 0.7]) ** -2  # of the inverse squared distance
    expected = (weight @ filled[[0, 2]]) / weight.sum()
    torch.testing.assert_close(filled[1], expected, rtol=1e-5, atol=1e-5)


def test_gradients_reach_what_was_observed_alone(forecaster_of):
    module = forecaster_of(lambda x, g: x[:, -2:, :1], *stack(True), n_in=4)
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(module(x, POS).sum(), x)
    assert gradient.isfinite().all() and not gradient[X.isnan()].any()
    share = 0.1**-2 / (0.1**-2 + 0.7**-2)
    # Of the time steps 2 and 3: itself, 1.5 - 0.5 times the slope, and the neighbour's.
    expected = torch.tensor([-0.25, 0, 2.25, 0]) * (1 + share)
    torch.testing.assert_close(gradient[0, :, 0], expected, rtol=1e-5, atol=1e-5)


def test_a_model_of_complete_fields_has_no_indicator_but_fills_gaps_in(forecaster_of):
    module = forecaster_of(lambda x, graphs: x[:, -2:], *stack(False), n_in=4)
    assert module.model.problem.in_components == 1
    assert torch.equal(module(X, POS)[2, :, 0], torch.tensor([2.0, 4.0]))
    assert module(X, POS).isfinite().all()
