"""What Lightning asks of a forecaster in training: losses, errors, an optimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.models import BatchLoss, OwnLoss
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.datamodule import WindowData
from nfsgeo.training.losses import Loss, LossPoints, mse
from nfsgeo.training.metrics import FieldErrors
from nfsgeo.training.optimiser import (
    clip_gradient_norm,
    make_optimiser,
    make_schedule,
)

__all__ = ["TrainingModule"]


class TrainingModule(LightningModule):
    """Training and validation of a forecaster.

    Trained on ``loss``, with quadrature weights where batches carry them and uniform
    weights elsewhere. Missing values of a target leave the loss. A model with a loss of
    its own (:class:`nfsgeo.models.OwnLoss`) is trained on that.

    Args:
        forecaster: predicts fields in the units of the data.
        optimiser: how the weights move.
        loss: of normalised fields; see :mod:`nfsgeo.training.losses`.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        optimiser: OptimiserSection,
        *,
        loss: Loss = mse,
    ) -> None:
        super().__init__()
        self.forecaster = forecaster
        self.optimiser_section = optimiser
        self.loss = loss
        self.errors = FieldErrors(**forecaster.task.statistics)
        self._losses: list[tuple[Tensor, Tensor]] = []

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        model, forecaster = self.forecaster.model, self.forecaster
        # A single later time step leaves nothing to be fed back.
        if isinstance(model, OwnLoss) and not forecaster.task.any_time:
            graphs = forecaster.graphs_of(batch)
            target = self._normalised(batch.y)
            own = self._loss_of(batch, graphs.sizes)
            seen = forecaster.network_inputs(batch)
            loss = model.training_loss(seen, target, graphs, own)
        else:
            loss = self._loss(forecaster.predict_batch(batch), batch)
        self._watch(loss, batch)
        self.log("train_loss_step", loss, on_step=True, on_epoch=False)
        self.log(
            "train_loss",
            loss,
            on_step=False,
            on_epoch=True,
            batch_size=batch.num_graphs,
            sync_dist=True,
        )
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        prediction = self.forecaster.predict_batch(batch)
        loss = self._loss(prediction, batch)
        self._watch(loss, batch)
        self._check_losses()
        self.errors.update(prediction, batch.y, batch.batch)
        self.log("valid_loss", loss, batch_size=batch.num_graphs, sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        errors = {f"valid_{name}": e for name, e in self.errors.compute().items()}
        self.log("valid_rmse", errors.pop("valid_rmse"), prog_bar=True)
        self.log_dict(errors)
        self.errors.reset()

    def configure_optimizers(self) -> Any:
        optimiser = make_optimiser(self.parameters(), self.optimiser_section)
        trainer: Any = self.trainer
        epochs, data = trainer.max_epochs, trainer.datamodule
        if isinstance(data, WindowData):
            batches = data.steps_per_epoch(trainer.world_size)
            steps = math.ceil(batches / trainer.accumulate_grad_batches)
        else:  # of a trainer and loaders of one's own
            steps = math.ceil(trainer.estimated_stepping_batches / epochs)
        schedule = make_schedule(
            optimiser, self.optimiser_section, epochs=epochs, steps_per_epoch=steps
        )
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        if gradient_clip_val is not None:
            clip_gradient_norm(self.parameters(), gradient_clip_val)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["nfsgeo"] = self.forecaster.description()

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        # Looking at every loss would wait for the device in every step.
        every = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        if self.trainer.is_last_batch or (batch_idx + 1) % every == 0:
            self._check_losses()

    def _loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The loss at the query points of a batch, or else at the observed points."""
        graphs = self.forecaster.graphs_of(batch)
        truth, sizes = batch.y, graphs.sizes
        if "query_y" in batch:
            assert graphs.query_sizes is not None
            truth, sizes = batch.query_y, graphs.query_sizes
        loss = self._loss_of(batch, sizes)
        return loss(self._normalised(prediction), self._normalised(truth))

    def _loss_of(self, batch: Batch, sizes: Sequence[int]) -> BatchLoss:
        """The loss as a function of normalised predictions and targets alone."""
        weight = batch.volume if "volume" in batch else None

        def loss(prediction: Tensor, target: Tensor) -> Tensor:
            observed = ~target.isnan()
            target = torch.where(observed, target, prediction.detach())
            return self.loss(prediction, target, LossPoints(sizes, weight, observed))

        return loss

    def _normalised(self, fields: Tensor) -> Tensor:
        """Fields without their mean, which may be large, in the model's precision."""
        kind = next(self.forecaster.model.parameters()).dtype
        mean, std = self.forecaster.scale
        return ((fields - mean) / std).to(kind)

    def _watch(self, loss: Tensor, batch: Batch) -> None:
        self._losses.append((loss.detach(), batch.sample))

    def _check_losses(self) -> None:
        """Makes sure that all losses since the last time are finite.

        Raises:
            UserError: one is not.
        """
        losses, self._losses = self._losses, []
        for loss, samples in losses:
            if not torch.isfinite(loss):
                raise UserError(
                    f"loss {loss.item()} in epoch {self.current_epoch} on samples "
                    f"{samples.tolist()}",
                    "a finite number",
                    "train again with a lower --lr; the last good checkpoint is kept",
                )
