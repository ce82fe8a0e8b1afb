"""Models that are asked for any time after their inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data import Fields, WindowDataset
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.models import MODELS, Model, Problem, build_model
from nfsgeo.training import Forecaster, load_config, prepare
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.rollout import rollout
from nfsgeo_cli import main

LEADS = {"data.lead_times": True, "data.n_in": 3, "data.n_out": 4}
UNEQUAL = np.array([0, 1, 3, 3.5, 6, 7, 7.5, 10, 12, 13, 15, 15.5])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def unequal(samples: int = 10, times: Any = UNEQUAL, **more: Any) -> Fields:
    """Fields that grow with the square of the time, at unequal time steps."""
    random = np.random.default_rng(0)
    pos, slope = random.random((16, 2)), random.random((samples, 16, 1))
    domain = Domain.unit(2, periodic=False)
    return nfsgeo.from_arrays(
        slope * (1 + times**2 / 100), pos, times, domain=domain, **more
    )


def forecaster_of(
    model: Model, prediction: str, forcings: int = 1, std: float = 1.0
) -> Forecaster:
    scales = [FieldNormaliser(torch.zeros(c), torch.ones(c)) for c in (1, 1)]
    known = FieldNormaliser(torch.zeros(forcings), torch.full((forcings,), std))
    return Forecaster(
        model,
        *scales,
        OptimiserSection(),
        {"prediction": prediction, "longest_lead": 4.0, "times": [0, 1, 2, 3, 4]},
        residual=prediction != "direct",
        forcings=known,
    ).eval()


def problem_of(n_in: int, forcings: int = 1, **more: Any) -> Problem:
    problem = Problem(Domain.unit(2), 1, 1, n_in, 1, 64, (8, 8), True, forcings)
    return replace(problem, in_components=1 + problem.folds * forcings, **more)


class Times(Model):
    """Ten times the lead time, plus the time of the first input."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.kind = torch.nn.Parameter(torch.zeros(1))  # tells the device

    def predict(self, x: torch.Tensor, graphs: Graphs) -> torch.Tensor:
        forcing = self.problem.split(x)[1]
        found = 10 * forcing[:, -1:, -1:] + forcing[:, :1, -1:]
        return found[:1].expand(len(graphs.queries), -1, -1)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_sees_the_lead_time(name: str) -> None:
    if name in ("gino", "neuralop-fno"):
        pytest.importorskip("neuralop")
    fields = MODELS[name].config.model_fields
    chosen: dict[str, Any] = {"width": 32, "depth": 1, "window": 3, "grid": 8}
    chosen |= {"patch": 2, "time_patch": 1}
    chosen = {key: value for key, value in chosen.items() if key in fields}
    torch.manual_seed(0)
    module = forecaster_of(build_model(name, problem_of(4), chosen), "direct")
    axis = torch.arange(8) / 8
    pos = torch.cartesian_prod(axis, axis)
    x, times = torch.randn(64, 4, 1), torch.tensor([0, 1, 3, 4, 4.5, 6, 8])
    found = module(x, pos, times=times)
    assert found.shape == (64, 3, 1)
    assert not torch.isclose(found[:, 0], found[:, 1]).all()
    for step in range(3):  # whatever else is asked for, and whenever it is
        alone = module(x, pos, times=100 + times[[0, 1, 2, 3, 4 + step]])
        torch.testing.assert_close(alone, found[:, step : step + 1])


@pytest.mark.parametrize("several", [False, True])
def test_times_are_those_of_each_sample(several: bool) -> None:
    module = forecaster_of(Times(problem_of(2)), "direct")
    x, pos = torch.randn(3, 2, 1), torch.rand(3, 2)
    times = torch.tensor([[1, 2, 2.5, 4]])
    if not several:
        found = module(x, pos, times=times[0])
        assert torch.equal(found[:, :, 0], torch.tensor([[4.0, 19.0]] * 3))
        return
    batch = torch.tensor([0, 0, 1])
    times = torch.cat([times, 2 * times])
    known: list[torch.Tensor] = []
    module.model.predict = (  # type: ignore[method-assign]
        lambda x, graphs: known.append(module.model.problem.split(x)[1]) or x[:, :1, :1]
    )
    module(x, pos, batch, times=times)
    assert [k[:, :, 0].tolist() for k in known] == [
        [[-1, 0, 0.5], [-1, 0, 0.5], [-2, 0, 1]],
        [[-1, 0, 2], [-1, 0, 2], [-2, 0, 4]],
    ]


@settings(max_examples=30, deadline=None)
@given(lead=st.floats(1e-3, 1e3), std=st.floats(1e-2, 1e2))
def test_a_rate_is_multiplied_by_its_time(lead: float, std: float) -> None:
    class One(Times):
        def predict(self, x: torch.Tensor, graphs: Graphs) -> torch.Tensor:
            return torch.ones(len(graphs.queries), 1, 1)

    x, pos = torch.randn(5, 2, 1), torch.rand(5, 2)
    times = torch.tensor([-3.0, 0.0, lead, 2 * lead], dtype=torch.float64)
    rate = forecaster_of(One(problem_of(2)), "rate", std=std)(x, pos, times=times)
    expected = x[:, -1:] + torch.tensor([[lead / std], [2 * lead / std]])
    torch.testing.assert_close(rate, expected)
    change = forecaster_of(One(problem_of(2)), "residual")(x, pos, times=times)
    torch.testing.assert_close(change, (x[:, -1:] + 1).expand(-1, 2, -1))


@settings(max_examples=30, deadline=None)
@given(n_in=st.integers(1, 4), n_out=st.integers(1, 6), turn=st.integers(0, 99))
def test_a_pair_is_inputs_in_a_row_and_a_later_time(
    n_in: int, n_out: int, turn: int
) -> None:
    file = unequal()
    windows = WindowDataset(file, [0, 3, 3], n_in, n_out, MeshOfFile(file))
    windows.pairs, windows.turn = True, turn
    for number in range(3):
        item = windows[number]
        at = np.searchsorted(file.times, item.times.numpy())
        assert np.array_equal(file.times[at], item.times.numpy())
        assert (np.diff(at[:n_in]) == 1).all() and at[-1] > at[-2]
        assert at[-1] < n_in + n_out and len(at) == n_in + 1
        u = torch.from_numpy(file.read(item.sample, slice(None)))
        assert torch.equal(item.x, u[:, at[:n_in]])
        assert torch.equal(item.y, u[:, at[n_in:]])
        assert torch.equal(windows[number].y, item.y)


def test_all_pairs_come_with_equally_likely_leads() -> None:
    file = unequal()
    windows = WindowDataset(file, range(10), 2, 3, MeshOfFile(file))
    windows.pairs = True
    counted: dict[tuple[int, ...], int] = {}
    for turn in range(60):
        windows.turn = turn
        for item in range(10):
            at = np.searchsorted(file.times, windows[item].times.numpy())
            counted[tuple(at.tolist())] = counted.get(tuple(at.tolist()), 0) + 1
    leads = [
        sum(n for at, n in counted.items() if at[2] - at[1] == k) for k in (1, 2, 3)
    ]
    assert len(counted) == 6 and min(leads) > 150, counted


def test_unequal_time_steps_train_evaluate_and_predict(tiny: dict[str, Any]) -> None:
    data = unequal()
    with pytest.raises(UserError, match=r"unequal time steps.*data.lead_times=true"):
        nfsgeo.prepare(data, tiny | {"data.n_in": 3, "data.n_out": 4})
    chosen = tiny | LEADS | {"model.prediction": "rate", "data.window_stride": 1}
    experiment = nfsgeo.prepare(data, chosen)
    assert experiment.problem.n_out == 1 and experiment.problem.forcings == 1
    run = nfsgeo.fit(experiment, "run")
    longest = max(UNEQUAL[start + 6] - UNEQUAL[start + 2] for start in range(6))
    assert experiment.forecaster.description["longest_lead"] == longest
    summary = nfsgeo.evaluate(run, steps=9)
    # Inputs at 0, 1 and 3; two windows of four time steps and one more.
    assert summary["rollout"]["times"] == (UNEQUAL[3:] - 3).tolist()
    assert len(summary["rollout"]["mae_by_step"]["model"]) == 9
    assert len(summary["rollout"]["rel_l1_last_by_sample"]["model"]) == 2

    forecaster = nfsgeo.load(run)
    x, pos = data.read(2, slice(9, 12)), data.coordinates()
    with nfsgeo.predict(run, data, "ahead.nc", lead_times=[0.25, 2, 4]) as ahead:
        assert ahead.times.tolist() == [15.75, 17.5, 19.5]
        times = [*UNEQUAL[9:], *ahead.times]
        expected = forecaster.predict(x, pos, times=times)
        np.testing.assert_allclose(ahead.read(2, slice(None)), expected, rtol=1e-5)
    with nfsgeo.predict(run, data, "default.nc", first=4) as ahead:
        assert ahead.times.tolist() == (7.5 + UNEQUAL[3:7] - 3).tolist()
    with pytest.raises(UserError, match="no times: expected"):
        forecaster.predict(x, pos)
    with pytest.raises(UserError, match=r"times of shape \[3\]"):
        forecaster.predict(x, pos, times=UNEQUAL[:3])
    for later, what in (([16, 15.8], "each after"), ([99], "at most"), ([15], "each")):
        with pytest.raises(UserError, match=what):
            forecaster.predict(x, pos, times=[*UNEQUAL[9:], *later])
    with pytest.raises(UserError, match="times with 1 of 4 values missing"):
        forecaster.predict(x, pos, times=[*UNEQUAL[9:], np.nan])
    with pytest.raises(UserError, match="unequal time steps: expected the times"):
        nfsgeo.predict(run, data, "steps.nc", steps=3)
    for wrong, what in (([2, 1], "increase"), ([0], "increase"), ([99], "at most")):
        with pytest.raises(UserError, match=what):
            nfsgeo.predict(run, data, "wrong.nc", lead_times=wrong)
    with pytest.raises(UserError, match="one of the two"):
        nfsgeo.predict(run, data, "wrong.nc", lead_times=[1], steps=2)
    with pytest.raises(UserError, match="2 snapshots: expected at least 3"):
        nfsgeo.predict(run, unequal(times=UNEQUAL[:2]), "wrong.nc")
    with pytest.raises(UserError, match="trained with lead times"):
        nfsgeo.export(run, "run.pt2")
    slow = unequal(times=10 * UNEQUAL)
    with pytest.raises(UserError, match="the longest lead time in training"):
        nfsgeo.evaluate(run, data=slow)


def test_a_file_of_forcings_has_them_at_the_times_that_are_asked_for(
    tiny: dict[str, Any],
) -> None:
    forcing = np.broadcast_to(np.sin(UNEQUAL), (10, 16, 12))
    data = unequal(forcing=forcing, forcing_names=["sun"])
    chosen = tiny | LEADS | {"trainer.epochs": 1}
    experiment = nfsgeo.prepare(data, chosen)
    assert experiment.problem.forcings == 2
    run = nfsgeo.fit(experiment, "run")
    x, pos = data.read(2, slice(5, 8)), data.coordinates()
    known = data.read_all(2, slice(5, 10))[..., 1:]
    found = nfsgeo.load(run).predict(x, pos, forcing=known, times=UNEQUAL[5:10])
    with nfsgeo.predict(run, data, "p.nc", first=5, lead_times=[2, 3]) as ahead:
        given = ahead.read(2, slice(None))
    np.testing.assert_allclose(given, found[:, [0, 1]], rtol=1e-5)
    with pytest.raises(UserError, match=r"without sun at t = 11"):
        nfsgeo.predict(run, data, "q.nc", first=5, lead_times=[1])


@pytest.mark.parametrize("model", ["gcgru", "mppde"])
def test_models_with_a_loss_of_their_own_train(model: str) -> None:
    chosen = LEADS | {"model.name": model, "trainer.epochs": 1, "trainer.device": "cpu"}
    chosen |= {"model.settings.width": 32, "model.settings.depth": 1}
    if model == "mppde":
        chosen["model.settings.window"] = 2
    run = nfsgeo.fit(nfsgeo.prepare(unequal(), chosen), "run")
    assert nfsgeo.evaluate(run)["test"]["mae"] < 10


def test_the_command_line_asks_by_time(tiny: dict[str, Any]) -> None:
    data = unequal(times=np.arange(12.0)).write("data.nc")
    run = nfsgeo.fit(nfsgeo.prepare(data, tiny | LEADS), "run")
    command = ["predict", "run", "--input", str(data), "--json", "--output"]
    done = CliRunner().invoke(main, [*command, "a.nc", "--lead-times", "0.3,0.75"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["times"] == [11.3, 11.75]
    done = CliRunner().invoke(main, [*command, "b.nc", "--lead-times", "1;2"])
    assert done.exit_code == 2 and "numbers with commas" in done.output
    for asked in ("2,1", "0", "1,1", "nan", "1,nan"):
        done = CliRunner().invoke(main, [*command, "b.nc", "--lead-times", asked])
        assert done.exit_code == 2 and "positive times that increase" in done.output
    assert not Path("b.nc").exists()
    # Two windows of four equal time steps and one more.
    with nfsgeo.predict(run, data, "c.nc", steps=9) as ahead:
        assert ahead.times.tolist() == list(range(12, 21))
    plain = nfsgeo.fit(nfsgeo.prepare(data, tiny | {"data.n_in": 3, "data.n_out": 4}))
    with pytest.raises(UserError, match="data.lead_times=true"):
        nfsgeo.predict(plain, data, "d.nc", lead_times=[1])


def test_a_rollout_begins_its_windows_at_their_own_times() -> None:
    module = forecaster_of(Times(problem_of(2)), "direct")  # three time steps each
    x, pos = torch.randn(3, 2, 1), torch.rand(3, 2)
    times = torch.tensor([0, 1, 1.5, 2, 4, 4.25, 5])
    found = rollout(module, x, pos, 5, times=times)
    expected = [10 * 0.5 - 1, 10 * 1 - 1, 10 * 3 - 1, 10 * 0.25 - 2, 10 * 1 - 2]
    assert torch.equal(found[0, :, 0], torch.tensor(expected))


def test_lead_times_are_refused_where_they_mean_nothing(waves: Path) -> None:
    for settings_, what in (
        ({"model.prediction": "rate"}, "rate without lead times"),
        (LEADS | {"model.prediction": "damped"}, "damped with lead times"),
        ({"data.lead_times": True, "loss.pushforward": 0.5}, "one of the two"),
        ({"loss.pushforward": 0.5, "model.name": "mppde"}, "of its own"),
        ({"loss.pushforward": 0.5}, "two windows in a row"),
    ):
        with pytest.raises(UserError, match=what):
            prepare(load_config(overrides={"data.file": str(waves)} | settings_))


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_the_very_pairs(
    train: Callable[..., Any], resume: Callable[..., Any]
) -> None:
    whole = train("whole", LEADS | {"trainer.epochs": 3})

    from lightning.pytorch import Callback

    class Stop(Callback):
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if trainer.current_epoch == 1:
                raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, SystemExit)):
        train("stopped", LEADS | {"trainer.epochs": 3}, Stop())
    assert resume(whole.paths.root.parent / "stopped").is_the_same_as(whole)


@pytest.mark.slow
def test_unequal_time_steps_cost_little(tmp_path: Path) -> None:
    """The figures of docs/tutorials/any-horizon.md."""
    found = {}
    for kind in ("equal", "unequal"):
        run = nfsgeo.fit(nfsgeo.prepare(thinned(tmp_path, kind), THINNED), kind)
        scored = nfsgeo.evaluate(run, data=thinned(tmp_path, "equal"), part="test")
        found[kind] = scored["test"]["mae"]
        assert found[kind] < scored["baselines"]["persistence"]["mae"] / 4
    assert found["unequal"] < 1.3 * found["equal"], found


THINNED = {
    "data.lead_times": True,
    "data.n_in": 4,
    "data.n_out": 8,
    "data.window_stride": 2,
    "data.query_points": 0,
    "loss.name": "mse",
    "model.settings.width": 32,
    "model.settings.depth": 2,
    "model.settings.kernel": "channel",
    "model.settings.time": "tokens",
    "trainer.epochs": 6,
    "trainer.device": "cpu",
}


def thinned(folder: Path, kind: str) -> Fields:
    """28 of 112 time steps of Navier-Stokes at 144 points, equally far apart or not."""
    path = folder / "ns.nc"
    if not path.exists():
        generate("navier-stokes", path, samples=100, resolution=32, records=112)
    with nfsgeo.open(path) as file:
        random = np.random.default_rng(0)
        points = np.sort(random.choice(32**2, 144, replace=False))
        drawn = np.sort(random.choice(112, 28, replace=False))
        at = drawn if kind == "unequal" else np.arange(0, 112, 4)
        u = [file.read(s, slice(None), points)[:, at] for s in range(file.num_samples)]
        pos, times = file.coordinates()[points], file.times[at]
        return nfsgeo.from_arrays(np.stack(u), pos, times, domain=file.domain)
