"""The base of all transforms, and what they hand on to the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from nfsgeo.config import Prediction
from nfsgeo.forecast.statistics import Statistics
from nfsgeo.geometry import Graphs
from nfsgeo.models import Problem
from nfsgeo.nn.kriging import StationaryCovariance

__all__ = ["Given", "SeriesFit", "Transform", "Wanted"]

LONG = 200  # a setting that is not shown


@dataclass(frozen=True)
class SeriesFit:
    r"""What is fitted to one long series: its climatology, and a linear forecast.

    .. math:: \hat a_t(x) = \sum_k w_{tk} \, a_k(x) + v_{tk} \, \bar a_k

    of each component's anomalies :math:`a` from the climatology, with their mean
    :math:`\bar a` over the observed points of the sample.

    Attributes:
        pos: points of the file ``[S, d]``, in the normalised domain.
        periods: of the climatology, in the unit of the times; none for a mean.
        coefficients: of :func:`harmonics` at each point, ``[S, 1 + 2 P, C]``.
        level: whether fields return to the climatology in the long run.
        std: standard deviation of the anomalies, ``[C]``.
        own: :math:`w`, ``[n_out, n_in, C]``.
        regional: :math:`v`, likewise.
        left: root mean square of what the forecast leaves of the targets, ``[C]``.
        covariance: of the anomalies; None where a spline is as good.
    """

    pos: Tensor
    periods: tuple[float, ...]
    coefficients: Tensor
    level: bool
    std: Tensor
    own: Tensor
    regional: Tensor
    left: Tensor
    covariance: StationaryCovariance | None

    @property
    def noisy(self) -> bool:
        """Whether the linear forecast leaves half of the anomalies or more."""
        return float((self.left / self.std).mean()) > 0.5


@dataclass(frozen=True)
class Wanted:
    """What the configuration of a run asks of transforms.

    Attributes:
        prediction: the form of residual prediction, or ``direct``.
        gaps: whether data have missing values.
        boundary: whether distance and direction to the boundary are inputs.
        training_noise: standard deviation of the noise on the inputs in training, in
            those of the data.
        covariance: of the fields in the units of the data, where kriging suits query
            points better than a spline.
        series: what is fitted to a long series, where data are one.
        imposed: settings of :class:`~nfsgeo.forecast.transforms.ImposedValues`, where
            values are imposed.
    """

    prediction: Prediction = "residual"
    gaps: bool = False
    boundary: bool = False
    training_noise: float = 0.0
    covariance: StationaryCovariance | None = None
    series: SeriesFit | None = None
    imposed: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Given:
    """What a prediction starts from, as each transform hands it on to the next.

    Attributes:
        x: fields and static inputs ``[N, n_in, F]``, NaN where a value is missing.
        graphs: from :meth:`nfsgeo.forecast.Forecaster.connect`.
        known: forcings ``[N, n_in + n_out, C_f]``, or ``None``.
        times: of the inputs and of what is asked for ``[S, n_in + K]`` in each sample,
            for a model that depends on them, else ``None``.
        features: further inputs of the network, each ``[N, n_in, k]``.
        lead: lead time of each sample ``[S]``, or ``None``.
        query_x: what is known of ``x`` at the query points at all times ``[M, F]``, NaN
            where nothing is, or ``None``.
        query_features: likewise of each of the ``features``, ``[M, k]``.
    """

    x: Tensor
    graphs: Graphs
    known: Tensor | None = None
    times: Tensor | None = None
    features: tuple[Tensor, ...] = ()
    lead: Tensor | None = None
    query_x: Tensor | None = None
    query_features: tuple[Tensor, ...] = ()

    def with_feature(self, feature: Tensor, queries: Tensor | None = None) -> Given:
        """With a further ``feature [N, n_in, k]``, and what is known at ``queries``."""
        given = replace(self, features=(*self.features, feature))
        if self.query_x is None:
            return given
        if queries is None:
            unknown = self.query_x.new_full((), torch.nan)
            queries = unknown.expand(len(self.query_x), feature.size(-1))
        return replace(given, query_features=(*self.query_features, queries))


class Transform(nn.Module):
    """A step between data and network: it changes the inputs, the outputs, or both.

    Transforms form a stack, the first of which is next to the data. A subclass takes
    plain types as keyword arguments and passes them on to this class as ``settings``:
    a checkpoint stores them, and the transform is made of them again.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings: Mapping[str, Any] = settings

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        """The transform of a run, or ``None`` where the run has none of this kind.

        Of the ``statistics`` of the training windows, and what is ``wanted`` by the
        configuration.
        """
        return None

    def sizes(self, problem: Problem) -> Problem:
        """Sizes of the network behind this transform, from the ``problem`` before."""
        return problem

    def connect(self, graphs: Graphs) -> Graphs:
        """The ``graphs`` so far, with what this transform needs of the positions."""
        return graphs

    def inputs(self, given: Given) -> Given:
        """What the next transform is ``given``."""
        return given

    def outputs(self, prediction: Tensor, given: Given) -> Tensor:
        """The prediction ``[M, T, C]`` before this transform.

        From the ``prediction`` of the next one, and what that was ``given``.
        """
        return prediction

    def anomalies(self, fields: Tensor, given: Given) -> Tensor:
        """Fields ``[N, T, C]`` at the observed points and the times to be predicted,
        less what this transform knows of them from what is ``given``.
        """
        return fields

    def unaware_of(self, queries: Tensor) -> Transform:
        """This transform, had it never seen the normalised positions ``[M, d]``."""
        return self

    @property
    def sources(self) -> dict[str, tuple[int, str]]:
        """Graphs from points of its own: their number, and ``points`` or ``queries``.

        A graph to the query points has the name of that to the observed points, and
        ``_queries``.
        """
        return {}

    def forward(self, given: Given, predict: Callable[[Given], Tensor]) -> Tensor:
        """The prediction ``[M, T, C]`` from what the transform before has ``given``.

        ``predict`` is the transforms behind this one, and the network.
        """
        changed = self.inputs(given)
        return self.outputs(predict(changed), changed)

    def extra_repr(self) -> str:
        short = {key: f"{value}" for key, value in self.settings.items()}
        return ", ".join(f"{k}={v}" for k, v in short.items() if len(v) < LONG)
