"""Residual prediction: changes, damped persistence and rates, here and elsewhere."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Forcings, LeadTimes, Normalise, Residual
from nfsgeo.forecast.transforms.residual import SPEED
from nfsgeo.geometry import Domain, Graphs, Region, equispaced_grid
from nfsgeo.models import Task

BOX = Domain.unit(2, periodic=False)
SCALES = Normalise(mean=[7.0], std=[2.0], out_mean=[7.0], out_std=[2.0])


def nothing(x: Tensor, graphs: Graphs) -> Tensor:
    return x.new_zeros(len(graphs.queries), 2, 1)


def residual(**changes: Any) -> Residual:
    return Residual(**{"form": "residual", "mean": [0.0], "std": [1.0]} | changes)


def plane(points: Tensor) -> Tensor:
    return (1 + 2 * points[:, 0] - points[:, 1])[:, None, None]


def test_changes_are_added_to_the_last_time_step(forecaster_of):
    """Also where it was not observed: there it is interpolated, here exactly."""
    changes = residual(mean=[0.25], std=[3.0])
    module = forecaster_of(nothing, SCALES, changes, n_in=4)
    pos = equispaced_grid(BOX, (8, 8))
    x = torch.cat([torch.randn(64, 3, 1), plane(pos)], dim=1)
    expected = (plane(pos) + 2 * 0.25).expand(-1, 2, -1)
    torch.testing.assert_close(module(x, pos), expected)
    queries = 0.2 + 0.6 * torch.rand(9, 2)
    found = module(x, pos, query_pos=queries)
    expected = (plane(queries) + 2 * 0.25).expand(-1, 2, -1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    # One change of the network is three standard deviations of the fields, 2 each.
    ones = forecaster_of(lambda x, g: 1 + nothing(x, g), SCALES, changes, n_in=4)
    torch.testing.assert_close(
        ones(x, pos) - module(x, pos), torch.full_like(x[:, :2], 6.0)
    )


def test_damping_goes_from_persistence_to_the_mean(forecaster_of):
    damped = residual(form="damped")
    module = forecaster_of(nothing, SCALES, damped)
    x, pos = torch.randn(5, 1, 1), torch.rand(5, 2)
    torch.testing.assert_close(module(x, pos), x.expand(-1, 2, -1))
    with torch.no_grad():
        damped.change[1] = -1 / SPEED
    found = module(x, pos)
    torch.testing.assert_close(found[:, :1], x)
    torch.testing.assert_close(found[:, 1:], torch.full((5, 1, 1), 7.0))
    module(x, pos)[:, 0].sum().backward()
    expected = SPEED * (x - 7).sum()  # the factor times what the last time step is off
    torch.testing.assert_close(damped.change.grad[0, 0], expected.float())
    assert damped.change.grad[1, 0] == 0


def test_least_squares_finds_the_attenuation_of_noise(forecaster_of):
    """With noise of the signal's variance, half of what is observed is the signal."""
    signal, damped = torch.randn(20_000, 1, 1), residual(form="damped")
    module, pos = forecaster_of(nothing, damped), torch.rand(20_000, 2)
    graphs, noisy = module.connect(pos), signal + torch.randn_like(signal)
    optimiser = torch.optim.LBFGS([damped.change])

    def loss() -> Tensor:
        optimiser.zero_grad()
        error = (module(noisy, graphs=graphs) - signal).square().mean()
        error.backward()  # type: ignore[no-untyped-call]
        return error

    optimiser.step(loss)  # type: ignore[arg-type]
    assert damped.damping.flatten().tolist() == pytest.approx([0.5] * 2, abs=0.02)


@settings(max_examples=30, deadline=None)
@given(lead=st.floats(1e-3, 1e3), std=st.floats(1e-2, 1e2))
def test_a_rate_is_multiplied_by_its_time(forecaster_of, lead, std):
    def of(form: str) -> Forecaster:
        stack: list[Any] = [LeadTimes(), Forcings(mean=[0.0], std=[std])]
        stack.append(residual(form=form, lead_std=std))
        chosen = {"n_in": 2, "any_time": True, "longest_lead": 1e4}
        ones = torch.ones(5, 1, 1)
        return forecaster_of(lambda x, graphs: ones, *stack, **chosen)

    x, pos = torch.randn(5, 2, 1), torch.rand(5, 2)
    times = torch.tensor([-3.0, 0.0, lead, 2 * lead], dtype=torch.float64)
    expected = x[:, -1:] + torch.tensor([[lead / std], [2 * lead / std]])
    torch.testing.assert_close(of("rate")(x, pos, times=times), expected)
    change = of("residual")(x, pos, times=times)
    torch.testing.assert_close(change, (x[:, -1:] + 1).expand(-1, 2, -1))


def test_kriging_keeps_what_was_observed_and_the_expected_value(forecaster_of):
    parameters = [0.0, 0.0, 1.0, -9.0, -25.0, -20.0]
    krige = residual(covariance={"parameters": parameters, "expected": [0.25]})
    module = forecaster_of(nothing, SCALES, krige, n_in=4)
    pos, x = torch.rand(20, 2), torch.randn(20, 4, 1)
    found = module(x, pos, query_pos=pos[:5])
    torch.testing.assert_close(found, x[:5, -1:].expand(-1, 2, -1))
    constant = torch.full_like(x, 7.0 + 2 * 0.25)
    result = module(constant, pos, query_pos=torch.rand(9, 2))
    torch.testing.assert_close(result, constant[:9, :2])


@pytest.mark.parametrize("kriging", [False, True])
def test_predictions_are_differentiable_in_query_positions(kriging):
    """Through the last snapshot at the queries, too, not through the model alone."""
    parameters = [0.0, 0.0, 1.0, -5.0, -2.0, -9.0]
    krige = {"parameters": parameters, "expected": [0.5]} if kriging else None
    stack = [SCALES, residual(covariance=krige)]
    of: dict[str, Any] = {"domain": Domain((0, 0), (7, 7), (True, True)), "n_in": 3}
    of |= {"components": ("u",), "n_out": 2, "num_points": 40}
    task = Task(times=(-2, -1, 0, 1, 2), **of)
    sizes = {"width": 8, "modes": 2, "time_modes": 2, "depth": 1, "hidden": 8}
    module = Forecaster.build("nfs", sizes | {"grid": 8}, task, stack).double()
    pos, x = 7 * torch.rand(40, 2).double(), torch.randn(40, 3, 1).double()
    query_pos = (1 + 5 * torch.rand(2, 2).double()).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda at: module(x, pos, query_pos=at), (query_pos,), fast_mode=True
    )


def test_queries_that_walls_close_off_have_the_mean(forecaster_of):
    wall = Region.polygons([[[0.49, -1], [0.51, -1], [0.51, 2], [0.49, 2]]])
    domain = Domain((0, 0), (1, 1), (False, False), wall)
    module = forecaster_of(nothing, SCALES, residual(), domain=domain)
    pos = torch.rand(40, 2, dtype=torch.float64) * torch.tensor([0.48, 1.0])
    x = torch.full((40, 1, 1), 3.0)
    query = torch.tensor([[0.25, 0.5], [0.75, 0.5]], dtype=torch.float64)
    source, target = module.connect(pos, query_pos=query).edges["last"].edge_index
    assert not (target == 1).any() and len(source)
    found = module(x, pos, query_pos=query)
    torch.testing.assert_close(found[:, 0, 0], torch.tensor([3.0, 7.0]))
