"""What happens beside the steps of training: seeds, and memory given back."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything

from nfsgeo.data.streams import derived_seed

__all__ = ["ReleaseMemory", "SeedEpochs", "release_memory"]

# Steps between two releases: a step leaves some MiB, and a release takes 10 ms.
STEPS = 32


class SeedEpochs(Callback):
    """Seeds every generator at the first step of each epoch.

    A run that is resumed after a kill then draws what the undisturbed run would have
    drawn, and no generator has a state worth storing.

    Args:
        seed: Seed of the run.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: Trainer, module: LightningModule, batch: object, batch_idx: int
    ) -> None:
        if batch_idx == 0:
            words = self.seed, trainer.current_epoch, trainer.global_rank
            seed_everything(derived_seed(*words), verbose=False)


class ReleaseMemory(Callback):
    """Gives freed memory back to the system every 32 steps and after each epoch."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *_: Any
    ) -> None:
        if trainer.global_step % STEPS == 0 or trainer.is_last_batch:
            release_memory()


def release_memory() -> None:
    """Gives freed memory back to the system, where the C library can be told to.

    Tensors whose sizes change from step to step, as the numbers of edges of different
    meshes do, leave holes in the heap that the C library of Linux neither fills nor
    gives back by itself.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
