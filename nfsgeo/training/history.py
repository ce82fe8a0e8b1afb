"""What is told of every epoch: a row of ``metrics.csv``, and a line on stderr."""

from __future__ import annotations

import csv
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from rich.console import Console
from torch.optim import Optimizer

from nfsgeo.errors import UserError
from nfsgeo.training.artifacts import write_rows

__all__ = ["COLUMNS", "History", "progress_callback", "read_history"]

MEASURED = ("train_loss", "valid_loss", "valid_mae", "valid_rmse", "valid_rel_l2")
COLUMNS = ("epoch", *MEASURED, "learning_rate", "seconds")


class History(Callback):
    """Adds a row to ``metrics.csv`` after each epoch, and keeps the peak of memory.

    The file is written anew each time, so that it never holds part of a row. Rows of
    epochs that are trained again, because no checkpoint had them, are dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.peak_memory_bytes = path, 0

    def state_dict(self) -> dict[str, Any]:
        return {"peak_memory_bytes": self.peak_memory_bytes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.peak_memory_bytes = state_dict["peak_memory_bytes"]

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._began = time.monotonic()

    def on_before_optimizer_step(
        self, trainer: Trainer, module: LightningModule, optimizer: Optimizer
    ) -> None:
        self._rate = optimizer.param_groups[0]["lr"]

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        self.peak_memory_bytes = max(self.peak_memory_bytes, _peak_memory())
        if trainer.is_global_zero:
            epoch, seconds = trainer.current_epoch, time.monotonic() - self._began
            measured = [float(trainer.callback_metrics[name]) for name in MEASURED]
            values = (epoch, *measured, self._rate, round(seconds, 3))
            rows = [row for row in read_history(self.path) if row["epoch"] < epoch]
            rows.append(dict(zip(COLUMNS, values, strict=True)))
            write_rows(self.path, COLUMNS, rows)


def read_history(path: Path) -> list[dict[str, float]]:
    """Rows of a ``metrics.csv``, none where there is no file.

    Raises:
        UserError: The file is damaged.
    """
    if not path.exists():
        return []
    try:
        with open(path, newline="") as file:
            return [
                {key: float(row[key]) for key in COLUMNS} | {"epoch": int(row["epoch"])}
                for row in csv.DictReader(file)
            ]
    except (csv.Error, ValueError, TypeError, KeyError):
        expected, advice = "a whole table of epochs", "use an undamaged copy"
        raise UserError(f"{path}", expected, f"{advice} or train again") from None


def _peak_memory() -> int:
    """Bytes: of the CUDA device where one is used, else of this process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def progress_callback() -> Callback:
    """Lightning's progress bar, or a line for each epoch where stderr is no terminal.

    Both tell the validation errors, and that training stopped early.
    """
    if Console(stderr=True).is_terminal:
        return RichProgressBar(console_kwargs={"stderr": True})
    return EpochLines()


class EpochLines(Callback):
    """A line for each epoch on stderr."""

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        measured = trainer.callback_metrics
        pooled = "pooled " * bool(module.forecaster.task.statistics)
        line = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}  "
        line += f"loss {measured['train_loss']:.3e}  "
        _print(trainer, f"{line}{pooled}valid RMSE {measured['valid_rmse']:.3e}")

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        stopping = trainer.early_stopping_callback
        if stopping is not None and stopping.stopped_epoch:
            line = f"stopped early after epoch {stopping.stopped_epoch + 1} of "
            line += f"{trainer.max_epochs}: no lower {stopping.monitor} in "
            _print(trainer, f"{line}{stopping.patience} epochs")


def _print(trainer: Trainer, line: str) -> None:
    if trainer.is_global_zero:
        Console(stderr=True).print(line, highlight=False)
