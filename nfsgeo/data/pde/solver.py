"""What every equation offers: its description, its options and its solver."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from nfsgeo.data.pde.fourier import ETDRK4, FourierGrid, spectral_tail
from nfsgeo.data.pde.random_fields import sample_rng
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "GUARD",
    "Device",
    "PeriodicSolver",
    "Positive",
    "Rngs",
    "Solution",
    "Solver",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Device = torch.device | str
Rngs = Sequence[np.random.Generator]
# Quantity to its value in each sample [B] and its upper limit.
Limits = Mapping[str, tuple[Tensor, float]]

GUARD = 2.0
_HALVINGS = 4


@dataclass(frozen=True)
class Solution:
    """A solved batch, float64.

    Attributes:
        u: Time steps ``[B, T, *S, C]``.
        a: Initial condition or coefficient ``[B, *S, C_a]``.
        limits: Quantities to check, each with its values ``[B]`` and its upper limit.
        dt: Step that each sample was solved with ``[B]``, None where there is none.
        pos: Points of each sample ``[B, P, d]``, where it has a mesh of its own;
            ``*S`` is ``P`` then.
    """

    u: Tensor
    a: Tensor
    limits: Limits
    dt: Tensor | None = None
    pos: Tensor | None = None


class Solver(BaseModel, ABC):
    """An equation, how its samples are solved, and as fields the options of a user.

    Attributes:
        name: Name of the equation on the command line.
        title: The equation in one line.
        dim: Number of spatial dimensions.
        resolution: Number of points on each axis, unless another is asked for.
        num_steps: Number of time steps to store, unless another is asked for.
        spacing: Time from one to the next; 0 for a steady problem.
        first: Number of the first that is stored; 0 is the initial condition.
        domain: Box that holds the points, the unit square or cube if not given.
        component_names: Components of ``u``.
        static_names: Components of ``a``, the initial condition, or the coefficient of
            a steady problem.
        method: How it is solved, for the file.
        units: Those of coordinates and fields that are not 1, for the file.
        samples: Number of samples in a full set.
        needs: Packages of the extra ``nfsgeo[fem]`` that it imports.

    Raises:
        ValidationError: An option has a value that it cannot have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    dim: ClassVar[int] = 2
    first: ClassVar[int] = 0
    component_names: ClassVar[tuple[str, ...]] = ("u",)
    static_names: ClassVar[tuple[str, ...]] = ("u0",)
    method: ClassVar[str]
    units: ClassVar[Mapping[str, str]] = {}
    samples: ClassVar[int] = 1200
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def resolution(self) -> int: ...

    @property
    def num_steps(self) -> int:
        return 1

    @property
    def spacing(self) -> float:
        return 0.0

    @property
    def domain(self) -> Domain:
        return Domain.unit(self.dim, periodic=False)

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Points along each axis, or in all where a sample has a mesh of its own."""
        return (resolution,) * self.dim

    @abstractmethod
    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of each axis; none where a sample has a mesh of its own."""

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        """Cells of each such mesh by type, point numbers ``[cells, k]``."""
        return {}

    def times(self, num_steps: int) -> np.ndarray:
        """Times of the first ``num_steps`` time steps that are stored.

        Raises:
            UserError: They are several of a steady problem.
        """
        if num_steps > 1 and not self.spacing:
            given, expected = f"--records {num_steps}", "1 for a steady problem"
            raise UserError(given, expected, "leave the option out")
        return self.spacing * np.arange(self.first, self.first + num_steps)

    @abstractmethod
    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        """Solutions of samples with these random numbers, unchecked."""

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int = 1,
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
        self.times(num_steps)
        rngs = [sample_rng(seed, self.name, index) for index in indices]
        found = self.solution(rngs, resolution, num_steps, device)
        infinite = (~torch.isfinite(found.u)).flatten(1).sum(dim=1)
        limits = {"number of infinite values": (infinite, 0), **found.limits}
        for quantity, (values, limit) in limits.items():
            number = int(values.double().nan_to_num(torch.inf).argmax())
            if not values[number] <= limit:
                raise UserError(
                    f"{self.name} sample {indices[number]} with {quantity} "
                    f"{values[number]:.2g}",
                    f"at most {limit:g}",
                    "raise the resolution, or have smoother or smaller fields",
                )
        return found


class PeriodicSolver(Solver):
    """An equation on equispaced points of the unit torus, stepped by ETDRK4.

    Attributes:
        max_tail: How much of the variance may be unresolved, see
            :func:`~nfsgeo.data.pde.fourier.spectral_tail`.
    """

    max_tail: ClassVar[float]
    method: ClassVar[str] = (
        "ETDRK4 (Krogstad), contour-averaged phi functions; Fourier, strict 2/3 mask; "
        "float64"
    )

    @property
    def domain(self) -> Domain:
        return Domain.unit(self.dim, periodic=True)

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        return (np.arange(resolution) / resolution,) * self.dim

    def coarsest(self) -> int:
        """Points on each axis that carry the solution; coarser grids sample it."""
        return self.resolution

    @abstractmethod
    def longest_step(self, resolution: int) -> float:
        """Step of the integration to try first with so many points on each axis."""

    @abstractmethod
    def initial(self, rngs: Rngs, resolution: int) -> Tensor:
        """Initial conditions ``[B, *S]`` on the CPU, float64."""

    @abstractmethod
    def flow(self, grid: FourierGrid) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """L and N of ``v' = L v + N(v)``, where v are the modes of the state."""

    @abstractmethod
    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        """Of each sample ``[B]``, below 2 where steps of ``dt`` are stable."""

    def limits(self, u: Tensor, grid: FourierGrid) -> Limits:
        """Quantities of a solution to check: the mean is kept, the field resolved."""
        mean = u.flatten(2).mean(dim=2)
        return {
            "drift of the mean": ((mean - mean[:, :1]).abs().amax(dim=1), 1e-12),
            "fraction of unresolved variance": (spectral_tail(u, grid), self.max_tail),
        }

    def evolve(
        self, start: Tensor, num_steps: int, *, substeps: int, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Advance states.

        Args:
            start: Initial conditions ``[B, *S]``, float64.
            num_steps: Number of time steps after them, ``spacing`` apart.
            substeps: Steps of the integration from one time step to the next.
            spacing: Time from one to the next.

        Returns:
            ``[B, 1 + num_steps, *S]``, the first ``start`` itself, and the guard of
            each sample ``[B]``.
        """
        grid = FourierGrid(start.shape[-1], self.dim, start.device)
        linear, nonlinear = self.flow(grid)
        # Masked modes stay zero: what they would do costs accuracy in the averages.
        scheme = ETDRK4(linear * grid.mask, spacing / substeps, nonlinear)
        state = grid.forward(start) * grid.mask
        u = start.new_empty(len(start), 1 + num_steps, *start.shape[1:])
        u[:, 0] = start
        for number in range(1, 1 + num_steps):
            for _ in range(substeps):
                state = scheme.step(state)
            u[:, number] = grid.back(state)
        return u, self.guard(u, grid, spacing / substeps)

    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        stride = -(-self.coarsest() // resolution)
        n = stride * resolution
        start = self.initial(rngs, n).to(device)
        last, spacing = self.first + num_steps - 1, self.spacing
        substeps = math.ceil(spacing / self.longest_step(n) - 1e-9)
        u, guard = self.evolve(start, last, substeps=substeps, spacing=spacing)
        used = torch.full_like(guard, substeps)
        for _ in range(_HALVINGS):
            # A sample's own decision, so the result does not depend on its batch.
            bad = ~(guard < GUARD)
            if not bool(bad.any()):
                break
            used[bad] *= 2
            substeps *= 2
            u[bad], guard[bad] = self.evolve(
                start[bad], last, substeps=substeps, spacing=spacing
            )
        u = u[:, self.first :]
        limits = {"step guard": (guard, GUARD)}
        limits |= self.limits(u, FourierGrid(n, self.dim, device))
        kept = (..., *[slice(None, None, stride)] * self.dim, None)
        return Solution(u[kept], start[kept], limits, spacing / used)
