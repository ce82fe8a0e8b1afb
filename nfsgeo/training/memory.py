"""Memory during training."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from nfsgeo.memory import release_memory

__all__ = ["ReleaseMemory"]

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
