"""Errors of fields whose components are unlike quantities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.evaluation import evaluate_run
from nfsgeo.geometry import Domain
from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.run_data import RunData

NAMES = ["temperature", "pressure"]
MEASURES = ("mae", "rmse", "rel_l2", "rel_l1")
SMALL = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1, "grid": 8}


def weather(path: Path, pascals: float = 1.0) -> Path:
    """Waves of 4 °C around 15 °C and of 0.6 hPa around 1013 hPa, ten samples."""
    axis = np.arange(8) / 8
    x, y = np.meshgrid(axis, axis, indexing="ij")
    t, random = 0.25 * np.arange(1, 9), np.random.default_rng(0)
    turns = x + y - 0.1 * t[:, None, None]
    waves = np.sin(2 * np.pi * (turns + random.random((10, 2, 1, 1, 1)))).astype("f4")
    u = waves * [[[[4]]], [[[0.6 * pascals]]]] + [[[[15]]], [[[1013 * pascals]]]]
    return build(
        path,
        [Array(u.astype("f4"), "nctxy", NAMES)],
        axes=[axis, axis],
        times=t,
        domain=Domain.unit(2),
        units={"temperature": "°C", "pressure": "hPa", "time": "h"},
    ).write(path)


def trained(data: Path, out: Path) -> RunPaths:
    chosen: dict[str, Any] = {f"model.settings.{k}": v for k, v in SMALL.items()}
    chosen |= {"data.n_in": 4, "data.n_out": 4, "trainer.epochs": 1}
    chosen |= {"trainer.device": "cpu", "data.mesh": "all"}
    return nfsgeo.fit(nfsgeo.prepare(data, chosen), out)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("components")
    return trained(weather(folder / "weather.nc"), folder / "run")


@pytest.fixture(scope="module")
def summary(run: RunPaths) -> dict[str, Any]:
    evaluate_run(run.root)
    content: dict[str, Any] = json.loads(run.summary.read_text())
    return content


def test_each_component_has_errors_in_its_own_unit(
    run: RunPaths, summary: dict[str, Any]
) -> None:
    config, forecaster = read_config(run.config), nfsgeo.load(run)
    with nfsgeo.data.open(config.data.file) as file:
        train = RunData(config, file).windows("train")
        both = [torch.cat([w.x, w.y], 1) for w in map(train.__getitem__, range(7))]
    everything = torch.cat(both).flatten(0, 1).double()
    mean, std = everything.mean(0), everything.std(0, unbiased=False)
    errors: dict[str, list[torch.Tensor]] = {name: [] for name in MEASURES}
    with nfsgeo.data.open(config.data.file) as file, torch.no_grad():
        test = RunData(config, file).windows("test")
        for item in range(len(test)):
            window = test[item]
            y = window.y.double()
            error = (forecaster(window.x, window.pos).double() - y).flatten(0, 1)
            errors["mae"].append(error.abs().mean(0))
            errors["rmse"].append(error.square().mean(0).sqrt())
            away = (y.flatten(0, 1) - mean).norm(dim=0)
            errors["rel_l2"].append(error.norm(dim=0) / away)
            away = (y.flatten(0, 1) - mean).norm(1, dim=0)
            errors["rel_l1"].append(error.norm(1, dim=0) / away)
    found = {name: torch.stack(each).mean(0) for name, each in errors.items()}
    for c, (name, unit) in enumerate(zip(NAMES, ("°C", "hPa"), strict=True)):
        component = summary["components"][name]
        assert component["unit"] == unit
        assert component["std"] == pytest.approx(float(std[c]), rel=1e-3)
        for measure in MEASURES:
            expected = pytest.approx(float(found[measure][c]), rel=2e-3)
            assert component[measure] == expected
    # Neither dwarfs the other, and the offset does not make the errors small.
    assert 0.1 < summary["test"]["rel_l2"] < 2
    assert set(summary["test"]) == {*MEASURES, "rel_l1_last_median"}


def test_the_pooled_error_is_the_mean_over_standard_deviations(
    summary: dict[str, Any],
) -> None:
    assert "standard deviation" in summary["pooled"]
    components = summary["components"].values()
    for method in ("test", *summary["baselines"]):
        own = method == "test"
        pooled = summary["test"] if own else summary["baselines"][method]
        parts = [c if own else c["baselines"][method] for c in components]
        for measure in MEASURES:
            scale = [1 if "rel" in measure else c["std"] for c in components]
            each = [p[measure] / s for p, s in zip(parts, scale, strict=True)]
            assert pooled[measure] == pytest.approx(np.mean(each), rel=1e-6)


def test_units_do_not_change_pooled_errors(
    tmp_path: Path, summary: dict[str, Any]
) -> None:
    other = trained(weather(tmp_path / "pascals.nc", 100.0), tmp_path / "pascals")
    found = evaluate_run(other.root)["baselines"]
    # Extrapolation of a higher degree amplifies how each file rounds its values.
    for name in ("persistence", "linear_extrapolation", "mean"):
        assert found[name] == pytest.approx(summary["baselines"][name], rel=1e-2)


def test_a_component_that_starts_at_zero_has_the_deviation_of_its_targets(
    tmp_path: Path,
) -> None:
    axis = np.arange(8) / 8
    u = np.random.default_rng(0).normal(size=(10, 8, 8, 2))
    u[:, :4, :, 1] = 0
    u[:, :, :, 1] *= 1e-3
    fields = build(
        tmp_path / "d.nc",
        [Array(u, "ntxc", ["a", "b"])],
        axes=[axis],
        times=np.arange(8.0),
        domain=Domain.unit(1),
    )
    fields.write(tmp_path / "d.nc")
    run = trained(tmp_path / "d.nc", tmp_path / "run")
    std = evaluate_run(run.root)["components"]["b"]["std"]
    assert std == pytest.approx(u[:7, ..., 1].std(), rel=1e-4)
