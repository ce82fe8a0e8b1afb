"""How far training has come, on stderr."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from rich.console import Console

from nfsgeo.training.module import TrainingModule

__all__ = ["progress_callback"]


def progress_callback() -> Callback:
    """Lightning's progress bar, or a line for each epoch where stderr is no terminal.

    Both tell the validation errors, and that training stopped early.
    """
    if Console(stderr=True).is_terminal:
        return EpochBar(console_kwargs={"stderr": True})
    return EpochLines()


class EpochBar(RichProgressBar):
    """Lightning's bar with the validation error, without the version of the logger."""

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> Any:
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)
        return metrics


class EpochLines(Callback):
    """A line for each epoch on stderr."""

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        if trainer.is_global_zero:
            measured, several = trainer.callback_metrics, False
            if isinstance(module, TrainingModule):
                several = bool(module.forecaster.task.statistics)
            name = "pooled valid RMSE" if several else "valid RMSE"
            print_line(
                f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}  loss "
                f"{measured['train_loss']:.3e}  {name} {measured['valid_rmse']:.3e}"
            )

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        stopping = trainer.early_stopping_callback
        if stopping is not None and stopping.stopped_epoch and trainer.is_global_zero:
            print_line(
                f"stopped early after epoch {stopping.stopped_epoch + 1} of "
                f"{trainer.max_epochs}: no lower {stopping.monitor} in "
                f"{stopping.patience} epochs"
            )


def print_line(line: str) -> None:
    Console(stderr=True).print(line, highlight=False)
