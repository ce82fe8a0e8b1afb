"""The base class of models."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from nfsgeo.config import LossWeighting
from nfsgeo.config.errors import explained
from nfsgeo.errors import UserError
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.bipartite import outside_inference
from nfsgeo.geometry.graphs import by_sample, edges_by_sample
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn.resampling import grid_shape

__all__ = ["BatchLoss", "Model", "check_differentiable"]

# Loss of normalised predictions and targets ``[N, n_t', F']`` at the points of a batch.
BatchLoss = Callable[[Tensor, Tensor], Tensor]


class Model(nn.Module, ABC):
    """A solution operator from fields at points to later fields at query points.

    ``model(x, pos, batch, query_pos=, query_batch=)`` searches neighbours on every
    call. To call it more than once on the same points, make the graphs once,
    ``graphs = model.connect(pos, batch)``, and pass them.

    Positions are normalised by the domain, see
    :meth:`nfsgeo.geometry.Domain.normalise`, so that results do not depend on their
    origin and units.

    A model is built with its settings, ``NFS(problem, width=64)``, which it stores as
    ``settings``. Class attributes tell its abilities, its source and its defaults in
    training.

    Args:
        problem: sizes and domain of the fields.
        settings: fields of ``Settings``, by name.

    Raises:
        UserError: when there is no such setting, its value does not fit, or the model
            does not work on the domain.

    Shapes:
        ``x`` ``[N, n_t, F]``, ``pos`` ``[N, d]``, ``batch`` ``[N]``; result
        ``[M, n_t', F']``.

    Attributes:
        Settings: class of the settings.
        source: the publication.
        paper: settings of the paper that differ from the defaults.
        points: whether it takes irregular points; if not, an equispaced grid.
        unseen_meshes: whether it works on meshes that it was not trained on.
        any_mesh: whether ``points`` and ``unseen_meshes`` hold.
        predicts_anywhere: whether query points may differ from the observed ones.
        spheres: whether the model works on a sphere, see
            :meth:`nfsgeo.geometry.Domain.sphere`.
        uses_cells: whether the graph consists of edges of mesh cells if there are any;
            :meth:`edges` then takes them as ``cells``.
        uses_graph: whether the data may give the edges, as those of a road network;
            :meth:`edges` then takes them and their weights as ``graph``.
        differentiable_points: whether gradients reach the observed positions. Those
            with respect to query positions exist if it ``predicts_anywhere``.
        precise_positions: whether graphs are made of positions in float64, which tell
            thin layers of large domains apart; :meth:`_connected` rounds the graphs.
        point_sets: default of ``data.point_sets`` if points are drawn.
        query_points: default of ``data.query_points``; 0 for a model that predicts only
            at the observed points.
        least_fraction: default of ``data.least_fraction`` if samples have meshes of
            their own.
        learning_rate: default of ``optimiser.lr``.
        loss_weighting: default of ``loss.weighting`` if points are drawn evenly from a
            grid.
        autoregressive: whether predictions become inputs, so that both have the same
            scale. The model is trained on its :meth:`training_loss`, at the learning
            rate of the paper's graph models.
        steps_beyond: number of time steps after the predicted ones that this loss can
            use. Targets include them as far as the data do.
    """

    Settings: ClassVar[type[ModelSettings]] = ModelSettings
    source: ClassVar[str] = ""
    paper: ClassVar[Mapping[str, Any]] = {}
    points = True
    unseen_meshes = True
    any_mesh: ClassVar[bool]
    predicts_anywhere = True
    spheres = False
    uses_cells = False
    uses_graph = False
    differentiable_points = False
    precise_positions = False
    point_sets = 1
    query_points = 0
    least_fraction = 1.0
    learning_rate = 2e-3
    loss_weighting: ClassVar[LossWeighting] = "uniform"
    autoregressive = False
    steps_beyond = 0
    settings: Any
    lengths: Tensor

    def __init__(self, problem: Problem, **settings: Any) -> None:
        super().__init__()
        if problem.domain.curved and not self.spheres:
            raise UserError(
                f"{type(self).__name__} on a sphere",
                "a model that works there, such as nfs, nfs-vit, mppde or transolver",
                "use one of these",
            )
        self.problem = problem
        lengths = torch.tensor(problem.domain.normalised.lengths, dtype=torch.float32)
        self.register_buffer("lengths", lengths, persistent=False)
        with explained(type(self).__name__, self.Settings.model_fields):
            self.settings = self.Settings(**settings).completed(problem)

    def __init_subclass__(cls) -> None:
        """Show the fields of ``Settings`` as keyword arguments of the class."""
        super().__init_subclass__()
        cls.any_mesh = cls.points and cls.unseen_meshes
        _, problem, _ = inspect.signature(Model.__init__).parameters.values()
        fields = inspect.signature(cls.Settings).parameters.values()
        signature = inspect.Signature([problem, *fields])
        cls.__signature__ = signature  # type: ignore[attr-defined]

    def forward(
        self,
        x: Tensor,
        pos: Tensor,
        batch: Tensor | None = None,
        *,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
        graphs: Graphs | None = None,
        forcing: Tensor | None = None,
    ) -> Tensor:
        """Predict the fields at the query points.

        Args:
            x: input fields at the observed points.
            pos: positions of the observed points, in the units of the domain; float64
                where they are far from the origin.
            batch: sample of each observed point, sorted; ``None`` for one sample.
            query_pos: where to predict; ``None`` for the observed points.
            query_batch: sample of each query point.
            graphs: result of :meth:`connect` for these positions, which are then
                ignored; ``None`` to make them now.
            forcing: forcing at all time steps including those of the result,
                ``[N, n_t + n_t', C_f]``; ``None`` if the problem has none.

        Raises:
            UserError: when a point is outside the domain, or the model cannot predict
                at the query points.
            ValueError: when shapes do not fit the problem or the graphs.
        """
        n_in, components = self.problem.n_in, self.problem.in_components
        steps, forcings = n_in + self.problem.n_out, self.problem.forcings
        shape = (steps, 0) if forcing is None else tuple(forcing.shape[1:])
        if shape != (steps, forcings):
            raise ValueError(
                f"forcing has shape [N, {shape[0]}, {shape[1]}]; expected [N, {steps}, "
                f"{forcings}]: points, all time steps, components"
            )
        if x.shape[1:] != (n_in, components):
            raise ValueError(
                f"x has shape {tuple(x.shape)}; expected [N, {n_in}, {components}]: "
                "points, input time steps, components"
            )
        if graphs is None:
            graphs = self.connect(pos, batch, query_pos, query_batch)
        else:
            check_differentiable(graphs, pos, query_pos)
        if x.size(0) != graphs.pos.size(0):
            raise ValueError(
                f"x has {x.size(0)} points; expected the {graphs.pos.size(0)} that the "
                "positions or graphs have"
            )
        return self.predict_forced(x, graphs, forcing)

    @abstractmethod
    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the query points of ``graphs``, by operations on tensors only.

        Args:
            x: input fields at the observed points, already checked, and the forcing
                among them, see :meth:`Problem.with_forcing`.
            graphs: result of :meth:`connect`.
        """

    def predict_forced(
        self, x: Tensor, graphs: Graphs, forcing: Tensor | None
    ) -> Tensor:
        """Predict as :meth:`predict` does, with a separate forcing.

        By default the forcing joins the input. Models that step through time take it
        step by step.

        Args:
            x: input fields at the observed points, already checked.
            graphs: result of :meth:`connect`.
            forcing: forcing at all time steps, or ``None``.
        """
        if forcing is None:
            return self.predict(x, graphs)
        if (queries := graphs.query_x) is not None:  # the forcing is unknown there
            unknown = queries.new_full((), torch.nan)
            shape = len(queries), *forcing.shape[1:]
            steps = queries[:, None].expand(-1, x.size(1), -1)
            joined = self.problem.with_forcing(steps, unknown.expand(shape))
            graphs = replace(graphs, query_x=joined[:, 0])
        return self.predict(self.problem.with_forcing(x, forcing), graphs)

    def training_loss(
        self,
        x: Tensor,
        target: Tensor,
        graphs: Graphs,
        loss: BatchLoss,
        forcing: Tensor | None = None,
    ) -> Tensor:
        """Return the training loss: by default the loss of a prediction.

        An ``autoregressive`` model may use true time steps after the input as further
        inputs (the pushforward trick). Validation and test do not differ from those of
        other models.

        Args:
            x: input fields, as for :meth:`forward`.
            target: normalised time steps after them, ``[M, n_t' or more, F']``.
            graphs: result of :meth:`connect`.
            loss: loss of predictions and true fields at the points of this batch.
            forcing: forcing, as for :meth:`forward`.
        """
        prediction = self(x, graphs.pos, graphs=graphs, forcing=forcing)
        return loss(prediction, target[:, : self.problem.n_out])

    @outside_inference
    def connect(
        self,
        pos: Tensor,
        batch: Tensor | None = None,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Graphs:
        """Make the graphs of a batch, with the :meth:`edges` of each sample.

        If positions require gradients, the graphs have first and second derivatives,
        for fixed neighbours.

        Args:
            pos: positions of the observed points, as for :meth:`forward`.
            batch: sample of each observed point, likewise.
            query_pos: positions of the query points, likewise.
            query_batch: sample of each query point, likewise.
            edge_index: edges of the cells of a mesh, or of a graph, ``[2, E]``, for
                models that use them.
            edge_weight: weights ``[E]`` of the edges of a graph; ``None`` for 1.

        Raises:
            UserError: when a point is outside the domain, the model cannot predict at
                the query points or differentiate with respect to positions that require
                gradients, or the points do not form a grid that the model needs.
            ValueError: when a sample has no point or a batch vector is not sorted.
        """
        query_pos = None if query_pos is pos else query_pos
        differentiated = _differentiated(pos, query_pos)
        for kind, positions, able in (
            ("query", query_pos, self.predicts_anywhere),
            ("observed", pos, self.differentiable_points),
        ):
            if not able and _differentiated(positions):
                raise UserError(
                    f"{kind} positions that require gradients, which this model does "
                    "not pass on in full",
                    "a model that does, such as nfs or a variant (nfs-...)",
                    "use such a model, or detach the positions",
                )
        same = query_pos is None
        with torch.set_grad_enabled(differentiated):
            places = self._normalised(pos)
            queries = places if query_pos is None else self._normalised(query_pos)
            ends = by_sample(places, queries, batch, batch if same else query_batch)
            used = edge_index if self.uses_cells or self.uses_graph else None
            edges = edges_by_sample(used, ends, edge_weight)
            samples: list[Graphs] = []
            for number, (place, others) in enumerate(ends):
                if len(ends) > 1 and not len(place):
                    raise ValueError(
                        f"sample {number} of {len(ends)} has no point: expected at "
                        "least one in every sample; leave it out of the batch"
                    )
                query = None if same else others
                shared = bool(samples) and not differentiated and not edges
                if shared and _same(ends[0], (place, others)):
                    samples.append(samples[0])
                else:
                    given = edges[number] if edges else None
                    samples.append(self._connected(place, query, given))
            return Graphs.join(samples)

    def _connected(
        self,
        pos: Tensor,
        query_pos: Tensor | None,
        given: tuple[Tensor, Tensor | None] | None = None,
    ) -> Graphs:
        """Make the graphs of one sample at normalised positions."""
        if query_pos is not None and not self.predicts_anywhere:
            if not torch.equal(pos, query_pos):
                raise UserError(
                    f"{len(query_pos)} query points for a model that has values at "
                    "its own points alone",
                    "a prediction at the observed points",
                    "leave the query points out, or train nfs, which predicts anywhere",
                )
            query_pos = None
        more: dict[str, Any] = {}
        if given is not None:
            more = {"graph": given} if self.uses_graph else {"cells": given[0]}
        return Graphs(
            pos,
            (len(pos),),
            query_pos,
            None if query_pos is None else (len(query_pos),),
            self.edges(pos, pos if query_pos is None else query_pos, **more),
            None if self.points else grid_shape(pos),
        )

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Make the edges of one sample by name; by default, none.

        Args:
            pos: normalised positions of the observed points ``[n, d]``.
            query_pos: normalised positions of the query points ``[m, d]``, possibly the
                same tensor.
        """
        return {}

    def in_unit_box(self, pos: Tensor) -> Tensor:
        """Return normalised positions over the lengths of the domain."""
        return pos / self.lengths.to(pos.dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # double() skips complex weights, and to(torch.float64) drops imaginary parts.
        def convert(t: Tensor) -> Tensor:
            if not t.is_complex():
                return fn(t)
            return torch.view_as_complex(fn(torch.view_as_real(t)))

        return super()._apply(convert, recurse)

    def _normalised(self, pos: Tensor) -> Tensor:
        kind = torch.float64 if self.precise_positions else self._precision
        return self.problem.domain.normalise(pos, kind)

    @property
    def _precision(self) -> torch.dtype:
        return next(self.parameters()).real.dtype


def check_differentiable(
    graphs: Graphs, pos: Tensor | None, query_pos: Tensor | None
) -> None:
    """Refuse positions that require gradients together with constant graphs."""
    if _differentiated(pos, query_pos) and not graphs.differentiable:
        raise UserError(
            "positions that require gradients, with graphs that are constants",
            "graphs made by connect while gradients are recorded, or none",
            "leave graphs out, or detach the positions",
        )


def _differentiated(*pos: Tensor | None) -> bool:
    """Return whether gradients with respect to positions are recorded."""
    required = any(p is not None and p.requires_grad for p in pos)
    return torch.is_grad_enabled() and required


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Return whether observed and query positions of two samples are the same."""
    return all(map(torch.equal, one, other))
