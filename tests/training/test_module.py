"""The training step around a forecaster, its optimiser, schedule and samples."""

from collections.abc import Callable
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.config import DataSection, OptimiserSection
from nfsgeo.data.windows import ConnectedBatches
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Normalise
from nfsgeo.training import RunConfig, TrainingModule
from nfsgeo.training.losses import LOSSES
from nfsgeo.training.module import WindowData, make_optimiser, make_schedule

Make = Callable[..., Any]


@pytest.fixture
def module_of(forecaster_of: Callable[..., Forecaster]) -> Make:
    """Training of a formula that a forecaster puts in the place of a network."""

    def make(formula: Any, std: float, **fields: Any) -> TrainingModule:
        num = 1 + len(fields)
        scales = {"mean": [1.0, 5.0][:num], "std": [std, 10.0][:num]}
        normalise = Normalise(**scales, out_mean=[1.0], out_std=[std])
        forecaster = forecaster_of(formula, normalise, **fields)
        module = TrainingModule(forecaster, OptimiserSection())
        module.log = lambda *_, **__: None  # type: ignore[method-assign]
        return module

    return make


def last(x: Tensor, graphs: Any) -> Tensor:
    return x[:, -1:, :1].expand(-1, 2, -1)


def batch(x: Tensor, y: Tensor, samples: list[int]) -> Batch:
    """Graphs of one point each."""
    rows = zip(x, y, samples, strict=True)
    pos = torch.zeros(1, 2)
    return Batch.from_data_list(
        [Data(x=u[None], y=v[None], pos=pos, sample=s) for u, v, s in rows]
    )


X = torch.tensor([[[1.0, 5.0]], [[3.0, 5.0]]])  # what the last time step repeats


def test_the_loss_is_that_of_normalised_fields(module_of):
    module = module_of(last, 4.0, static=("a",))
    y = torch.tensor([[[3.0], [3.0]], [[3.0], [7.0]]])
    loss = module.training_step(batch(X, y, [0, 1]), 0)
    # Errors 2, 2, 0, 4 in the units of the data, over a standard deviation of 4.
    assert loss.item() == pytest.approx((4 + 4 + 0 + 16) / 16 / 4)


@pytest.mark.parametrize(("second", "total"), [(1.0, 4.0), (torch.nan, 3.5)])
def test_quadrature_weights_weigh_the_loss_and_gaps_leave_it(module_of, second, total):
    module = module_of(last, 1.0, static=("a",))
    graphs = batch(X, torch.tensor([[[3.0], [second]], [[6.0], [3.0]]]), [0, 1])
    graphs.volume = torch.tensor([0.5, 1.5])
    loss = module.training_step(graphs, 0)
    assert loss.item() == pytest.approx((0.5 * 4 + 1.5 * 9) / total)


def test_the_loss_is_over_observed_and_query_points(module_of):
    """Of a model that predicts the first coordinate of every query."""
    module = module_of(lambda x, g: g.queries[:, None, :1].expand(-1, 2, -1), 1.0)
    observed = torch.tensor([[0.1, 0.0], [0.2, 0.0]])
    items = [
        Data(
            x=torch.zeros(2, 1, 1),
            pos=observed,
            y=torch.ones(2, 2, 1),
            query_pos=torch.cat([observed, torch.tensor([[number, 0.0]])]),
            query_y=torch.ones(3, 2, 1),
            mesh=sample,
            sample=sample,
        )
        for sample, number in enumerate((0.3, 0.5))
    ]
    connected = ConnectedBatches(module.forecaster.connect)(items)
    loss = module.training_step(connected, 0)
    assert loss.item() == pytest.approx((1 + 4 + 9 + 1 + 4 + 25) / 600)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_loss(module_of, name):
    """Of a network with one weight, against a difference quotient."""
    module = module_of(lambda x, g: made.kind * last(x, g), 2.0, static=("a",))
    module.loss, made = LOSSES[name], module.forecaster.model
    graphs, found = batch(X, torch.tensor([[[3.0], [1.5]], [[6.0], [3.0]]]), [0, 1]), []
    for value in (0.5, 0.5 - 1e-3, 0.5 + 1e-3):
        torch.nn.init.constant_(made.kind, value)
        found.append(module.training_step(graphs, 0))
    found[0].backward()
    expected = (found[2] - found[1]).item() / 2e-3
    assert made.kind.grad is not None
    assert made.kind.grad.item() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_the_samples(module_of, bad):
    module = module_of(last, 1.0, static=("a",))
    zeros = torch.zeros(2, 2, 1)
    module.training_step(batch(X, zeros, [1, 2]), 0)
    module.training_step(batch(torch.full_like(X, bad), zeros, [4, 11]), 1)
    with pytest.raises(UserError, match=r"samples \[4, 11\].*a finite number"):
        module.validation_step(batch(X, zeros, [5, 6]), 0)


def test_a_model_with_a_loss_of_its_own_sees_normalised_fields(module_of):
    module, seen = module_of(last, 2.0), []
    model = module.forecaster.model

    def training_loss(
        x: Tensor, target: Tensor, graphs: Any, loss: Any, forcing: Any
    ) -> Tensor:
        seen.extend([x, target, graphs.batch])
        return loss(torch.full_like(target, 5.0), target)

    model.training_loss, model.autoregressive = training_loss, True
    x, y = torch.full((2, 1, 1), 5.0), torch.full((2, 2, 1), 9.0)
    loss = module.training_step(batch(x, y, [0, 0]), 0)
    # 5 and 9 are 2 and 4 standard deviations of 2 above the mean of 1.
    assert seen[0].flatten().tolist() == [2.0, 2.0]
    assert seen[1].flatten().tolist() == [4.0] * 4
    assert seen[2].tolist() == [0, 1]
    assert loss.item() == 1.0


def rates(epochs: int, steps: int, **settings: Any) -> list[float]:
    section = OptimiserSection(**settings)
    optimiser = make_optimiser([torch.nn.Parameter(torch.ones(1))], section)
    schedule = make_schedule(optimiser, section, epochs=epochs, steps_per_epoch=steps)
    seen = []
    for _ in range(epochs * steps):
        seen.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return seen


def test_constant_and_step_schedules_count_epochs():
    assert rates(3, 2, lr=0.1, schedule="constant") == [0.1] * 6
    seen = rates(6, 3, lr=1.0, schedule="step", step_epochs=2, step_factor=0.5)
    assert seen == pytest.approx([1.0] * 6 + [0.5] * 6 + [0.25] * 6)


def test_one_cycle_rises_to_the_rate_and_falls_to_nothing():
    seen = rates(10, 10, lr=1.0, schedule="one-cycle", one_cycle_rise=0.3)
    top = seen.index(max(seen))
    assert max(seen) == pytest.approx(1.0, rel=1e-3)
    assert 28 <= top <= 30
    assert seen[:top] == sorted(seen[:top])
    assert seen[top:] == sorted(seen[top:], reverse=True)
    assert seen[-1] < 1e-4


def test_betas_are_those_asked_for():
    section = OptimiserSection(
        name="adamw", lr=1e-3, betas=(0.8, 0.9), weight_decay=0.1
    )
    optimiser = make_optimiser([torch.nn.Parameter(torch.ones(1))], section)
    make_schedule(optimiser, section, epochs=2, steps_per_epoch=2)
    assert isinstance(optimiser, torch.optim.AdamW)
    group = optimiser.param_groups[0]
    assert (group["betas"], group["weight_decay"]) == ((0.8, 0.9), 0.1)


class Numbers(list[int]):
    epoch = 0


def steps(part: str, num: int, devices: int = 1, **seeds: int) -> list[list[list[int]]]:
    """The windows that count of each step and device."""
    parts: Any = {part: Numbers(range(num))}
    found = []
    for device in range(devices):
        section = DataSection(batch_size=2)
        config = RunConfig(seed=seeds.get("seed", 0), data=section)
        data = WindowData(parts, Any, config)
        data.trainer = SimpleNamespace(
            current_epoch=seeds.get("epoch", 0),
            global_rank=device,
            world_size=devices,
        )
        loader = data.train_dataloader() if part == "train" else data.val_dataloader()
        batches: Any = loader.batch_sampler
        counts = [data.num_samples(part, k)[0] for k in range(len(batches))]
        found.append([batch[:n] for batch, n in zip(batches, counts, strict=True)])
        assert all(batches)
    return [list(step) for step in zip_longest(*found, fillvalue=[])]


def order(num: int, devices: int, **seeds: int) -> list[int]:
    return [n for step in steps("train", num, devices, **seeds) for n in sum(step, [])]


def test_the_order_is_that_of_the_seed_and_the_epoch():
    assert sorted(order(10, 1)) == list(range(10))
    assert order(10, 1, epoch=3) == order(10, 1, epoch=3)
    assert order(10, 1, epoch=3) != order(10, 1, epoch=4)
    assert order(10, 1, epoch=1) != order(10, 1, seed=1)


@pytest.mark.parametrize("devices", [2, 3, 4])
@pytest.mark.parametrize("num", [1, 2, 5, 7, 8, 10])
def test_devices_share_the_windows_of_a_step(num, devices):
    """None is left out, none counts twice, and all devices take as many steps."""
    alone = order(num, 1)
    made = steps("train", num, devices)
    assert len(made) == -(-num // (2 * devices))
    for step, windows in enumerate(made):
        wanted = alone[step * 2 * devices :][: 2 * devices]
        assert sorted(sum(windows, [])) == sorted(wanted)
        sizes = [*map(len, windows)]
        assert max(sizes) - min(sizes) <= 1
    whole = sum(steps("valid", num), [])
    shared = sum(steps("valid", num, devices), [])
    assert sorted(batch for batch in shared if batch) == sorted(whole)
