"""What is added to the inputs: noise, the boundary, forcings, lead times."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import (
    BoundaryInputs,
    Forcings,
    LeadTimes,
    TrainingNoise,
)
from nfsgeo.geometry import Domain, Region
from nfsgeo.models import MODELS, Task

Make = Callable[..., Forecaster]
WALL = [[0.99, -1.0], [1.01, -1.0], [1.01, 2.0], [0.99, 2.0]]
TIMES = torch.tensor([1, 2, 2.5, 4])


def test_fields_are_noisy_in_training_and_static_inputs_never(
    forecaster_of, network_inputs
):
    module = forecaster_of(
        lambda x, graphs: x[..., :1].expand(-1, 2, -1),
        TrainingNoise(std=0.3, components=1),
        static=("a",),
    )
    x, pos = torch.randn(20_000, 1, 2), torch.rand(20_000, 2)
    assert torch.equal(network_inputs(module, x, pos), x)
    module.train()
    noise = network_inputs(module, x, pos) - x
    assert not noise[..., 1].any()
    assert noise[..., 0].mean().abs() < 0.01
    assert float(noise[..., 0].std()) == pytest.approx(0.3, rel=0.02)
    assert not torch.equal(network_inputs(module, x, pos) - x, noise)


def test_the_way_to_a_wall_is_an_input_at_every_time_step(
    forecaster_of, network_inputs
):
    domain = Domain((0, 0), (2, 1), (False, False), Region.polygons([WALL]))
    module = forecaster_of(lambda x, graphs: x, BoundaryInputs(), domain=domain, n_in=2)
    assert module.model.problem.in_components == 1 + 3
    x = torch.randn(2, 2, 1)
    pos = torch.tensor([[0.5, 0.5], [1.61, 0.2]], dtype=torch.float64)
    seen = network_inputs(module, x, pos)
    assert torch.equal(seen[..., :1], x)
    # In the normalised box, half as large: 0.49 to the right and 0.6 to the left.
    expected = torch.tensor([[0.245, 1.0, 0.0], [0.3, -1.0, 0.0]])
    torch.testing.assert_close(seen[..., 1:], expected[:, None].expand(-1, 2, -1))


def test_each_time_step_has_its_own_normalised_forcing(forecaster_of, refuses):
    module = forecaster_of(
        lambda x, graphs: module.model.forcing[:, 2:, :1],
        Forcings(mean=[1.0, 0.0], std=[4.0, 1.0]),
        n_in=2,
        n_out=3,
        forcings=("f", "g"),
    )
    # The field, and two components at three input lengths: 2 + 3 time steps.
    assert module.model.problem.num_features == 2 * (1 + 2 * 3)
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
        refuses(message, module, x, pos, **wrong)


@pytest.fixture(scope="module")
def seen(forecaster_of: Make) -> tuple[Forecaster, list[Tensor]]:
    """A model of lead times, and the times that its network is told."""
    told: list[Tensor] = []

    def predict(x: Tensor, graphs: Any) -> Tensor:
        told.append(module.model.forcing[..., 0])
        return x[:, :1, :1]

    stack = LeadTimes(), Forcings(mean=[0.0], std=[1.0])
    chosen = {"n_in": 2, "any_time": True, "longest_lead": 4.0}
    module = forecaster_of(predict, *stack, **chosen)
    assert module.model.problem.n_out == 1 and module.model.problem.forcings == 1
    return module, told


def test_the_network_is_told_times_after_the_last_input(seen):
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
def test_times_that_cannot_be_asked_for(seen, times, message, refuses):
    x, pos = torch.randn(3, 2, 1), torch.rand(3, 2)
    refuses(message, seen[0].predict, x, pos, times=times)


def test_graphs_of_a_batch_ask_for_as_many_times(seen):
    x, pos = torch.randn(3, 2, 1), torch.rand(3, 2)
    graphs = [Data(x=x, pos=pos, times=TIMES[:num]) for num in (3, 4)]
    assert [each.y.size(1) for each in seen[0].predict(graphs)] == [1, 2]
    with pytest.raises(UserError, match="a Batch whose graphs ask for different"):
        seen[0].predict(Batch.from_data_list(graphs))


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_sees_the_lead_time(name):
    if name in ("gino", "neuralop-fno"):
        pytest.importorskip("neuralop")
    fields = MODELS[name].Settings.model_fields
    chosen: dict[str, Any] = {"width": 32, "depth": 1, "window": 3, "grid": 8}
    chosen |= {"patch": 2, "time_patch": 1}
    chosen = {key: value for key, value in chosen.items() if key in fields}
    of: dict[str, Any] = {"n_in": 4, "n_out": 4, "any_time": True, "longest_lead": 4.0}
    of |= {"domain": Domain.unit(2), "num_points": 64, "grid_shape": (8, 8)}
    task = Task(components=("u",), times=tuple(range(-3, 5)), **of)
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
