"""Models that are asked for any time after their inputs."""

import json
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
from nfsgeo.errors import UserError
from nfsgeo.evaluation import References
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.scores import score
from nfsgeo.geometry import Domain
from nfsgeo_cli import main

LEADS = {"data.lead_times": True, "data.n_in": 3, "data.n_out": 4}
UNEQUAL = np.array([0, 1, 3, 3.5, 6, 7, 7.5, 10, 12, 13, 15, 15.5])


def unequal(samples: int = 10, times: Any = UNEQUAL, **more: Any) -> Fields:
    """Fields that grow with the square of the time, at unequal time steps."""
    random = np.random.default_rng(0)
    pos, slope = random.random((16, 2)), random.random((samples, 16, 1))
    domain = Domain.unit(2, periodic=False)
    return nfsgeo.from_arrays(
        slope * (1 + times**2 / 100), pos, times, domain=domain, **more
    )


@settings(max_examples=30, deadline=None)
@given(n_in=st.integers(1, 4), n_out=st.integers(1, 6), epoch=st.integers(0, 99))
def test_a_pair_is_inputs_in_a_row_and_a_later_time(n_in, n_out, epoch):
    file = unequal()
    windows = WindowDataset(file, [0, 3, 3], n_in, n_out, MeshOfFile(file))
    windows.pairs, windows.epoch = True, epoch
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


def test_all_pairs_come_with_equally_likely_leads():
    file = unequal()
    windows = WindowDataset(file, range(10), 2, 3, MeshOfFile(file))
    windows.pairs = True
    counted: dict[tuple[int, ...], int] = {}
    for epoch in range(60):
        windows.epoch = epoch
        for item in range(10):
            at = np.searchsorted(file.times, windows[item].times.numpy())
            counted[tuple(at.tolist())] = counted.get(tuple(at.tolist()), 0) + 1
    leads = [
        sum(n for at, n in counted.items() if at[2] - at[1] == k) for k in (1, 2, 3)
    ]
    assert len(counted) == 6 and min(leads) > 150, counted


@pytest.mark.slow
def test_unequal_time_steps_train_evaluate_and_predict(tiny):
    data = unequal()
    with pytest.raises(UserError, match=r"unequal time steps.*data.lead_times=true"):
        nfsgeo.prepare(data, tiny | {"data.n_in": 3, "data.n_out": 4})
    chosen = tiny | LEADS | {"model.prediction": "rate", "data.window_stride": 1}
    experiment = nfsgeo.prepare(data, chosen)
    assert (
        experiment.forecaster.model.problem.n_out == 1
        and experiment.forecaster.model.problem.forcings == 1
    )
    run = nfsgeo.fit(experiment, "run")
    longest = max(UNEQUAL[start + 6] - UNEQUAL[start + 2] for start in range(6))
    assert experiment.task.longest_lead == longest
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
    with pytest.raises(UserError, match="steps=3 of .* time steps of 0.5 to 2.5"):
        nfsgeo.predict(run, data, "steps.nc", steps=3)
    for wrong, what in (([2, 1], "increase"), ([0], "increase"), ([99], "at most")):
        with pytest.raises(UserError, match=what):
            nfsgeo.predict(run, data, "wrong.nc", lead_times=wrong)
    with pytest.raises(UserError, match="a number of steps"):
        nfsgeo.predict(run, data, "wrong.nc", lead_times=[1], steps=2)
    with pytest.raises(UserError, match="2 observed snapshots.*: expected at least 3"):
        nfsgeo.predict(run, unequal(times=UNEQUAL[:2]), "wrong.nc")
    slow = unequal(times=10 * UNEQUAL)
    with pytest.raises(UserError, match="the longest lead time in training"):
        nfsgeo.evaluate(run, data=slow)


def test_windows_of_the_test_part_may_reach_further(tiny):
    times = np.append(np.arange(26.0), 26 + 3 * np.arange(8.0))
    chosen = tiny | LEADS | {"data.split_by": "time"}
    e = nfsgeo.prepare(unequal(times=times), chosen)
    scored = ScoredModel(e.forecaster, e.used)
    found = score(scored, References(scored))
    assert found.windows.times[-1] - found.windows.times[2] > e.task.longest_lead
    assert np.isfinite(found.pooled()["model"]["mae"])


@pytest.mark.slow
def test_a_file_of_forcings_has_them_at_the_times_that_are_asked_for(tiny):
    forcing = np.broadcast_to(np.sin(UNEQUAL), (10, 16, 12))
    data = unequal(forcing=forcing, forcing_names=["sun"])
    chosen = tiny | LEADS | {"trainer.epochs": 1}
    experiment = nfsgeo.prepare(data, chosen)
    assert experiment.forecaster.model.problem.forcings == 2
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
def test_models_with_a_loss_of_their_own_train(model):
    chosen = LEADS | {"model.name": model, "trainer.epochs": 1, "trainer.device": "cpu"}
    chosen |= {"model.settings.width": 32, "model.settings.depth": 1}
    if model == "mppde":
        chosen["model.settings.window"] = 2
    run = nfsgeo.fit(nfsgeo.prepare(unequal(), chosen), "run")
    errors = nfsgeo.evaluate(run)
    assert errors["test"]["mae"] < 0.5 * errors["baselines"]["mean"]["mae"]


@pytest.mark.slow
def test_the_command_line_asks_by_time(trained, waves, tiny):
    data = unequal(times=np.arange(12.0)).write("data.nc")
    run = nfsgeo.fit(nfsgeo.prepare(data, tiny | LEADS), "run")
    command = ["predict", "run", "--input", str(data), "--json", "--output"]
    done = CliRunner().invoke(main, [*command, "a.nc", "--lead-times", "0.3,0.75"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["times"] == [11.3, 11.75]
    done = CliRunner().invoke(main, [*command, "b.nc", "--lead-times", "1;2"])
    assert done.exit_code == 2 and "1;2: expected" in done.output
    for asked in ("2,1", "0", "1,1", "nan", "1,nan"):
        done = CliRunner().invoke(main, [*command, "b.nc", "--lead-times", asked])
        assert done.exit_code == 2 and "positive times that increase" in done.output
    assert not Path("b.nc").exists()
    # Two windows of four equal time steps and one more.
    with nfsgeo.predict(run, data, "c.nc", steps=9) as ahead:
        assert ahead.times.tolist() == list(range(12, 21))
    with pytest.raises(UserError, match="data.lead_times=true"):
        nfsgeo.predict(trained, waves, "d.nc", lead_times=[1])


@pytest.mark.slow
def test_unequal_time_steps_cost_little(tmp_path):
    """The figures of docs/tutorials/any-horizon.md."""
    found = {}
    for kind in ("equal", "unequal"):
        run = nfsgeo.fit(nfsgeo.prepare(thinned(tmp_path, kind), THINNED), kind)
        scored = nfsgeo.evaluate(run, data=thinned(tmp_path, "equal"), part="test")
        found[kind] = scored["test"]["mae"]
        assert found[kind] < scored["baselines"]["persistence"]["mae"] / 4
    assert found["unequal"] < 1.3 * found["equal"], found


THINNED = {"data.lead_times": True, "data.n_in": 4, "data.n_out": 8} | {
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
        generate("navier-stokes", path, samples=100, resolution=32, num_steps=112)
    with nfsgeo.open(path) as file:
        random = np.random.default_rng(0)
        points = np.sort(random.choice(32**2, 144, replace=False))
        drawn = np.sort(random.choice(112, 28, replace=False))
        at = drawn if kind == "unequal" else np.arange(0, 112, 4)
        u = [file.read(s, slice(None), points)[:, at] for s in range(file.num_samples)]
        pos, times = file.coordinates()[points], file.times[at]
        return nfsgeo.from_arrays(np.stack(u), pos, times, domain=file.domain)
