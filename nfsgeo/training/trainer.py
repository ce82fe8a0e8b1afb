"""Lightning's trainer for a run, and its records of every epoch."""

from __future__ import annotations

import copy
import csv
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, Trainer, loggers
from lightning.pytorch.callbacks import ProgressBar, RichProgressBar
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.tuner import Tuner
from rich.console import Console
from torch.optim import Optimizer

from nfsgeo.config import RunConfig
from nfsgeo.data.checks import reading
from nfsgeo.errors import UserError
from nfsgeo.training.artifacts import write_rows
from nfsgeo.training.checkpoints import PlainCheckpoints
from nfsgeo.training.cluster import cluster
from nfsgeo.training.lightning_setup import device_of, quiet_lightning
from nfsgeo.training.module import TrainingModule, WindowData, make_optimiser

__all__ = ["COLUMNS", "LOGGERS", "History", "check_logger", "find_learning_rate"]
__all__ += ["make_trainer", "progress_callback", "read_history"]
__all__ += ["with_epochs_in_budget"]

MEASURED = ("train_loss", "valid_loss", "valid_mae", "valid_rmse", "valid_rel_l2")
COLUMNS = ("epoch", *MEASURED, "learning_rate", "seconds")

LOWEST, HIGHEST, STEPS = 1e-5, 1e-1, 100
TIMED = 12  # batches

# Loggers by name; they write into the folder of the run unless their own environment
# variables say otherwise.
LOGGERS: dict[str, Callable[[Path], loggers.Logger | bool]] = {
    "tensorboard": lambda run: loggers.TensorBoardLogger(run, "", "tensorboard"),
    "csv": lambda run: loggers.CSVLogger(run, "csv"),
    "wandb": lambda run: loggers.WandbLogger(
        run.name, run, project=os.environ.get("WANDB_PROJECT", "nfsgeo")
    ),
    "mlflow": lambda run: loggers.MLFlowLogger(
        os.environ.get("MLFLOW_EXPERIMENT_NAME", "nfsgeo"),
        run_name=run.name,
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI"),
        save_dir=str(run / "mlruns"),
    ),
    "none": lambda run: False,
}


class History(Callback):
    """Adds a row to ``metrics.csv`` after each epoch, and records memory and CPU time.

    The whole file is written each time, so that it never holds part of a row. Rows of
    epochs that are trained again, because no checkpoint had them, are dropped.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.peak_memory_bytes = path, 0
        self.cpu_seconds: float | None = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("peak_memory_bytes", "cpu_seconds")
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.peak_memory_bytes = state_dict["peak_memory_bytes"]
        self.cpu_seconds = state_dict.get("cpu_seconds")  # none of earlier versions

    def on_train_epoch_start(self, trainer: Trainer, module: Any) -> None:
        self._began, self._used = time.monotonic(), time.process_time()

    def on_before_optimizer_step(
        self, trainer: Trainer, module: Any, optimizer: Optimizer
    ) -> None:
        self._rate = optimizer.param_groups[0]["lr"]

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        self.peak_memory_bytes = max(self.peak_memory_bytes, _peak_memory())
        if self.cpu_seconds is not None:
            self.cpu_seconds += time.process_time() - self._used
        if trainer.is_global_zero:
            epoch, seconds = trainer.current_epoch, time.monotonic() - self._began
            measured = [float(trainer.callback_metrics[name]) for name in MEASURED]
            values = (epoch, *measured, self._rate, round(seconds, 3))
            rows = [row for row in read_history(self.path) if row["epoch"] < epoch]
            rows.append(dict(zip(COLUMNS, values, strict=True)))
            write_rows(self.path, COLUMNS, rows)


def read_history(path: Path) -> list[dict[str, float]]:
    """Return the rows of a ``metrics.csv``, none if there is no file.

    Args:
        path: The file.
    """
    if not path.is_file():
        return []
    todo = "use an undamaged copy or train again"
    with reading(path, "a whole table of epochs", todo), open(path, newline="") as file:
        return [
            {key: float(row[key]) for key in COLUMNS} | {"epoch": int(row["epoch"])}
            for row in csv.DictReader(file)
        ]


def _peak_memory() -> int:
    """Return the peak memory in bytes, of the CUDA device or else of this process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def progress_callback() -> Callback:
    """Return Lightning's progress bar, or epoch lines if stderr is no terminal.

    Both show the validation errors, and whether training stopped early.
    """
    if Console(stderr=True).is_terminal:
        return RichProgressBar(console_kwargs={"stderr": True})
    return EpochLines()


class EpochLines(Callback):
    """Prints a line for each epoch on stderr."""

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        measured = trainer.callback_metrics
        pooled = "pooled " * bool(module.forecaster.task.statistics)
        line = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}  "
        line += f"loss {measured['train_loss']:.3e}  "
        _print(trainer, f"{line}{pooled}valid RMSE {measured['valid_rmse']:.3e}")

    def on_train_end(self, trainer: Trainer, module: Any) -> None:
        stopping = trainer.early_stopping_callback
        if stopping is not None and stopping.stopped_epoch:
            line = f"stopped early after epoch {stopping.stopped_epoch + 1} of "
            line += f"{trainer.max_epochs}: no lower {stopping.monitor} in "
            _print(trainer, f"{line}{stopping.patience} epochs")


def _print(trainer: Trainer, line: str) -> None:
    if trainer.is_global_zero:
        Console(stderr=True).print(line, highlight=False)


def make_trainer(
    config: RunConfig, callbacks: Sequence[Callback] = (), **options: Any
) -> Trainer:
    """Make a trainer whose epochs depend only on the configuration.

    Args:
        config: The complete configuration.
        callbacks: Callbacks of Lightning.
        options: Further arguments of Lightning's trainer.
    """
    options.setdefault("num_sanity_val_steps", 0)
    started = cluster() if "num_nodes" in options else None  # a trial has one process
    return Trainer(
        accelerator=device_of(config.trainer).type,
        precision=config.trainer.precision,
        gradient_clip_val=config.optimiser.gradient_clip,
        callbacks=[*callbacks],
        plugins=[PlainCheckpoints(), started or LightningEnvironment()],
        # The order of the training samples belongs to the epoch.
        reload_dataloaders_every_n_epochs=1,
        use_distributed_sampler=False,
        enable_progress_bar=any(isinstance(one, ProgressBar) for one in callbacks),
        enable_model_summary=False,
        **options,
    )


def check_logger(name: str) -> None:
    """Make sure that the package of a logger is installed.

    Args:
        name: Name of the logger.

    Raises:
        UserError: It is not.
    """
    if name not in ("csv", "none") and find_spec(name) is None:
        raise UserError(
            f"trainer.logger={name}",
            f"the package {name}",
            f"pip install {name}, or set trainer.logger=csv",
        )


def find_learning_rate(
    config: RunConfig, module: TrainingModule, data: WindowData
) -> RunConfig:
    """Choose the learning rate at which the loss falls most steeply.

    This is Lightning's range test (Smith, "Cyclical Learning Rates for Training Neural
    Networks", section 3.3): in 100 steps the rate rises from 1e-5 to 1e-1. The weights
    do not change.

    Args:
        config: The complete configuration.
        module: The module, which gets the rate.
        data: Training windows.

    Returns:
        The configuration with that rate.

    Raises:
        UserError: The loss is not finite, or falls nowhere.
    """
    trial = copy.deepcopy(module)
    trial.optimiser_section = config.optimiser.changed(lr=LOWEST)
    with TemporaryDirectory() as folder, quiet_lightning():
        trainer = make_trainer(
            config,
            default_root_dir=folder,
            devices=1,
            max_epochs=1 + STEPS * data.batch_size // len(data.parts["train"]),
            limit_val_batches=0,
            logger=False,
            enable_checkpointing=False,
        )
        finder = Tuner(trainer).lr_find(
            trial,
            datamodule=data,
            min_lr=LOWEST,
            max_lr=HIGHEST,
            num_training=STEPS,
            update_attr=False,
        )
    rate = None if finder is None else finder.suggestion()
    if rate is None:
        raise UserError(
            "optimiser.find_lr on data whose loss falls at no learning rate",
            "a loss that falls somewhere",
            "leave it out, and give --lr",
        )
    module.optimiser_section = config.optimiser.changed(lr=float(rate), find_lr=False)
    return config.changed(optimiser=module.optimiser_section)


def with_epochs_in_budget(
    config: RunConfig, module: TrainingModule, data: WindowData
) -> RunConfig:
    """Replace a budget of time by the number of epochs that take as long.

    Some steps of training and of validation are timed on copies of the weights, in two
    epochs if the meshes of samples change. All batches come again, twice: the
    difference is what takes time in the first epochs only, until the windows and the
    graphs of all meshes are cached.

    Args:
        config: The complete configuration, with ``trainer.budget``.
        module: The module, which does not change.
        data: Training and validation windows.

    Returns:
        The configuration with at least one epoch, and without the budget.
    """
    section, trial = config.trainer, copy.deepcopy(module)
    device = device_of(section)
    trial.to(device, torch.float64 if section.precision == "64" else None)
    clock = time.process_time if device.type == "cpu" else time.monotonic
    half = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
    mixed = torch.autocast(
        device.type,
        dtype=half.get(section.precision),
        enabled=section.precision in half,
    )
    optimiser = make_optimiser(trial.parameters(), config.optimiser)

    def seconds(part: str, epoch: int, samples: Sequence[int]) -> tuple[float, float]:
        """Return the time of reading windows, and that of the rest of a step."""
        began, windows = clock(), data.parts[part]
        windows.epoch = epoch
        items = [windows[i] for i in samples]
        read = clock()
        batch = data.collate[part](items).to(device)
        if part == "train":
            optimiser.zero_grad()
            with mixed:
                loss = trial.training_step(batch, 0)
            loss.backward()
            optimiser.step()
            loss.item()  # waits for the device
        else:
            with torch.no_grad(), mixed:
                trial.validation_step(batch, 0)
        return read - began, clock() - read

    steady = reading = making = 0.0  # of an epoch, of one of the first, in all
    cached, period = 1.0, data.parts["train"].mesh.period  # epochs that are read
    with quiet_lightning(), torch.random.fork_rng():
        for part, windows in data.parts.items():
            trial.train(part == "train")
            size, num, times = data.batch_size, len(windows), windows.mesh.period
            epochs = range(1, min(max(times, 2), 3))
            batches = [
                (epoch, range(i, min(i + size, num)))
                for epoch in epochs
                for i in range(0, num, size)
            ]
            some = batches[:: max(1, len(batches) // TIMED)]
            seconds(part, *some[-1])  # without what the first step of all takes
            cold, *again = (
                np.sum([seconds(part, *batch) for batch in some], axis=0)
                for _ in range(3)
            )
            warm = np.min(again, axis=0)  # without what another program delays
            steps = math.ceil(num / size) / len(some)  # of an epoch over those timed
            steady += warm.sum() * steps
            once_read, once_made = (cold - warm).clip(0)
            met = {windows.mesh_number(i, epoch) for epoch, b in some for i in b}
            meshes = {
                windows.mesh_number(*window)
                for window in product(range(num), range(times))
            }
            if windows.whole:
                reading += once_read * steps
                if part == "train":
                    cached += len(epochs) * len(some) / len(batches)
            else:
                steady += once_read * steps
            if data.collate[part].cache.holds(len(meshes)):
                making += once_made / len(met) * len(meshes - met)
            else:
                steady += once_made * steps
            windows.epoch = 0
    left = 60 * (section.budget or 0) - making
    number = (left + cached * reading) / (steady + reading)
    if number > period:
        number = (left - max(0.0, period - cached) * reading) / steady
    number = max(1, round(number))
    return config.changed(trainer=section.changed(epochs=number, budget=None))
