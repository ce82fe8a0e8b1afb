"""Lightning's trainer as a run needs it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ProgressBar
from lightning.pytorch.tuner import Tuner

from nfsgeo.errors import UserError
from nfsgeo.training.callbacks import SeedEpochs
from nfsgeo.training.checkpoints import PlainCheckpoints
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import WindowData
from nfsgeo.training.environment import device_of
from nfsgeo.training.module import TrainingModule
from nfsgeo.training.processes import quiet_lightning

__all__ = ["find_learning_rate", "make_trainer"]

LOWEST, HIGHEST, STEPS = 1e-5, 1e-1, 100


def make_trainer(
    config: RunConfig, callbacks: Sequence[Callback] = (), **options: Any
) -> Trainer:
    """A trainer whose epochs depend on nothing but the configuration.

    Args:
        config: Resolved.
        callbacks: Besides those that seed every epoch.
        options: Further options of :class:`lightning.pytorch.Trainer`.
    """
    shows = any(isinstance(each, ProgressBar) for each in callbacks)
    known = {
        "accelerator": device_of(config.trainer).type,
        "precision": config.trainer.precision,
        "gradient_clip_val": config.optimiser.gradient_clip,
        "callbacks": [SeedEpochs(config.seed), *callbacks],
        "plugins": [PlainCheckpoints()],
        "num_sanity_val_steps": 0,
        # The order of the training samples belongs to the epoch.
        "reload_dataloaders_every_n_epochs": 1,
        "use_distributed_sampler": False,
        "enable_progress_bar": shows,
        "enable_model_summary": False,
    }
    return Trainer(**known | options)


def find_learning_rate(
    config: RunConfig, module: TrainingModule, data: WindowData
) -> RunConfig:
    """With the learning rate at which the loss falls most steeply, if it asks for that.

    Lightning's range test (Smith, "Cyclical Learning Rates for Training Neural
    Networks", section 3.3): in 100 steps, from one epoch to the next, the rate rises
    from 1e-5 to 1e-1. The weights stay as they are.

    Args:
        config: Of the run, resolved.
        module: What is trained; its optimiser has that rate afterwards.
        data: What it is trained on.

    Raises:
        UserError: The loss is not finite, or falls nowhere.
    """
    if not config.optimiser.find_lr:
        return config
    trial = copy.deepcopy(module)
    trial.optimiser_section = config.optimiser.model_copy(update={"lr": LOWEST})
    with TemporaryDirectory() as folder, quiet_lightning():
        trainer = make_trainer(
            config,
            default_root_dir=folder,
            devices=1,
            max_epochs=1 + STEPS // data.steps_per_epoch(1),
            limit_val_batches=0,
            logger=False,
            enable_checkpointing=False,
        )
        found = Tuner(trainer).lr_find(
            trial,
            datamodule=data,
            min_lr=LOWEST,
            max_lr=HIGHEST,
            num_training=STEPS,
            update_attr=False,
        )
    rate = None if found is None else found.suggestion()
    if rate is None:
        raise UserError(
            "optimiser.find_lr on data whose loss falls at no learning rate",
            "a loss that falls somewhere",
            "leave it out, and give --lr",
        )
    chosen = {"lr": float(rate), "find_lr": False}
    module.optimiser_section = config.optimiser.model_copy(update=chosen)
    return config.model_copy(update={"optimiser": module.optimiser_section})
