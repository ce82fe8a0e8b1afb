"""Scenarios of APEBench: its data, its networks, and its measure of rollouts.

"APEBench: A Benchmark for Autoregressive Neural Emulators of PDEs" (2411.00180): a
network learns one time step of a periodic field, and is applied to its own predictions.
Everything is in the units of its scenarios; it needs the extra ``apebench``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

import nfsgeo.data
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import require
from nfsgeo.evaluation.scored_model import ScoredModel, open_run, predictions
from nfsgeo.files import cache_folder, safe_name
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress, silent
from nfsgeo.training.run_data import RunData
from nfsgeo_benchmarks.suites.data import Part
from nfsgeo_benchmarks.suites.suite import ROLLOUT

# As many time steps as its published errors are means over, and samples and a seed for
# validation, of which it has none.
STEPS, VALID_SAMPLES, VALID_SEED = 100, 10, 1
# Error of a prediction that is infinite or no number, of which no mean could be taken.
DIVERGED = 1e30


class Scenario(Part):
    """A scenario by its name, such as ``diff_kdv``, and arguments of its class."""

    scenario: str
    arguments: dict[str, Any] = {}
    equation: str = Field("", exclude=True)  # none of ours

    def build(self, **more: Any) -> Any:
        """The scenario, tested for :data:`STEPS` time steps."""
        os.environ.setdefault("TQDM_DISABLE", "1")  # of each training
        require("apebench", f"the scenario {self.scenario} of APEBench", "apebench")
        from apebench.scenarios import scenario_dict

        more |= self.arguments | {"test_temporal_horizon": STEPS}
        return scenario_dict[self.scenario](**more)

    def obtain(self, progress: Progress = silent) -> dict[str, Any]:
        """Return the settings of a run on the file, made in the cache if need be.

        Its training samples, validation samples from another seed, and the first time
        steps of its test samples; the file of rollouts has all of these.
        """
        if not self.file("rollouts").exists():  # written last
            made = self.build()
            from jax.random import PRNGKey

            train, rollouts = made.get_train_data(), np.asarray(made.get_test_data())
            valid = made.produce_data(
                stepper=made.get_ref_stepper(),
                num_samples=VALID_SAMPLES,
                num_warmup_steps=made.num_warmup_steps,
                temporal_horizon=made.train_temporal_horizon,
                key=PRNGKey(VALID_SEED),
            )
            begun = rollouts[:, : train.shape[1]]
            self.write("windows", train, valid, begun)
            self.write("rollouts", rollouts[:0], rollouts[:0], rollouts)
        return {"data.file": self.file("windows")}

    def file(self, name: str) -> Path:
        """The file of windows or of rollouts, in the user's cache."""
        arguments = "-".join(f"{k}={v}" for k, v in self.arguments.items())
        called = safe_name(f"apebench-{self.scenario}-{arguments}-{name}", 200)
        return cache_folder() / f"{called}.nc"

    def write(self, name: str, *parts: NDArray[Any]) -> None:
        """Write a file of the samples of each part ``[S, T, C, *grid]``."""
        path, u = self.file(name), np.concatenate(parts)
        dim, ends = u.ndim - 3, np.cumsum([len(part) for part in parts])
        numbers = np.split(np.arange(len(u)), ends[:-1])
        sizes = dict(zip("xyz", u.shape[3:], strict=False))
        axes = {axis: (axis, np.arange(num) / num) for axis, num in sizes.items()}
        fields = to_fields(
            path,
            {"u": (("sample", "time", "component", *axes), u)},
            {**axes, "time": ("time", np.arange(u.shape[1], dtype=float))},
            domain=Domain((0.0,) * dim, (1.0,) * dim, (True,) * dim),
            split=dict(zip(SPLITS, numbers, strict=True)),
            provenance={"apebench": self.model_dump()},
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        fields.write(path)


def rollout_errors(scenario: Scenario, folder: Path) -> dict[str, dict[str, float]]:
    """:func:`measures` of a trained run, as ``"model"``, and of ``"persistence"``.

    The test samples are observed at the points of the run's validation samples.
    """
    loaded = open_run(folder)
    config, forecaster = loaded.config, loaded.forecaster
    data = config.data.changed(evaluation_stride=None)
    file = nfsgeo.data.open(scenario.file("rollouts"))
    scored = ScoredModel(forecaster, RunData(config.changed(data=data), file))
    errors: dict[str, list[NDArray[Any]]] = {"model": [], "persistence": []}
    windows, size = scored.windows(n_out=STEPS), data.batch_size
    for batch, prediction in predictions(forecaster, windows, size, steps=STEPS):
        sizes, truth = batch.graphs.sizes, batch.y.cpu()
        for name, fields in zip(errors, (prediction, batch.x), strict=True):
            samples = fields.cpu().expand_as(truth).split(sizes)
            pairs = zip(samples, truth.split(sizes), strict=True)
            errors[name] += [normalised_rmse(u.numpy(), v.numpy()) for u, v in pairs]
    return {name: measures(np.mean(nrmse, 0)) for name, nrmse in errors.items()}


def normalised_rmse(u: NDArray[Any], truth: NDArray[Any]) -> NDArray[Any]:
    r"""The normalised RMSE of a sample at each time step, summed over components.

    .. math:: \sum_c \Vert u_c - v_c \Vert / \Vert v_c \Vert

    Prediction :math:`u` and truth :math:`v` are ``[n, T, C]``.
    """
    norm = np.linalg.norm
    return (norm(u - truth, axis=0) / norm(truth, axis=0)).sum(axis=-1)


def measures(nrmse: NDArray[Any]) -> dict[str, float]:
    """Columns of ``results.csv`` from mean errors at each time step ``[STEPS]``."""
    nrmse = np.where(nrmse < DIVERGED, nrmse, DIVERGED).astype(float)
    gmean = float(np.exp(np.log(nrmse).mean()))
    return dict(zip(ROLLOUT, (gmean, float(nrmse[0]), float(nrmse[-1])), strict=True))


def train_network(
    scenario: Scenario, network: str, epochs: int, seed: int
) -> dict[str, Any]:
    """The row of a network of APEBench, trained and tested by its own program.

    A fifth of the steps is the warm-up of the rate, as of its own 10,000.
    """
    made = scenario.build()
    pairs = made.num_train_samples * made.train_temporal_horizon
    steps = epochs * -(-pairs // made.batch_size)
    rate = f"adam;{steps};warmup_cosine;0.0;1e-3;{steps // 5}"
    made = scenario.build(optim_config=rate)
    began = time.perf_counter()
    table, _ = made(network_config=network, start_seed=seed)
    names = [f"mean_nRMSE_{step:04d}" for step in range(1, STEPS + 1)]
    nrmse = table[names].to_numpy(float)[0]
    return measures(nrmse) | {
        "n_s": made.num_points**made.num_spatial_dims,
        "n_t": 1,
        "n_t_out": 1,
        "epochs": epochs,
        "parameters": made.get_parameter_count(network),
        "seconds_per_epoch": (time.perf_counter() - began) / epochs,
        "status": "ok",
    }
