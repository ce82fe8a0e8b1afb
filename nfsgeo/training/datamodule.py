"""The samples of a run, as batches."""

from __future__ import annotations

from collections.abc import Mapping

from lightning.pytorch import LightningDataModule, Trainer
from torch.utils.data import DataLoader

from nfsgeo.data import FieldFile
from nfsgeo.data.connected_batches import Connect, ConnectedBatches
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.training.config import DataSection
from nfsgeo.training.observation import Observation
from nfsgeo.training.sampler import EpochSampler

__all__ = ["WindowData", "windows"]


def windows(
    data: DataSection,
    file: FieldFile,
    mesh: Observation,
    part: str,
    *,
    beyond: int = 0,
    volumes: bool = False,
) -> WindowDataset:
    """Training, validation or test samples of a file.

    Args:
        data: Records and limits, resolved.
        file: Where the samples come from.
        mesh: The points at which they are observed.
        part: ``"train"``, ``"valid"`` or ``"test"``.
        beyond: Further records after those to be predicted, or as many as there are.
        volumes: Whether batches tell the volumes of their points.
    """
    n_in, n_out = data.n_in or 0, data.n_out or 1
    left = len(range(len(file.times))[data.first_step :: data.time_stride])
    left -= n_in + n_out
    most = {"train": data.max_train, "valid": data.max_valid, "test": data.max_test}
    return WindowDataset(
        file,
        file.split[part][: most[part]],
        n_in,
        n_out + max(0, min(beyond, left)),
        mesh,
        first_step=data.first_step,
        time_stride=data.time_stride,
        volumes=volumes,
    )


class WindowData(LightningDataModule):
    """Batches of training and validation windows.

    Training order depends on the seed and the epoch alone, see
    :class:`~nfsgeo.training.sampler.EpochSampler`. The trainer must ask for the
    training loader anew in every epoch and leave the samplers alone.

    Args:
        parts: ``"train"`` and ``"valid"`` data sets.
        connect: Makes the graphs of a sample's positions; see
            :meth:`nfsgeo.training.Forecaster.connect`.
        batch_size: Samples of a batch, on each device.
        workers: Reading processes of each loader.
        seed: Seed of the order.
    """

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
        # Kept from epoch to epoch, and with them the graphs of meshes that come again.
        self.collate = {part: ConnectedBatches(connect) for part in parts}
        self.batch_size, self.workers, self.seed = batch_size, workers, seed

    def steps_per_epoch(self, num_devices: int) -> int:
        """Batches that each device sees in an epoch."""
        share = -(-len(self.parts["train"]) // num_devices)
        return -(-share // self.batch_size)

    def train_dataloader(self) -> DataLoader:
        # Known by the processes that read too: they start with every epoch.
        self.parts["train"].turn = self._running.current_epoch
        return self._loader(
            "train",
            EpochSampler(
                len(self.parts["train"]),
                seed=self.seed,
                epoch=self._running.current_epoch,
                device=self._running.global_rank,
                num_devices=self._running.world_size,
            ),
        )

    def val_dataloader(self) -> DataLoader:
        # Every sample once, never twice: the errors must not depend on the devices.
        first, step = self._running.global_rank, self._running.world_size
        return self._loader("valid", range(first, len(self.parts["valid"]), step))

    @property
    def _running(self) -> Trainer:
        assert self.trainer is not None
        return self.trainer

    def _loader(self, part: str, order: EpochSampler | range) -> DataLoader:
        return DataLoader(
            self.parts[part],
            batch_size=self.batch_size,
            sampler=order,
            num_workers=self.workers,
            collate_fn=self.collate[part],
        )
