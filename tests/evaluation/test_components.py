"""Errors of fields whose components are unlike quantities."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fields import Array, build

import nfsgeo
from nfsgeo.evaluation import persistence
from nfsgeo.geometry import Domain
from nfsgeo.training import FieldErrors, RunPaths, read_config
from nfsgeo.training.run_data import RunData

NAMES = ["temperature", "pressure"]


def weather(path: Path) -> Path:
    """Waves of 4 °C around 15 °C and of 0.6 hPa around 1013 hPa, ten samples."""
    axis = np.arange(8) / 8
    x, y = np.meshgrid(axis, axis, indexing="ij")
    t, random = 0.25 * np.arange(1, 9), np.random.default_rng(0)
    turns = x + y - 0.1 * t[:, None, None]
    waves = np.sin(2 * np.pi * (turns + random.random((10, 2, 1, 1, 1)))).astype("f4")
    u = waves * [[[[4]]], [[[0.6]]]] + [[[[15]]], [[[1013]]]]
    return build(
        path,
        [Array(u.astype("f4"), "nctxy", NAMES)],
        axes=[axis, axis],
        times=t,
        domain=Domain.unit(2),
        units={"temperature": "°C", "pressure": "hPa", "time": "h"},
    ).write(path)


def trained(data: Path, out: Path, tiny: Any) -> RunPaths:
    chosen = tiny | {"data.n_in": 4, "data.n_out": 4, "trainer.epochs": 1}
    return nfsgeo.fit(nfsgeo.prepare(data, chosen | {"data.mesh": "all"}), out)


@pytest.fixture(scope="module")
def run(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("components")
    return trained(weather(folder / "weather.nc"), folder / "run", tiny)


@pytest.fixture(scope="module")
def summary(run: RunPaths) -> dict[str, Any]:
    nfsgeo.evaluate(run)
    content: dict[str, Any] = json.loads(run.summary.read_text())
    return content


@pytest.mark.slow
def test_each_component_has_errors_in_its_own_unit(run, summary):
    config, forecaster = read_config(run.config), nfsgeo.load(run)
    with nfsgeo.open(config.data.file) as file, torch.no_grad():
        train, test = map(RunData(config, file).windows, ("train", "test"))
        both = [torch.cat([w.x, w.y], 1) for w in map(train.__getitem__, range(7))]
        values = torch.cat(both).flatten(0, 1).double()
        mean, std = values.mean(0).tolist(), values.std(0, unbiased=False).tolist()
        own, repeated = (FieldErrors(mean, std) for _ in range(2))
        for item in range(len(test)):
            window = test[item]
            own.update(forecaster(window.x, window.pos), window.y)
            repeated.update(persistence(window.x, 4), window.y)
    parts = [summary["components"][name] for name in NAMES]
    assert [part["unit"] for part in parts] == ["°C", "hPa"]
    assert [part["std"] for part in parts] == pytest.approx(std, rel=1e-3)
    theirs = [part["baselines"]["persistence"] for part in parts]
    pooled = summary["baselines"]["persistence"]
    for errors, each, total in (
        (own, parts, summary["test"]),
        (repeated, theirs, pooled),
    ):
        expected = [*errors.by_component(), errors.compute()]
        for found, wanted in zip([*each, total], expected, strict=True):
            of = {name: found[name] for name in wanted}
            assert of == pytest.approx(wanted, rel=2e-3)
    # Neither dwarfs the other, and the offset does not make the errors small.
    assert 0.1 < summary["test"]["rel_l2"] < 2


def test_a_component_that_starts_at_zero_has_the_scale_of_its_targets(tiny):
    u = np.random.default_rng(0).normal(size=(10, 8, 8, 2))
    u[:, :, :4, 1] = 0
    u[..., 1] *= 1e-3
    pos, domain = np.arange(8.0)[:, None] / 8, Domain.unit(1)
    fields = nfsgeo.from_arrays(u, pos, np.arange(8.0), domain=domain)
    run = trained(fields.write(Path("d.nc")), Path("run"), tiny)
    std = nfsgeo.evaluate(run)["components"]["u_1"]["std"]
    assert std == pytest.approx(u[:7, ..., 1].std(), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("prediction", ["residual", "direct"])
def test_a_component_that_never_changes_is_predicted_as_it_is(
    prediction, tiny, tmp_path
):
    """With bands of no width, whatever the network says."""
    turns = np.random.default_rng(0).random((100, 20, 1)) + np.arange(6) / 10
    u = np.stack([np.sin(2 * np.pi * turns), np.full_like(turns, 12.3)], axis=-1)
    chosen = tiny | {"model.prediction": prediction, "model.bands": True}
    chosen |= {"data.n_in": 3, "data.n_out": 3, "trainer.epochs": 1}
    pos = np.random.default_rng(1).random((20, 2))
    data = nfsgeo.from_arrays(u, pos, np.arange(6))
    run = nfsgeo.fit(nfsgeo.prepare(data, chosen), tmp_path / "run")
    found = nfsgeo.load(run).predict(u[0, :, :3], pos, query_pos=pos[:5] + 0.01)
    assert abs(found[..., 1] - 12.3).max() < 1e-12 and found[..., 0].std() > 0
    parts = nfsgeo.evaluate(run)["components"]
    assert parts["u_1"]["mae"] < 1e-6 < parts["u_0"]["mae"] < np.inf


def test_errors_refer_to_the_whole_mesh_whatever_points_training_takes(tiny):
    rng = np.random.default_rng(0)
    pos = [rng.random((40 + k, 2)) for k in range(10)]
    fields = [np.stack([p[:, 0], 9 * p[:, 1] ** 2], -1)[:, None] for p in pos]
    data = nfsgeo.from_arrays(fields, pos, static=[p[:, :1] for p in pos])
    chosen = tiny | {"data.mesh": "all", "data.n_in": 0, "data.n_out": 1}
    found = {
        fraction: nfsgeo.prepare(data, chosen | {"data.least_fraction": fraction}).task
        for fraction in (0.2, 1.0)
    }
    values = np.concatenate(fields[:7])[:, 0]
    for task in found.values():
        assert task.mean == pytest.approx(values.mean(0), rel=1e-6)
        assert task.std == pytest.approx(values.std(0), rel=1e-6)
