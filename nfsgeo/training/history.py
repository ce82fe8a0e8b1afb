"""The table of epochs."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.optim import Optimizer

from nfsgeo.errors import UserError
from nfsgeo.training.artifacts import read_rows, write_rows

__all__ = ["COLUMNS", "History", "read_history"]

MEASURED = ("train_loss", "valid_loss", "valid_mae", "valid_rmse", "valid_rel_l2")
COLUMNS = ("epoch", *MEASURED, "learning_rate", "seconds")


class History(Callback):
    """Adds a row to ``metrics.csv`` after each epoch, and keeps the peak of memory.

    The file is written anew each time, so that it never holds part of a row. Rows of
    epochs that are trained again, because no checkpoint had them, are dropped.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.peak_memory_bytes = path, 0
        self._began, self._rate = 0.0, float("nan")

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
        if not trainer.is_global_zero:
            return
        row: dict[str, float] = {"epoch": trainer.current_epoch}
        row |= {name: float(trainer.callback_metrics[name]) for name in MEASURED}
        row["learning_rate"] = self._rate
        row["seconds"] = round(time.monotonic() - self._began, 3)
        before = [
            each for each in read_history(self.path) if each["epoch"] < row["epoch"]
        ]
        write_rows(self.path, COLUMNS, [*before, row])


def read_history(path: Path) -> list[dict[str, float]]:
    """Rows of a ``metrics.csv``, none where there is no file.

    Raises:
        UserError: The file is damaged.
    """
    if not path.exists():
        return []
    try:
        return [
            {name: float(row[name]) for name in COLUMNS} | {"epoch": int(row["epoch"])}
            for row in read_rows(path)
        ]
    except (ValueError, TypeError, KeyError):
        raise UserError(
            f"{path}", "a whole table of epochs", "use an undamaged copy or train again"
        ) from None


def _peak_memory() -> int:
    """Bytes: of the CUDA device where one is used, else of this process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
