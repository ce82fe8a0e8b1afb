"""What a model maps: the facts that a file must share with the training data."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator

from nfsgeo.geometry import Domain
from nfsgeo.models.problem import Problem

__all__ = ["Task"]


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
