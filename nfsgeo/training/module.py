"""The training step around any model."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch_geometric.data import Batch

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models import OwnLoss
from nfsgeo.nn.fixed_interpolation import interpolate_along, spline_cache
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.metrics import FieldErrors
from nfsgeo.training.optimiser import (
    clip_gradient_norm,
    make_optimiser,
    make_schedule,
)

__all__ = ["Forecaster"]


class Forecaster(LightningModule):
    """A model with the scales of its data: fields in and out in the data's own units.

    Trained on the mean squared error of the normalised fields, over the domain where
    batches tell the volumes of their points, or on the loss of a model that has one.
    The statistics are buffers, so that a checkpoint carries them.

    Args:
        model: ``model(x, pos, batch, query_pos=, query_batch=)`` on normalised fields.
        inputs: Scale of the inputs, ``F`` components.
        outputs: Scale of what the model predicts, ``C`` components.
        optimiser: How the weights move.
        description: Plain types that a checkpoint carries along, to build the same
            model again; ``statistics`` of several components, for their errors.
        changes_in: Where the model predicts changes since the last observed record,
            the domain of the points; None where it predicts the field itself.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: FieldNormaliser,
        outputs: FieldNormaliser,
        optimiser: OptimiserSection,
        description: dict[str, Any],
        *,
        changes_in: Domain | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.inputs, self.outputs = inputs, outputs
        self.optimiser_section = optimiser
        self.description = description
        self.changes_in = changes_in
        if changes_in is not None:
            self.graphs = spline_cache(changes_in)
        self.errors = self.new_errors()

    def forward(
        self,
        x: Tensor,
        pos: Tensor,
        batch: Tensor | None = None,
        *,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
    ) -> Tensor:
        """Predicted fields ``[M, n_out, C]``, in the units of the data.

        Args:
            x: Observed fields ``[N, n_in, F]``, in the units of the data.
            pos: Where they were observed ``[N, d]``.
            batch: Sample of each point ``[N]``; None for one sample.
            query_pos: Where to predict ``[M, d]``; None for ``pos``.
            query_batch: Sample of each query point ``[M]``.

        Raises:
            UserError: ``x`` has other components or time steps than in training.
        """
        self._check_inputs(x)
        kind = self.inputs.mean.dtype
        x, pos = x.to(kind), pos.to(kind)
        if query_pos is not None:
            query_pos = query_pos.to(kind)
        prediction = self.model(
            self.inputs.normalise(x),
            pos,
            batch,
            query_pos=query_pos,
            query_batch=query_batch,
        )
        prediction = self.outputs.denormalise(prediction.to(kind))
        if self.changes_in is None:
            return prediction
        last = x[:, -1:, : prediction.size(-1)]
        if query_pos is not None:
            last = interpolate_along(
                last,
                self.graphs.points_to_queries(pos, batch, query_pos, query_batch),
            )
        return last + prediction

    def new_errors(self) -> FieldErrors:
        """A metric for what this predicts, by component where there are several."""
        return FieldErrors(**self.description.get("statistics", {})).to(self.device)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        if isinstance(self.model, OwnLoss):
            loss = self._own_loss(self.model, batch)
        else:
            loss = self._loss(self._predict(batch), batch)
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
        prediction = self._predict(batch)
        loss = self._loss(prediction, batch)
        self.errors.update(prediction, batch.y, batch.batch)
        self.log("valid_loss", loss, batch_size=batch.num_graphs, sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        errors = {f"valid_{name}": e for name, e in self.errors.compute().items()}
        self.log_dict(errors)
        self.errors.reset()

    def configure_optimizers(self) -> Any:
        optimiser = make_optimiser(self.model.parameters(), self.optimiser_section)
        assert self.trainer.max_epochs is not None
        schedule = make_schedule(
            optimiser,
            self.optimiser_section,
            epochs=self.trainer.max_epochs,
            steps_per_epoch=self.trainer.datamodule.steps_per_epoch(  # type: ignore[attr-defined]
                self.trainer.world_size
            ),
        )
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        if gradient_clip_val is not None:
            clip_gradient_norm(self.model.parameters(), gradient_clip_val)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["nfsgeo"] = self.description

    def _check_inputs(self, x: Tensor) -> None:
        inputs, fields = len(self.inputs.mean), len(self.outputs.mean)
        problem = self.description.get("problem", {})
        num = problem.get("n_in", x.size(1) if x.ndim == 3 else 1)
        if x.ndim == 3 and tuple(x.shape[1:]) == (num, inputs):
            return
        fields = fields if problem.get("has_time", True) else 0
        wanted = f"[points, {num}, {inputs}]"
        kinds = [f"{fields} of the field"] * (fields > 0)
        kinds += [f"{inputs - fields} of the static input"] * (inputs > fields)
        todo = "give the inputs that the model was trained with"
        if fields and x.shape[-1] == fields < inputs:
            todo = "append the static input, repeated over the time steps"
        raise UserError(
            f"x of shape {list(x.shape)}",
            f"{wanted}, whose components are {' and '.join(kinds)}",
            todo,
        )

    def _predict(self, batch: Batch) -> Tensor:
        return self(batch.x, batch.pos, batch.batch)

    def _own_loss(self, model: OwnLoss, batch: Batch) -> Tensor:
        kind = self.inputs.mean.dtype
        loss = model.training_loss(
            self.inputs.normalise(batch.x.to(kind)),
            batch.pos.to(kind),
            batch.batch,
            self.outputs.normalise(batch.y.to(kind)),
        )
        return self._finite(loss, batch)

    def _loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        truth = batch.y.to(prediction.dtype)
        squares = mse_loss(
            self.outputs.normalise(prediction),
            self.outputs.normalise(truth),
            reduction="none",
        ).flatten(1)
        if "volume" in batch:
            squares = squares * batch.volume.to(squares.dtype)[:, None]
        return self._finite(squares.mean(), batch)

    def _finite(self, loss: Tensor, batch: Batch) -> Tensor:
        if not torch.isfinite(loss):
            raise UserError(
                f"loss {loss.item()} in epoch {self.current_epoch} on samples "
                f"{batch.sample.tolist()}",
                "a finite number",
                "train again with a lower --lr; the last good checkpoint is kept",
            )
        return loss
