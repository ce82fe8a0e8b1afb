"""How graph models learn: four samples, true time steps as inputs, the pushforward."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from nfsgeo.geometry import Domain, Graphs
from nfsgeo.models import Model, Problem, build_model

POINTS, SAMPLES = 16, 4
PROBLEM = Problem(Domain.unit(2), 1, 1, 2, 4, POINTS, None, True)
SMALL = {
    "gcgru": {"width": 24, "radius": 0.3},
    "dcrnn": {"width": 24, "radius": 0.3},
    "agcrn": {"width": 24},
    "mppde": {"width": 32, "depth": 2, "window": 2, "radius": 0.3},
    "dse": {"width": 16, "modes": 2, "time_modes": 3},
}


def waves() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Travelling waves on one mesh: input, positions, samples, target."""
    pos = torch.rand(POINTS, 2).repeat(SAMPLES, 1)
    batch = torch.arange(SAMPLES).repeat_interleave(POINTS)
    number = torch.tensor([[1, 0], [0, 1], [1, 1], [1, -1]])[batch]
    turns = (number * pos).sum(1)[:, None] - torch.arange(10) / 8
    field = torch.sin(2 * math.pi * turns)[..., None]
    return field[:, :2], pos, batch, field[:, 2:]


def loss_of(model: Model, x: Tensor, y: Tensor, graphs: Graphs) -> Tensor:
    if model.autoregressive:
        target = y[:, : PROBLEM.n_out + model.steps_beyond]
        return model.training_loss(x, target, graphs, mse_loss)
    return mse_loss(model.predict(x, graphs), y[:, : PROBLEM.n_out])


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_memorises_four_samples(name):
    """The result, that is: the pushforward trick has mppde learn what follows too."""
    one = {"window": PROBLEM.n_out, "pushforward": False} if name == "mppde" else {}
    model = build_model(name, PROBLEM, SMALL[name] | one)
    x, pos, batch, y = waves()
    graphs = model.connect(pos, batch)
    optimiser = torch.optim.Adam(model.parameters())
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=800)
    error, goal = math.inf, 0.05 if name == "agcrn" else 0.02
    for step in range(800):
        optimiser.zero_grad()
        loss_of(model, x, y, graphs).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rate.step()
        if step % 25 == 0:
            with torch.no_grad():
                truth = y[:, : PROBLEM.n_out]
                error = (model.predict(x, graphs) - truth).norm() / truth.norm()
            if error < goal:
                break
    assert error < goal


def test_a_recurrent_model_learns_from_what_it_predicts():
    model = build_model("dcrnn", PROBLEM, SMALL["dcrnn"])
    x, pos, batch, y = waves()
    graphs = model.connect(pos, batch)
    loss, y = loss_of(model, x, y, graphs), y[:, : PROBLEM.n_out]
    torch.testing.assert_close(loss, mse_loss(model.predict(x, graphs), y))


class Recorder:
    """In place of the network of mppde: predicts no change, remembers its inputs."""

    def __init__(self) -> None:
        self.calls: list[tuple[Tensor, float, bool]] = []
        self.nothing = torch.zeros((), requires_grad=True)

    def __call__(self, u: Tensor, variables: Tensor, *_: object) -> Tensor:
        self.calls.append((u, float(variables[0, 0]), torch.is_grad_enabled()))
        return self.nothing * u


def recorded(**changes) -> tuple[nn.Module, Recorder, Tensor, Graphs, Tensor]:
    """Record number ``k`` has the value ``k`` everywhere, the first of the target 0."""
    p = replace(PROBLEM, **changes)
    model = build_model("mppde", p, {**SMALL["mppde"], "window": 3})
    vars(model)["network"] = recorder = Recorder()
    numbers = torch.arange(-p.n_in, p.n_out + model.steps_beyond).float()
    series = numbers[:, None].expand(POINTS, -1, 1)
    graphs = model.connect(torch.rand(POINTS, 2))
    return model, recorder, series[:, : p.n_in], graphs, series[:, p.n_in :]


@pytest.mark.parametrize("n_in", [5, 1])
def test_windows_follow_each_other(n_in):
    model, recorder, x, graphs, _ = recorded(n_in=n_in, n_out=7)
    assert model.predict(x, graphs).flatten().tolist() == [-1.0] * 7 * POINTS
    first = [-3.0, -2.0, -1.0] if n_in == 5 else [-1.0] * 3
    windows = [u[0].flatten().tolist() for u, _, _ in recorder.calls]
    assert windows == [first, [-1.0] * 3, [-1.0] * 3]
    assert [t for _, t, _ in recorder.calls] == pytest.approx([0, 3 / 7, 6 / 7])


@pytest.mark.parametrize("pushforward", [True, False])
def test_windows_of_training_start_anywhere_and_may_be_pushed(pushforward):
    model, recorder, x, graphs, y = recorded(n_in=3, n_out=7)
    changed = {"pushforward": pushforward}
    model.settings = model.settings.model_copy(update=changed)
    starts, pushed = set(), 0
    for _ in range(40):
        recorder.calls.clear()
        loss = model.training_loss(x, y, graphs, mse_loss)
        errors, calls = [], iter(recorder.calls)
        for u, time, graded in calls:
            start = int(u[0, 0])
            assert u[0].flatten().tolist() == [start, start + 1, start + 2]
            # From the end of the input, where time is 0, to that of the result.
            assert time == pytest.approx((start + 3) / 7)
            if graded:
                starts.add(start)
                errors.append((1 + 4 + 9) / 3)
                continue
            # A prediction without gradient, and what is predicted from it.
            pushed += 1
            again, later, graded = next(calls)
            assert again[0].flatten().tolist() == [start + 2] * 3 and graded
            assert later == pytest.approx((start + 6) / 7)
            errors.append((16 + 25 + 36) / 3)
        assert len(errors) == 3
        assert loss.item() == pytest.approx(sum(errors) / 3)
    assert starts == {-3, -2, -1, 0, 1}
    assert 40 < pushed < 80 if pushforward else pushed == 0


@pytest.mark.parametrize(
    ("n_in", "n_out", "expected"), [(10, 10, 10), (1, 10, 10), (10, 40, 0), (15, 10, 5)]
)
def test_the_pushforward_trick_wants_three_windows(n_in, n_out, expected):
    p = replace(PROBLEM, n_in=n_in, n_out=n_out)
    assert build_model("mppde", p).steps_beyond == expected
    assert build_model("mppde", p, {"pushforward": False}).steps_beyond == 0


@pytest.mark.parametrize(
    "changes",
    # A steady problem may have more inputs than results.
    [{"n_out": 2}]
    + [{"in_components": c, "n_in": 1, "n_out": 1, "has_time": False} for c in (1, 2)],
)
def test_without_room_for_two_windows_the_result_itself_is_learned(changes):
    p = replace(PROBLEM, **changes)
    model = build_model("mppde", p, {**SMALL["mppde"], "window": 3})
    x, y = torch.randn(POINTS, p.n_in, p.in_components), torch.randn(POINTS, p.n_out, 1)
    graphs = model.connect(torch.rand(POINTS, 2))
    loss = model.training_loss(x, y, graphs, mse_loss)
    torch.testing.assert_close(loss, mse_loss(model.predict(x, graphs), y))
