"""What Lightning asks of a forecaster in training: losses, errors, an optimiser."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.geometry import Graphs
from nfsgeo.models import BatchLoss, Model, OwnLoss
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.datamodule import WindowData
from nfsgeo.training.losses import Loss, LossPoints
from nfsgeo.training.metrics import FieldErrors
from nfsgeo.training.optimiser import (
    clip_gradient_norm,
    make_optimiser,
    make_schedule,
)
from nfsgeo.training.pushforward import pushed

__all__ = ["TrainingSteps"]


class TrainingSteps(LightningModule, ABC):
    """Training and validation of a model that predicts fields in the data's own units.

    Trained on ``loss``, with quadrature weights where batches carry them and uniform
    weights elsewhere. :class:`~nfsgeo.training.module.Forecaster` predicts.

    Args:
        model: On normalised fields.
        outputs: Scale of what is predicted, ``C`` components.
        optimiser: How the weights move.
        description: Plain types that a checkpoint carries along.
        loss: Of normalised fields; see :mod:`nfsgeo.training.losses`.
        missing: Whether training data have missing values, which leave the loss.
        pushforward: Probability that a training step starts from a prediction.
    """

    def __init__(
        self,
        model: Model,
        outputs: FieldNormaliser,
        optimiser: OptimiserSection,
        description: dict[str, Any],
        *,
        loss: Loss,
        missing: bool,
        pushforward: float,
    ) -> None:
        super().__init__()
        self.model = model
        self.outputs = outputs
        self.optimiser_section = optimiser
        self.description = description
        self.loss = loss
        self.missing = missing
        self.pushforward = pushforward
        self.errors = self.new_errors()
        self._losses: list[tuple[Tensor, Tensor]] = []

    @property
    @abstractmethod
    def mean_field(self) -> Tensor:
        """Mean of the training fields ``[C]``, normalised by ``outputs``."""

    @abstractmethod
    def predict_batch(self, batch: Batch) -> Tensor:
        """Predicted fields ``[M, n_out, C]`` of a batch, in the units of the data."""

    @abstractmethod
    def seen(self, batch: Batch) -> Tensor:
        """What the model sees of a batch: normalised inputs ``[N, n_in, F]``."""

    @abstractmethod
    def graphs_of(self, batch: Batch) -> Graphs:
        """The graphs of a batch."""

    @property
    def lead_times(self) -> bool:
        """Whether the model predicts any time after its inputs that is asked for."""
        return "longest_lead" in self.description

    def new_errors(self) -> FieldErrors:
        """A metric for what this predicts, by component where there are several."""
        return FieldErrors(**self.description.get("statistics", {})).to(self.device)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        if self.pushforward:
            batch = pushed(self, batch, self.pushforward)
        # A single later time step leaves nothing to be fed back.
        if isinstance(self.model, OwnLoss) and not self.lead_times:
            seen, graphs = self.seen(batch), self.graphs_of(batch)
            target = self._working(self.outputs.normalise(batch.y))
            own = self._loss_of(batch, graphs.sizes, self._working(self.mean_field))
            loss = self.model.training_loss(seen, target, graphs, own)
        else:
            loss = self._loss(self.predict_batch(batch), batch)
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
        prediction = self.predict_batch(batch)
        loss = self._loss(prediction, batch)
        self._watch(loss, batch)
        self._check_losses()
        self.errors.update(prediction, batch.y, batch.batch)
        self.log("valid_loss", loss, batch_size=batch.num_graphs, sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        errors = {f"valid_{name}": e for name, e in self.errors.compute().items()}
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
        checkpoint["nfsgeo"] = self.description

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        # Looking at every loss would wait for the device in every step.
        every = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        if self.trainer.is_last_batch or (batch_idx + 1) % every == 0:
            self._check_losses()

    def _loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The loss at the query points of a batch, or else at the observed points."""
        graphs = self.graphs_of(batch)
        truth, sizes = batch.y, graphs.sizes
        if "query_y" in batch:
            assert graphs.query_sizes is not None
            truth, sizes = batch.query_y, graphs.query_sizes
        # Without their mean, which may be large, before precision is lost.
        mean = self.mean_field
        return self._loss_of(batch, sizes, self._working(torch.zeros_like(mean)))(
            self._working(self.outputs.normalise(prediction) - mean),
            self._working(self.outputs.normalise(truth) - mean),
        )

    def _loss_of(
        self, batch: Batch, sizes: Sequence[int], mean_field: Tensor
    ) -> BatchLoss:
        """The loss as a function of normalised predictions and targets alone."""
        weight = batch.volume if "volume" in batch else None
        points = LossPoints(sizes, mean_field, weight)
        if not self.missing:
            return lambda prediction, target: self.loss(prediction, target, points)

        def of_observed(prediction: Tensor, target: Tensor) -> Tensor:
            observed = ~target.isnan()
            target = torch.where(observed, target, prediction.detach())
            return self.loss(prediction, target, replace(points, observed=observed))

        return of_observed

    def _working(self, normalised: Tensor) -> Tensor:
        """Normalised fields in the precision of the model."""
        return normalised.to(next(self.model.parameters()).dtype)

    def _watch(self, loss: Tensor, batch: Batch) -> None:
        self._losses.append((loss.detach(), batch.sample))

    def _check_losses(self) -> None:
        """Makes sure that all losses since the last time are finite.

        Raises:
            UserError: One is not.
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
