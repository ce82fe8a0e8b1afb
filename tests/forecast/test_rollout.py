"""Autoregressive rollouts of networks whose predictions are known."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster, rollout
from nfsgeo.forecast.transforms import Forcings, LeadTimes
from nfsgeo.geometry import Domain, Graphs

Make = Callable[..., Forecaster]
LINE = Domain.unit(1)


def sums(make: Make, n_in: int, n_out: int) -> Forecaster:
    """Each predicted time step is the sum of all inputs, the static one included."""

    def predict(x: Tensor, graphs: Graphs) -> Tensor:
        here = x.sum(dim=(1, 2))[:, None, None]
        if graphs.query_pos is not None:
            here = here.mean().expand(len(graphs.queries), 1, 1)
        return here.expand(-1, max(1, n_out), 1)

    return make(predict, domain=LINE, n_in=n_in, n_out=n_out, static=("a",))


@pytest.mark.parametrize(("n_in", "n_out"), [(3, 2), (2, 3), (1, 1), (2, 2)])
@pytest.mark.parametrize("steps", [1, 5, 6])
def test_each_window_sees_the_last_steps(forecaster_of, n_in, n_out, steps):
    """Against a loop over time steps on the same fields."""
    x = torch.randint(1, 5, (3, n_in, 2)).float()
    known, wanted = x[..., 0], list[Tensor]()
    while len(wanted) < steps:
        total = known[:, -n_in:].sum(1) + x[..., 1].sum(1)
        wanted += [total] * n_out
        known = torch.cat([known, total[:, None].expand(-1, n_out)], dim=1)
    found = rollout(sums(forecaster_of, n_in, n_out), x, torch.rand(3, 1), steps)
    assert torch.equal(found[..., 0], torch.stack(wanted[:steps], dim=1))


def test_observed_points_go_on_where_others_are_asked_for(forecaster_of):
    module, pos = sums(forecaster_of, 2, 1), torch.rand(3, 1)
    graphs = module.connect(pos, query_pos=torch.rand(5, 1))
    found = rollout(module, torch.ones(3, 2, 2), pos, 3, graphs=graphs)
    assert found.shape == (5, 3, 1)
    assert found[0, :, 0].tolist() == [4, 7, 13]  # 1+1+2, 1+4+2, 4+7+2


def test_a_problem_without_time_has_no_rollout(forecaster_of):
    module = sums(forecaster_of, 0, 1)
    with pytest.raises(UserError, match="3 time steps of a problem without time"):
        rollout(module, torch.ones(3, 1, 1), torch.rand(3, 1), 3)


@pytest.mark.parametrize(("n_in", "n_out"), [(3, 2), (2, 3), (1, 1)])
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_each_window_has_its_own_forcing(forecaster_of, n_in, n_out, steps):
    """The last value, 100 times the forcing there, and that at the window's start."""

    def predict(x: Tensor, graphs: Graphs) -> Tensor:
        forcing = module.model.forcing
        return x[:, -1:] + 100 * forcing[:, n_in:] + forcing[:, :1]

    unit = Forcings(mean=[0.0], std=[1.0])
    chosen: dict[str, Any] = {"n_in": n_in, "n_out": n_out, "forcings": ("f",)}
    module = forecaster_of(predict, unit, domain=LINE, **chosen)
    x = torch.randint(5, (3, n_in, 1)).float()
    forcing = torch.randint(5, (3, n_in + steps, 1)).float()
    found = rollout(module, x, torch.rand(3, 1), steps, forcing=forcing)
    last, expected = x[:, -1], []
    for step in range(steps):
        start = n_out * (step // n_out)
        now = last + 100 * forcing[:, n_in + step] + forcing[:, start]
        expected.append(now)
        if (step + 1) % n_out == 0:
            last = now
    assert torch.equal(found, torch.stack(expected, dim=1))


def test_windows_begin_at_their_own_times(forecaster_of):
    """Ten times the lead time, plus the time of the first input."""

    def predict(x: Tensor, graphs: Graphs) -> Tensor:
        time = module.model.forcing
        return 10 * time[:, -1:] + time[:, :1]

    stack = LeadTimes(), Forcings(mean=[0.0], std=[1.0])
    chosen: dict[str, Any] = {"n_in": 2, "n_out": 3, "any_time": True}
    module = forecaster_of(predict, *stack, longest_lead=9.0, **chosen)
    times = torch.tensor([0, 1, 1.5, 2, 4, 4.25, 5])
    found = rollout(module, torch.randn(3, 2, 1), torch.rand(3, 2), 5, times=times)
    expected = [10 * 0.5 - 1, 10 * 1 - 1, 10 * 3 - 1, 10 * 0.25 - 2, 10 * 1 - 2]
    assert found[0, :, 0].tolist() == expected
