"""Training on fields with gaps: filled in, told to the network, never scored."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data import WindowDataset
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import every_point
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run, training_mean
from nfsgeo.forecast.transforms import values
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS
from nfsgeo.report import write_report
from nfsgeo.training.losses import LOSSES, LossPoints

NAN = float("nan")


def with_gaps(source: Path, target: Path, share: float) -> Path:
    """A file on a grid with a share of its values missing at random."""
    random = np.random.default_rng(1)
    with nfsgeo.open(source) as file:
        (name,) = file.component_names
        u = file.dataset[name].copy()
        gaps = random.random(u.shape) < share
        u.values = np.where(gaps, np.float32(NAN), u.values)
        return replace(file, dataset=file.dataset.assign({name: u})).write(target)


@pytest.fixture
def gaps(waves: Path) -> Path:
    """The waves with 30 % of their values missing."""
    return with_gaps(waves, Path("gaps.nc"), 0.3)


@pytest.fixture
def sensors() -> Path:
    """Samples of 12 sensors: one is always dead, one appears, one vanishes."""
    points = np.random.default_rng(0).random((12, 2))
    times, samples = np.arange(8.0), np.arange(10)[:, None, None]
    u = np.sin(points[:, :1] * 6 + 0.3 * times + samples).astype("f4")
    u[:, 3], u[:, 5, :6], u[:, 7, 4:] = NAN, NAN, NAN
    fields = nfsgeo.from_arrays(u, points, times, domain=Domain.unit(2))
    return fields.write(Path("sensors.nc"))


def run_on(file: Path, out: Path, settings: dict[str, Any]) -> Path:
    return nfsgeo.fit(nfsgeo.prepare(file, settings), out).root


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name != "gino"])
def test_every_model_has_gradients_and_predictions_with_gaps(name, gaps):
    chosen = {"model.name": name, "trainer.epochs": 1, "trainer.device": "cpu"}
    chosen |= {"data.query_points": 0, "data.max_train": 3, "data.n_in": 4}
    chosen |= {"data.n_out": 4, "data.points": 16, "data.point_sets": 1}
    fields = MODELS[name].Settings.model_fields
    small = {"width": 32 if name == "mppde" else 8, "depth": 1, "window": 4}
    chosen |= {f"model.settings.{k}": v for k, v in small.items() if k in fields}
    experiment = nfsgeo.prepare(gaps, chosen)
    module, train = experiment.module, experiment.data.parts["train"]
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    batch = experiment.data.collate["train"]([train[0], train[1]])
    module.training_step(batch, 0).backward()
    weights = [p.grad for p in module.parameters() if p.grad is not None]
    assert weights and all(gradient.isfinite().all() for gradient in weights)
    window = experiment.data.parts["valid"][0]
    assert window.x.isnan().any()
    found = experiment.forecaster.eval().predict(window.x, window.pos)
    assert found.isfinite().all()


@pytest.mark.parametrize("name", list(LOSSES))
def test_losses_of_observed_values_are_those_of_them_alone(name):
    torch.manual_seed(0)
    prediction, target = torch.randn(2, 9, 4, 1)
    weight = torch.rand(9) + 0.5
    observed = torch.ones(9, 4, 1, dtype=torch.bool)
    observed[:3] = False
    all_of = LossPoints((9,), weight, observed)
    alone = LossPoints((6,), weight[3:] / weight[3:].mean())
    spoiled = torch.where(observed, target, prediction)
    torch.testing.assert_close(
        LOSSES[name](prediction, spoiled, all_of),
        LOSSES[name](prediction[3:], target[3:], alone),
    )


def test_absent_sensors_are_no_points_of_a_window(sensors):
    with nfsgeo.open(sensors) as file:
        mesh = every_point(file)
        for n_in, n_out, left in ((2, 2, [3, 5]), (4, 4, [3]), (2, 6, [3])):
            windows = WindowDataset(
                file, range(10), n_in, n_out, mesh, drop_absent=True, volumes=True
            )
            keep = np.delete(np.arange(12), left)
            item = windows[1]
            np.testing.assert_array_equal(item.pos, mesh.pos[keep])
            assert item.x.shape == (len(keep), n_in, 1)
            assert len(item.volume) == len(keep)
            assert item.mesh < 0 and item.mesh == windows[2].mesh
            everywhere = WindowDataset(file, range(10), n_in, n_out, mesh)[1]
            torch.testing.assert_close(item.x, everywhere.x[keep], equal_nan=True)
            assert everywhere.mesh == 0


@pytest.mark.slow
def test_a_run_with_sensors_that_appear_and_vanish(sensors, tiny):
    chosen = tiny | {"data.n_in": 2, "data.n_out": 2, "data.window_stride": 1}
    root = run_on(sensors, Path("run"), chosen)
    summary = evaluate_run(root)
    for errors in (summary["test"], *summary["baselines"].values()):
        assert np.isfinite([*errors.values()]).all(), summary
    assert summary["scored"]["points"] == 10 and summary["scored"]["of_points"] == 12
    with nfsgeo.predict(root, sensors, Path("p.nc")) as ahead:
        assert np.isfinite(ahead.read(0, slice(None))).all()


@pytest.mark.parametrize(
    ("share", "settings", "message"),
    [
        (0.95, {}, r"9\d\.?\d* % of the values of u missing"),
        (0.3, {"data.mesh": "off-grid"}, "missing values.*every grid point"),
    ],
)
def test_gaps_that_are_refused(waves, share, settings, message, refuses):
    path = with_gaps(waves, Path("gaps.nc"), share)
    refuses(message, nfsgeo.prepare, path, settings)


def test_more_missing_values_on_demand(waves):
    chosen = {"data.max_missing": 0.97, "data.points": 9}
    experiment = nfsgeo.prepare(with_gaps(waves, Path("few.nc"), 0.95), chosen)
    assert experiment.forecaster.model.problem.in_components == 2


@pytest.mark.parametrize(("part", "samples"), [("validation", [7]), ("test", [8, 9])])
def test_a_part_without_values_is_refused(part, samples, tiny):
    u = np.random.default_rng(0).normal(size=(10, 16, 20))
    u[samples] = NAN
    pos = np.random.default_rng(1).random((16, 2))
    data = nfsgeo.from_arrays(u, pos, np.arange(20.0))
    with pytest.raises(UserError, match=f"any value of u to predict in the {part} pa"):
        nfsgeo.prepare(data, tiny)


@pytest.mark.slow
def test_nothing_is_scored_without_values(waves, gaps, tiny):
    run = run_on(gaps, Path("run"), tiny | {"trainer.epochs": 1})
    with pytest.raises(UserError, match="without any value of u to predict"):
        evaluate_run(run, data=with_gaps(waves, Path("none.nc"), 1.0))


def test_the_training_mean_is_that_of_the_observed_values(gaps):
    with nfsgeo.open(gaps) as file:
        train = WindowDataset(file, range(6), 2, 3, every_point(file))
        batch = type("Batch", (), {"y": train[0].y, "point": train[0].point})
        found = training_mean(train)(batch)  # type: ignore[arg-type]
        expected = torch.stack([train[n].y for n in range(6)]).nanmean(0)
    known = ~expected.isnan()
    torch.testing.assert_close(found[known], expected[known])
    assert found.isfinite().all()


@pytest.mark.slow
def test_gaps_cost_little_where_the_mean_in_their_place_costs_much(monkeypatch):
    """The figures of docs/tutorials/long-series.md."""
    complete = Path("ns.nc")
    generate("navier-stokes", complete, samples=150, resolution=32, num_steps=20)
    gaps = with_gaps(complete, Path("gaps.nc"), 0.3)
    chosen = {"data.points": 36, "data.query_points": 0, "trainer.epochs": 5}
    chosen |= {"trainer.device": "cpu"}

    def error(file: Path, name: str) -> float:
        return float(evaluate_run(run_on(file, Path(name), chosen))["test"]["mae"])

    usual, filled = error(complete, "complete"), error(gaps, "gaps")
    zero: Callable[..., torch.Tensor] = lambda x, trend: x.nan_to_num(0.0)  # noqa: E731
    monkeypatch.setattr(values, "fill_in_time", zero)
    mean = error(gaps, "mean")
    assert filled <= 1.15 * usual and mean >= 1.5 * usual, (usual, filled, mean)


def waves_of(num: int) -> tuple[np.ndarray, np.ndarray]:
    """Waves of 20 samples at points and six time steps, and the points."""
    rng = np.random.default_rng(0)
    pos = rng.random((num, 2))
    phase = 6 * rng.random((20, 1, 1)) + 0.3 * np.arange(6.0)
    return np.sin(6 * pos[:, :1] + phase), pos


@pytest.mark.slow
@pytest.mark.filterwarnings("error:Mean of empty slice")
@pytest.mark.parametrize("part", ["valid", "test"])
def test_a_component_that_a_part_lacks(part, tiny, caplog):
    u, pos = waves_of(40)
    u = np.stack([u, u[::-1]], axis=-1)
    u[nfsgeo.from_arrays(u, pos, np.arange(6.0)).split[part], ..., 1] = NAN
    data = nfsgeo.from_arrays(u, pos, np.arange(6.0), component_names=["p", "q"])
    settings = tiny | {"data.n_in": 3, "data.n_out": 3, "model.name": "nfs"}
    experiment = nfsgeo.prepare(data, settings)
    assert caplog.text.count(f"no value of q to predict in the {part}") == 1
    paths = nfsgeo.fit(experiment, "run")
    assert paths.best.exists()
    found = nfsgeo.evaluate(paths)
    assert np.isfinite(list(found["test"].values())).all()
    of_q = found["components"]["q"]["mae"]
    assert (of_q is None or np.isnan(of_q)) == (part == "test")
    write_report(paths.root)  # reads what was written
    again = nfsgeo.evaluate(paths)
    assert again["test"] == found["test"]


@pytest.mark.slow
def test_a_rollout_of_as_many_steps_has_the_same_errors(tiny):
    """Also where points without any value are left out."""
    u, pos = waves_of(40)
    for number, sample in enumerate(u):
        absent = np.random.default_rng(number).choice(40, 12, replace=False)
        sample[absent] = NAN
    file = nfsgeo.from_arrays(u, pos, np.arange(6.0))
    settings = tiny | {"data.n_in": 3, "data.n_out": 3, "model.name": "nfs"}
    run = nfsgeo.fit(nfsgeo.prepare(file, settings), "run")
    found = nfsgeo.evaluate(run, steps=3)
    rolled = found["rollout"]["errors"]["model"]
    assert rolled["mae"] == pytest.approx(found["test"]["mae"])
