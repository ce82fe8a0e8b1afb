"""References on series of which it is known what is best."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.data.meshes import Mesh
from nfsgeo.evaluation import StationReferences, evaluate_run
from nfsgeo.evaluation.ordinary_kriging import fitted_covariance, kriging_weights
from nfsgeo.training import load_config
from nfsgeo.training.run_data import RunData

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
    return StationReferences(used, mesh, 3, **more), batch


def test_a_climatology_has_the_season_of_a_station_and_is_linear_in_height() -> None:
    u = SEASON.copy()
    u[:, 3] = np.nan  # a station that was never observed
    found, batch = fitted(u)
    field = found.at_queries(batch, found.predictors()["climatology"](batch))
    expected = torch.from_numpy(SEASON[-3:].T[..., None]).float()
    torch.testing.assert_close(field, expected, atol=0.02, rtol=0)


def test_anomalies_of_an_autoregression_decay_as_they_should() -> None:
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


def test_trees_find_what_no_regression_does() -> None:
    pytest.importorskip("sklearn")
    u = np.random.default_rng(4).normal(size=(1500, 30))
    for step in range(3, 1500, 3):
        u[step : step + 3] = 2 * np.abs(u[step - 1])
        u[step + 2 : step + 3] = np.random.default_rng(step).normal(size=30)
    found, batch = fitted(u, boosting=True)
    of = {name: each(batch) - batch.y for name, each in found.predictors().items()}
    assert of.keys() == NAMES | {"boosting"}
    assert of.pop("boosting").std() < 0.7 * min(each.std() for each in of.values())


@given(st.integers(0, 10**6), st.floats(0.05, 2), st.floats(1e-3, 3))
def test_kriging_keeps_constants_and_what_is_observed(
    seed: int, length: float, nugget: float
) -> None:
    pos = np.random.default_rng(seed).random((12, 2))
    apart = np.linalg.norm(pos[:, None] - pos, axis=2)
    weights = kriging_weights(apart[:8, :8], apart[:, :8], (length, nugget))
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-8)
    exact = kriging_weights(apart[:8, :8], apart[:8, :8], (length, 1e-12))
    np.testing.assert_allclose(exact, np.eye(8), atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_the_nugget_is_what_leaving_one_point_out_asks_for(noise: float) -> None:
    random = np.random.default_rng(5)
    pos = random.random((80, 2))
    apart = np.linalg.norm(pos[:, None] - pos, axis=2)
    root = np.linalg.cholesky(np.exp(-apart / 0.5) + 1e-9 * np.eye(80))
    z = root @ random.normal(size=(80, 100)) + noise * random.normal(size=(80, 100))
    length, nugget = fitted_covariance(apart, z)
    assert nugget >= 3 if noise else nugget <= 0.03

    def error(covariance: tuple[float, float]) -> float:
        left = []
        for i in range(80):
            rest = np.delete(np.arange(80), i)
            between, away = apart[rest][:, rest], apart[[i]][:, rest]
            left.append(
                z[i] - (kriging_weights(between, away, covariance) @ z[rest])[0]
            )
        return float(np.mean(np.square(left)))

    assert error((length, nugget)) <= error((0.5 * length, nugget)) + 1e-9


@pytest.mark.parametrize("name", ["nfs", "mppde"])
def test_a_single_series_has_references_at_observed_and_at_other_points(
    name: str,
) -> None:
    u = 5 * HEIGHT[:, 0] + np.random.default_rng(6).normal(size=(300, 30))
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
