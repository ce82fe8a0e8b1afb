"""Prediction by any model, in the units of the data, and its loss."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast.arrays import check_shapes, predict_samples
from nfsgeo.forecast.transforms import (
    TRANSFORMS,
    MissingValues,
    ModelInputs,
    Normalise,
    Residual,
    Transform,
)
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS, Model, Task, build_model
from nfsgeo.models.base import ADDED, check_differentiable

__all__ = ["Criterion", "Forecaster"]

T = TypeVar("T", bound=Transform)
# Settings of transforms that older checkpoints have, at the values without effect.
RETIRED: dict[str, dict[str, Any]] = {"residual": {"linear": None, "level": True}}
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
    """

    def __init__(
        self, model: Model, name: str, task: Task, transforms: Sequence[Transform]
    ) -> None:
        super().__init__()
        self.model, self.name, self.task = model, name, task
        self.transforms = nn.ModuleList(transforms)
        self._warned = False

    @classmethod
    def build(
        cls, name: str, settings: Any, task: Task, transforms: Sequence[Transform]
    ) -> Self:
        """A forecaster with a fresh network, of the sizes that the transforms ask for.

        Args:
            name: Name of the model.
            settings: Settings of the model.
            task: Fields and time steps that are mapped.
            transforms: Transforms from the data to the network.
        """
        problem = task.problem()
        for transform in transforms:
            problem = transform.sizes(problem)
        return cls(build_model(name, problem, settings), name, task, transforms)

    def description(self) -> dict[str, Any]:
        """Plain types, from which :meth:`from_description` builds the same again."""
        names = {kind: name for name, kind in TRANSFORMS.items()}
        stack = ({"name": names[type(each)], **each.settings} for each in self.stack)
        return {
            "model": self.name,
            "settings": self.model.settings.model_dump(mode="json"),
            "prediction": self.prediction,
            "task": self.task.model_dump(mode="json"),
            "transforms": list(stack),
        }

    @classmethod
    def from_description(cls, content: Mapping[str, Any]) -> Self:
        """The forecaster of a description, with fresh weights.

        Args:
            content: What :meth:`description` returns.
        """
        load_extensions()
        transforms = []
        for description in content["transforms"]:
            settings = dict(description)
            kind = settings.pop("name")
            for name, value in RETIRED.get(kind, {}).items():
                if settings.get(name, value) == value:
                    settings.pop(name, None)
            transforms.append(TRANSFORMS[kind](**settings))
        task, name = Task.model_validate(content["task"]), content["model"]
        fields = MODELS[name].Settings.model_fields
        settings = {key: ADDED[key] for key in ADDED if key in fields}
        settings |= content["settings"]
        with torch.random.fork_rng(devices=[]):
            return cls.build(name, settings, task, transforms)

    def find(self, kind: type[T]) -> T | None:
        """The transform of a kind, or ``None`` where the stack has none."""
        return next((each for each in self.stack if isinstance(each, kind)), None)

    def take_scales(self, other: Forecaster) -> None:
        """Scales fields as another forecaster does, whose weights this one has taken.

        Args:
            other: A forecaster of the same components.
        """
        for number, own in enumerate(self.stack):
            theirs, settings = other.find(type(own)), dict(own.settings)
            form = settings.get("form")
            if not own.fitted or not theirs or theirs.settings.get("form") != form:
                continue
            settings |= {key: theirs.settings[key] for key in own.fitted}
            for key in settings.keys() & {"std", "out_std"}:
                # 0 is that of a component that is constant there alone.
                pairs = zip(settings[key], own.settings[key], strict=True)
                settings[key] = [std or here for std, here in pairs]
            self.transforms[number] = made = type(own)(**settings)
            made.sizes(self.model.problem)

    def unaware_of(self, queries: Tensor) -> Forecaster:
        """This forecaster with transforms that have never seen some positions.

        Args:
            queries: The normalised positions ``[M, d]``.
        """
        transforms = [transform.unaware_of(queries) for transform in self.stack]
        made = Forecaster(self.model, self.name, self.task, transforms)
        made._warned = self._warned
        return made.train(self.training)

    @property
    def sources(self) -> dict[str, tuple[int, str]]:
        """Graphs from points that transforms keep, see :attr:`Transform.sources`."""
        each = (transform.sources.items() for transform in self.stack)
        return dict(chain.from_iterable(each))

    @property
    def query_edges(self) -> list[str]:
        """Names of the edges from observed to query points that transforms need."""
        return [*chain.from_iterable(kind.query_edges for kind in self.stack)]

    def connect(
        self,
        pos: Tensor,
        batch: Tensor | None = None,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
        numbers: Tensor | None = None,
        edge_index: Tensor | None = None,
    ) -> Graphs:
        """The graphs of a batch, a function of positions and cells alone.

        As :meth:`nfsgeo.models.Model.connect`, with what transforms need. ``pos``,
        ``batch``, ``query_pos`` and ``query_batch`` are those of a call; ``numbers`` of
        the points of one sample in a file tell stations at one place apart;
        ``edge_index [2, E]`` are edges of cells.
        """
        if self.task.cells and edge_index is None and not self._warned:
            self._warned = True
            logging.getLogger(__name__).warning(
                "%s was trained on the edges of cells; points without cells, or some "
                "of the points of a mesh, are joined by a Delaunay triangulation",
                self.name,
            )
        graphs = self.model.connect(pos, batch, query_pos, query_batch, edge_index)
        graphs = replace(graphs, numbers=numbers)
        for transform in self.stack:
            graphs = transform.connect(graphs)
        return graphs

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
        """Predicted fields ``[M, n_out, C]``, in the units of the data.

        Args:
            x: fields ``[N, n_in, F]`` in the units of the data, NaN where missing.
            pos: positions ``[N, d]``.
            batch: sample of each point ``[N]``, sorted; None for one sample.
            query_pos: where to predict ``[M, d]``; None for the observed points.
            query_batch: sample of each query point.
            graphs: from :meth:`connect`, in place of the positions.
            forcing: ``[N, n_in + n_out, C_f]`` where the model was trained with one.
            times: where predictions depend on them, of the inputs and of what is asked
                for ``[n_in + K]``, or ``[S, n_in + K]`` of each sample.
            query_static: static inputs at the query points ``[M, C_s]``, NaN where they
                are not known; ``nfs`` uses them in place of interpolated ones.

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
        arrays = {"x": x, "forcing": forcing, "times": times}
        arrays["query_static"] = query_static
        asked = {name: array for name, array in arrays.items() if array is not None}
        check_shapes(self.task, graphs.num_samples, asked, graphs.queries.size(0))
        if query_static is not None and graphs.query_pos is None:
            raise UserError(
                "query_static without query points",
                "query_pos, or graphs with query points",
                "give them: at observed points static inputs are in x",
            )
        inputs = self._of_arrays(x, graphs, forcing, times, query_static)
        return self._predicted(inputs, x.dtype)

    def loss(self, batch: Batch, criterion: Criterion) -> Tensor:
        """The training loss of a batch, by the model's ``training_loss``.

        Targets go through all transforms, and the prediction through none: the loss is
        taken in the scale of the network.

        Args:
            batch: Windows with their targets ``y``, or ``query_y`` at query points.
            criterion: Function of predictions and targets ``[M, T, C]``, and the number
                of points of each sample.
        """
        # A single later time step leaves nothing to be fed back.
        if self.task.any_time:
            return self.validate(batch, criterion)[0]
        handed_on = self._inputs(self._of_batch(batch))
        inputs, kind = handed_on[-1], self._kind
        target = self._targets(self._truth(batch), handed_on).to(kind)

        def of_output(output: Tensor, target: Tensor) -> Tensor:
            prediction = (inputs.base + inputs.factor * output).to(kind)
            return criterion(prediction, target, self._sizes(inputs.graphs))

        return self.model.training_loss(
            inputs.x, target, inputs.graphs, of_output, inputs.forcing
        )

    def validate(self, batch: Batch, criterion: Criterion) -> tuple[Tensor, Tensor]:
        """The loss of a batch as in evaluation, and the prediction it is of.

        Arguments are those of :meth:`loss`. The prediction ``[M, n_out, C]`` is in the
        units of the data.
        """
        inputs, truth = self._of_batch(batch), self._truth(batch)
        predictions, normalised, targets = [], [], []
        for number, step in enumerate(self._each_time(inputs)):
            here = truth[:, number : number + 1] if self.task.any_time else truth
            prediction, handed_on = self._normalised(step)
            targets.append(self._targets(here, handed_on))
            predictions.append(self._outputs(prediction, handed_on))
            normalised.append(prediction)
        kind = torch.promote_types(batch.x.dtype, torch.float32)
        loss = criterion(
            torch.cat(normalised, dim=1).to(self._kind),
            torch.cat(targets, dim=1).to(self._kind),
            self._sizes(inputs.graphs),
        )
        return loss, torch.cat(predictions, dim=1).to(kind)

    def predict_batch(self, batch: Batch) -> Tensor:
        """Predicted fields ``[M, n_out, C]`` of a batch, in the units of the data."""
        return self._predicted(self._of_batch(batch), batch.x.dtype)

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
        """Predicted fields ``[m, n_out, C]`` of each sample, in the units of the data.

        What comes back is of the kind that was given: numpy for numpy, tensors on their
        device for tensors, a list for a list, and for ``Data`` a copy with the
        prediction as ``y``. Nothing is dropped out, as in evaluation.

        Args:
            data: fields of a sample ``[n, n_in, F]``, NaN or masked where a value is
                missing, or PyTorch Geometric's ``Data`` with ``x``, ``pos`` and the
                others, where there are any; a list of either, or a ``Batch``.
            pos: positions ``[n, d]`` of all samples, where ``data`` has none.
            query_pos: where to predict ``[m, d]``, in all samples.
            forcing: what is known ahead ``[n, n_in + n_out, C_f]``, likewise.
            times: of the inputs and of what is asked for ``[n_in + K]``, likewise.
            query_static: static inputs at the query points ``[m, C_s]``, likewise.

        Raises:
            UserError: fields have no positions, or other components or time steps
                than in training; values are no finite numbers; times are further ahead
                than in training.
        """
        known = {"query_pos": query_pos, "forcing": forcing, "times": times}
        known["query_static"] = query_static
        return predict_samples(self, data, pos, known)

    def filled(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The inputs ``x [N, n_in, F]``, missing values filled in, on ``graphs``."""
        missing, mean = self.find(MissingValues), x.new_zeros(x.size(-1)).double()
        assert missing is not None
        if self.task.has_time:  # of the fields, also where the network sees anomalies
            mean[: len(self.task.mean)] = mean.new_tensor(self.task.mean)
        values = missing.filled(x.double() - mean, graphs) + mean
        return torch.where(x.isnan(), values, x.double())

    @property
    def stack(self) -> list[Transform]:
        """The transforms, the first next to the data."""
        return cast(list[Transform], list(self.transforms))

    @property
    def prediction(self) -> str:
        """The form of residual prediction, or ``direct``."""
        residual = self.find(Residual)
        return "direct" if residual is None else residual.form

    @property
    def observed_std(self) -> Tensor:
        """Standard deviation of the inputs in the training data ``[F]``."""
        normalise = self.find(Normalise)
        assert normalise is not None
        return normalise.observed

    @property
    def drops_absent(self) -> bool:
        """Whether windows leave out the points that have no value in them at all."""
        missing = self.find(MissingValues)
        return missing is not None and missing.gaps and MODELS[self.name].any_mesh

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    def known_ahead(self, batch: Batch) -> dict[str, Tensor | None]:
        """The ``forcing`` and the ``times`` of a batch, where they are needed."""
        needed = self.task.needs_times
        times = batch.times.view(batch.num_graphs, -1) if needed else None
        return {"forcing": batch.get("forcing"), "times": times}

    def graphs_of(self, batch: Batch) -> Graphs:
        """Those that the batch carries, or made now for one that carries none."""
        edges = batch.get("edge_index")
        own = batch.get("graphs")
        return own or self.connect(batch.pos, batch.batch, edge_index=edges)

    def _of_batch(self, batch: Batch) -> ModelInputs:
        """The inputs of a batch in the units of the data."""
        graphs = self.graphs_of(batch)
        static = None if graphs.query_pos is None else batch.get("query_static")
        ahead = self.known_ahead(batch)
        return self._of_arrays(
            batch.x, graphs, ahead["forcing"], ahead["times"], static
        )

    def _of_arrays(
        self,
        x: Tensor,
        graphs: Graphs,
        forcing: Tensor | None,
        times: Tensor | None,
        query_static: Tensor | None,
    ) -> ModelInputs:
        """The inputs in the units of the data, as :meth:`forward` takes them."""
        times = None if times is None else torch.atleast_2d(times)
        batch = ModelInputs(x.double(), graphs, forcing, times)
        if query_static is None:
            return batch
        first = len(self.task.components) * self.task.has_time
        query_x = batch.x.new_full((len(graphs.queries), x.size(-1)), torch.nan)
        query_x[:, first : first + query_static.size(1)] = query_static
        return replace(batch, query_x=query_x)

    def _predicted(self, inputs: ModelInputs, kind: torch.dtype) -> Tensor:
        """The fields ``[M, n_out, C]``, in the precision of the data or float32."""
        steps = self._each_time(inputs)
        fields = [self._outputs(*self._normalised(step)) for step in steps]
        return torch.cat(fields, dim=1).to(torch.promote_types(kind, torch.float32))

    def _each_time(self, batch: ModelInputs) -> list[ModelInputs]:
        """The inputs of each call of the network: one for each time, or for them all.

        With lead times every time that is asked for is predicted by itself.
        """
        if not self.task.any_time:
            return [batch]
        assert batch.times is not None
        n_in, num = batch.x.size(1), batch.times.size(1)

        def until(values: Tensor, step: int) -> Tensor:
            return torch.cat([values[:, :n_in], values[:, step : step + 1]], dim=1)

        steps = []
        for step in range(n_in, num):
            forcing = None if batch.forcing is None else until(batch.forcing, step)
            times = until(batch.times, step)
            steps.append(replace(batch, times=times, forcing=forcing))
        return steps

    def _inputs(self, batch: ModelInputs) -> list[ModelInputs]:
        """The inputs in the units of the data, as each transform hands them on, and as
        the network takes them.
        """
        handed_on = [batch]
        for transform in self.stack:
            handed_on.append(transform.inputs(handed_on[-1]))
        return [*handed_on, self._assembled(handed_on[-1])]

    def _targets(self, target: Tensor, handed_on: Sequence[ModelInputs]) -> Tensor:
        """True fields ``[M, T, C]`` in the scale of the network."""
        for transform, batch in zip(self.stack, handed_on[1:-1], strict=True):
            target = transform.targets(target, batch)
        return target

    def _outputs(self, prediction: Tensor, handed_on: Sequence[ModelInputs]) -> Tensor:
        """The prediction ``[M, T, C]`` in the units of the data."""
        pairs = [*zip(self.stack, handed_on[1:-1], strict=True)]
        for transform, batch in reversed(pairs):
            prediction = transform.outputs(prediction, batch)
        return prediction

    def _normalised(self, batch: ModelInputs) -> tuple[Tensor, list[ModelInputs]]:
        """The prediction in the scale of the network, and the inputs on the way."""
        handed_on = self._inputs(batch)
        last = handed_on[-1]
        known = {"graphs": last.graphs, "forcing": last.forcing}
        output = self.model(last.x, last.graphs.pos, **known)
        return last.base + last.factor * output, handed_on

    def _assembled(self, batch: ModelInputs) -> ModelInputs:
        """The inputs with all features in ``x``, in the precision of the network."""
        kind, graphs, forcing = self._kind, batch.graphs, batch.forcing
        x = torch.cat([batch.x, *batch.features], dim=-1).to(kind)
        if batch.query_x is not None:
            query_x = torch.cat([batch.query_x, *batch.query_features], dim=-1)
            graphs = replace(graphs, query_x=query_x.to(kind))
        forcing = None if forcing is None else forcing.to(kind)
        return replace(batch, x=x, graphs=graphs, forcing=forcing)

    @staticmethod
    def _truth(batch: Batch) -> Tensor:
        """True fields of a batch in double precision, where it asks for predictions."""
        truth: Tensor = batch.query_y if "query_y" in batch else batch.y
        return truth.double()

    @staticmethod
    def _sizes(graphs: Graphs) -> Sequence[int]:
        """The number of points of each sample at which fields are predicted."""
        return graphs.query_sizes or graphs.sizes

    @property
    def _kind(self) -> torch.dtype:
        """The precision of the network."""
        return next(self.model.parameters()).real.dtype
