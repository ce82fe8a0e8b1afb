"""A learning rate by a range test."""

from __future__ import annotations

import copy
from tempfile import TemporaryDirectory

from lightning.pytorch import Trainer
from lightning.pytorch.tuner import Tuner

from nfsgeo.errors import UserError
from nfsgeo.training.callbacks import SeedEpochs
from nfsgeo.training.checkpoints import PlainCheckpoints
from nfsgeo.training.config import RunConfig
from nfsgeo.training.datamodule import WindowData
from nfsgeo.training.environment import device_of
from nfsgeo.training.module import Forecaster
from nfsgeo.training.processes import quiet_lightning

__all__ = ["find_learning_rate"]

LOWEST, HIGHEST, STEPS = 1e-5, 1e-1, 100


def find_learning_rate(
    config: RunConfig, forecaster: Forecaster, data: WindowData
) -> float:
    """The learning rate at which the loss falls most steeply.

    Lightning's range test (Smith, "Cyclical Learning Rates for Training Neural
    Networks", section 3.3): in 100 steps, from one epoch to the next, the rate rises
    from 1e-5 to 1e-1. The weights stay as they are.

    Args:
        config: Of the run, resolved.
        forecaster: The model.
        data: What it is trained on.

    Raises:
        UserError: The loss is not finite, or falls nowhere.
    """
    trial = copy.deepcopy(forecaster)
    trial.optimiser_section = config.optimiser.model_copy(update={"lr": LOWEST})
    with TemporaryDirectory() as folder, quiet_lightning():
        trainer = Trainer(
            default_root_dir=folder,
            accelerator=device_of(config.trainer).type,
            devices=1,
            precision=config.trainer.precision,
            max_epochs=1 + STEPS // data.steps_per_epoch(1),
            gradient_clip_val=config.optimiser.gradient_clip,
            limit_val_batches=0,
            num_sanity_val_steps=0,
            logger=False,
            callbacks=[SeedEpochs(config.seed)],
            plugins=[PlainCheckpoints()],
            reload_dataloaders_every_n_epochs=1,
            use_distributed_sampler=False,
            enable_progress_bar=False,
            enable_model_summary=False,
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
    return float(rate)
