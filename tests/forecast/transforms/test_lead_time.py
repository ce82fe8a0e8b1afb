"""Each time that is asked for is predicted by itself."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Forcings, LeadTimes
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Task

Make = Callable[..., Forecaster]
TIMES = torch.tensor([1, 2, 2.5, 4])


@pytest.fixture(scope="module")
def seen(forecaster_of: Make) -> tuple[Forecaster, list[Tensor]]:
    """A model of lead times, and the times that its network is told."""
    told: list[Tensor] = []

    def predict(x: Tensor, graphs: Any) -> Tensor:
        told.append(module.model.problem.split(x)[1][..., 0])
        return x[:, :1, :1]

    stack = LeadTimes(), Forcings(mean=[0.0], std=[1.0])
    chosen = {"n_in": 2, "any_time": True, "longest_lead": 4.0}
    module = forecaster_of(predict, *stack, **chosen)
    assert module.model.problem.n_out == 1 and module.model.problem.forcings == 1
    return module, told


def test_the_network_is_told_times_after_the_last_input(seen: Any) -> None:
    module, told = seen
    told.clear()
    x, pos, batch = torch.randn(3, 2, 1), torch.rand(3, 2), torch.tensor([0, 0, 1])
    assert module(x, pos, batch, times=torch.stack([TIMES, 2 * TIMES])).shape[1] == 2
    assert [each.tolist() for each in told] == [
        [[-1, 0, 0.5], [-1, 0, 0.5], [-2, 0, 1]],
        [[-1, 0, 2], [-1, 0, 2], [-2, 0, 4]],
    ]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (None, "expected .*times of the inputs"),
        ([0, 1], r"times of shape \[2\]"),
        ([0, 1, 3, 2.5], "each after the one"),
        ([0, 1, 1], "each after the one"),
        ([0, 1, 99], "at most 4, the longest lead time"),
        ([0, 1, torch.nan], "times with 1 of 3 values missing"),
    ],
)
def test_times_that_cannot_be_asked_for(seen: Any, times: Any, message: str) -> None:
    x, pos = torch.randn(3, 2, 1), torch.rand(3, 2)
    with pytest.raises(UserError, match=message):
        seen[0].predict(x, pos, times=times)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_sees_the_lead_time(name: str) -> None:
    if name in ("gino", "neuralop-fno"):
        pytest.importorskip("neuralop")
    fields = MODELS[name].Settings.model_fields
    chosen: dict[str, Any] = {"width": 32, "depth": 1, "window": 3, "grid": 8}
    chosen |= {"patch": 2, "time_patch": 1}
    chosen = {key: value for key, value in chosen.items() if key in fields}
    of: dict[str, Any] = {"n_in": 4, "n_out": 4, "any_time": True, "longest_lead": 4.0}
    of |= {"domain": Domain.unit(2), "num_points": 64, "grid_shape": (8, 8)}
    task = Task(components=("u",), times=tuple(range(-3, 5)), **of)
    torch.manual_seed(0)
    stack = [LeadTimes(), Forcings(mean=[0.0], std=[1.0])]
    module = Forecaster.build(name, chosen, task, stack).eval()
    axis = torch.arange(8) / 8
    pos = torch.cartesian_prod(axis, axis)
    x, times = torch.randn(64, 4, 1), torch.tensor([0, 1, 3, 4, 4.5, 6, 8])
    found = module(x, pos, times=times)
    assert found.shape == (64, 3, 1)
    assert not torch.isclose(found[:, 0], found[:, 1]).all()
    for step in range(3):  # whatever else is asked for, and whenever it is
        alone = module(x, pos, times=100 + times[[0, 1, 2, 3, 4 + step]])
        torch.testing.assert_close(alone, found[:, step : step + 1])
