"""Which samples and points of a file an evaluation scores."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.training import RunPaths

WHOLE = {"part": "all", "samples": 20, "of_samples": 20, "trained_on": 0} | {
    "points": 256,
    "of_points": 256,
    "tied": False,
}


@pytest.fixture
def others(waves: Path) -> Path:
    """Waves like those of the run, one of them of another size."""
    path = Path("others.nc")
    path.write_bytes(waves.read_bytes())
    with h5py.File(path, "r+") as file:
        file["u"][0] *= 2
    return path


def train(waves: Path, out: Path, model: str, **settings: Any) -> RunPaths:
    """A run of one epoch."""
    chosen = {"model.name": model, "trainer.epochs": 1, "trainer.device": "cpu"}
    chosen |= {f"model.settings.{key}": value for key, value in settings.items()}
    chosen |= {"data.max_train": 4}
    return nfsgeo.fit(nfsgeo.prepare(waves, chosen), out)


def noise(samples: int) -> Fields:
    """Noise at 80 points."""
    random, times = np.random.default_rng(0), 0.25 * np.arange(1, 25)
    u, points = random.normal(size=(samples, 80, 24)), random.random((80, 2))
    return nfsgeo.from_arrays(u, points, times, domain=Domain.unit(2))


@pytest.mark.slow
def test_a_named_file_is_scored_whole(run, others):
    summary = nfsgeo.evaluate(run, data=others)
    assert summary["scored"] == WHOLE
    forecaster = nfsgeo.load(run)
    with nfsgeo.open(others) as file:
        u = np.stack([file.read(sample, slice(0, 20)) for sample in range(20)])
        found = forecaster.predict(list(u[:, :, :10]), file.coordinates())
    mae = np.abs(np.stack(found) - u[:, :, 10:]).mean()
    assert summary["test"]["mae"] == pytest.approx(mae, rel=1e-5)
    scored = nfsgeo.evaluate(run, data=others, part="test")["scored"]
    assert scored == WHOLE | {"part": "test", "samples": 4}


def test_the_own_file_is_scored_as_the_run_was_set_up(run, refuses):
    scored = nfsgeo.evaluate(run)["scored"]
    assert scored == WHOLE | {"part": "test", "samples": 4, "points": 64}
    refuses("--part all.*--data FILE", nfsgeo.evaluate, run, part="all")


def test_limits_of_the_run_are_not_those_of_a_named_file(run, others):
    text = run.config.read_text().replace("max_test: null", "max_test: 1")
    run.config.write_text(text)
    assert nfsgeo.evaluate(run)["scored"]["samples"] == 1
    assert nfsgeo.evaluate(run, data=others)["scored"] == WHOLE


def test_larger_meshes_are_around_that_of_training(run, others):
    summary = nfsgeo.evaluate(run, data=others, factors=[2], repeats=1)
    assert summary["scored"] == WHOLE | {"points": 64}
    assert summary["unseen"].keys() == {"2"}


def test_a_model_of_grids_takes_the_whole_grid(waves, others, refuses):
    run = train(waves, Path("fno"), "fno", width=4, modes=2, depth=1)
    assert nfsgeo.evaluate(run, data=others)["scored"] == WHOLE
    refuses("no grid", nfsgeo.evaluate, run, data=noise(1))


def test_a_model_that_is_tied_to_its_points_keeps_them(waves, others):
    run = train(waves, Path("tied"), "agcrn", width=4, depth=1)
    scored = nfsgeo.evaluate(run, data=others)["scored"]
    assert scored == WHOLE | {"points": 64, "tied": True}
    with pytest.raises(UserError, match="other points.*64, which agcrn is tied to"):
        nfsgeo.evaluate(run, data=noise(1))


def test_a_file_of_test_samples_alone(run):
    data = noise(4).with_split({"train": [], "valid": [], "test": [0, 1, 2, 3]})
    for part in (None, "test"):
        summary = nfsgeo.evaluate(run, data=data, part=part)
        assert summary["scored"]["samples"] == 4
        assert np.isfinite(summary["baselines"]["mean"]["mae"])


def test_a_file_without_test_samples(run):
    data = noise(2)
    assert nfsgeo.evaluate(run, data=data)["scored"]["samples"] == 2
    with pytest.raises(UserError, match="without test samples.*part='all'"):
        nfsgeo.evaluate(run, data=data, part="test")
