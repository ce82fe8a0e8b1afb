"""What every equation offers: its description, its options and its solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import whole_steps
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.setting_errors import explained

__all__ = [
    "GUARD",
    "PeriodicSolver",
    "Positive",
    "Solution",
    "Solver",
    "SteadySolver",
    "check_samples",
    "solve_guarded",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Device = torch.device | str

GUARD = 2.0
_HALVINGS = 4


@dataclass(frozen=True)
class Solution:
    """A solved batch, float64, checked.

    Attributes:
        u: Time steps ``[B, T, *S, C]``.
        a: Initial condition or coefficient ``[B, *S, C_a]``.
        dt: Step that each sample was solved with ``[B]``, 0 where there is no time.
        pos: Points of each sample ``[B, P, d]``, where it has a mesh of its own;
            ``*S`` is ``P`` then.
    """

    u: Tensor
    a: Tensor
    dt: Tensor
    pos: Tensor | None = None


class Solver(BaseModel, ABC):
    """An equation, how its samples are solved, and the options of a user as fields.

    Attributes:
        name: Name of the equation on the command line.
        title: The equation in one line.
        dim: Number of spatial dimensions.
        resolution: Number of points on each axis, unless another is asked for.
        num_steps: Number of time steps to store, unless another is asked for.
        domain: Box that holds the grid.
        component_names: Components of ``u``.
        static_names: Components of ``a``.
        static_role: ``"initial condition"`` or ``"coefficient"``.
        method: How it is solved, for the file.
        units: Units of the coordinates, the time and the fields, for the file.
        samples: Number of samples in a full set.
        needs: Packages of the extra ``nfsgeo[fem]`` that it imports.

    Raises:
        ValidationError: An option has a value that it cannot have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    dim: ClassVar[int]
    component_names: ClassVar[tuple[str, ...]] = ("u",)
    static_names: ClassVar[tuple[str, ...]] = ("u0",)
    static_role: ClassVar[str] = "initial condition"
    method: ClassVar[Mapping[str, str]]
    units: ClassVar[Mapping[str, str]]
    samples: ClassVar[int] = 1200
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def resolution(self) -> int: ...

    @property
    @abstractmethod
    def num_steps(self) -> int: ...

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

    def with_options(self, given: Mapping[str, Any] | None) -> Self:
        """The same equation with other options.

        Args:
            given: Values by the options' names; text is converted.

        Raises:
            UserError: An option does not exist or has a value that it cannot have.
        """
        with explained(known=type(self).model_fields):
            return self.model_validate(dict(self) | dict(given or {}))

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Points along each axis, or in all where a sample has a mesh of its own."""
        return (resolution,) * self.dim

    @abstractmethod
    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of each axis; none where a sample has a mesh of its own."""

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        """Cells of each such mesh by type, point numbers ``[cells, k]``."""
        return {}

    @abstractmethod
    def times(self, num_steps: int) -> np.ndarray:
        """Times of the first ``num_steps`` stored time steps."""

    @abstractmethod
    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        """Initial condition or coefficient ``[B, *S]`` of some samples, on the CPU.

        Args:
            seed: Of the data set.
            indices: Numbers of the samples.
            resolution: Number of points on each axis.
        """

    @abstractmethod
    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int,
        device: Device = "cpu",
    ) -> Solution:
        """Solve some samples and check them.

        Args:
            seed: Of the data set.
            indices: Numbers of the samples.
            resolution: Number of points on each axis.
            num_steps: Number of time steps to store.
            device: Where to compute.

        Raises:
            UserError: A solution fails its checks.
        """


class SteadySolver(Solver):
    """An equation without time, whose solution follows from a coefficient."""

    static_role: ClassVar[str] = "coefficient"
    num_steps: ClassVar[int] = 1

    def times(self, num_steps: int) -> np.ndarray:
        """Time 0.

        Raises:
            UserError: ``num_steps`` is not 1.
        """
        if num_steps != 1:
            raise UserError(
                f"--records {num_steps}", "1 for a steady problem", "leave it out"
            )
        return np.zeros(1)


class PeriodicSolver(Solver):
    """An equation on equispaced points of the unit torus, stepped by ETDRK4."""

    method: ClassVar[Mapping[str, str]] = {
        "time": "ETDRK4 (Krogstad), contour-averaged phi functions",
        "space": "Fourier, strict 2/3 mask",
        "precision": "float64",
    }

    @abstractmethod
    def coarsest(self) -> int:
        """Points on each axis that carry the solution; coarser grids sample it."""

    @abstractmethod
    def first_step(self, resolution: int) -> float:
        """Time step to try first with so many points on each axis."""

    @abstractmethod
    def evolve(
        self, state: Tensor, /, num_steps: int, *, dt: float, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Advance the state.

        Args:
            state: Initial condition ``[B, *S]``, float64.
            num_steps: Number of time steps to return, ``spacing`` apart.
            dt: Largest step of the integration; it is shortened to divide ``spacing``.
            spacing: Time from one that is returned to the next.

        Returns:
            The time steps ``[B, num_steps, *S]`` and the guard of each sample ``[B]``,
            see :func:`solve_guarded`.
        """

    @abstractmethod
    def limits(self, u: Tensor) -> Mapping[str, tuple[Tensor, float]]:
        """Quantities of a solution to check, see :func:`check_samples`."""

    @property
    def domain(self) -> Domain:
        return Domain.unit(self.dim)

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        return (np.arange(resolution) / resolution,) * self.dim

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int,
        device: Device = "cpu",
    ) -> Solution:
        stride = -(-self.coarsest() // resolution)
        n = stride * resolution
        start = self.initial(seed, indices, n).to(device)
        first, second = self.times(2).tolist()
        spacing = second - first
        _, dt = whole_steps(spacing, self.first_step(n))
        u, steps = solve_guarded(
            lambda state, dt: self.evolve(state, num_steps, dt=dt, spacing=spacing),
            start,
            dt,
            name=self.name,
        )
        check_samples(u, self.limits(u), indices, self.name)
        kept = (..., *[slice(None, None, stride)] * self.dim, None)
        return Solution(u=u[kept], a=start[kept], dt=steps)


def solve_guarded(
    run: Callable[[Tensor, float], tuple[Tensor, Tensor]],
    initial: Tensor,
    dt: float,
    *,
    name: str,
) -> tuple[Tensor, Tensor]:
    """Solve a batch, halving the step of each sample whose guard asks for it.

    The decision is a sample's own, so the result does not depend on its batch.

    Args:
        run: (initial states ``[B, ...]``, dt) to (time steps ``[B, T, ...]``, guard
            ``[B]``). The guard number must stay below 2; a step is stable there.
        initial: Initial states ``[B, ...]``.
        dt: First step to try.
        name: The equation, for the message.

    Returns:
        Time steps ``[B, T, ...]`` and the step used for each sample ``[B]``.

    Raises:
        UserError: A sample's guard still fails after four halvings.
    """
    u, guard = run(initial, dt)
    steps = torch.full_like(guard, dt)
    for _ in range(_HALVINGS):
        bad = ~(guard < GUARD)
        if not bad.any():
            return u, steps
        dt /= 2
        u[bad], guard[bad] = run(initial[bad], dt)
        steps[bad] = dt
    if bool((guard < GUARD).all()):
        return u, steps
    worst = float(guard.nan_to_num(torch.inf).max())
    raise UserError(
        f"{name} with step guard {worst:.3g} at dt={dt:.3g}",
        f"a guard below {GUARD:g}",
        "use smaller fields, a weaker force or more viscosity",
    )


def check_samples(
    u: Tensor,
    limits: Mapping[str, tuple[Tensor, float]],
    indices: Sequence[int],
    name: str,
) -> None:
    """Refuse a batch with a value that is not finite or a quantity past its limit.

    Args:
        u: Time steps ``[B, ...]``.
        limits: Quantity to its value in each sample ``[B]`` and its upper limit.
        indices: Sample numbers, for the message.
        name: The equation, for the message.

    Raises:
        UserError: It names the first infinite sample, or the worst one.
    """
    infinite = (~torch.isfinite(u).flatten(1).all(dim=1)).double()
    for quantity, (values, limit) in {
        "infinite values": (infinite, 0.0),
        **limits,
    }.items():
        worst = int(values.nan_to_num(torch.inf).argmax())
        value = float(values[worst])
        if not value <= limit:
            raise UserError(
                f"{name} sample {indices[worst]} with {quantity} {value:.2g}",
                f"at most {limit:g}",
                "raise the resolution or use smoother fields",
            )
