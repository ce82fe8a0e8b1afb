"""Scenarios of APEBench: errors over rollouts, where points are, and its networks."""

import sys
from typing import Any

import numpy as np
import pytest

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo_benchmarks.suites import carry_out_all, collect
from nfsgeo_benchmarks.suites.apebench import (
    STEPS,
    Scenario,
    measures,
    normalised_rmse,
    train_network,
)
from nfsgeo_benchmarks.suites.runs import Run

SPEED = 0.01
SETTINGS: dict[str, Any] = {
    "model.name": "dse",
    "model.settings.width": 4,
    "model.settings.depth": 1,
    "data.n_in": 1,
    "data.n_out": 1,
    "data.points": 24,
    "trainer.epochs": 1,
}


def test_errors_against_closed_forms():
    truth = np.random.default_rng(0).normal(size=(30, 4, 2))
    factors = np.array([[1.5, 1.0], [1.0, 0.0], [2.0, 3.0], [1.0, 1.0]])
    found = normalised_rmse(factors * truth, truth)  # the sum over components
    np.testing.assert_allclose(found, [0.5, 1.0, 3.0, 0.0], atol=1e-12)
    growing = measures(0.1 * 1.02 ** np.arange(STEPS))
    expected = {"gmean_nrmse": 0.1 * 1.02**49.5, "nrmse_1": 0.1}
    assert growing == pytest.approx(expected | {"nrmse_100": 0.1 * 1.02**99})
    beyond = np.append(
        np.ones(STEPS - 2), [np.inf, np.nan]
    )  # counts in a mean of seeds
    assert measures(beyond)["gmean_nrmse"] == pytest.approx(1e30**0.02)


@pytest.mark.slow
def test_a_model_is_scored_at_points_of_the_grid(tmp_path):
    times, x = np.arange(STEPS + 1)[:, None, None], np.arange(32) / 32
    phases = np.arange(3)[:, None, None, None] / 3
    u = np.cos(2 * np.pi * (x - SPEED * times - phases))
    scenario = Scenario(scenario="wave")
    scenario.write("windows", *3 * [u[:, :11]])
    scenario.write("rollouts", u[:0], u[:0], u)
    run = Run("wave", "dse", 0, scenario, SETTINGS)
    carry_out_all([run], tmp_path)
    model, persistence, _ = collect([run], tmp_path)
    assert model["status"] == "ok" and model["n_s"] == 24, model["message"]
    assert 0 < model["nrmse_1"] < 0.5 and model["gmean_nrmse"] > 0
    # On the whole grid it would be 2 |sin(pi c t)| at any phase.
    gone = 2 * np.abs(np.sin(np.pi * SPEED * np.arange(1, STEPS + 1)))
    assert persistence["nrmse_1"] == pytest.approx(gone[0], rel=0.2)
    expected = measures(np.maximum(gone, 1e-9))["nrmse_100"]
    assert persistence["nrmse_100"] == pytest.approx(expected, abs=1e-5)
    with np.load(tmp_path / "runs" / run.name / "evaluation.npz") as kept:
        places = kept["pos"][0, :, 0]
    assert len(np.unique(places)) == 24 and np.isin(places, x.astype("f4")).all()


def test_without_the_extra(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "apebench", None)
    with pytest.raises(UserError, match=r"pip install 'nfsgeo\[apebench\]'"):
        Scenario(scenario="diff_kdv", arguments={"num_points": 16}).obtain()
    plain = ("apebench", "--scale", "smoke", "--out", "o")
    assert bench(*plain, "--dry-run").stdout.count("to run") == 18
    refused = bench(*plain, "--only", "kdv")
    assert refused.exit_code == 2 and "the scenario diff_kdv" in refused.output


@pytest.mark.slow
def test_a_network_of_apebench_is_trained_by_its_own_program():
    pytest.importorskip("apebench", reason="the extra apebench is not installed")
    few = {"num_points": 32, "num_train_samples": 2, "num_test_samples": 2}
    scenario = Scenario(scenario="diff_burgers", arguments=few)
    file = nfsgeo.open(scenario.obtain()["data.file"])
    assert {part: len(of) for part, of in file.split.items()} == {
        "train": 2,
        "valid": 10,
        "test": 2,
    }
    row = train_network(scenario, "FNO;4;4;1;gelu", epochs=1, seed=0)
    assert 0 < row["gmean_nrmse"] < 100 and row["parameters"] > 0
    made, rng = scenario.build(), np.random.default_rng(0)
    truth = np.asarray(made.get_test_data()[:, 1:])
    guess = (truth + rng.normal(size=truth.shape)).astype(np.float32)
    theirs = made.perform_tests_on_rollout(guess)["mean_nRMSE"][0]
    # From [S, T, C, n] to samples [n, T, C].
    each = (
        normalised_rmse(*pair)
        for pair in zip(
            *(np.moveaxis(fields, -1, 1) for fields in (guess, truth)), strict=True
        )
    )
    np.testing.assert_allclose(np.mean([*each], axis=0), theirs, rtol=1e-4)
