"""Losses and predictions that a change of structure must not change.

``PYTHONPATH=tests/builders python tests/training/test_golden_values.py`` writes all of
them anew; with names of models, only the losses of these.
"""

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fields import Array, build

import nfsgeo
from nfsgeo.config import MODEL_NAMES
from nfsgeo.data.conventions import STATIC
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS
from nfsgeo.pretrained import NAMES

STORED = Path(__file__).parents[1] / "golden.json"
SMALL = {"width": 8, "depth": 1, "modes": 2, "time_modes": 2, "grid": 8, "hidden": 32}
# Of the sums of double precision in another order, and of other versions of torch.
TOLERANCE = 1e-6


def waves(dim: int = 2) -> nfsgeo.Fields:
    """Waves on a torus that move, 28 samples with a static input: a grid of the plane,
    points of a line.
    """
    random, size = np.random.default_rng(0), {1: 24, 2: 8}[dim]
    axis, t, samples = np.arange(size) / size, np.arange(6.0), random.random((28, 3))
    place = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1)
    along = 2 * np.pi * place.sum(-1)
    u = [
        [np.sin(along + 6 * a + 0.6 * time) + b * np.cos(6 * time) for time in t]
        for a, b, _ in samples
    ]
    static = [np.cos(along + c) for *_, c in samples]
    of: dict[str, Any] = {"times": t, "domain": Domain.unit(dim)}
    letters = {1: "p", 2: "xy"}[dim]
    arrays = [Array(np.array(u), f"nt{letters}", ["u"])]
    arrays.append(Array(np.array(static), f"n{letters}", ["a"], STATIC))
    of |= {"points": place} if dim == 1 else {"axes": [axis] * dim}
    return build(Path("waves"), arrays, **of)


def loss_after_20_steps(name: str, folder: Path) -> float:
    """Training loss of the last of five epochs of four steps, in double precision."""
    model = MODELS[name]
    fields = model.Settings.model_fields
    settings = {f"model.settings.{k}": v for k, v in SMALL.items() if k in fields}
    settings |= {"model.name": name, "data.n_in": 3, "data.n_out": 2}
    settings |= {
        "trainer.epochs": 5,
        "trainer.precision": "64",
        "data.split": [16, 6, 6],
    }
    settings |= {"trainer.logger": "none", "trainer.device": "cpu"}
    # Without query points, for which a covariance is fitted.
    settings |= {"data.query_points": 0}
    if name == "mppde":  # at least the time steps of its input and output
        settings["model.settings.width"] = 24
    if not model.points:
        settings |= {"data.grid": 8}
    path = waves().write(folder / f"{name}.nc")
    run = nfsgeo.fit(nfsgeo.prepare(path, settings), folder / name)
    with run.metrics.open() as file:
        return float([*csv.DictReader(file)][-1]["train_loss"])


def predicted(name: str) -> list[float]:
    """Mean and standard deviation of each time step that a shipped model predicts."""
    forecaster = nfsgeo.load(name)
    task = forecaster.task
    random = torch.Generator().manual_seed(0)
    pos = torch.rand(200, task.domain.dim, generator=random, dtype=torch.float64)
    t = torch.arange(task.n_in)
    x = torch.sin(2 * torch.pi * pos.sum(1)[:, None] + 0.1 * t)[..., None].float()
    found = forecaster.predict(x, pos)[..., 0].double()
    return [*found.mean(0).tolist(), *found.std(0).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_training_goes_as_before(name, tmp_path):
    expected = json.loads(STORED.read_text())["loss"][name]
    assert loss_after_20_steps(name, tmp_path) == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_models_predict_as_before(name):
    expected = json.loads(STORED.read_text())["prediction"][name]
    # In single precision, and of a network that amplifies its roundings.
    assert predicted(name) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.slow
def test_the_same_fields_in_three_forms_give_the_same_run(tmp_path):
    fields, errors = waves(1), []
    names = {f"model.settings.{key}": value for key, value in SMALL.items()}
    settings = names | {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}
    settings |= {"trainer.device": "cpu", "trainer.precision": "64"}
    settings |= {"data.split": [16, 6, 6], "data.points": 20}
    csv_path = fields.write(tmp_path / "a.csv")
    with_domain = nfsgeo.open(csv_path, domain=fields.domain)
    for number, data in enumerate(
        (fields, fields.write(tmp_path / "a.nc"), with_domain)
    ):
        run = nfsgeo.fit(nfsgeo.prepare(data, settings), tmp_path / f"{number}")
        errors.append(nfsgeo.evaluate(run)["test"]["rmse"])
    assert errors[1:] == pytest.approx(errors[:1] * 2, rel=1e-9)


if __name__ == "__main__":
    chosen = sys.argv[1:]
    content = json.loads(STORED.read_text()) if chosen else {"loss": {}}
    with tempfile.TemporaryDirectory() as made:
        for name in chosen or MODEL_NAMES:
            content["loss"][name] = loss_after_20_steps(name, Path(made))
    if not chosen:
        content["prediction"] = {name: predicted(name) for name in NAMES}
    STORED.write_text(json.dumps(content, indent=1) + "\n")
