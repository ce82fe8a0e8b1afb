"""The modules of Lightning for a run: batches, training and validation steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from lightning.pytorch import LightningDataModule, LightningModule, seed_everything
from torch import Tensor, nn, optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader
from torch_geometric.data import Batch

from nfsgeo.config import OptimiserSection, RunConfig
from nfsgeo.data.streams import derived_seed, epoch_order
from nfsgeo.data.windows import Connect, ConnectedBatches, WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.forecast import Criterion, Forecaster
from nfsgeo.training.losses import Loss, LossPoints, mse
from nfsgeo.training.metrics import FieldErrors, MeanLoss

__all__ = ["TrainingModule", "WindowData", "make_optimiser", "make_schedule"]


class WindowData(LightningDataModule):
    """Batches of training and validation windows.

    Training order depends only on the seed and the epoch: an interrupted epoch is
    repeated in the same order without any stored state. The trainer must ask for a new
    training loader in every epoch and must not replace the samplers.

    Args:
        parts: The data sets ``"train"`` and ``"valid"``.
        connect: Method ``connect`` of the forecaster.
        config: The complete configuration.
    """

    trainer: Any

    def __init__(
        self, parts: Mapping[str, WindowDataset], connect: Connect, config: RunConfig
    ) -> None:
        super().__init__()
        self.parts, self.seed = dict(parts), config.seed
        # They cache graphs from epoch to epoch, for meshes that come again.
        self.collate = {part: ConnectedBatches(connect) for part in parts}
        self.batch_size, self.workers = config.data.batch_size, config.data.workers

    def train_dataloader(self) -> DataLoader:
        train, running = self.parts["train"], self.trainer
        # Worker processes know it as well: they are started in every epoch.
        train.epoch = running.current_epoch
        order = epoch_order(self.seed, running.current_epoch).permutation(len(train))
        step = self.batch_size * running.world_size
        steps = (order[first : first + step] for first in range(0, len(order), step))
        device, num = running.global_rank, running.world_size
        return self._loader("train", [chunk[device::num].tolist() for chunk in steps])

    def val_dataloader(self) -> DataLoader:
        # Whole batches: losses at points of several meshes depend on their mixture.
        num, size = len(self.parts["valid"]), self.batch_size
        batches = [[*range(k, min(k + size, num))] for k in range(0, num, size)]
        device_batches = batches[self.trainer.global_rank :: self.trainer.world_size]
        return self._loader("valid", device_batches)

    def num_samples(self, part: str, batch_idx: int) -> tuple[int, int]:
        """Return how many samples of a batch count, on this device and on all.

        A device that is left without samples computes on one that does not count.

        Args:
            part: ``"train"`` or ``"valid"``.
            batch_idx: Number of the batch on this device.
        """
        device, num = self.trainer.global_rank, self.trainer.world_size
        size = self.batch_size
        left = len(self.parts[part]) - batch_idx * size * num
        step = range(max(0, min(left, size * num)))
        device_step = (
            step[device::num] if part == "train" else step[device * size :][:size]
        )
        return len(device_step), len(step)

    def _loader(self, part: str, batches: list[list[int]]) -> DataLoader:
        return DataLoader(
            self.parts[part],
            batch_sampler=[batch or [0] for batch in batches or [[]]],
            num_workers=self.workers,
            collate_fn=self.collate[part],
        )


class TrainingModule(LightningModule):
    """Training and validation of a forecaster.

    The loss has quadrature weights if batches carry them, and uniform weights
    otherwise. Missing values of a target are left out of it.

    Args:
        forecaster: The model between its transforms.
        optimiser: Settings of the optimiser.
        loss: Loss of normalised fields; see :mod:`nfsgeo.training.losses`.
        seed: Seed of the random numbers of training.
    """

    trainer: Any
    run: str | None = None  # the run that its checkpoints belong to

    def __init__(
        self,
        forecaster: Forecaster,
        optimiser: OptimiserSection,
        *,
        loss: Loss = mse,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.forecaster, self.optimiser_section = forecaster, optimiser
        self.loss, self.seed = loss, seed
        self.errors = FieldErrors(**forecaster.task.statistics)
        self.train_loss, self.valid_loss = MeanLoss(), MeanLoss()
        self._losses: list[tuple[Tensor, Tensor]] = []

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        # A resumed run draws the same numbers as an undisturbed one, without a stored
        # state of any generator.
        if batch_idx == 0:
            words = self.seed, self.current_epoch, self.global_rank
            seed_everything(derived_seed(*words), verbose=False)
        if self.trainer.world_size > 1 and self.trainer.datamodule is not None:
            num, total = self.trainer.datamodule.num_samples("train", batch_idx)
            # Lightning averages gradients over devices, each with the same weight.
            batch.counted, batch.share = num, num * self.trainer.world_size / total

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.forecaster.loss(batch, self._criterion(batch))
        self._losses.append((loss.detach(), batch.sample))
        self.log("train_loss_step", loss)
        self.train_loss.update(loss, batch.get("counted", batch.num_graphs))
        self.log("train_loss", self.train_loss, on_step=False, on_epoch=True)
        return loss * batch.get("share", 1.0)

    def on_validation_batch_start(
        self, batch: Batch, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self.trainer.world_size > 1 and self.trainer.datamodule is not None:
            batch.counted, _ = self.trainer.datamodule.num_samples("valid", batch_idx)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        loss, prediction = self.forecaster.validate(batch, self._criterion(batch))
        self._losses.append((loss, batch.sample))
        self._check_losses()
        counted = batch.get("counted", batch.num_graphs)
        self.valid_loss.update(loss, counted)
        if counted:
            self.errors.update(prediction, batch.y, batch.batch)

    def on_validation_epoch_end(self) -> None:
        self.log("valid_loss", self.valid_loss.compute())
        for name, error in self.errors.compute().items():
            self.log(f"valid_{name}", error, prog_bar=name == "rmse")
        self.errors.reset()
        self.valid_loss.reset()

    def configure_optimizers(self) -> Any:
        optimiser = make_optimiser(self.parameters(), self.optimiser_section)
        schedule = make_schedule(
            optimiser,
            self.optimiser_section,
            epochs=self.trainer.max_epochs,
            steps_per_epoch=self._steps_per_epoch,
        )
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint |= {"nfsgeo": self.forecaster.description(), "run": self.run}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        # Another number of devices takes another number of steps in an epoch.
        epochs = checkpoint["epoch"] + 1
        steps = epochs * self._steps_per_epoch
        for state in checkpoint["lr_schedulers"]:
            if state["last_epoch"] != steps:
                for key in ("total_steps", "_schedule_phases", "step_size"):
                    state.pop(key, None)
                state |= {"last_epoch": steps, "_step_count": steps + 1}

    @property
    def _steps_per_epoch(self) -> int:
        """Number of steps of the optimiser in an epoch."""
        running = self.trainer
        return math.ceil(running.estimated_stepping_batches / running.max_epochs)

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        # Checking every loss would wait for the device in every step.
        every = self.trainer.log_every_n_steps
        if self.trainer.is_last_batch or (batch_idx + 1) % every == 0:
            self._check_losses()

    def _criterion(self, batch: Batch) -> Criterion:
        """Return the loss with the weights of a batch, without gaps in the target."""
        weight = batch.get("volume")

        def criterion(
            prediction: Tensor, target: Tensor, sizes: Sequence[int]
        ) -> Tensor:
            observed = ~target.isnan()
            target = torch.where(observed, target, prediction.detach())
            return self.loss(prediction, target, LossPoints(sizes, weight, observed))

        return criterion

    def _check_losses(self) -> None:
        """Make sure that all losses since the last check are finite."""
        losses, self._losses = self._losses, []
        for loss, samples in losses:
            if not torch.isfinite(loss):
                raise UserError(
                    f"loss {loss.item()} in epoch {self.current_epoch} on samples "
                    f"{samples.tolist()}",
                    "a finite number",
                    "train again with a lower --lr; the last good checkpoint is kept",
                )


def make_optimiser(
    parameters: Iterable[nn.Parameter], section: OptimiserSection
) -> optim.Optimizer:
    """Make the optimiser.

    Args:
        parameters: The weights.
        section: Settings of a complete configuration.
    """
    assert section.lr is not None
    kind = {"adam": optim.Adam, "adamw": optim.AdamW}[section.name]
    options = section.model_dump(include={"lr", "betas", "eps", "weight_decay"})
    return kind(parameters, **options)


def make_schedule(
    optimiser: optim.Optimizer,
    section: OptimiserSection,
    *,
    epochs: int,
    steps_per_epoch: int,
) -> lr_scheduler.LRScheduler:
    """Make the schedule of the learning rate, which advances after every step.

    The step schedule counts steps, too, not epochs: a checkpoint is taken at the end of
    an epoch, before a schedule that counts epochs would have advanced.

    Args:
        optimiser: The optimiser.
        section: Its settings.
        epochs: Number of epochs.
        steps_per_epoch: Number of steps in each.
    """
    if section.schedule == "one-cycle":
        return lr_scheduler.OneCycleLR(
            optimiser,
            max_lr=[group["lr"] for group in optimiser.param_groups],
            total_steps=epochs * steps_per_epoch,
            pct_start=section.one_cycle_rise,
            cycle_momentum=False,
        )
    every = section.step_epochs * steps_per_epoch
    factor = section.step_factor if section.schedule == "step" else 1.0
    return lr_scheduler.StepLR(optimiser, step_size=every, gamma=factor)
