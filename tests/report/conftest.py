"""Synthetic run folders, made of band-limited random fields."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from nfsgeo.report import write_report


def errors(*values: float) -> dict[str, float]:
    return dict(zip(("mae", "rmse", "rel_l2"), values, strict=True))


SUMMARY: dict[str, Any] = {"model": "nfs", "data": "cache/navier-stokes-1e-3.nc"} | {
    "test": errors(0.0027134, 0.0041, 0.0081),
    "baselines": {
        "persistence": errors(0.0983, 0.131, 0.242),
        "mean": errors(0.412, 0.522, 0.981),
        "linear_extrapolation": errors(0.0112, 0.0173, 0.0312),
    },
    "equation": "navier-stokes",
    "provenance": {"seed": 0, "solver": "ETDRK4", "resolution": [64, 64]},
}
SUMMARY |= {"n_s": 1024, "n_t": 10, "n_t_out": 10, "epochs": 12, "parameters": 1234567}
SUMMARY |= {"seconds_per_epoch": 19.4, "peak_memory_bytes": 1288490188}


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
    prediction = truth + 0.02 * noise[:, :, -n_out:, None]
    by_record = {"error": np.abs(prediction - truth).mean(axis=(0, 1, 3))}
    by_record |= {"persistence": 0.1 * np.arange(1, n_out + 1) / n_out}
    by_record |= {"linear": by_record["persistence"] ** 2}
    box = {"lower": np.zeros(dim), "upper": np.ones(dim), "periodic": np.ones(dim) > 0}
    np.savez(
        path,
        pos=pos,
        times=times if n_in else times[:1],
        sample=np.array([960, 961, 962]),
        x=(fields[:, :, :n_in] if n_in else np.exp(fields[:, :, :1])),
        truth=truth.astype(np.float32),
        prediction=prediction.astype(np.float32),
        component_names=np.array(["vorticity"]),
        **box,
        **{f"{name}_by_record": error for name, error in by_record.items()},
    )


def save_tables(folder: Path, n: int) -> None:
    epoch, names = np.arange(12), ("train_loss", "valid_loss", "valid_mae")
    metrics = {"epoch": epoch, "learning_rate": np.sin(np.pi * (epoch + 0.5) / 12)}
    metrics |= {name: 0.2 * np.exp(-epoch / 3) for name in (*names, "valid_rmse")}
    pd.DataFrame(metrics).to_csv(folder / "metrics.csv", index=False)
    factor = np.repeat([1.3, 1.7, 2, 3, 4], 5)
    spread = 8e-5 * np.random.default_rng(0).normal(size=len(factor))
    mae = 0.0027 * (1 + 0.09 * factor) + spread
    unseen = {"factor": factor, "num_points": (factor * n).astype(int), "mae": mae}
    unseen |= {"mae_seen": 0.93 * mae, "mae_unseen": 1.04 * mae}
    pd.DataFrame(unseen).to_csv(folder / "unseen.csv", index=False)


def save_run(folder: Path, drawn: bool = True, **kind: int) -> Path:
    """Makes a run folder, without anything to draw where ``drawn`` is false."""
    kind = {"dim": 2, "n": 1024, "n_in": 10, "n_out": 10} | kind
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(SUMMARY))
    config = {"model": {"name": "nfs", "width": 32}, "seed": 0, "optimiser": None}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    environment = {"commit": "41a8c70", "versions": {"torch": "2.13.0"}}
    (folder / "environment.json").write_text(json.dumps(environment))
    if drawn:
        save_evaluation(folder / "evaluation.npz", **kind)
        save_tables(folder, kind["n"])
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
