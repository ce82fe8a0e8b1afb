"""The modules of Lightning for a run: batches, training and validation steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
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
from nfsgeo.training.metrics import FieldErrors

__all__ = ["TrainingModule", "WindowData", "make_optimiser", "make_schedule"]


class WindowData(LightningDataModule):
    """Batches of training and validation windows.

    Training order depends only on the seed and the epoch: an interrupted epoch is
    repeated in the same order without any stored state. The trainer must ask for a new
    training loader in every epoch and must not replace the samplers.

    Args:
        parts: The data sets ``"train"`` and ``"valid"``.
        connect: Method ``connect`` of the forecaster.
        config: The resolved configuration.
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
        train.turn = running.current_epoch
        order = epoch_order(self.seed, running.current_epoch).permutation(len(train))
        # The first samples are repeated if devices do not divide them evenly.
        num = -(-len(train) // running.world_size) * running.world_size
        order = np.resize(order, num)[running.global_rank :: running.world_size]
        return self._loader("train", order.tolist())

    def val_dataloader(self) -> DataLoader:
        # No sample is repeated, so that errors do not depend on the devices.
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
        self._losses: list[tuple[Tensor, Tensor]] = []

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        # A resumed run draws the same numbers as an undisturbed one, without a stored
        # state of any generator.
        if batch_idx == 0:
            words = self.seed, self.current_epoch, self.global_rank
            seed_everything(derived_seed(*words), verbose=False)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.forecaster.loss(batch, self._criterion(batch))
        self._losses.append((loss.detach(), batch.sample))
        self.log("train_loss_step", loss)
        self.log(
            "train_loss",
            loss,
            batch_size=batch.num_graphs,
            on_step=False,
            on_epoch=True,
            sync_dist=True,
        )
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        loss, prediction = self.forecaster.validate(batch, self._criterion(batch))
        self._losses.append((loss, batch.sample))
        self._check_losses()
        self.errors.update(prediction, batch.y, batch.batch)
        self.log("valid_loss", loss, batch_size=batch.num_graphs, sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        for name, error in self.errors.compute().items():
            self.log(f"valid_{name}", error, prog_bar=name == "rmse")
        self.errors.reset()

    def configure_optimizers(self) -> Any:
        optimiser = make_optimiser(self.parameters(), self.optimiser_section)
        epochs = self.trainer.max_epochs
        steps = math.ceil(self.trainer.estimated_stepping_batches / epochs)
        schedule = make_schedule(
            optimiser, self.optimiser_section, epochs=epochs, steps_per_epoch=steps
        )
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["nfsgeo"] = self.forecaster.description()

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
        section: Settings of a resolved configuration.
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
