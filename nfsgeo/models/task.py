"""Problems and tasks: the sizes, names, units and time steps of a model's fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator
from torch import Tensor

from nfsgeo.geometry import Domain

__all__ = ["Problem", "Task"]


@dataclass(frozen=True)
class Problem:
    """Sizes and domain of the fields that a model maps.

    Attributes:
        domain: domain of the points, in the units of the data. Networks compute in
            ``domain.normalised``.
        in_components: components of the input, ``F``, without the forcing.
        out_components: components of the result, ``F'``.
        n_in: input time steps, ``n_t``; 1 without time.
        n_out: predicted time steps, ``n_t'``; 1 without time.
        num_points: points of a sample, the median of training if they differ; grids and
            radii of models follow it.
        grid_shape: shape of the equispaced grid that the points form, or ``None``.
        has_time: whether the result depends on time.
        forcings: components of the forcing, which is known at all time steps including
            those of the result; see :meth:`with_forcing`.
        node_types: numbers of the input components that indicate the type of a point,
            such as a wall, and that are not interpolated if a model can use them at the
            points alone. A boundary has no area, so that interpolated indicators would
            depend on the spacing of the points.
    """

    domain: Domain
    in_components: int = 1
    out_components: int = 1
    n_in: int = 1
    n_out: int = 1
    num_points: int = 1024
    grid_shape: tuple[int, ...] | None = None
    has_time: bool = True
    forcings: int = 0
    node_types: tuple[int, ...] = ()

    @property
    def dim(self) -> int:
        """Number of coordinates of a normalised position, 3 on a sphere."""
        return self.domain.normalised.dim

    @property
    def folds(self) -> int:
        """Number of input lengths that cover the time steps of a forcing."""
        return -(-(self.n_in + self.n_out) // self.n_in) if self.forcings else 0

    def with_forcing(self, x: Tensor, forcing: Tensor) -> Tensor:
        r"""Return the input of a network without time steps, with a forcing.

        .. math:: x_t = (u_t, f_t, f_{t + n_t}, f_{t + 2 n_t}, \dots, a),
            \qquad 0 \le t < n_t

        After the fields, each input time step has the forcing there and at multiples of
        the input length later. The last time step of the forcing is repeated.

        Args:
            x: fields, then constant inputs, ``[N, n_t, F]``.
            forcing: forcing ``[N, n_t + n_t', C_f]``.
        """
        beyond = self.folds * self.n_in - forcing.size(1)
        held = forcing[:, -1:].expand(-1, beyond, -1)
        folded = torch.cat([forcing, held], dim=1).unflatten(1, (self.folds, self.n_in))
        folded = folded.transpose(1, 2).flatten(2)
        fields = self.out_components
        return torch.cat([x[..., :fields], folded, x[..., fields:]], dim=-1)

    @property
    def num_features(self) -> int:
        """Number of inputs at each point, with those of the forcing."""
        return self.n_in * (self.in_components + self.folds * self.forcings)

    @property
    def type_features(self) -> list[int]:
        """Numbers of the inputs at each point that are :attr:`node_types`, by time."""
        more, fields = self.folds * self.forcings, self.out_components
        shifted = [k + more * (k >= fields) for k in self.node_types]
        size = self.in_components + more
        return [step * size + k for step in range(self.n_in) for k in shifted]


def _domain(value: Any) -> Domain:
    return value if isinstance(value, Domain) else Domain.from_dict(value)


class Task(BaseModel):
    """Names, units, domain and time steps of the fields that a model maps.

    It is stored in every checkpoint.

    Attributes:
        domain: domain of the points, in the units of the data.
        components: names of the ``C`` components of the field.
        static: names of the static inputs, which do not change in time.
        scalars: names of the parameters of samples that are inputs.
        forcings: names of the forcings, which are known ahead of time.
        boundary: node types whose distance and direction are the last static inputs,
            see :func:`nfsgeo.data.boundary.with_boundary`; empty for the boundary of
            the cells, ``None`` without such inputs.
        units: units by name, if the data have them.
        mean: mean of each component over all time steps of training windows, at the
            points where samples are observed in evaluation.
        std: standard deviation likewise, 0 for a constant component.
        n_in: input time steps; 0 without time, when static inputs are the only ones.
        n_out: time steps from the last input to the last target of a training window.
        times: times of inputs and targets of a window, relative to the last input;
            without time, that of the solution.
        any_time: whether the model predicts one time step at any requested time after
            its inputs, see :attr:`longest_lead`.
        seasonal: whether the prediction depends on absolute times, as a climatology
            does.
        longest_lead: time from the last input to the last target in training.
        num_points: points of a sample, of the first one if they differ.
        grid_shape: shape of the equispaced grid that the points form, or ``None``.
        cells: whether the graphs of training are edges of cells.
        graph: whether they are edges that the data have, such as roads.
        fingerprint: digest of the training data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    domain: Annotated[
        Domain,
        PlainValidator(_domain),
        PlainSerializer(lambda domain: domain.to_dict()),
    ]
    components: tuple[str, ...]
    static: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    forcings: tuple[str, ...] = ()
    boundary: tuple[int, ...] | None = None
    units: dict[str, str] = {}
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    n_in: int
    n_out: int
    times: tuple[float, ...]
    any_time: bool = False
    seasonal: bool = False
    longest_lead: float = 0.0
    num_points: int
    grid_shape: tuple[int, ...] | None = None
    cells: bool = False
    graph: bool = False
    fingerprint: str = ""

    @property
    def has_time(self) -> bool:
        """Return whether the input has time steps of the field."""
        return self.n_in > 0

    @property
    def needs_times(self) -> bool:
        """Return whether a prediction needs the times of its inputs and targets."""
        return self.any_time or self.seasonal

    @property
    def statistics(self) -> dict[str, tuple[float, ...]]:
        """Mean and standard deviation if there are several components."""
        several = len(self.components) > 1
        return {"mean": self.mean, "std": self.std} if several else {}

    @property
    def num_inputs(self) -> int:
        """Components of the input at a time step, without forcings."""
        fields = len(self.components) if self.has_time else 0
        return fields + len(self.static) + len(self.scalars)

    @property
    def step(self) -> float:
        """Shortest time between two time steps of a window; 0 if there is one."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return min((late - early for early, late in pairs), default=0.0)

    def problem(self) -> Problem:
        """Return the sizes of inputs and outputs of a network before transforms."""
        return Problem(
            domain=self.domain,
            in_components=self.num_inputs,
            out_components=len(self.components),
            n_in=max(1, self.n_in),
            n_out=self.n_out,
            num_points=self.num_points,
            grid_shape=self.grid_shape,
            has_time=self.has_time,
        )
