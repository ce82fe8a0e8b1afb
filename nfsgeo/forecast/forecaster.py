"""Prediction by any model, in the units of the data, and further ahead by rollouts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast.arrays import check_shapes, predict_samples
from nfsgeo.forecast.transforms import (
    TRANSFORMS,
    Given,
    MissingValues,
    Normalise,
    Residual,
    Transform,
)
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS, Model, Task, build_model
from nfsgeo.models.base import check_differentiable

__all__ = ["Forecaster", "rollout"]

T = TypeVar("T", bound=Transform)


class Forecaster(nn.Module):
    """A model between its transforms: fields in and out in the data's own units.

    .. math:: \\hat u = (T_1 \\circ \\dots \\circ T_k) (\\text{model})

    Training, evaluation, prediction, rollout and export call this one composition.

    Args:
        model: on normalised fields, built for :meth:`problem`.
        name: of the model, a key of :data:`nfsgeo.models.MODELS`.
        task: what it maps.
        transforms: from the data to the network.
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
        """With a fresh network, of the size that the transforms ask for.

        Arguments as of the class, and ``settings`` of the model.
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
        """The forecaster whose :meth:`description` is the content, without weights."""
        load_extensions()
        transforms = []
        for each in content["transforms"]:
            settings = dict(each)
            transforms.append(TRANSFORMS[settings.pop("name")](**settings))
        task = Task.model_validate(content["task"])
        with torch.random.fork_rng(devices=[]):
            return cls.build(content["model"], content["settings"], task, transforms)

    def find(self, kind: type[T]) -> T | None:
        """The transform of a kind, or ``None`` where the stack has none."""
        return next((each for each in self.stack if isinstance(each, kind)), None)

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
        there = {name: each for name, each in arrays.items() if each is not None}
        check_shapes(self.task, graphs.num_samples, there, graphs.queries.size(0))
        times = None if times is None else torch.atleast_2d(times)
        given = Given(x.double(), graphs, forcing, times)
        if query_static is not None:
            if graphs.query_pos is None:
                raise UserError(
                    "query_static without query points",
                    "query_pos, or graphs with query points",
                    "give them: at observed points static inputs are in x",
                )
            first = len(self.task.components) * self.task.has_time
            known = given.x.new_full((len(graphs.queries), x.size(-1)), torch.nan)
            known[:, first : first + query_static.size(1)] = query_static
            given = replace(given, query_x=known)
        found = self._through(given, 0)
        return found.to(torch.promote_types(x.dtype, torch.float32))

    def predict_batch(self, batch: Batch) -> Tensor:
        """Predicted fields ``[M, n_out, C]`` of a batch, in the units of the data."""
        known, graphs = self.known_ahead(batch), self.graphs_of(batch)
        if graphs.query_pos is not None:
            known["query_static"] = batch.get("query_static")
        return cast(Tensor, self(batch.x, graphs=graphs, **known))

    def network_inputs(self, batch: Batch) -> Tensor:
        """What the network is given of a batch, ``[N, n_in, F]``."""
        known, times = self.known_ahead(batch).values()
        given = Given(batch.x.double(), self.graphs_of(batch), known, times)
        for transform in self.stack:
            given = transform.inputs(given)
        return self._assembled(given)

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
    def drops_absent(self) -> bool:
        """Whether windows leave out the points that have no value in them at all."""
        missing = self.find(MissingValues)
        return missing is not None and missing.gaps and MODELS[self.name].any_mesh

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    @property
    def scale(self) -> tuple[Tensor, Tensor]:
        """Mean of the training fields, and scale of what the network predicts, or 1.

        Of each component ``[C]``, in the data's units.
        """
        normalise, residual = self.find(Normalise), self.find(Residual)
        mean, std = normalise.results.mean, normalise.results.std  # type: ignore[union-attr]
        std = std if residual is None else std * residual.std
        return mean, std.where(std > 0, 1)

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

    def _through(self, given: Given, first: int) -> Tensor:
        """The prediction from what the transforms before the ``first`` handed on."""
        if first == len(self.transforms):
            seen, graphs = self._assembled(given), given.graphs
            if given.query_x is not None:
                graphs = replace(graphs, query_x=self._known_at_queries(given))
            return cast(Tensor, self.model(seen, graphs.pos, graphs=graphs))
        behind: Callable[[Given], Tensor] = partial(self._through, first=first + 1)
        return cast(Tensor, self.stack[first](given, behind))

    def _assembled(self, given: Given) -> Tensor:
        """The input of the network, in its precision."""
        kind = next(self.model.parameters()).real.dtype
        seen = torch.cat([given.x, *given.features], dim=-1).to(kind)
        if given.known is None:
            return seen
        return self.model.problem.with_forcing(seen, given.known.to(kind))

    def _known_at_queries(self, given: Given) -> Tensor:
        """Inputs of the network at the query points ``[M, F]``, NaN where unknown."""
        assert given.query_x is not None
        queries = torch.cat([given.query_x, *given.query_features], dim=-1)
        kind, known = next(self.model.parameters()).real.dtype, given.known
        queries = queries.to(kind)[:, None]
        if known is not None:
            steps = queries.expand(-1, given.x.size(1), -1)
            unknown = queries.new_full((len(queries), *known.shape[1:]), torch.nan)
            queries = self.model.problem.with_forcing(steps, unknown)
        return queries[:, 0]


@torch.no_grad()
def rollout(
    forecaster: Forecaster,
    x: Tensor,
    pos: Tensor,
    steps: int,
    batch: Tensor | None = None,
    *,
    graphs: Graphs | None = None,
    forcing: Tensor | None = None,
    times: Tensor | None = None,
    query_static: Tensor | None = None,
) -> Tensor:
    """Predicted fields ``[M, steps, C]``, further ahead than the model was trained for.

    The predictions at the observed points are the inputs of the next window, together
    with as many of the last inputs as it takes; static inputs stay. Each window has the
    forcing of its own time steps, or the last one that is known where it reaches
    further.

    Args:
        forecaster: trained on windows of ``n_in`` and ``n_out`` time steps.
        x: fields ``[N, n_in, F]`` in the units of the data.
        pos: positions ``[N, d]``.
        batch: sample of each point ``[N]``, sorted; ``None`` for one sample.
        steps: number of time steps to predict.
        graphs: from ``forecaster.connect``, with the query points if there are any.
        forcing: what is known ahead, ``[N, n_in + steps, C_f]``.
        times: ``[n_in + steps]`` or those of each sample.
        query_static: static inputs at the query points ``[M, C_s]``.

    Raises:
        UserError: the model has no time.
    """
    task = forecaster.task
    if not task.has_time:
        raise UserError(
            f"{steps} time steps of a problem without time",
            "a model that was trained on fields in time",
            "leave the number of time steps out",
        )
    graphs = graphs or forecaster.connect(pos, batch)
    observed = graphs
    if graphs.query_pos is not None:
        observed = forecaster.connect(pos, graphs.batch)
    fields, num = len(task.components), task.n_in + task.n_out
    window, found, done = x, [], 0
    if times is not None and not task.any_time:  # the last window may end later
        step = times[..., -1:] - times[..., -2:-1]
        later = times[..., -1:] + step * torch.arange(1, num + 1).to(step)
        times = torch.cat([times, later], dim=-1)
    while True:
        known: dict[str, Tensor | None] = {"forcing": None, "times": None}
        if times is not None:
            known["times"] = times[..., done : done + num]
        if forcing is not None:
            here = num if times is None else known["times"].size(-1)  # type: ignore[union-attr]
            last = torch.arange(done, done + here).clamp(max=forcing.size(1) - 1)
            known["forcing"] = forcing[:, last.to(forcing.device)]
        asked = {"graphs": graphs, "query_static": query_static}
        found.append(forecaster(window, **asked, **known))
        done += found[-1].size(1)
        if done >= steps:
            return torch.cat(found, dim=1)[:, :steps]
        at_points = found[-1]
        if graphs is not observed:
            at_points = forecaster(window, graphs=observed, **known)
        joint = torch.cat([window[..., :fields], at_points], dim=1)[:, -x.size(1) :]
        window = torch.cat([joint, x[..., fields:]], dim=-1)
