"""References of problems without time, on fields that they can and cannot predict."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fields import Array, build
from torch_geometric.data import Batch

import nfsgeo
from nfsgeo.data import Fields, WindowDataset
from nfsgeo.data.meshes import Mesh
from nfsgeo.evaluation import References, StaticReferences, evaluate_run
from nfsgeo.evaluation import static_references as module
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.geometry import Domain
from nfsgeo.report.tables import error_tables
from nfsgeo.uncertainty.fitting import errors_of
from nfsgeo_benchmarks.suites.suite import TRIVIAL

NAMES = {"nearest_neighbours", "boosted_trees"}
POINTS = np.random.default_rng(0).random((60, 2))
# An input of each of forty samples, and another that is the same everywhere.
INPUT = np.random.default_rng(1).random((40, 60))


def steady(
    u: Any, inputs: Any = None, path: str = "x.nc", domain: Domain | None = None
) -> Fields:
    """Fields ``[40, 60, C]`` at points that all samples share."""
    inputs = np.stack([INPUT, 0 * INPUT + 3], axis=2) if inputs is None else inputs
    arrays = [
        Array(np.float32(u)[:, None], "ntpc", [f"u{c}" for c in range(u.shape[2])]),
        Array(np.float32(inputs), "npc", ["a", "b"], "static"),
    ]
    facts: dict[str, Any] = {"times": [0.0], "points": POINTS}
    facts["domain"] = domain or Domain.unit(2, periodic=False)
    return build(Path(path), arrays, **facts)


def fitted(fields: Fields, train: int = 30) -> tuple[StaticReferences, Batch]:
    """References fitted to the first samples, and the others."""
    mesh = Mesh(POINTS, np.arange(60))
    windows = partial(WindowDataset, fields, n_in=0, n_out=1, mesh=mesh)
    test = windows(range(train, 40))
    batch = Batch.from_data_list([test[item] for item in range(len(test))])
    return StaticReferences(windows(range(train))), batch


def errors(fields: Fields) -> dict[str, torch.Tensor]:
    """Absolute errors over the standard deviation, by component."""
    found, batch = fitted(fields)
    fields_by_name = {n: predict(batch) for n, predict in found.predictors().items()}
    assert fields_by_name.keys() == NAMES
    assert all(u.shape == batch.y.shape for u in fields_by_name.values())
    spread = torch.from_numpy(np.nanstd(batch.y.flatten(0, 1).numpy(), axis=0))
    return {
        name: (u - batch.y).abs().nanmean((0, 1)) / spread
        for name, u in fields_by_name.items()
    }


@pytest.mark.slow
def test_functions_of_the_inputs_and_of_the_place_are_found():
    """Each component by itself; what neither input tells has an error like its mean."""
    noise = np.random.default_rng(2).standard_normal((40, 60))
    of_input, of_place = np.sin(4 * INPUT), np.cos(4 * POINTS[:, 0]) + 0 * INPUT
    u = np.stack([of_input, 100 + of_place, INPUT * POINTS[:, 1], noise], axis=2)
    for error in errors(steady(u)).values():
        assert (error[:3] < 0.12).all() and error[3] > 0.7


def test_a_function_of_the_whole_field_is_not_found():
    """The sum of an input over the points, at all points."""
    u = np.repeat(INPUT.sum(1, keepdims=True), 60, axis=1)[..., None]
    for error in errors(steady(u)).values():
        assert error[0] > 0.6


def test_nearest_neighbours_are_those_of_standardised_inputs_and_places():
    scale = np.array([1e6, 1e-3])
    inputs = np.random.default_rng(3).random((40, 60, 2)) * scale
    u = np.random.default_rng(4).random((40, 60, 1))
    found, batch = fitted(steady(u, inputs))
    train = np.concatenate([inputs[:30], np.tile(POINTS, (30, 1, 1))], axis=2)
    train, spread = train.reshape(-1, 4), train.reshape(-1, 4).std(0)
    seen = np.concatenate([batch.x[:, 0].numpy(), batch.pos.numpy()], axis=1)
    away = np.linalg.norm((seen[:, None] - train) / spread, axis=2)
    eight = np.sort(away, axis=1)[:, :8]
    near = found.neighbours[0][0].query(found._standardised(seen), 8, eps=0)[0]
    np.testing.assert_allclose(near, eight, rtol=1e-4)
    # The search is approximate: compared with the mean where it happens to be exact.
    exact = u[:30].reshape(-1)[np.argsort(away, axis=1)[:, :8]].mean(1)
    prediction = found.predictors()["nearest_neighbours"](batch)[:, 0, 0].numpy()
    assert (np.abs(prediction - exact) < 1e-6).mean() > 0.3


def test_the_ends_of_a_periodic_axis_are_one_place():
    domain = Domain.unit(2, periodic=True)
    jump = (np.where(POINTS[:, 0] < 0.5, POINTS[:, 0], POINTS[:, 0] - 1) ** 2)[:, None]
    found, batch = fitted(steady(np.tile(jump, (40, 1, 1)), domain=domain))
    here = torch.tensor([[0.001, 0.5], [0.999, 0.5]])
    x = batch.x[:1].expand(2, -1, -1)
    for name in NAMES:
        first, second = found._predicted(name, x, here)[:, 0, 0].tolist()
        assert first == pytest.approx(second, abs=1e-3)


@pytest.mark.slow
def test_missing_targets_and_repeatability():
    u, gaps = np.stack([np.sin(4 * INPUT), INPUT], axis=2), np.random.default_rng(5)
    u[gaps.random(u.shape) < 0.3] = np.nan
    fields = steady(u)
    first, again = errors(fields), errors(fields)
    for name in NAMES:
        assert (first[name] < 0.12).all()
        assert torch.equal(first[name], again[name])
    u[..., 1] = np.nan  # never observed: no reference predicts it
    found, batch = fitted(steady(u))
    for predict in found.predictors().values():
        prediction = predict(batch)
        assert prediction[..., 0].isfinite().all() and prediction[..., 1].isnan().all()


def test_few_and_many_points(monkeypatch):
    u = INPUT[..., None]
    found, batch = fitted(steady(u), train=1)
    assert all(p(batch).isfinite().all() for p in found.predictors().values())
    monkeypatch.setattr(module, "POINTS", 200)
    found, batch = fitted(steady(u))
    assert found.neighbours[0][0].n == 200
    prediction = found.predictors()["nearest_neighbours"](batch)
    assert (prediction - batch.y).abs().mean() < 0.5 * INPUT.std()
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    found, _ = fitted(steady(u))
    assert found.predictors().keys() == {"nearest_neighbours"}


@pytest.mark.slow
def test_a_run_has_them_also_at_query_points(tiny):
    """In the summary and its tables; a file without training samples has none."""
    u = np.stack([np.sin(4 * INPUT) + POINTS[:, 0], INPUT**2], axis=2)
    data = steady(u).write("x.nc")
    settings = tiny | {"trainer.epochs": 1, "data.points": 40}
    settings |= {"data.split": [20, 10, 10], "model.bands": True}
    run = nfsgeo.fit(nfsgeo.prepare(data, settings), "run")
    summary = evaluate_run(run)
    assert summary["baselines"].keys() == {"mean", *NAMES} <= TRIVIAL.keys() | {"mean"}
    assert all(name in TRIVIAL for name in summary["baselines"])
    mean = summary["baselines"]["mean"]["mae"]
    away = summary["unobserved"]
    for name in NAMES:
        assert summary["baselines"][name]["mae"] < 0.3 * mean
        assert summary["components"]["u1"]["baselines"][name]["mae"] < 0.1
        # The input there is that of another point, which here tells nothing.
        assert 0 < away["baselines"][name]["mae"] < 1.5 * mean
    tables = [frame for _, _, frame in error_tables(summary)]
    assert len(tables) == 4
    assert all({"Nearest neighbours", "Boosted trees"} < {*t.index} for t in tables)
    assert "baselines" in summary and summary["bands"]["references"]
    other = replace(steady(u), path=Path("other.nc"))
    elsewhere = evaluate_run(run, data=other, part="all")
    assert elsewhere["baselines"].keys() == {"mean"}


def test_queries_take_the_inputs_of_the_nearest_point():
    u = np.repeat(INPUT[:, :1], 60, axis=1)[..., None]  # one value per sample
    inputs = np.repeat(np.stack([INPUT[:, :1]] * 2, axis=2), 60, axis=1)
    fields = steady(u, inputs)
    away = Mesh(POINTS[40:], np.arange(40, 60))
    mesh = Mesh(POINTS[:40], np.arange(40), queries=away)
    windows = partial(WindowDataset, fields, n_in=0, n_out=1, mesh=mesh)
    found, test = StaticReferences(windows(range(30))), windows(range(30, 40))
    for predict in found.predictors(queries=True).values():
        for item in range(10):
            batch = Batch.from_data_list([test[item]])
            prediction = predict(batch)
            assert prediction.shape == (60, 1, 1)
            assert (prediction - batch.query_y)[40:].abs().max() < 0.2


@pytest.mark.slow
def test_bands_see_them_on_unseen_meshes(tiny):
    """Unlike the mean of each training point, they predict anywhere."""
    fields = steady(INPUT[..., None])
    settings = tiny | {"data.points": 40, "data.mesh": "random-subset"}
    e = nfsgeo.prepare(fields, settings)
    scored = ScoredModel(e.forecaster, e.used)
    found = errors_of(scored, "test", References(scored))
    there = {
        n: found.condition[~u.isnan().all((1, 2))] for n, u in found.errors.items()
    }
    assert 4 in there["nearest_neighbours"] and 4 not in there["mean"]
