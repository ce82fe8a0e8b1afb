"""Synthetic run folders, made of band-limited random fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from nfsgeo.report import write_report

SUMMARY: dict[str, Any] = {
    "model": "nfs",
    "data": "cache/navier-stokes-1e-3.nc",
    "n_s": 1024,
    "n_t": 10,
    "n_t_out": 10,
    "epochs": 12,
    "parameters": 1234567,
    "seconds_per_epoch": 19.4,
    "peak_memory_bytes": 1288490188,
    "test": {"mae": 0.0027134, "rmse": 0.0041, "rel_l2": 0.0081},
    "baselines": {
        "persistence": {"mae": 0.0983, "rmse": 0.131, "rel_l2": 0.242},
        "mean": {"mae": 0.412, "rmse": 0.522, "rel_l2": 0.981},
        "linear_extrapolation": {"mae": 0.0112, "rmse": 0.0173, "rel_l2": 0.0312},
    },
    "equation": "navier-stokes",
    "provenance": {"seed": 0, "solver": "ETDRK4", "resolution": [64, 64]},
}


def random_field(pos: np.ndarray, times: np.ndarray, seed: int) -> np.ndarray:
    """A sum of travelling waves on the unit torus, ``[n, T]``."""
    generator = np.random.default_rng(seed)
    field = np.zeros((len(pos), len(times)))
    for _ in range(24):
        wave = generator.integers(-4, 5, pos.shape[1])
        size = generator.normal() / (1 + np.sum(wave**2))
        phase, speed = generator.uniform(0, 2 * np.pi), generator.normal()
        along = 2 * np.pi * (pos @ wave)[:, None]
        field += size * np.cos(along + phase + speed * times)
    return field


def save_evaluation(path: Path, dim: int, n: int, n_in: int, n_out: int) -> None:
    generator = np.random.default_rng(dim)
    pos = generator.uniform(size=(n, dim)).astype(np.float32)
    times = 0.25 * np.arange(1, max(n_in, 0) + n_out + 1)
    fields = np.stack([random_field(pos, times, seed) for seed in range(3)])[..., None]
    truth = fields[:, :, -n_out:]
    noise = np.stack([random_field(pos, times, 50 + s) for s in range(3)])
    growth = np.linspace(0.5, 1.5, n_out)
    prediction = truth + 0.02 * growth[:, None] * noise[:, :, -n_out:, None]
    error = np.abs(prediction - truth).mean(axis=(0, 1, 3))
    np.savez(
        path,
        pos=pos,
        times=times if n_in else times[:1],
        sample=np.array([960, 961, 962]),
        x=(fields[:, :, :n_in] if n_in else np.exp(fields[:, :, :1])),
        truth=truth.astype(np.float32),
        prediction=prediction.astype(np.float32),
        error_by_record=error,
        persistence_by_record=0.1 * np.arange(1, n_out + 1) / n_out,
        linear_by_record=0.04 * (np.arange(1, n_out + 1) / n_out) ** 2,
        lower=np.zeros(dim),
        upper=np.ones(dim),
        periodic=np.ones(dim, dtype=bool),
        component_names=np.array(["vorticity"]),
    )


def save_tables(folder: Path, n: int) -> None:
    epoch = np.arange(12)
    decay = np.exp(-epoch / 3)
    metrics = {
        "epoch": epoch,
        "train_loss": 0.3 * decay + 0.004,
        "valid_loss": 0.32 * decay + 0.005,
        "valid_mae": 0.16 * decay + 0.0026,
        "valid_rmse": 0.2 * decay + 0.004,
        "learning_rate": 2e-3 * np.sin(np.pi * (epoch + 0.5) / 12),
    }
    pd.DataFrame(metrics).to_csv(folder / "metrics.csv", index=False)
    factor = np.repeat([1.3, 1.7, 2, 3, 4], 5)
    spread = 8e-5 * np.random.default_rng(0).normal(size=len(factor))
    mae = 0.0027 * (1 + 0.09 * factor) + spread
    unseen = {
        "factor": factor,
        "num_points": (factor * n).astype(int),
        "mae": mae,
        "mae_seen": 0.93 * mae,
        "mae_unseen": 1.04 * mae,
    }
    pd.DataFrame(unseen).to_csv(folder / "unseen.csv", index=False)


def save_run(
    folder: Path,
    dim: int = 2,
    n: int = 1024,
    n_in: int = 10,
    n_out: int = 10,
    drawn: bool = True,
) -> Path:
    """Makes a run folder, without anything to draw where ``drawn`` is false."""
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(SUMMARY))
    config = {"model": {"name": "nfs", "width": 32}, "seed": 0, "optimiser": None}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    versions = {"torch": "2.13.0", "python": "3.11.7"}
    environment = {"device": "cpu", "commit": "41a8c70", "versions": versions}
    (folder / "environment.json").write_text(json.dumps(environment))
    if drawn:
        save_evaluation(folder / "evaluation.npz", dim, n, n_in, n_out)
        save_tables(folder, n)
    return folder


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Makes a run folder of a test's own, to change as it likes."""
    return lambda **kind: save_run(tmp_path / "run", **kind)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run folder with its report, to read only."""
    folder = save_run(tmp_path_factory.mktemp("report") / "run")
    write_report(folder)
    return folder
