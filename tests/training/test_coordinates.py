"""Training on one cloud whose coordinates have another origin and other units."""

from pathlib import Path

import numpy as np
import pytest

import nfsgeo
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS

POINTS, SAMPLES, NUM_STEPS = 64, 20, 6
SETTINGS = {"data.n_in": 3, "data.n_out": 3, "trainer.device": "cpu"}


def cloud(path: Path, origin: tuple[float, float], unit: tuple[float, float]) -> Path:
    """Travelling waves at scattered points of a torus."""
    random = np.random.default_rng(0)
    place = random.random((POINTS, 2))
    times = 0.1 * np.arange(NUM_STEPS)
    lower, lengths = np.array(origin), np.array(unit)
    u = np.empty((SAMPLES, POINTS, NUM_STEPS), np.float32)
    for sample in range(SAMPLES):
        k, size, phase = random.integers(1, 3, 2), random.normal(), random.random()
        turns = (place @ k)[:, None] - times + phase
        u[sample] = size * np.sin(2 * np.pi * turns)
    domain = Domain(tuple(lower), tuple(lower + lengths), (True, True))
    points = lower + lengths * place
    return nfsgeo.from_arrays(u, points, times, domain=domain).write(path)


def error(name: str, data: Path, out: Path, epochs: int, seed: int = 0) -> float:
    small = {"width": 8, "modes": 3, "grid": 8, "window": 3, "hidden": 8, "heads": 2}
    fields = MODELS[name].Settings.model_fields
    settings = {f"model.settings.{k}": v for k, v in small.items() if k in fields}
    if name == "mppde":
        settings["model.settings.width"] = 32
    settings |= {**SETTINGS, "model.name": name, "trainer.epochs": epochs, "seed": seed}
    run = nfsgeo.fit(nfsgeo.prepare(data, settings), out)
    return float(nfsgeo.evaluate(run)["test"]["rel_l2"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nfs", "dse", "gcgru", "meshgraphnets"])
def test_errors_after_training_know_neither_origin_nor_units(name, tmp_path):
    unit = cloud(tmp_path / "unit.nc", (0, 0), (1, 1))
    expected = error(name, unit, tmp_path / "0", 2)
    for number, (origin, size) in enumerate([(1e6, 1), (0, 1e-3), (0, 1e3)]):
        data = cloud(tmp_path / f"{number}.nc", (origin, origin), (size, size))
        found = error(name, data, tmp_path / f"run{number}", 2)
        assert found == pytest.approx(expected, rel=0.01), (origin, size)


@pytest.mark.slow
def test_errors_in_degrees_are_those_on_the_unit_box(tmp_path):
    # Neighbours differ, since a degree is as long along both axes: so the mean over
    # seeds, which alone change an error by a tenth.
    unit = cloud(tmp_path / "unit.nc", (0, 0), (1, 1))
    degrees = cloud(tmp_path / "degrees.nc", (0, -90), (360, 180))
    errors = [
        [
            error("nfs", data, tmp_path / f"{data.stem}{seed}", 10, seed)
            for seed in range(5)
        ]
        for data in (unit, degrees)
    ]
    on_unit_box, in_degrees = np.mean(errors, axis=1)
    assert in_degrees == pytest.approx(on_unit_box, rel=0.1)
