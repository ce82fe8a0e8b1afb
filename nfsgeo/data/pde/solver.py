"""What every equation offers: its description, its options and its solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, get_args

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import whole_steps
from nfsgeo.data.pde.solution import Solution, check_samples, solve_guarded
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.setting_errors import explained

__all__ = ["Option", "PeriodicSolver", "Positive", "Solver", "SteadySolver"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Option:
    """A parameter of an equation that a user can choose.

    Attributes:
        name: Its name.
        default: Its value when not given.
        help: What it means, one line.
        choices: The values there are, empty when any will do.
    """

    name: str
    default: Any
    help: str
    choices: tuple[str, ...]


class Solver(BaseModel, ABC):
    """An equation with the values of its options, and how its samples are solved.

    Attributes:
        name: Name of the equation on the command line.
        title: The equation in one line.
        dim: Number of spatial dimensions.
        resolution: Number of points on each axis, unless another is asked for.
        records: Number of time steps to store, unless another is asked for.
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
    def options(self) -> tuple[Option, ...]:
        """What can be chosen."""
        return tuple(
            Option(
                name, each.default, each.description or "", get_args(each.annotation)
            )
            for name, each in type(self).model_fields.items()
        )

    @property
    def components(self) -> int:
        """Number of components of ``u``."""
        return len(self.component_names)

    def with_options(self, given: Mapping[str, Any] | None) -> Self:
        """The same equation with other options.

        Args:
            given: Values by the options' names; text is converted.

        Raises:
            UserError: An option does not exist or has a value that it cannot have.
        """
        with explained(known=type(self).model_fields):
            return self.model_validate(dict(self) | dict(given or {}))

    @property
    @abstractmethod
    def resolution(self) -> int: ...

    @property
    @abstractmethod
    def records(self) -> int: ...

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

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
    def times(self, records: int) -> np.ndarray:
        """Times of ``records`` stored time steps."""

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
        records: int,
        device: torch.device | str = "cpu",
    ) -> Solution:
        """Solve some samples and check them.

        Args:
            seed: Of the data set.
            indices: Numbers of the samples.
            resolution: Number of points on each axis.
            records: Number of time steps to store.
            device: Where to compute.

        Raises:
            UserError: A solution fails its checks.
        """


class SteadySolver(Solver):
    """An equation without time, whose solution follows from a coefficient."""

    static_role: ClassVar[str] = "coefficient"
    records: ClassVar[int] = 1

    def times(self, records: int) -> np.ndarray:
        """Time 0.

        Raises:
            UserError: ``records`` is not 1.
        """
        if records != 1:
            raise UserError(
                f"--records {records}", "1 for a steady problem", "leave the option out"
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
        self, state: Tensor, /, records: int, *, dt: float, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Advance the state.

        Args:
            state: Initial condition ``[B, *S]``, float64.
            records: Number of time steps to return, ``spacing`` apart.
            dt: Largest step of the integration; it is shortened to divide ``spacing``.
            spacing: Time from one that is returned to the next.

        Returns:
            The time steps ``[B, records, *S]`` and the guard of each sample ``[B]``,
            see :func:`~nfsgeo.data.pde.solution.solve_guarded`.
        """

    @abstractmethod
    def limits(self, u: Tensor) -> Mapping[str, tuple[Tensor, float]]:
        """Quantities of a solution to check, see :func:`check_samples`."""

    @property
    def domain(self) -> Domain:
        return Domain.unit(self.dim, periodic=True)

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        return (np.arange(resolution) / resolution,) * self.dim

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        records: int,
        device: torch.device | str = "cpu",
    ) -> Solution:
        stride = -(-self.coarsest() // resolution)
        n = stride * resolution
        start = self.initial(seed, indices, n).to(device)
        first, second = self.times(2).tolist()
        spacing = second - first
        _, dt = whole_steps(spacing, self.first_step(n))
        u, steps = solve_guarded(
            lambda state, dt: self.evolve(state, records, dt=dt, spacing=spacing),
            start,
            dt,
            name=self.name,
        )
        check_samples(u, self.limits(u), indices, self.name)
        kept = (..., *[slice(None, None, stride)] * self.dim, None)
        return Solution(u=u[kept], a=start[kept], dt=steps)
