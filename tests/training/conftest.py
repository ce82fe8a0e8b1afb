"""Short trainings, and how to compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback

from nfsgeo.training import (
    Experiment,
    RunPaths,
    begin_run,
    fit,
    load_config,
    prepare,
    resume_run,
)
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.history import read_history


@dataclass
class Trained:
    """A run and its folder."""

    experiment: Experiment
    paths: RunPaths

    def rows(self) -> list[dict[str, float]]:
        """The history but for the times."""
        rows = read_history(self.paths.metrics)
        return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    def rmse(self) -> list[float]:
        return [row["valid_rmse"] for row in self.rows()]

    def weights(self, name: str) -> dict[str, torch.Tensor]:
        checkpoint = read_checkpoint(getattr(self.paths, name))
        weights: dict[str, torch.Tensor] = checkpoint["state_dict"]
        return weights

    def is_the_same_as(self, other: Trained) -> bool:
        """To the last bit: every number of every epoch, and all weights."""
        return self.rows() == other.rows() and all(
            torch.equal(value, other.weights(name)[key])
            for name in ("best", "last")
            for key, value in self.weights(name).items()
        )


@pytest.fixture
def train(tmp_path: Path, waves: Path, tiny: dict[str, Any]) -> Callable[..., Trained]:
    """Trains in a folder of the given name, with overrides and callbacks."""

    def run(
        name: str, overrides: dict[str, Any] | None = None, *callbacks: Callback
    ) -> Trained:
        chosen = {"data.file": str(waves)} | tiny | (overrides or {})
        experiment = prepare(load_config(overrides=chosen))
        paths = begin_run(experiment, tmp_path / name)
        fit(experiment, paths, callbacks)
        return Trained(experiment, paths)

    return run


@pytest.fixture
def resume() -> Callable[[Path], Trained]:
    """Goes on with the run in a folder."""

    def run(folder: Path) -> Trained:
        experiment, paths = resume_run(folder)
        fit(experiment, paths)
        return Trained(experiment, paths)

    return run
