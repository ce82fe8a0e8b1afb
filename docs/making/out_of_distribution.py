"""Which samples are found unlike those of training: ``docs/how-far-to-trust.md``.

    python docs/making/out_of_distribution.py FOLDER

Data of ``nfsgeo generate`` and runs of one epoch go to the folder: weights do not
matter. Prints the share that is warned of and the area under the ROC curve, by case.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nfsgeo
from nfsgeo.data.generation import generate
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.forecast.transforms import Normalise
from nfsgeo.training.run_data import RunData
from nfsgeo.training.run_paths import RunPaths
from nfsgeo.uncertainty.additions import InputsOfRun
from nfsgeo.uncertainty.out_of_distribution import InputStatistics, TrainingInputs

STEPS = {"data.time_stride": 2, "data.n_in": 10}
# Training data, settings of the run, and other data.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]] = {
    "navier-stokes": (
        {"nu": 1e-4},
        {**STEPS, "data.points": 512, "data.n_out": 10},
        {
            "twice the viscosity": {"nu": 2e-4},
            "half the viscosity": {"nu": 5e-5},
            "another forcing": {"nu": 1e-4, "forcing": 0.2},
            "another covariance": {"nu": 1e-4, "sigma2": 100.0},
        },
    ),
    "burgers": (
        {"nu": 1e-3},
        {**STEPS, "data.points": 512, "data.n_out": 10},
        {"twice the viscosity": {"nu": 2e-3}, "half the viscosity": {"nu": 5e-4}},
    ),
    "kdv": (
        {"preset": "long"},
        {**STEPS, "data.points": 256, "data.n_out": 20},
        {},
    ),
    "darcy": (
        {},
        {"data.points": 512},
        {"another coefficient": {"coefficient": "lognormal"}},
    ),
}
SIZES = {"navier-stokes": (64, 40), "burgers": (2048, 101), "kdv": (1024, 101)}
NETWORK = {f"model.settings.{key}": 4 for key in ("width", "modes")}


def main(folder: Path) -> None:
    """Trains, and prints a row a case."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (options, settings, others) in CASES.items():
        trained = made(folder, name, 360, 0, options)
        if not (out := folder / f"run-{name}").exists():
            chosen = {**NETWORK, **settings, "trainer.epochs": 1, "seed": 0}
            nfsgeo.fit(nfsgeo.prepare(trained, chosen), out)
        loaded = open_run(out)
        config, forecaster = loaded.config, loaded.forecaster
        statistics, scale = InputsOfRun.load(RunPaths(out)), forecaster.find(Normalise)
        assert statistics is not None and scale is not None
        known = statistics.training
        unit, draw = scale.fields.std, np.random.default_rng(0)
        with nfsgeo.open(trained) as file:
            data, used = config.data, RunData(config, file)
            plain, cases = used.windows("test"), dict[str, Any]()
            cases["test samples"] = plain
            for seed, other in enumerate(others.items()):
                path = made(folder, name, 40, 7 + seed, other[1])
                fields = nfsgeo.open(path)
                of = {"train": [], "valid": [], "test": [*range(40)]}
                fields = fields.with_split({k: np.array(v, int) for k, v in of.items()})
                cases[other[0]] = RunData(config, fields).windows("test")
            noisy = used.windows("test")
            noisy.noise = 0.1 * unit
            cases["10 % noise"] = noisy
            cases["a constant field"] = [constant(item) for item in plain]  # type: ignore[attr-defined]
            another = config.changed(data=data.changed(mesh_seed=1))
            cases["an unseen mesh"] = RunData(another, file).windows("test")
            every = config.changed(data=data.changed(mesh="all", points=None))
            cases["all points"] = RunData(every, file).windows("test")
            if data.n_in:
                cases["20 % of values missing"] = [gappy(item, draw) for item in plain]  # type: ignore[attr-defined]
            report(name, forecaster, known, cases)


def made(
    folder: Path, name: str, samples: int, seed: int, options: dict[str, Any]
) -> Path:
    """The file of a data set, generated as far as it is not there yet."""
    words = "-".join(f"{key}={value}" for key, value in options.items())
    resolution, steps = SIZES.get(name, (128, None))
    path = folder / f"{name}-{samples}-{seed}-{words}.nc"
    if not path.exists():
        sizes: dict[str, Any] = {"samples": samples, "resolution": resolution}
        generate(name, path, seed=seed, num_steps=steps, options=options, **sizes)
    return path


def constant(item: Any) -> Any:
    item.x = torch.full_like(item.x, float(item.x.mean()))
    return item


def gappy(item: Any, draw: np.random.Generator) -> Any:
    item.x[torch.from_numpy(draw.random(item.x.shape) < 0.2)] = torch.nan
    return item


def report(
    name: str, forecaster: Any, known: TrainingInputs, cases: dict[str, Any]
) -> None:
    distance = {
        case: known.distance(InputStatistics.of(forecaster, windows).table()[1])
        for case, windows in cases.items()
    }
    usual = distance["test samples"]
    for case, d in distance.items():
        share, area = (d > 1).double().mean(), (d[:, None] > usual).double().mean()
        print(f"| {name} | {case} | {100 * share:.0f} % | {area:.2f} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
