"""Random numbers that depend on the seed and the epoch alone."""

from __future__ import annotations

import random

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["SeedEpochs"]


class SeedEpochs(Callback):
    """Seeds every generator at the first step of each epoch.

    A run that goes on after a kill then draws what the undisturbed run would have
    drawn, and no generator has a state worth storing.

    Args:
        seed: Seed of the run.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: Trainer, module: LightningModule, batch: object, batch_idx: int
    ) -> None:
        if batch_idx:
            return
        words = [self.seed, trainer.current_epoch, trainer.global_rank]
        derived = int(np.random.SeedSequence(words).generate_state(1)[0])
        random.seed(derived)
        np.random.seed(derived)
        torch.manual_seed(derived)
