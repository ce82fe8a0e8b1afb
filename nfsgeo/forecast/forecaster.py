"""Prediction by any model, in the units of the data, and its loss."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast.in_memory import check_shapes, predict_samples
from nfsgeo.forecast.transforms import (
    ModelInputs,
    Residual,
    Stack,
    Transform,
    described,
    restored,
)
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS, Model, Task, build_model
from nfsgeo.models.base import check_differentiable
from nfsgeo.models.settings import ADDED

__all__ = ["Criterion", "Forecaster"]

T = TypeVar("T", bound=Transform)
# Loss of predictions and targets, in the scale of the network, and the number of points
# of each sample.
Criterion = Callable[[Tensor, Tensor, Sequence[int]], Tensor]


class Forecaster(nn.Module):
    """A model between its transforms: fields in and out in the data's own units.

    .. math:: \\hat u = (T_1 \\circ \\dots \\circ T_k) (\\text{model})

    Training, evaluation, prediction, rollout and export call this one composition.

    Args:
        model: Network on normalised fields, of the sizes that the transforms ask for.
        name: Name of the model, a key of :data:`nfsgeo.models.MODELS`.
        task: Fields and time steps that are mapped.
        transforms: Transforms from the data to the network.

    Attributes:
        digest: Digest of restored weights and transforms; empty if it was built.
    """

    digest: str = ""

    def __init__(
        self, model: Model, name: str, task: Task, transforms: Sequence[Transform]
    ) -> None:
        super().__init__()
        self.model, self.name, self.task = model, name, task
        self.transforms = Stack(transforms)
        self._warned = False

    @classmethod
    def build(
        cls, name: str, settings: Any, task: Task, transforms: Sequence[Transform]
    ) -> Self:
        """Build a forecaster with a fresh network of the sizes that transforms need.

        Args:
            name: Name of the model.
            settings: Settings of the model.
            task: Fields and time steps that are mapped.
            transforms: Transforms from the data to the network.
        """
        problem = Stack(transforms).sizes(task.problem())
        return cls(build_model(name, problem, settings), name, task, transforms)

    def description(self) -> dict[str, Any]:
        """Describe the forecaster by plain types, without its weights."""
        return {
            "model": self.name,
            "settings": self.model.settings.model_dump(mode="json"),
            "prediction": self.prediction,
            "task": self.task.model_dump(mode="json"),
            "transforms": described(self.transforms),
        }

    @classmethod
    def from_description(cls, content: Mapping[str, Any]) -> Self:
        """Build a forecaster from its description, with fresh weights.

        Args:
            content: Result of :meth:`description`.
        """
        load_extensions()
        transforms = restored(content["transforms"])
        task, name = Task.model_validate(content["task"]), content["model"]
        fields = MODELS[name].Settings.model_fields
        settings = {key: ADDED[key] for key in ADDED if key in fields}
        settings |= content["settings"]
        with torch.random.fork_rng(devices=[]):
            return cls.build(name, settings, task, transforms)

    def find(self, kind: type[T]) -> T | None:
        """Return the transform of a class, or ``None`` if the stack has none.

        Args:
            kind: The class.
        """
        return next((step for step in self.transforms if isinstance(step, kind)), None)

    def unaware_of(self, queries: Tensor) -> Forecaster:
        """Return this forecaster as if its transforms had never seen some positions.

        Args:
            queries: The normalised positions ``[M, d]``.
        """
        transforms = [transform.unaware_of(queries) for transform in self.transforms]
        made = Forecaster(self.model, self.name, self.task, transforms)
        made._warned = self._warned
        return made.train(self.training)

    def connect(
        self,
        pos: Tensor,
        batch: Tensor | None = None,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
        numbers: Tensor | None = None,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Graphs:
        """Make the graphs of a batch, a function of positions and edges alone.

        They are those of :meth:`nfsgeo.models.Model.connect` and those that transforms
        need.

        Args:
            pos: Positions ``[N, d]``.
            batch: Sample of each point ``[N]``, sorted; None for one sample.
            query_pos: Positions of the query points ``[M, d]``, if any.
            query_batch: Sample of each query point ``[M]``.
            numbers: Numbers ``[N]`` in their file of the points of one sample, which
                tell stations at one place apart.
            edge_index: Edges of the cells of a mesh, or of a graph, ``[2, E]``.
            edge_weight: Weights of the edges of a graph ``[E]``.
        """
        if self.task.cells and edge_index is None and not self._warned:
            self._warned = True
            text = "%s was trained on edges of cells; points without cells, or some of "
            text += "the points of a mesh, are joined by a Delaunay triangulation"
            logging.getLogger(__name__).warning(text, self.name)
        edges = edge_index, edge_weight
        graphs = self.model.connect(pos, batch, query_pos, query_batch, *edges)
        return self.transforms.connect(replace(graphs, numbers=numbers))

    def forward(
        self,
        x: Tensor,
        pos: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
        graphs: Graphs | None = None,
        forcing: Tensor | None = None,
        times: Tensor | None = None,
        query_static: Tensor | None = None,
    ) -> Tensor:
        """Predict fields ``[M, n_out, C]``, in the units of the data.

        Args:
            x: Fields and static inputs ``[N, n_in, F]`` in the units of the data, NaN
                where a field is missing.
            pos: Positions ``[N, d]``.
            batch: Sample of each point ``[N]``, sorted; None for one sample.
            query_pos: Where to predict ``[M, d]``; None for the observed points.
            query_batch: Sample of each query point ``[M]``.
            graphs: Result of :meth:`connect`, instead of the positions.
            forcing: Forcing ``[N, n_in + n_out, C_f]`` if the model was trained with
                one.
            times: Times of the inputs and of the prediction ``[n_in + K]``, or
                ``[S, n_in + K]`` of each sample, if predictions depend on them; those
                of a series without a cycle change nothing.
            query_static: Static inputs at the query points ``[M, C_s]``, NaN where they
                are not known; ``nfs`` uses them instead of interpolated ones.

        Raises:
            UserError: an array has other components or time steps than in training, or
                positions require gradients that the graphs do not pass on.
        """
        if graphs is not None:
            check_differentiable(graphs, pos, query_pos)
        elif pos is None:
            raise UserError("fields without positions", "pos, or graphs", "give one")
        else:
            graphs = self.connect(pos, batch, query_pos, query_batch)
        times = None if self.ignores_times else times
        arrays = {"x": x, "forcing": forcing, "times": times}
        arrays["query_static"] = query_static
        came = {name: array for name, array in arrays.items() if array is not None}
        check_shapes(self.task, graphs.num_samples, came, graphs.queries.size(0))
        if query_static is not None and graphs.query_pos is None:
            raise UserError(
                "query_static without query points",
                "query_pos, or graphs with query points",
                "give them: at observed points static inputs are in x",
            )
        inputs = self._as_inputs(x, graphs, forcing, times, query_static)
        return self._predicted(inputs, x.dtype)

    def loss(self, batch: Batch, criterion: Criterion) -> Tensor:
        """Compute the training loss of a batch, by the model's ``training_loss``.

        The loss is taken in the scale of the network: targets go through all
        transforms, the prediction through none.

        Args:
            batch: Windows with their targets ``y``, or ``query_y`` at query points.
            criterion: Function of predictions and targets ``[M, T, C]``, and the number
                of points of each sample.
        """
        # A single later time step leaves nothing to be fed back.
        if self.task.any_time:
            return self.validate(batch, criterion)[0]
        kind, handed_on = self._kind, self.transforms.inputs(self.inputs_of(batch))
        inputs = handed_on[-1].joined(kind)
        target = self.transforms.targets(self._truth(batch), handed_on).to(kind)

        def loss(output: Tensor, target: Tensor) -> Tensor:
            prediction = (inputs.base + inputs.factor * output).to(kind)
            return criterion(prediction, target, inputs.graphs.predicted_sizes)

        return self.model.training_loss(
            inputs.x, target, inputs.graphs, loss, inputs.forcing
        )

    def validate(self, batch: Batch, criterion: Criterion) -> tuple[Tensor, Tensor]:
        """Compute the loss of a batch as in evaluation, and its prediction.

        Args:
            batch: Windows with their targets, as for :meth:`loss`.
            criterion: As for :meth:`loss`.

        Returns:
            The loss, and the prediction ``[M, n_out, C]`` in the units of the data.
        """
        inputs, truth = self.inputs_of(batch), self._truth(batch)
        predictions, normalised, targets = [], [], []
        for number, step in enumerate(self._calls(inputs)):
            target = truth[:, number : number + 1] if self.task.any_time else truth
            prediction, handed_on = self._normalised(step)
            targets.append(self.transforms.targets(target, handed_on))
            predictions.append(self.transforms.outputs(prediction, handed_on))
            normalised.append(prediction)
        kind = torch.promote_types(batch.x.dtype, torch.float32)
        loss = criterion(
            torch.cat(normalised, dim=1).to(self._kind),
            torch.cat(targets, dim=1).to(self._kind),
            inputs.graphs.predicted_sizes,
        )
        return loss, torch.cat(predictions, dim=1).to(kind)

    def predict_batch(self, batch: Batch) -> Tensor:
        """Predict fields ``[M, n_out, C]``, in the units of the data.

        Args:
            batch: Windows, with or without their graphs.
        """
        return self._predicted(self.inputs_of(batch), batch.x.dtype)

    def predict(
        self,
        data: Any,
        pos: Any = None,
        *,
        query_pos: Any = None,
        forcing: Any = None,
        times: Any = None,
        query_static: Any = None,
    ) -> Any:
        """Predict fields ``[m, n_out, C]`` of each sample, in the units of the data.

        The result is of the type of the data: an array for an array, a tensor on the
        same device for a tensor, a list for a list, and for ``Data`` a copy with the
        prediction as ``y``. Dropout is off, as in evaluation.

        Args:
            data: Fields of a sample ``[n, n_in, F]``, NaN or masked where a value is
                missing, or PyTorch Geometric's ``Data`` with ``x``, ``pos`` and the
                arguments below by name; a list of either, or a ``Batch``.
            pos: Positions ``[n, d]`` of all samples, if ``data`` has none.
            query_pos: Where to predict ``[m, d]``, in all samples.
            forcing: Forcing ``[n, n_in + n_out, C_f]``, likewise.
            times: Times of the inputs and of the prediction ``[n_in + K]``, likewise.
            query_static: Static inputs at the query points ``[m, C_s]``, likewise.

        Raises:
            UserError: Fields have no positions, or other components or time steps than
                in training; values are not finite; times are further ahead than in
                training.
        """
        arguments = {"query_pos": query_pos, "forcing": forcing, "times": times}
        arguments["query_static"] = query_static
        return predict_samples(self, data, pos, arguments)

    @property
    def prediction(self) -> str:
        """The form of residual prediction, or ``direct``."""
        residual = self.find(Residual)
        return "direct" if residual is None else residual.form

    @property
    def ignores_times(self) -> bool:
        """Whether times may be given but change nothing, as without a cycle in them."""
        optional = any(step.may_need_times for step in self.transforms)
        return optional and not self.task.needs_times

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    def inputs_of(self, batch: Batch) -> ModelInputs:
        """Return the inputs of a batch, in the units of the data.

        Args:
            batch: Windows; their graphs are made if they carry none.
        """
        graphs = batch.get("graphs") or self.connect(
            batch.pos,
            batch.batch,
            edge_index=batch.get("edge_index"),
            edge_weight=batch.get("edge_weight"),
        )
        times = (
            batch.times.view(batch.num_graphs, -1) if self.task.needs_times else None
        )
        static = None if graphs.query_pos is None else batch.get("query_static")
        return self._as_inputs(batch.x, graphs, batch.get("forcing"), times, static)

    def _as_inputs(
        self,
        x: Tensor,
        graphs: Graphs,
        forcing: Tensor | None,
        times: Tensor | None,
        query_static: Tensor | None,
    ) -> ModelInputs:
        """Return the inputs of :meth:`forward` in double precision."""
        x, query_x = x.double(), None
        if query_static is not None:
            first = len(self.task.components) * self.task.has_time
            query_x = x.new_full((len(graphs.queries), x.size(-1)), torch.nan)
            query_x[:, first : first + query_static.size(1)] = query_static
        times = None if times is None else torch.atleast_2d(times)
        return ModelInputs(x, graphs, forcing, times, query_x=query_x)

    def _predicted(self, inputs: ModelInputs, kind: torch.dtype) -> Tensor:
        """Predict ``[M, n_out, C]``, in the precision of the data or float32."""
        calls = map(self._normalised, self._calls(inputs))
        fields = [self.transforms.outputs(*call) for call in calls]
        return torch.cat(fields, dim=1).to(torch.promote_types(kind, torch.float32))

    def _calls(self, inputs: ModelInputs) -> list[ModelInputs]:
        """Return the inputs of each call of the network, one for each lead time."""
        return inputs.by_time() if self.task.any_time else [inputs]

    def _normalised(self, batch: ModelInputs) -> tuple[Tensor, list[ModelInputs]]:
        """Predict in the scale of the network; also return :meth:`Stack.inputs`."""
        handed_on = self.transforms.inputs(batch)
        inputs = handed_on[-1].joined(self._kind)
        output = self.model(
            inputs.x, inputs.graphs.pos, graphs=inputs.graphs, forcing=inputs.forcing
        )
        return inputs.base + inputs.factor * output, handed_on

    @staticmethod
    def _truth(batch: Batch) -> Tensor:
        """Return true fields in double precision, at the points of the prediction."""
        truth: Tensor = batch.query_y if "query_y" in batch else batch.y
        return truth.double()

    @property
    def _kind(self) -> torch.dtype:
        """The precision of the network."""
        return next(self.model.parameters()).real.dtype
