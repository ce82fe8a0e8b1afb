"""What a model may ask of the training loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from nfsgeo.geometry import Graphs

__all__ = ["BatchLoss", "OwnLoss"]

# Of normalised predictions and targets ``[N, n_t', F']`` at the points of one batch.
BatchLoss = Callable[[Tensor, Tensor], Tensor]


@runtime_checkable
class OwnLoss(Protocol):
    """A model that is not trained on the error of its whole prediction.

    Most models are, and have no need of this. Some take true records after the input
    as a further input while they learn: scheduled sampling feeds them to a decoder,
    the pushforward trick starts from any of them. A model that has this method is
    trained on its result, and validated and tested as all others. It predicts fields
    in the scale of its input, not changes; see :attr:`ModelInfo.feeds_back`.

    Attributes:
        records_beyond: records after those to be predicted that training has a use
            for; the target holds as many of them as there are in the data.
    """

    records_beyond: int

    def training_loss(
        self, x: Tensor, target: Tensor, graphs: Graphs, loss: BatchLoss
    ) -> Tensor:
        """A number to be minimised.

        Args:
            x: normalised input fields ``[N, n_t, F]``.
            target: normalised records after them, ``[N, n_t' or more, F']``.
            graphs: from the model's ``connect``.
            loss: what is minimised, for predictions and true fields of this batch.
        """
        ...
