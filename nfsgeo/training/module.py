"""Prediction by any model, in the units of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.geometry import BipartiteGraph, Graphs, batch_graphs
from nfsgeo.models import Model
from nfsgeo.nn.base_interpolation import interpolate_along, spline_graph
from nfsgeo.nn.kriging import StationaryCovariance, kriging_graph
from nfsgeo.nn.missing_values import fill_in_space, fill_in_time, neighbour_graph
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.damped_persistence import DampedPersistence
from nfsgeo.training.in_memory import predict_in_memory
from nfsgeo.training.inputs import check_complete, check_forcing, check_inputs
from nfsgeo.training.lead_times import check_times, each_time
from nfsgeo.training.losses import Loss, mse
from nfsgeo.training.steps import TrainingSteps

__all__ = ["Forecaster"]


class Forecaster(TrainingSteps):
    """A model with the scales of its data: fields in and out in the data's own units.

    Trained on ``loss``, with quadrature weights where batches carry them and uniform
    weights elsewhere. The statistics are buffers, so that a checkpoint carries them.

    Args:
        model: On normalised fields.
        inputs: Scale of the inputs, ``F`` components.
        outputs: Scale of what the model predicts, ``C`` components.
        optimiser: How the weights move.
        description: Plain types that a checkpoint carries along, to build the same
            model again; ``statistics`` of several components, for their errors;
            ``longest_lead`` of a model of lead times, which sees the times of its
            inputs and of what is asked for as a last forcing.
        loss: Of normalised fields; see :mod:`nfsgeo.training.losses`.
        residual: Whether the model predicts the change since the last observed time
            step, not the field itself; with the ``prediction`` ``rate`` in the
            description, this change divided by its time, and with ``damped`` the
            difference from damped persistence.
        covariance: Of the fields, where observed points are so few that the last
            snapshot is better had by kriging than by a spline.
        missing: Whether training data have missing values. They leave the loss, and
            after its other inputs the model has an indicator for each component of the
            field, 1 where it is observed and 0 where it is filled in.
        forcings: Scale of the forcing, ``C_f`` components; None for no forcing.
        boundary: Whether the model has, as its last inputs, the distance and direction
            to the boundary of the region in the normalised domain.
        pushforward: Probability that a training step starts from a prediction.
    """

    def __init__(
        self,
        model: Model,
        inputs: FieldNormaliser,
        outputs: FieldNormaliser,
        optimiser: OptimiserSection,
        description: dict[str, Any],
        *,
        loss: Loss = mse,
        residual: bool = False,
        covariance: StationaryCovariance | None = None,
        missing: bool = False,
        forcings: FieldNormaliser | None = None,
        boundary: bool = False,
        pushforward: float = 0.0,
    ) -> None:
        super().__init__(
            model,
            outputs,
            optimiser,
            description,
            loss=loss,
            missing=missing,
            pushforward=pushforward,
        )
        self.inputs, self.forcings = inputs, forcings
        self.residual = residual
        self.damped: DampedPersistence | None = None
        if residual and description.get("prediction") == "damped":
            problem = model.problem
            self.damped = DampedPersistence(problem.n_out, problem.out_components)
        self.covariance = covariance
        self.boundary = boundary

    def connect(
        self,
        pos: Tensor,
        batch: Tensor | None = None,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
    ) -> Graphs:
        """The graphs of a batch of samples, a function of positions alone.

        Those of the model, and for residual prediction the local polyharmonic spline
        from the observed points to the queries, or kriging where they are few. Where
        values may be missing, also the neighbours that they are filled in from.
        Arguments and errors as :meth:`nfsgeo.models.Model.connect`.
        """
        graphs = self.model.connect(pos, batch, query_pos, query_batch)
        if self.missing:
            graphs = self._with_neighbours(graphs)
        if self.boundary:
            box = self.model.problem.domain.normalised
            graphs = replace(graphs, boundary=box.to_boundary(graphs.pos))
        if not self.residual or graphs.query_pos is None:
            return graphs
        if self.covariance is None:
            last = spline_graph(
                graphs.pos,
                graphs.query_pos,
                self.model.problem.domain.normalised,
                batch=graphs.batch,
                query_batch=graphs.query_batch,
            )
        else:
            assert graphs.query_sizes is not None
            observed = graphs.pos.split(graphs.sizes)
            queries = graphs.query_pos.split(graphs.query_sizes)
            samples = zip(observed, queries, strict=True)
            last = batch_graphs([kriging_graph(self.covariance, *s) for s in samples])
        return replace(graphs, edges={**graphs.edges, "last": last})

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
        times: Tensor | None = None,
    ) -> Tensor:
        """Predicted fields ``[M, n_out, C]``, in the units of the data.

        Arguments as :meth:`nfsgeo.models.Model.forward`: ``x`` ``[N, n_in, F]``, in the
        units of the data, NaN where a value is missing, ``pos``, ``batch``,
        ``query_pos``, ``query_batch``, and ``graphs`` from :meth:`connect`; besides,
        ``forcing`` ``[N, n_in + n_out, C_f]`` where the model was trained with one. A
        model of lead times has ``times`` ``[n_in + n_out]`` of its inputs and of any
        number ``n_out`` of later time steps, or ``[S, n_in + n_out]`` of each sample.

        Raises:
            UserError: ``x``, ``forcing`` or ``times`` has other components or time
                steps than in training.
        """
        check_times(times, graphs, batch, self.model.problem, self.description)
        self._check_inputs(x, forcing, times)
        if graphs is None:
            graphs = self.connect(pos, batch, query_pos, query_batch)
        kind = torch.promote_types(x.dtype, torch.float32)
        x = x.to(self.inputs.mean.dtype)
        filled = self.filled(x, graphs)
        found = []
        for known, lead in each_time(forcing, times, x, graphs):
            seen = self._inputs(x, filled, graphs, known)
            prediction = self.model(seen, pos, batch, graphs=graphs)
            found.append(self._field(prediction, filled, graphs, lead))
        field = found[0] if len(found) == 1 else torch.cat(found, dim=1)
        return field.to(kind)

    def _field(
        self,
        prediction: Tensor,
        filled: Tensor,
        graphs: Graphs,
        lead: Tensor | None,
    ) -> Tensor:
        """The field of a prediction ``[M, T, C]``; ``lead [S]`` is its time."""
        prediction = self.outputs.denormalise(prediction.to(filled))
        if not self.residual:
            return prediction
        last = filled[:, -1:, : prediction.size(-1)]
        if graphs.query_pos is not None:
            last = self._at_queries(last, graphs.edges["last"])
        if lead is not None and self.description["prediction"] == "rate":
            assert self.forcings is not None
            passed = lead.to(last) / self.forcings.std[-1]
            at = graphs.query_batch
            passed = passed if at is None else passed[at]
            prediction = prediction * passed[:, None, None]
        if self.damped is not None:
            last = self.damped(last, self.inputs.mean[: last.size(-1)])
        return last + prediction

    def predict(
        self,
        data: Any,
        pos: Any = None,
        *,
        query_pos: Any = None,
        forcing: Any = None,
        times: Any = None,
    ) -> Any:
        """Predicted fields of samples in memory, in the units of the data.

        What comes back is of the kind that was given: numpy for numpy, tensors on their
        device for tensors, a list for a list, and for ``Data`` a copy with the
        prediction as ``y``. Nothing is dropped out, as in evaluation.

        Args:
            data: Fields of a sample ``[n, n_in, F]``, NaN or masked where a value is
                missing, or PyTorch Geometric's ``Data`` with ``x``, ``pos`` and
                optionally ``query_pos``, ``forcing`` and, for a model of lead times,
                ``times``; a list of either, or a ``Batch``, for several samples.
            pos: Positions ``[n, d]`` of the fields, which all samples share.
            query_pos: Where to predict, ``[m, d]``; None for the observed points.
            forcing: What is known ahead ``[n, n_in + n_out, C_f]``, which all samples
                share; None where the model was trained without.
            times: Of the inputs and of what is asked for ``[n_in + n_out]``, increasing
                and in the units of the data, for a model of lead times.

        Returns:
            ``[m, n_out, C]`` for each sample.

        Raises:
            UserError: Fields have no positions, or other components or time steps
                than in training; values are no finite numbers; times are further ahead
                than in training.
        """
        return predict_in_memory(self, data, pos, query_pos, forcing, times)

    def filled(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The inputs with their missing values filled in, in the units of the data.

        See :mod:`nfsgeo.nn.missing_values`: from the time steps before and after at the
        same point, else from the neighbours that are observed. A model that trained
        without missing values fills them in all the same.

        Args:
            x: ``[N, n_in, F]``, in the units of the data.
            graphs: From :meth:`connect`.
        """
        if not self.missing:
            # Training data are known to be complete; asking would wait for the device.
            complete = self.training or torch.compiler.is_compiling()
            if complete or not bool(x.isnan().any()):
                return x
        if "neighbours" not in graphs.edges:
            graphs = self._with_neighbours(graphs)
        values = fill_in_time(self.inputs.normalise(x), self._trend(x))
        values = fill_in_space(values, graphs.edges["neighbours"])
        return torch.where(x.isnan(), self.inputs.denormalise(values), x)

    def _trend(self, x: Tensor) -> Tensor:
        """The damped trend of each input, 0 where training has seen no gaps."""
        known = x.new_tensor(self.description.get("trend", []))
        return torch.cat([known, known.new_zeros(x.size(-1) - len(known))])

    def _inputs(
        self, x: Tensor, filled: Tensor, graphs: Graphs, forcing: Tensor | None
    ) -> Tensor:
        """What the model sees: normalised inputs, indicators, boundary and forcing."""
        seen, problem = self._working(self.inputs.normalise(filled)), self.model.problem
        if self.missing and problem.has_time:
            observed = ~x[..., : len(self.outputs.mean)].isnan()
            seen = torch.cat([seen, observed.to(seen)], dim=-1)
        if graphs.boundary is not None:
            boundary = graphs.boundary.to(seen)[:, None]
            seen = torch.cat([seen, boundary.expand(-1, seen.size(1), -1)], dim=-1)
        if forcing is None or self.forcings is None:
            return seen
        scaled = self._working(self.forcings.normalise(forcing))
        return problem.with_forcing(seen, scaled)

    def _with_neighbours(self, graphs: Graphs) -> Graphs:
        domain = self.model.problem.domain.normalised
        samples = graphs.pos.split(graphs.sizes)
        near = batch_graphs([neighbour_graph(pos, domain) for pos in samples])
        return replace(graphs, edges={**graphs.edges, "neighbours": near})

    def _at_queries(self, last: Tensor, graph: BipartiteGraph) -> Tensor:
        """The last snapshot ``[N, 1, C]`` at the query points."""
        if (mean := self.expected) is None:
            return interpolate_along(last, graph)
        # In double precision: weights in a gap are large and cancel.
        found = mean + interpolate_along(last.double() - mean, graph)
        return found.to(last.dtype)

    @property
    def expected(self) -> Tensor | None:
        """Value ``[C]`` at a query as far as observed points do not tell it.

        None where they always do: splines whose weights add up to 1.
        """
        if self.covariance is not None:
            return self.covariance.expected
        if self.model.problem.domain.region is not None:
            return self.inputs.mean[: len(self.outputs.mean)].double()
        return None

    @property
    def mean_field(self) -> Tensor:
        """Mean of the training fields ``[C]``, normalised by ``outputs``, float64.

        Where changes are predicted, ``outputs`` has the scale of those.
        """
        fields = self.inputs if self.residual else self.outputs
        mean = fields.mean[: len(self.outputs.mean)]
        return self.outputs.normalise(mean)

    def _check_inputs(
        self, x: Tensor, forcing: Tensor | None, times: Tensor | None
    ) -> None:
        sizes = len(self.inputs.mean), len(self.outputs.mean)
        check_inputs(x, *sizes, self.description)
        check_forcing(forcing, x, self.model.problem, self.description, times)
        # Training data are known to be complete; asking would wait for the device.
        if forcing is not None and not self.training:
            check_complete(forcing, self.description)

    def predict_batch(self, batch: Batch) -> Tensor:
        """Predicted fields ``[M, n_out, C]`` of a batch, in the units of the data."""
        prediction: Tensor = self(
            batch.x,
            batch.pos,
            batch.batch,
            graphs=self.graphs_of(batch),
            **self.known_ahead(batch),
        )
        return prediction

    def known_ahead(self, batch: Batch) -> dict[str, Tensor | None]:
        """The ``forcing`` and, for a model of lead times, the ``times`` of a batch."""
        times = batch.times.view(batch.num_graphs, -1) if self.lead_times else None
        return {"forcing": batch.get("forcing"), "times": times}

    def seen(self, batch: Batch) -> Tensor:
        """What the model sees of a batch: normalised inputs ``[N, n_in, F]``."""
        x, graphs = batch.x.to(self.inputs.mean.dtype), self.graphs_of(batch)
        return self._inputs(x, self.filled(x, graphs), graphs, batch.get("forcing"))

    def graphs_of(self, batch: Batch) -> Graphs:
        """Those that the batch carries, or made now for one that carries none."""
        if "graphs" in batch:
            graphs: Graphs = batch.graphs
            return graphs
        return self.connect(batch.pos, batch.batch)
