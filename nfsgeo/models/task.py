"""What a model maps: sizes, and the facts that a file shares with the training data."""

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
        domain: the box that holds the points, in the units of the data. Networks
            compute in ``domain.normalised``.
        in_components: components of the input, ``F``.
        out_components: components of the result, ``F'``.
        n_in: input time steps, ``n_t``; 1 without time.
        n_out: predicted time steps, ``n_t'``; 1 without time.
        num_points: points of a sample; of the first one where they differ.
        grid_shape: shape of the equispaced grid that the points form, or ``None``.
        has_time: whether the result depends on time.
        forcings: components of the forcing, which is known at all time steps, those of
            the result included; see :meth:`with_forcing`.
    """

    domain: Domain
    in_components: int
    out_components: int
    n_in: int
    n_out: int
    num_points: int
    grid_shape: tuple[int, ...] | None
    has_time: bool
    forcings: int = 0

    @property
    def dim(self) -> int:
        """Coordinates of a normalised position: 3 on a sphere, else its axes."""
        return self.domain.normalised.dim

    @property
    def folds(self) -> int:
        """How many input lengths it takes to cover the time steps of a forcing."""
        return -(-(self.n_in + self.n_out) // self.n_in) if self.forcings else 0

    @property
    def step_components(self) -> int:
        """Components of the input at one time step, with the forcing there alone."""
        return self.in_components - max(0, self.folds - 1) * self.forcings

    def with_forcing(self, x: Tensor, forcing: Tensor) -> Tensor:
        r"""The input of a model, ``in_components`` of it, with a forcing.

        .. math:: x_t = (u_t, f_t, f_{t + n_t}, f_{t + 2 n_t}, \dots, a),
            \qquad 0 \le t < n_t

        Right behind the fields, each input time step has the forcing there and whole
        numbers of input lengths later; past its last time step it keeps the value.

        Args:
            x: fields, then what does not change in time, ``[N, n_t, F]``.
            forcing: ``[N, n_t + n_t', C_f]``.
        """
        beyond = self.folds * self.n_in - forcing.size(1)
        held = forcing[:, -1:].expand(-1, beyond, -1)
        known = torch.cat([forcing, held], dim=1).unflatten(1, (self.folds, self.n_in))
        known = known.transpose(1, 2).flatten(2)
        fields = self.out_components
        return torch.cat([x[..., :fields], known, x[..., fields:]], dim=-1)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of the input of a model.

        Args:
            x: ``[N, n_t, in_components]``, as :meth:`with_forcing` makes it.

        Returns:
            The fields ``[N, n_t, F']``, none without time, the forcing
            ``[N, n_t + n_t', C_f]``, and everything else ``[N, n_t, C_s]``.
        """
        num, steps = self.out_components * self.has_time, self.n_in + self.n_out
        if not self.forcings:
            return x[..., :num], x.new_empty(len(x), steps, 0), x[..., num:]
        ends = [num, num + self.folds * self.forcings]
        fields, known, rest = x.tensor_split(ends, dim=-1)
        forcing = known.unflatten(-1, (self.folds, self.forcings)).transpose(1, 2)
        return fields, forcing.flatten(1, 2)[:, :steps], rest

    @property
    def num_features(self) -> int:
        """Input values at each point: time steps times components."""
        return self.n_in * self.in_components


def _domain(value: Any) -> Domain:
    return value if isinstance(value, Domain) else Domain.from_dict(value)


class Task(BaseModel):
    """What a model maps, in the units of the data; stored in every checkpoint.

    Attributes:
        domain: the box that holds the points.
        components: names of the ``C`` components of the field.
        static: names of the static inputs, which do not change in time.
        scalars: names of the parameters of samples that are inputs.
        forcings: names of what is known ahead of time.
        boundary: node types of which distance and direction are static inputs, the last
            ones, see :func:`nfsgeo.data.boundary.with_boundary`; none of them for the
            boundary of the cells, ``None`` without such inputs.
        units: units by name, as far as the data tell them.
        mean: mean of each component in the training data, all time steps of windows.
        std: standard deviation likewise, 0 of a component that never changes.
        n_in: input time steps; 0 without time, where the static inputs are the input.
        n_out: time steps from the last input to the last target of a training window.
        times: of the inputs and targets of a window, relative to the last input;
            without time, that of the solution.
        any_time: whether the model predicts one time step, at any time after its inputs
            that is asked for, see :attr:`longest_lead`.
        seasonal: whether the prediction depends on the times themselves, as of a
            climatology.
        longest_lead: time from the last input to the last target in training.
        num_points: number of points of a sample; of the first one where they differ.
        grid_shape: shape of the equispaced grid that the points form, or ``None``.
        cells: whether the graphs of training are edges of cells.
        fingerprint: digest of the training data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    domain: Annotated[
        Domain, PlainValidator(_domain), PlainSerializer(lambda each: each.to_dict())
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
    fingerprint: str = ""

    @property
    def has_time(self) -> bool:
        """Whether the input has time steps of the field."""
        return self.n_in > 0

    @property
    def needs_times(self) -> bool:
        """Whether a prediction needs the times of its inputs and of what is asked."""
        return self.any_time or self.seasonal

    @property
    def statistics(self) -> dict[str, tuple[float, ...]]:
        """Mean and standard deviation of several components, for their errors."""
        several = len(self.components) > 1
        return {"mean": self.mean, "std": self.std} if several else {}

    @property
    def num_inputs(self) -> int:
        """Components of the input at a time step, without what is known ahead."""
        fields = len(self.components) if self.has_time else 0
        return fields + len(self.static) + len(self.scalars)

    @property
    def step(self) -> float:
        """The shortest time between two time steps of a window; 0 without any."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return min((late - early for early, late in pairs), default=0.0)

    def problem(self) -> Problem:
        """Sizes of the inputs and outputs of a network, before any transform."""
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
