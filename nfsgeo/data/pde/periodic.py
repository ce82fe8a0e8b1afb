"""What the equations on a periodic box have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import whole_steps
from nfsgeo.data.pde.solution import Solution, check_samples, solve_guarded
from nfsgeo.geometry import Domain

__all__ = ["PeriodicSolver"]


class PeriodicSolver(ABC):
    """A :class:`~nfsgeo.data.pde.Solver` on equispaced points of the unit torus.

    Attributes:
        name: Of the equation.
        dim: Space dimensions, :math:`d`.
    """

    name: ClassVar[str]
    dim: ClassVar[int]

    @abstractmethod
    def coarsest(self) -> int:
        """Points on each axis that carry the solution; coarser grids sample it."""

    @abstractmethod
    def first_step(self, resolution: int) -> float:
        """Time step to try first with so many points on each axis."""

    @abstractmethod
    def times(self, records: int) -> np.ndarray:
        """Times of the records, equally spaced."""

    @abstractmethod
    def initial(self, seed: int, indices: Sequence[int], resolution: int) -> Tensor:
        """Initial condition ``[B, *S]`` of the given samples, on the CPU."""

    @abstractmethod
    def evolve(
        self, state: Tensor, /, records: int, *, dt: float, spacing: float
    ) -> tuple[Tensor, Tensor]:
        """Records ``[B, records, *S]`` and the guard of each sample ``[B]``."""

    @abstractmethod
    def limits(self, u: Tensor) -> Mapping[str, tuple[Tensor, float]]:
        """Quantities of records to check, see :func:`check_samples`."""

    def domain(self) -> Domain:
        """The unit torus."""
        return Domain.unit(self.dim, periodic=True)

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of the grid, end point left out."""
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
        """Solve samples and check them.

        Raises:
            UserError: The step guard or one of the limits fails.
        """
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
