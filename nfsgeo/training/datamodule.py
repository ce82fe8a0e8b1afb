"""The samples of a run, as batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from lightning.pytorch import LightningDataModule, Trainer
from torch.utils.data import DataLoader

from nfsgeo.data.streams import epoch_order
from nfsgeo.data.windows import Connect, ConnectedBatches, WindowDataset

__all__ = ["WindowData"]


class WindowData(LightningDataModule):
    """Batches of training and validation windows.

    Training order depends on the seed and the epoch alone: an interrupted epoch is
    repeated in the same order without any stored state. The trainer must ask for the
    training loader anew in every epoch and leave the samplers alone.

    Args:
        parts: ``"train"`` and ``"valid"`` data sets.
        connect: Makes the graphs of a sample's positions; see
            :meth:`nfsgeo.forecast.Forecaster.connect`.
        batch_size: Samples of a batch, on each device.
        workers: Reading processes of each loader.
        seed: Seed of the order.
    """

    trainer: Trainer

    def __init__(
        self,
        parts: Mapping[str, WindowDataset],
        connect: Connect,
        *,
        batch_size: int,
        workers: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.parts = dict(parts)
        # They cache graphs from epoch to epoch, for meshes that come again.
        self.collate = {part: ConnectedBatches(connect) for part in parts}
        self.batch_size, self.workers, self.seed = batch_size, workers, seed

    def train_dataloader(self) -> DataLoader:
        train, running = self.parts["train"], self.trainer
        # Reading processes know it as well: they start anew in every epoch.
        train.turn = running.current_epoch
        order = epoch_order(self.seed, running.current_epoch).permutation(len(train))
        # The first samples come again where devices do not divide them evenly.
        num = -(-len(train) // running.world_size) * running.world_size
        order = np.resize(order, num)[running.global_rank :: running.world_size]
        return self._loader("train", order.tolist())

    def val_dataloader(self) -> DataLoader:
        # Every sample once, never twice: the errors must not depend on the devices.
        first, step = self.trainer.global_rank, self.trainer.world_size
        return self._loader("valid", range(first, len(self.parts["valid"]), step))

    def _loader(self, part: str, order: Sequence[int]) -> DataLoader:
        return DataLoader(
            self.parts[part],
            batch_size=self.batch_size,
            sampler=order,
            num_workers=self.workers,
            collate_fn=self.collate[part],
        )
