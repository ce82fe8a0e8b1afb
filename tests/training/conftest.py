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
from nfsgeo.training.trainer import read_history


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
def train(waves: Path, tiny: dict[str, Any]) -> Callable[..., Trained]:
    """Trains in a folder of the given name, with overrides and callbacks."""

    def run(
        name: str, overrides: dict[str, Any] | None = None, *callbacks: Callback
    ) -> Trained:
        chosen = {"data.file": str(waves)} | tiny | (overrides or {})
        experiment = prepare(load_config(overrides=chosen))
        paths = begin_run(experiment, Path(name).resolve())
        fit(experiment, paths, callbacks)
        return Trained(experiment, paths)

    return run


class Interrupt(Callback):
    """Ctrl-C in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, trainer: Any, *arguments: Any) -> None:
        if (trainer.current_epoch, arguments[-1]) == (self.epoch, 1):
            raise KeyboardInterrupt


@pytest.fixture
def interrupt_and_resume(
    train: Callable[..., Trained], resume: Callable[[Path], Trained]
) -> Callable[[dict[str, Any], int], None]:
    """A run cut short in an epoch goes on to the numbers of one that was not."""

    def check(overrides: dict[str, Any], epoch: int) -> None:
        undisturbed = train("undisturbed", overrides)
        with pytest.raises(KeyboardInterrupt):
            train("run", overrides, Interrupt(epoch))
        assert len(read_history(RunPaths(Path("run")).metrics)) == epoch
        assert resume(Path("run")).is_the_same_as(undisturbed)

    return check


@pytest.fixture
def resume() -> Callable[[Path], Trained]:
    """Goes on with the run in a folder."""

    def run(folder: Path) -> Trained:
        experiment, paths = resume_run(folder)
        fit(experiment, paths)
        return Trained(experiment, paths)

    return run
