"""References on series of which it is known what is best."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.windows import batches
from nfsgeo.evaluation import References, evaluate_run
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.scores import with_given
from nfsgeo.forecast import Forecaster
from nfsgeo.stations import StationReferences
from nfsgeo.stations.seasonal_means import fitted_climatology
from nfsgeo.training import load_config
from nfsgeo.training.run_data import RunData
from nfsgeo.uncertainty.fitting import errors_of

DAYS = np.datetime64("2001-01-01") + np.arange(1500)
YEAR = 2 * np.pi * np.arange(1500)[:, None] / 365.25
HEIGHT, POINTS = np.split(np.random.default_rng(0).random((30, 3)), [1], axis=1)
SEASON = 10 + 5 * HEIGHT[:, 0] + (1 + HEIGHT[:, 0]) * np.cos(YEAR - 1)
NAMES = {"climatology", "anomaly_persistence", "damped_anomaly", "ridge", "ridge_each"}


def stations(u: Any) -> Fields:
    """A series of daily values ``[T, 30]``, with a static input."""
    fields = nfsgeo.from_arrays(np.float32(u.T[None]), POINTS, DAYS[: len(u)])
    height = fields.dataset["x"].dims, np.float32(HEIGHT[:, 0]), {"role": "static"}
    return replace(fields, dataset=fields.dataset.assign(height=height))


def fitted(u: Any, **more: Any) -> tuple[StationReferences, Batch]:
    """References at all but the last six stations, and the last window."""
    settings: dict[str, Any] = {"data.split_by": "time", "data.mesh": "all"}
    settings |= {"data.window_stride": 1, "data.evaluation_stride": 1}
    config = load_config(overrides=settings | {"data.n_in": 4, "data.n_out": 3})
    used = RunData(config, stations(u))
    away = Mesh(POINTS[24:], np.arange(24, 30))
    mesh = Mesh(POINTS[:24], np.arange(24), queries=away)
    test = used.windows("test", mesh)
    batch = Batch.from_data_list([test[len(test) - 1]])
    batch.given = batch.x
    season = fitted_climatology(used)
    assert season is not None
    return StationReferences(used, season, mesh, 3, **more), batch


@pytest.mark.slow
def test_a_climatology_has_the_season_of_a_station_and_is_linear_in_height():
    u = SEASON.copy()
    u[:, 3] = np.nan  # a station that was never observed
    found, batch = fitted(u)
    field = found.at_queries(batch, found.predictors()["climatology"](batch))
    expected = torch.from_numpy(SEASON[-3:].T[..., None]).float()
    torch.testing.assert_close(field, expected, atol=0.02, rtol=0)


@pytest.mark.slow
def test_anomalies_of_an_autoregression_decay_as_they_should():
    u, random = np.zeros((1500, 30)), np.random.default_rng(3)
    for step in range(1, 1500):
        u[step] = 0.8 * u[step - 1] + random.normal(size=30)
    found, batch = fitted(np.where(random.random(u.shape) < 0.05, np.nan, u + SEASON))
    of = found.predictors()
    last = of["anomaly_persistence"](batch) - of["climatology"](batch)
    factor = 0.8 ** torch.arange(1, 4)[:, None]
    for name in ("damped_anomaly", "ridge", "ridge_each"):
        ahead = of[name](batch) - of["climatology"](batch)
        torch.testing.assert_close(ahead, factor * last, atol=0.4, rtol=0)


@pytest.mark.slow
def test_trees_find_what_no_regression_does():
    pytest.importorskip("sklearn")
    u = np.random.default_rng(4).normal(size=(1500, 30))
    for step in range(3, 1500, 3):
        u[step : step + 3] = 2 * np.abs(u[step - 1])
        u[step + 2 : step + 3] = np.random.default_rng(step).normal(size=30)
    found, batch = fitted(u, boosting=True)
    of = {name: each(batch) - batch.y for name, each in found.predictors().items()}
    assert of.keys() == NAMES | {"boosting"}
    assert of.pop("boosting").std() < 0.7 * min(each.std() for each in of.values())


@pytest.mark.slow
def test_stations_at_one_place_have_climatologies_of_their_own(monkeypatch):
    monkeypatch.setitem(globals(), "POINTS", POINTS[[0, 0, *range(2, 30)]])
    u = SEASON + 3 * (np.arange(30) == 1)
    found, batch = fitted(u)
    field = found.predictors()["climatology"](batch)
    expected = torch.from_numpy(u[-3:, :24].T[..., None]).float()
    torch.testing.assert_close(field, expected, atol=0.05, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("unobserved", [0.0, 0.1])
def test_models_know_the_climatology_of_each_of_two_stations_at_one_place(
    monkeypatch, unobserved
):
    monkeypatch.setitem(globals(), "POINTS", POINTS[[0, 0, *range(2, 30)]])
    u = SEASON + np.random.default_rng(5).normal(size=SEASON.shape)
    u[:, 1] += 30
    u[-200:-100, 0] = np.nan  # windows without one of the two
    given = {"data.n_in": 4, "data.n_out": 3, "data.window_stride": 9}
    given |= {"data.hold_out": unobserved, "model.settings.width": 4}
    e = nfsgeo.prepare(stations(u), given)
    forecaster = e.forecaster.eval()
    for batch in batches(e.used.windows("test"), 4, forecaster.connect):
        known = ~batch.y.isnan()
        assert (forecaster.predict_batch(batch) - batch.y)[known].abs().max() < 8
    x = np.stack(np.broadcast_arrays(u[-7:-3].T, HEIGHT), axis=2)
    ahead = forecaster.predict(x, POINTS, times=e.file.times[-7:])
    np.testing.assert_allclose(ahead[..., 0], u[-3:].T, atol=8)


@pytest.mark.slow
def test_the_climatology_at_a_new_place_depends_on_the_height_given_for_it():
    given = {"data.n_in": 4, "data.n_out": 3, "model.settings.width": 4}
    e = nfsgeo.prepare(stations(SEASON), given | {"data.split_by": "time"})
    forecaster = e.forecaster.eval()
    x = np.stack(np.broadcast_arrays(SEASON[-7:-3].T, HEIGHT), axis=2)
    rng, year = np.random.default_rng(8), YEAR[-3:, 0]
    places, height = 0.1 + 0.8 * rng.random((9, 2)), rng.random((9, 1))
    low, high, unknown = (
        forecaster.predict(
            x, POINTS, query_pos=places, query_static=h, times=e.file.times[-7:]
        )[..., 0]
        for h in (height, height + 1, height * np.nan)
    )
    assert np.abs(high - low - 5 - np.cos(year - 1)).max() < 0.1
    truth = 10 + 5 * height + (1 + height) * np.cos(year - 1)
    assert np.abs(low - truth).max() < 0.5 < np.abs(unknown - truth).max()
    stored = Forecaster.from_description(forecaster.description())
    stored.load_state_dict(forecaster.state_dict())


@pytest.mark.slow
def test_a_series_that_some_stations_leave_for_a_while():
    u = (SEASON + np.random.default_rng(7).normal(size=SEASON.shape))[:300]
    u[90:130, :15] = u[-30:, 15:20] = np.nan
    given: dict[str, Any] = {"data.n_in": 4, "data.n_out": 3, "data.points": 24}
    given |= {"data.query_points": 0, "data.point_sets": 1, "data.window_stride": 9}
    given |= {"data.input_noise": 0.5, "model.prediction": "linear"}
    e = nfsgeo.prepare(stations(u), given | {"model.settings.width": 4})
    scored = ScoredModel(e.forecaster, e.used)
    references, noise = References(scored), scored.windows().noise
    # Noise is that of training, though the network sees anomalies.
    assert noise is not None and torch.equal(noise, e.data.parts["train"].noise)
    *_, batch = batches(scored.windows(), 4, e.forecaster.connect)
    assert len(batch.y) < 24 * batch.num_graphs
    train = scored.windows("train")
    train.drop_absent = False
    mean = torch.stack([w.y.double() for w in train]).nanmean(0).float()
    torch.testing.assert_close(references.predictors["mean"](batch), mean[batch.point])
    # Where nothing at all is observed, inputs of references are the mean.
    (absent := batch.clone()).x = batch.x * torch.nan
    assert (with_given(scored, absent).x[..., 0] == e.task.mean[0]).all()
    # What is fitted to each station is no reference on another mesh.
    found = errors_of(scored, "valid", references)
    there = {
        n: ~of[found.condition == 4].isnan().all() for n, of in found.errors.items()
    }
    assert there["persistence"] and not there["mean"] and not there["ridge_each"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nfs", "mppde"])
def test_a_single_series_has_references_at_observed_and_at_other_points(name):
    u = 5 * HEIGHT[:, 0] + np.random.default_rng(6).normal(size=(450, 30))
    u[100, 2] = u[200:260, 7] = np.nan
    file = stations(u).write(Path("stations.nc"))
    settings = {"model.name": name, "data.n_in": 3, "data.n_out": 2, "data.points": 24}
    settings |= {"data.query_points": 0, "data.point_sets": 1, "trainer.epochs": 1}
    settings |= {"data.window_stride": 9}
    run = nfsgeo.fit(nfsgeo.prepare(file, settings), Path("run"))
    summary = evaluate_run(run.root, steps=4)
    assert NAMES < summary["baselines"].keys() > {"persistence", "linear_extrapolation"}
    away = summary["unobserved"]
    assert away["baselines"].keys() > NAMES and away["num_points"] == 6
    assert away["kriging"] == (name == "mppde") and 0.5 < away["rmse"] < 10
    assert away["baselines"]["climatology"]["rmse"] < 1.2
    assert summary["rollout"]["errors"].keys() > NAMES
