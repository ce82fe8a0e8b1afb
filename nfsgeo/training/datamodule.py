"""The samples of a run, as batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from lightning.pytorch import LightningDataModule, Trainer
from torch.utils.data import DataLoader, Sampler

from nfsgeo.data import Fields
from nfsgeo.data.connected_batches import Connect, ConnectedBatches
from nfsgeo.data.streams import epoch_order
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.training.config import DataSection
from nfsgeo.training.observation import Observation
from nfsgeo.training.window_starts import (
    part_samples,
    steps_of_parts,
    window_starts,
)

__all__ = ["EpochSampler", "WindowData", "windows"]


def windows(
    data: DataSection,
    file: Fields,
    mesh: Observation,
    part: str,
    *,
    n_out: int | None = None,
    beyond: int = 0,
    volumes: bool = False,
    drop_absent: bool = False,
) -> WindowDataset:
    """Training, validation or test windows of a file, whose ``part`` says which.

    Args:
        data: Time steps and limits, resolved.
        file: Where the samples come from.
        mesh: The points at which they are observed.
        part: ``"train"``, ``"valid"`` or ``"test"``.
        n_out: Time steps to predict, where they are not those of training.
        beyond: Further time steps after the predicted ones, as far as there are any.
        volumes: Whether batches carry the quadrature weights of their points.
        drop_absent: Whether windows leave out points without any value in them.
    """
    n_in, n_out = data.n_in or 0, n_out or data.n_out or 1
    steps = steps_of_parts(data, file)[part]  # the same however many are predicted
    most = len(steps[:: data.time_stride]) - n_in
    if data.split_by == "time" and n_out > most:
        raise UserError(
            f"{n_out} predicted time steps in the {part} part of {file.path}",
            f"at most {most}, after {n_in} observed ones",
            "ask for fewer (--steps), or use a longer file",
        )
    left = len(steps[:: data.time_stride]) - (n_in + n_out)
    n_out += max(0, min(beyond, left))
    samples = part_samples(data, file, part)
    starts = window_starts(data, file, part, n_in + n_out)
    several = len(starts) > 1
    return WindowDataset(
        file,
        np.repeat(samples, len(starts)),
        n_in,
        n_out,
        mesh,
        first_step=np.tile(starts, len(samples)) if several else int(starts[0]),
        time_stride=data.time_stride,
        volumes=volumes,
        drop_absent=drop_absent,
    )


class EpochSampler(Sampler[int]):
    """A shuffle that depends on nothing but the seed and the epoch.

    An interrupted epoch is repeated in the same order without any stored state. With
    several devices each takes every ``num_devices``-th sample; the first samples come
    again at the end where they do not divide evenly.
    """

    def __init__(
        self,
        num_samples: int,
        *,
        seed: int,
        epoch: int,
        device: int = 0,
        num_devices: int = 1,
    ) -> None:
        order = epoch_order(seed, epoch).permutation(num_samples)
        each = -(-num_samples // num_devices)
        self.order = np.resize(order, each * num_devices)[device::num_devices]

    def __iter__(self) -> Iterator[int]:
        return iter(self.order.tolist())

    def __len__(self) -> int:
        return len(self.order)


class WindowData(LightningDataModule):
    """Batches of training and validation windows.

    Training order depends on the seed and the epoch alone. The trainer must ask for
    the training loader anew in every epoch and leave the samplers alone.

    Args:
        parts: ``"train"`` and ``"valid"`` data sets.
        connect: Makes the graphs of a sample's positions; see
            :meth:`nfsgeo.forecast.Forecaster.connect`.
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
        # They cache graphs from epoch to epoch, for meshes that come again.
        self.collate = {part: ConnectedBatches(connect) for part in parts}
        self.batch_size, self.workers, self.seed = batch_size, workers, seed

    def steps_per_epoch(self, num_devices: int) -> int:
        """Batches that each device sees in an epoch."""
        samples = -(-len(self.parts["train"]) // num_devices)
        return -(-samples // self.batch_size)

    def train_dataloader(self) -> DataLoader:
        train, running = self.parts["train"], self._running
        # Reading processes know it as well: they start anew in every epoch.
        train.turn = running.current_epoch
        order = EpochSampler(
            len(train),
            seed=self.seed,
            epoch=running.current_epoch,
            device=running.global_rank,
            num_devices=running.world_size,
        )
        return self._loader("train", order)

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
