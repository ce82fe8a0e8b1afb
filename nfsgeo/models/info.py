"""Facts about a model, and what it may ask of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel
from torch import Tensor

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model

__all__ = ["BatchLoss", "LossWeighting", "ModelInfo", "OwnLoss"]

LossWeighting = Literal["uniform", "quadrature"]

# Of normalised predictions and targets ``[N, n_t', F']`` at the points of one batch.
BatchLoss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ModelInfo:
    """What a model accepts, where it comes from, and how it is trained by default.

    Attributes:
        name: as on the command line.
        model: the class.
        source: the publication.
        paper: settings of the paper, where they differ from the defaults.
        parameters_paper: count in the paper's complexity table, where it has one.
        family: ``mixer`` (lift, token and channel mixing, projection), ``graph``
            (message passing or recurrent cells on a graph of the points) or
            ``deeponet``. The paper's learning rates differ by family.
        points: whether it takes irregular points, not only equispaced grids.
        unseen_meshes: whether it works on meshes that it was not trained on.
        point_sets: default number of point sets that training samples cycle through,
            where points are drawn.
        query_points: default number of unobserved points of the file, for each sample,
            at which training asks for a prediction; 0 for a model that predicts at the
            observed points only.
        loss_weighting: default weights of the points in the training loss, where points
            are drawn evenly from a grid; elsewhere they are uniform.
        autoregressive: whether its predictions become inputs of its own (autoregressive
            rollout), and are therefore fields in the scale of the input.
    """

    name: str
    model: type[Model]
    source: str
    paper: Mapping[str, Any] = field(default_factory=dict)
    parameters_paper: int | None = None
    family: Literal["mixer", "graph", "deeponet"] = "mixer"
    points: bool = True
    unseen_meshes: bool = True
    point_sets: int = 1
    query_points: int = 0
    loss_weighting: LossWeighting = "uniform"
    autoregressive: bool = False

    @property
    def config(self) -> type[BaseModel]:
        """Class of the model's settings."""
        return self.model.Settings

    @property
    def any_mesh(self) -> bool:
        """Whether it takes irregular points that it was not trained on."""
        return self.points and self.unseen_meshes


@runtime_checkable
class OwnLoss(Protocol):
    """A model that is not trained on the error of its whole prediction.

    Most models are, and have no need of this. Some use true time steps after the input
    as a further input during training (scheduled sampling, the pushforward trick). A
    model that has this method is trained on its result, and validated and tested like
    all others. It predicts fields in the scale of its input, not changes; see
    :attr:`ModelInfo.autoregressive`.

    Attributes:
        steps_beyond: number of time steps after the predicted ones that training can
            use; the target holds them as far as the data have them.
    """

    steps_beyond: int

    def training_loss(
        self, x: Tensor, target: Tensor, graphs: Graphs, loss: BatchLoss
    ) -> Tensor:
        """The number to be minimised.

        Args:
            x: normalised input fields ``[N, n_t, F]``.
            target: normalised time steps after them, ``[N, n_t' or more, F']``.
            graphs: from the model's ``connect``.
            loss: of predictions and true fields at the points of this batch.
        """
        ...
