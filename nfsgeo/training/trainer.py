"""Lightning's trainer as a run needs it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lightning.pytorch import Callback, Trainer, loggers, seed_everything
from lightning.pytorch.callbacks import ProgressBar
from lightning.pytorch.tuner import Tuner

from nfsgeo.data.streams import derived_seed
from nfsgeo.errors import UserError
from nfsgeo.training.checkpoints import PlainCheckpoints
from nfsgeo.training.config import RunConfig
from nfsgeo.training.module import TrainingModule, WindowData
from nfsgeo.training.processes import device_of, quiet_lightning

__all__ = ["LOGGERS", "check_logger", "find_learning_rate", "make_trainer"]

LOWEST, HIGHEST, STEPS = 1e-5, 1e-1, 100

# By name; they write into the folder of the run unless their own environment variables
# tell them otherwise.
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


class SeedEpochs(Callback):
    """Seeds every generator at the first step of each epoch.

    A run that is resumed after a kill then draws what the undisturbed run would have
    drawn, and no generator has a state worth storing.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: Trainer, module: Any, batch: object, batch_idx: int
    ) -> None:
        if batch_idx == 0:
            words = self.seed, trainer.current_epoch, trainer.global_rank
            seed_everything(derived_seed(*words), verbose=False)


def make_trainer(
    config: RunConfig, callbacks: Sequence[Callback] = (), **options: Any
) -> Trainer:
    """A trainer whose epochs depend on nothing but the configuration."""
    return Trainer(
        accelerator=device_of(config.trainer).type,
        precision=config.trainer.precision,
        gradient_clip_val=config.optimiser.gradient_clip,
        callbacks=[SeedEpochs(config.seed), *callbacks],
        plugins=[PlainCheckpoints()],
        num_sanity_val_steps=0,
        # The order of the training samples belongs to the epoch.
        reload_dataloaders_every_n_epochs=1,
        use_distributed_sampler=False,
        enable_progress_bar=any(isinstance(each, ProgressBar) for each in callbacks),
        enable_model_summary=False,
        **options,
    )


def check_logger(name: str) -> None:
    """Makes sure that the package of a logger is installed."""
    if name not in ("csv", "none") and find_spec(name) is None:
        raise UserError(
            f"trainer.logger={name}",
            f"the package {name}",
            f"pip install {name}, or set trainer.logger=csv",
        )


def find_learning_rate(
    config: RunConfig, module: TrainingModule, data: WindowData
) -> RunConfig:
    """With the learning rate at which the loss falls most steeply.

    Lightning's range test (Smith, "Cyclical Learning Rates for Training Neural
    Networks", section 3.3): in 100 steps, from one epoch to the next, the rate rises
    from 1e-5 to 1e-1. The weights stay as they are; the ``module`` has that rate.

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
        span: dict[str, Any] = {
            "min_lr": LOWEST,
            "max_lr": HIGHEST,
            "num_training": STEPS,
        }
        tuner = Tuner(trainer)
        found = tuner.lr_find(trial, datamodule=data, update_attr=False, **span)
    rate = None if found is None else found.suggestion()
    if rate is None:
        raise UserError(
            "optimiser.find_lr on data whose loss falls at no learning rate",
            "a loss that falls somewhere",
            "leave it out, and give --lr",
        )
    module.optimiser_section = config.optimiser.changed(lr=float(rate), find_lr=False)
    return config.changed(optimiser=module.optimiser_section)
