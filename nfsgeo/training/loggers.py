"""Where the course of training is logged, besides ``metrics.csv``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lightning.pytorch.loggers import (
    CSVLogger,
    Logger,
    MLFlowLogger,
    TensorBoardLogger,
    WandbLogger,
)

from nfsgeo.errors import UserError
from nfsgeo.training.config import TrainerSection

__all__ = ["LOGGERS", "check_logger", "make_logger"]


@dataclass(frozen=True)
class _Kind:
    package: str
    make: Callable[[Path], Logger]


def _tensorboard(folder: Path) -> Logger:
    return TensorBoardLogger(folder, name="", version="tensorboard")


def _csv(folder: Path) -> Logger:
    return CSVLogger(folder, name="csv")


def _wandb(folder: Path) -> Logger:
    project = os.environ.get("WANDB_PROJECT", "nfsgeo")
    return WandbLogger(name=folder.name, save_dir=folder, project=project)


def _mlflow(folder: Path) -> Logger:
    return MLFlowLogger(
        os.environ.get("MLFLOW_EXPERIMENT_NAME", "nfsgeo"),
        run_name=folder.name,
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI"),
        save_dir=str(folder / "mlruns"),
    )


# By the name in ``trainer.logger``.
LOGGERS = {
    "tensorboard": _Kind("tensorboard", _tensorboard),
    "csv": _Kind("lightning", _csv),
    "wandb": _Kind("wandb", _wandb),
    "mlflow": _Kind("mlflow", _mlflow),
}


def check_logger(section: TrainerSection) -> None:
    """Makes sure that the package of a logger is installed.

    Raises:
        UserError: It is not.
    """
    kind = LOGGERS.get(section.logger)
    if kind is not None and find_spec(kind.package) is None:
        raise UserError(
            f"trainer.logger={section.logger}",
            f"the package {kind.package}",
            f"pip install {kind.package}, or set trainer.logger=csv",
        )


def make_logger(section: TrainerSection, folder: Path) -> Logger | None:
    """The logger of a run, which writes into its folder unless told otherwise.

    ``wandb`` and ``mlflow`` obey their own environment variables, such as
    ``WANDB_MODE``, ``WANDB_PROJECT``, ``MLFLOW_TRACKING_URI`` and
    ``MLFLOW_EXPERIMENT_NAME``.

    Args:
        section: With the logger's name.
        folder: Of the run.

    Returns:
        None where nothing is to be logged.
    """
    kind = LOGGERS.get(section.logger)
    return None if kind is None else kind.make(folder)
