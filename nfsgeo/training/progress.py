"""The progress bar."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from nfsgeo.training.module import Forecaster

__all__ = ["ShowProgress"]


class _TimeLeft(TimeRemainingColumn):
    """The time left, and that it is time left."""

    def render(self, task: Task) -> Text:
        return super().render(task).append(" left")


class ShowProgress(Callback):
    """One bar over all epochs, with the time left and the latest errors, on stderr.

    Where stderr is no terminal, a line for each epoch.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._lines: Console | None = None

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        epochs = int(trainer.max_epochs or 0)
        console = Console(stderr=True)
        if not console.is_terminal:
            self._lines = console
            return
        each = int(trainer.num_training_batches)
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]:>4}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            _TimeLeft(compact=True),
            TextColumn("{task.fields[errors]}", style="dim"),
            console=console,
            expand=True,
        )
        self._bar.add_task(
            "training",
            total=epochs * each,
            completed=trainer.current_epoch * each,
            epoch=f"{trainer.current_epoch + 1}/{epochs}",
            errors="",
        )
        self._bar.start()

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._update(epoch=f"{trainer.current_epoch + 1}/{trainer.max_epochs}")

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        self._update(advance=1)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        measured = trainer.callback_metrics
        loss, rmse = measured["train_loss"], measured["valid_rmse"]
        several = isinstance(module, Forecaster) and "statistics" in module.description
        name = "pooled valid RMSE" if several else "valid RMSE"
        self._update(errors=f"loss {loss:.2e}  {name} {rmse:.2e}")
        if self._lines is not None:
            epoch = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
            line = f"{epoch}  loss {loss:.3e}  {name} {rmse:.3e}"
            self._lines.print(line, highlight=False)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        self._stop()
        stopping = trainer.early_stopping_callback
        if stopping is not None and stopping.stopped_epoch and trainer.is_global_zero:
            Console(stderr=True).print(
                f"stopped early after epoch {stopping.stopped_epoch + 1} of "
                f"{trainer.max_epochs}: no lower {stopping.monitor} in "
                f"{stopping.patience} epochs",
                highlight=False,
            )

    def on_exception(
        self, trainer: Trainer, module: LightningModule, exception: BaseException
    ) -> None:
        self._stop()

    def _update(self, **changes: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], **changes)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
