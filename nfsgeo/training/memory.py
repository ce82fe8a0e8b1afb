"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["ReleaseMemory", "release_memory"]

# Steps from one time to the next: a step leaves some MiB, and each time takes 10 ms.
STEPS = 32


class ReleaseMemory(Callback):
    """Gives freed memory back to the system every so many steps of training."""

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Gives it back; see Lightning."""
        if batch_idx % STEPS == STEPS - 1:
            release_memory()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Gives it back; see Lightning."""
        release_memory()


def release_memory() -> None:
    """Gives memory that was freed back to the system, where that can be told to.

    Tensors whose sizes change from step to step, as the numbers of edges of ever other
    meshes do, leave holes in the heap that the C library of Linux neither fills nor
    gives back by itself.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
