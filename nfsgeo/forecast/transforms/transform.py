"""Transforms and their stack, and the inputs that they hand on to the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn

from nfsgeo.config import Prediction
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.kriging import StationaryCovariance

__all__ = ["BaseForecast", "ModelInputs", "Stack", "Transform", "TransformOptions"]

LONG = 200  # characters of a setting that is not shown


@dataclass(frozen=True)
class BaseForecast:
    """A forecast that is fitted before training, for the network to correct.

    Extensions fit it, see :data:`nfsgeo.training.experiment.BASE_FORECASTS`.

    Attributes:
        transforms: Its transforms by their names in the stack.
        std: Standard deviation ``[C]`` of the fields that these hand on to the next
            ones; their mean is 0.
        seasonal: Whether it depends on absolute times.
        settings: Settings that suit the data, by section, for those that the user has
            not chosen.
    """

    transforms: Mapping[str, Transform]
    std: Tensor
    seasonal: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class TransformOptions:
    """The options of transforms that come from the configuration of a run.

    Attributes:
        prediction: Form of the residual prediction, or ``direct``.
        gaps: Whether data have missing values.
        boundary: Whether distance and direction to the boundary are inputs.
        node_type: Name of the node type if networks see it at the points alone, see
            :attr:`~nfsgeo.models.Problem.node_types`.
        ranked: Whether static inputs have a rank, by their number; those that are not
            named have one where their values differ by orders of magnitude.
        training_noise: Standard deviation of the noise on the inputs in training, in
            those of the data.
        covariance: Covariance of the fields in the units of the data, where kriging
            suits query points better than a spline.
        base_forecast: Forecast that the network corrects, if one was fitted.
        imposed: Settings of :class:`~nfsgeo.forecast.transforms.ImposedValues`, where
            values are imposed.
    """

    prediction: Prediction = "residual"
    gaps: bool = False
    boundary: bool = False
    node_type: str | None = None
    ranked: Mapping[int, bool] = field(default_factory=dict)
    training_noise: float = 0.0
    covariance: StationaryCovariance | None = None
    base_forecast: BaseForecast | None = None
    imposed: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of a prediction, as each transform hands them on to the next.

    Attributes:
        x: Fields and static inputs ``[N, n_in, F]``, NaN where a value is missing.
        graphs: Graphs from :meth:`nfsgeo.forecast.Forecaster.connect`.
        forcing: Forcings ``[N, n_in + n_out, C_f]``, or ``None``.
        times: Times of the inputs and of the prediction ``[S, n_in + K]`` in each
            sample, for a model that depends on them, else ``None``.
        features: Further inputs of the network, each ``[N, n_in, k]``.
        lead: Lead time of each sample ``[S]``, or ``None``.
        query_x: Values of ``x`` at the query points ``[M, F]``, the same at all time
            steps, NaN where they are unknown, or ``None``.
        query_features: The ``features`` at the query points, each ``[M, k]``.
        base: Forecast ``[M, T, C]`` that the network corrects, in the scale of the
            last transform.
        factor: Factor by which the network's output is multiplied before ``base`` is
            added to it.
    """

    x: Tensor
    graphs: Graphs
    forcing: Tensor | None = None
    times: Tensor | None = None
    features: tuple[Tensor, ...] = ()
    lead: Tensor | None = None
    query_x: Tensor | None = None
    query_features: tuple[Tensor, ...] = ()
    base: Tensor | float = 0.0
    factor: Tensor | float = 1.0

    def with_feature(
        self, feature: Tensor, queries: Tensor | None = None
    ) -> ModelInputs:
        """Return the inputs with one more feature.

        Args:
            feature: Values at the observed points ``[N, n_in, k]``.
            queries: Values at the query points ``[M, k]``; None where they are unknown.
        """
        more = replace(self, features=(*self.features, feature))
        if self.query_x is None:
            return more
        if queries is None:
            unknown = self.query_x.new_full((), torch.nan)
            queries = unknown.expand(len(self.query_x), feature.size(-1))
        return replace(more, query_features=(*self.query_features, queries))

    def by_time(self) -> list[ModelInputs]:
        """Return the inputs of the prediction of each time by itself."""
        assert self.times is not None
        n_in = self.x.size(1)

        def until(values: Tensor, step: int) -> Tensor:
            return torch.cat([values[:, :n_in], values[:, step : step + 1]], dim=1)

        made = []
        for step in range(n_in, self.times.size(1)):
            forcing = None if self.forcing is None else until(self.forcing, step)
            made.append(replace(self, times=until(self.times, step), forcing=forcing))
        return made

    def joined(self, kind: torch.dtype) -> ModelInputs:
        """Return the inputs of the network, which has all features in ``x``.

        Args:
            kind: Precision of the network.
        """
        graphs, forcing = self.graphs, self.forcing
        x = torch.cat([self.x, *self.features], dim=-1).to(kind)
        if self.query_x is not None:
            query_x = torch.cat([self.query_x, *self.query_features], dim=-1)
            graphs = replace(graphs, query_x=query_x.to(kind))
        forcing = None if forcing is None else forcing.to(kind)
        return replace(self, x=x, graphs=graphs, forcing=forcing)


class Transform(nn.Module):
    """A step between data and network, for inputs, targets and predictions.

    Transforms form a stack, the first of which is next to the data. A subclass takes
    plain types as keyword arguments and passes them on to this class as ``settings``:
    a checkpoint stores them, and the transform is built from them again.

    Attributes:
        fitted: Names of the settings that a run takes from the one that it starts from,
            where ``form`` is the same.
        query_edges: Names of the edges to query points that :meth:`connect` adds.
        may_need_times: Whether training data decide if predictions depend on times.
    """

    fitted: ClassVar[tuple[str, ...]] = ()
    query_edges: ClassVar[tuple[str, ...]] = ()
    may_need_times: ClassVar[bool] = False

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings: Mapping[str, Any] = settings

    @classmethod
    def fit(cls, statistics: Statistics, options: TransformOptions) -> Self | None:
        """Fit the transform of a run, or return ``None`` if the run needs none.

        Args:
            statistics: Statistics of the training windows.
            options: Options from the configuration of the run.
        """
        return None

    def sizes(self, problem: Problem) -> Problem:
        """Return the sizes of the network behind this transform.

        Args:
            problem: Sizes before the transform.
        """
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        """Add edges or values that this transform computes from positions.

        Args:
            graphs: Graphs so far.
        """
        return graphs

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        """Return the inputs of the next transform.

        Args:
            batch: Inputs from the transform before.
        """
        return batch

    def targets(self, target: Tensor, batch: ModelInputs) -> Tensor:
        """Map a target towards the scale of the network, the inverse of ``outputs``.

        A loss compares the network's prediction with targets that went through all
        transforms. NaN is left out of the loss.

        Args:
            target: True fields ``[M, T, C]`` from the transform before.
            batch: The inputs that this transform has returned.
        """
        return target

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        """Map a prediction ``[M, T, C]`` back towards the units of the data.

        Args:
            prediction: Prediction from the next transform.
            batch: The inputs that this transform has returned.
        """
        return prediction

    def unaware_of(self, queries: Tensor) -> Transform:
        """Return this transform as if it had never seen some positions.

        Args:
            queries: The normalised positions ``[M, d]``.
        """
        return self

    @property
    def sources(self) -> dict[str, tuple[int, str]]:
        """Graphs from points that the transform keeps, by name.

        Each has the number of these points, and ``points`` or ``queries`` as its ends.
        A graph to the query points is named as that to the observed points, followed by
        ``_queries``.
        """
        return {}

    def extra_repr(self) -> str:
        short = {key: f"{value}" for key, value in self.settings.items()}
        return ", ".join(f"{k}={v}" for k, v in short.items() if len(v) < LONG)


class Stack(nn.ModuleList):
    """The transforms of a forecaster, the first of which is next to the data.

    Args:
        transforms: The transforms.
    """

    def __init__(self, transforms: Iterable[Transform] = ()) -> None:
        super().__init__(transforms)

    def __iter__(self) -> Iterator[Transform]:
        return cast(Iterator[Transform], super().__iter__())

    def before(self, *kinds: type[Transform]) -> Stack:
        """Return the transforms before the first one of some classes, or all.

        Args:
            kinds: The classes.
        """
        return Stack(takewhile(lambda step: not isinstance(step, kinds), self))

    def sizes(self, problem: Problem) -> Problem:
        """Return the sizes of the network behind the transforms.

        Args:
            problem: Sizes in the data.
        """
        for transform in self:
            problem = transform.sizes(problem)
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        """Add edges or values that transforms compute from positions.

        Args:
            graphs: Graphs of the model.
        """
        for transform in self:
            graphs = transform.connect(graphs)
        return graphs

    def inputs(self, batch: ModelInputs) -> list[ModelInputs]:
        """Return the inputs, and after them those that each transform returns.

        Args:
            batch: Inputs in the units of the data.
        """
        handed_on = [batch]
        for transform in self:
            handed_on.append(transform.inputs(handed_on[-1]))
        return handed_on

    def targets(self, target: Tensor, handed_on: Sequence[ModelInputs]) -> Tensor:
        """Return true fields ``[M, T, C]`` in the scale of the network.

        Args:
            target: True fields in the units of the data.
            handed_on: Result of :meth:`inputs`.
        """
        for transform, batch in zip(self, handed_on[1:], strict=True):
            target = transform.targets(target, batch)
        return target

    def outputs(self, prediction: Tensor, handed_on: Sequence[ModelInputs]) -> Tensor:
        """Return a prediction ``[M, T, C]`` in the units of the data.

        Args:
            prediction: Prediction in the scale of the network.
            handed_on: Result of :meth:`inputs`.
        """
        pairs = [*zip(self, handed_on[1:], strict=True)]
        for transform, batch in reversed(pairs):
            prediction = transform.outputs(prediction, batch)
        return prediction
