"""What evaluating a run finds and writes."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import nfsgeo.data
import nfsgeo.training.reading as training_reading
from nfsgeo.evaluation import evaluate_run
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo.stations import seasonal_means
from nfsgeo.training import FieldErrors, read_config
from nfsgeo.training.run_data import RunData


def test_errors_are_those_of_the_fields_in_their_units(run, waves):
    summary = evaluate_run(run.root)
    config, forecaster = read_config(run.config), nfsgeo.load(run)
    errors, last = FieldErrors(), []
    with nfsgeo.open(waves) as file, torch.no_grad():
        train, test = map(RunData(config, file).windows, ("train", "test"))
        centre = torch.stack([train[item].y for item in range(len(train))]).mean()
        for item in range(len(test)):
            data = test[item]
            found = forecaster(data.x, data.pos)
            errors.update(found, data.y)
            error, away = (found - data.y)[:, -1], data.y[:, -1] - centre
            last.append(error.norm(1) / away.norm(1))
    expected = errors.compute() | {"rel_l1_last_median": np.median(last)}
    assert summary["test"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("some", [True, False])
def test_examples_have_the_mesh_that_their_points_are_from(
    around_bodies, tiny, tmp_path, some
):
    sizes = {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}
    fields = around_bodies()
    sizes |= {"data.mesh": "random-subset", "data.points": 30} if some else {}
    run = nfsgeo.fit(nfsgeo.prepare(fields, tiny | sizes), tmp_path / "run")
    nfsgeo.evaluate(run)
    for example in read_run_folder(run.root).predictions.examples:
        sample = example.key[0]
        assert np.array_equal(example.triangles, fields.triangles(sample))
        found = example.mesh_pos if some else example.pos
        np.testing.assert_allclose(found, fields.coordinates(sample), rtol=1e-6)
        assert (example.mesh_pos is not None) == (len(example.pos) == 30) == some


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"part": "valid"}, "part 'valid': expected all or test"),
        ({"unseen_at": "grid"}, "unseen_at 'grid': expected off-grid or file"),
        ({"steps": 0}, "steps 0: expected 1 or more"),
    ],
)
def test_what_cannot_be_asked_for(asked, expected, refuses):
    refuses(expected, evaluate_run, "ns-small", **asked)


def test_the_summary_has_what_it_promises(run):
    evaluate_run(run)
    summary = json.loads(run.summary.read_text())
    named = "model data n_s n_t n_t_out epochs parameters seconds_per_epoch test"
    assert {*named.split()} <= set(summary) and summary["peak_memory_bytes"] > 1e6
    sizes = [summary[name] for name in ("n_s", "n_t", "n_t_out", "epochs")]
    assert sizes == [64, 10, 10, 2]
    polynomials = ("linear", "quadratic", "cubic")
    names = {"persistence", "mean", *(f"{n}_extrapolation" for n in polynomials)}
    assert set(summary["baselines"]) == names
    for errors in (summary["test"], *summary["baselines"].values()):
        assert (
            errors.keys() == summary["test"].keys() and errors["mae"] <= errors["rmse"]
        )


def test_examples_are_whole_samples(run, waves):
    evaluate_run(run.root)
    with np.load(run.evaluation, allow_pickle=False) as arrays:
        kept = dict(arrays)
    chosen = len(kept["sample"])
    assert kept["x"].shape == kept["truth"].shape == (chosen, 64, 10, 1)
    assert kept["prediction"].shape == kept["truth"].shape
    assert kept["times"].shape == (chosen, 20)
    errors = np.abs(kept["prediction"].astype(float) - kept["truth"]).mean((1, 2, 3))
    with nfsgeo.data.open(waves) as file:
        test, pos = file.split["test"].tolist(), file.coordinates()
        assert test[0] in kept["sample"] and len(set(kept["sample"])) == chosen
        ranks = dict(zip(kept["rank"].tolist(), kept["sample"].tolist(), strict=True))
        sorted_errors = np.sort(kept["mae_by_sample"])
        by_step = kept["error_by_record"]
        np.testing.assert_allclose(by_step.mean(), sorted_errors.mean(), rtol=1e-4)
        for number, sample in enumerate(kept["sample"]):
            error = kept["mae_by_sample"][test.index(sample)]
            np.testing.assert_allclose(errors[number], error, rtol=1e-4)
            here = [np.flatnonzero((pos == p).all(1))[0] for p in kept["pos"][number]]
            u = file.read(int(sample), slice(10, 20), np.array(here))
            assert np.array_equal(kept["truth"][number], u)
    for rank, place in (("best", 0), ("median", 1), ("worst", -1)):
        error = kept["mae_by_sample"][test.index(ranks[rank])]
        assert error == sorted_errors[place]


def test_errors_by_time_step_are_of_each_component_without_gaps(tiny, tmp_path):
    random = np.random.default_rng(0)
    u, points, times = random.random((20, 30, 6, 2)), random.random((30, 2)), range(6)
    u[random.random(u.shape) < 0.2] = np.nan
    data = nfsgeo.from_arrays(u, points, np.array(times, float))
    settings = tiny | {"data.n_in": 3, "data.n_out": 3, "trainer.epochs": 1}
    settings["data.split"] = [15, 4, 1]  # one example is kept
    experiment = nfsgeo.prepare(data, settings)
    run = nfsgeo.fit(experiment, tmp_path / "run")
    evaluate_run(run.root)
    with np.load(run.evaluation, allow_pickle=False) as arrays:
        kept = dict(arrays)
    errors = np.abs(kept["prediction"].astype(float) - kept["truth"])
    assert len(errors) == 1 and np.isnan(errors).any()
    expected = np.nanmean(errors, axis=(0, 1))
    np.testing.assert_allclose(kept["error_by_record"], expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("components", [1, 2])
def test_the_mean_error_of_samples_is_that_of_all(tiny, tmp_path, components):
    """Also with gaps, and meshes of different sizes."""
    random = np.random.default_rng(0)
    fields = []
    for number in range(20):
        u = random.random((20 + number, 6, components))
        u[random.random(u.shape) < 0.2] = np.nan
        fields.append(u)
    data = nfsgeo.from_arrays(
        fields, [random.random((len(u), 2)) for u in fields], np.arange(6.0)
    )
    settings = tiny | {"data.n_in": 3, "data.n_out": 3, "data.mesh": "all"}
    settings |= {"trainer.epochs": 1, "data.split": [10, 4, 6]}
    experiment = nfsgeo.prepare(data, settings)
    run = nfsgeo.fit(experiment, tmp_path / "run")
    summary = evaluate_run(run.root)
    with np.load(run.evaluation) as arrays:
        each = arrays["mae_by_sample"]
    assert each.mean() == pytest.approx(summary["test"]["mae"], rel=1e-12)
    forecaster = open_run(run).forecaster
    test = experiment.used.windows("test")
    for window, error in zip(map(test.__getitem__, range(6)), each, strict=True):
        errors = FieldErrors(**forecaster.task.statistics)
        with torch.no_grad():
            errors.update(forecaster(window.x, window.pos), window.y)
        assert error == pytest.approx(errors.compute()["mae"], rel=1e-5)


def test_other_data_leave_the_run_as_it_is(run, waves):
    evaluate_run(run.root)
    before = {p: p.stat().st_mtime_ns for p in run.root.rglob("*")}
    evaluate_run(run.root, data=waves, part="all")
    assert {p: p.stat().st_mtime_ns for p in run.root.rglob("*")} == before


def test_errors_at_unobserved_points_are_those_of_queries(run, waves):
    summary = evaluate_run(run.root)
    loaded = open_run(run)
    config, forecaster = loaded.config, loaded.forecaster
    with nfsgeo.data.open(waves) as file, torch.no_grad():
        mesh = RunData(config, file).mesh(0)
        others = np.setdiff1d(np.arange(256), mesh.index)
        errors = FieldErrors()
        for sample in file.split["test"]:
            u = torch.from_numpy(file.read(sample, slice(0, 20)))
            pos = torch.from_numpy(file.coordinates()).float()
            x, seen = u[mesh.index, :10], pos[mesh.index]
            found = forecaster(x, seen, query_pos=pos[others])
            errors.update(found, u[others, 10:])
    expected = {"num_points": 192} | errors.compute()
    assert summary["unobserved"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_a_table_is_read_once_and_fitted_once(tiny, tmp_path, monkeypatch):
    """In a training with its evaluation, which gives what another reading gives."""
    random, times = np.random.default_rng(0), np.arange(120.0)
    u = random.normal(size=(1, 12, 120, 1)) + np.sin(times / 4)[:, None]
    fields = nfsgeo.from_arrays(u, random.random((12, 2)), times)
    counts = Counter[str]()

    def count(name: str, owner: Any, attribute: str) -> None:
        original = getattr(owner, attribute)

        def counted(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, attribute, counted)

    count("read", pandas, "read_csv")
    count("climatology", seasonal_means, "SeriesClimatology")
    count("statistics", training_reading, "Statistics")
    table = fields.write(tmp_path / "a.csv")
    chosen = {"data.n_in": 4, "data.n_out": 2, "data.points": None}
    experiment = nfsgeo.prepare(table, tiny | {"trainer.epochs": 1} | chosen)
    run = nfsgeo.fit(experiment, tmp_path / "run")
    summary = nfsgeo.evaluate(run, experiment=experiment)
    assert counts == {"read": 1, "climatology": 1, "statistics": 1}
    assert nfsgeo.evaluate(run) == summary
