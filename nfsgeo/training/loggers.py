"""Where the course of training is logged, besides ``metrics.csv``."""

from __future__ import annotations

import os
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

__all__ = ["check_logger", "make_logger"]


def check_logger(section: TrainerSection) -> None:
    """Makes sure that the package of a logger is installed.

    Raises:
        UserError: It is not.
    """
    name = section.logger
    if name not in ("csv", "none") and find_spec(name) is None:
        raise UserError(
            f"trainer.logger={name}",
            f"the package {name}",
            f"pip install {name}, or set trainer.logger=csv",
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
    if section.logger == "tensorboard":
        return TensorBoardLogger(folder, name="", version="tensorboard")
    if section.logger == "csv":
        return CSVLogger(folder, name="csv")
    if section.logger == "wandb":
        project = os.environ.get("WANDB_PROJECT", "nfsgeo")
        return WandbLogger(name=folder.name, save_dir=folder, project=project)
    if section.logger == "mlflow":
        return MLFlowLogger(
            os.environ.get("MLFLOW_EXPERIMENT_NAME", "nfsgeo"),
            run_name=folder.name,
            tracking_uri=os.environ.get("MLFLOW_TRACKING_URI"),
            save_dir=str(folder / "mlruns"),
        )
    return None
