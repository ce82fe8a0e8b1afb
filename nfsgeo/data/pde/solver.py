"""Base class of equations, with their options and solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from nfsgeo.data.pde.random_fields import Rngs, sample_rng
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["Device", "Limits", "Positive", "Rngs", "Solution", "Solver", "stacked"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Device = torch.device | str
# Quantities by name: the value in each sample [B] and the upper limit.
Limits = Mapping[str, tuple[Tensor, float]]


@dataclass(frozen=True)
class Solution:
    """The solution of a batch, float64."""

    u: Tensor  # time steps [B, T, *S, C]
    a: Tensor  # initial condition or coefficient [B, *S, C_a]
    limits: Limits  # quantities to check
    dt: Tensor | None = None  # time step of the integration of each sample [B]
    # Points of each sample [B, P, d] if samples have their own meshes; *S is then P.
    pos: Tensor | None = None
    scalars: Tensor | None = None  # parameters of the equation [B, P_s]


class Solver(BaseModel, ABC):
    """Base class of equations; the fields of the model are options of the user.

    By default a data set has ``samples`` with ``num_steps`` time steps, ``spacing``
    apart (0 for a steady problem), and ``resolution`` points on each axis.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]  # on the command line
    title: ClassVar[str]  # the equation in one line
    domain: ClassVar[Domain] = Domain.unit(2, periodic=False)
    first: ClassVar[int] = 0  # first stored time step; 0 is the initial condition
    component_names: ClassVar[tuple[str, ...]] = ("u",)
    static_names: ClassVar[tuple[str, ...]] = ("u0",)  # components of `Solution.a`
    # Whether they are inputs of a model even if there is time.
    static_inputs: ClassVar[bool] = False
    node_types: ClassVar[tuple[str, ...]] = ()  # meanings of 0, 1, ... in `node_type`
    scalar_names: ClassVar[tuple[str, ...]] = ()  # names of `Solution.scalars`, inputs
    method: ClassVar[str]  # numerical method, for the file
    units: ClassVar[Mapping[str, str]] = {}  # units of coordinates and fields, if not 1
    samples: ClassVar[int] = 1200
    needs: ClassVar[tuple[str, ...]] = ()  # required packages of nfsgeo[fem]

    @property
    @abstractmethod
    def resolution(self) -> int: ...

    @property
    def num_steps(self) -> int:
        return 1

    @property
    def spacing(self) -> float:
        return 0.0

    def shape(self, resolution: int) -> tuple[int, ...]:
        """Return the points along each axis, or in all if samples have own meshes."""
        return (resolution,) * self.domain.dim

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Return the coordinates of each axis; none if samples have own meshes."""
        return ()

    def cells(self, resolution: int) -> dict[str, np.ndarray]:
        """Return the cells of such a mesh, point numbers ``[cells, k]`` by type."""
        return {}

    def times(self, num_steps: int) -> np.ndarray:
        """Return the times of the first ``num_steps`` stored time steps.

        Raises:
            UserError: Several time steps of a steady problem are requested.
        """
        if num_steps > 1 and not self.spacing:
            raise UserError(
                f"--records {num_steps}",
                "1 for a steady problem",
                "leave the option out",
            )
        return self.spacing * np.arange(self.first, self.first + num_steps)

    @abstractmethod
    def solution(
        self, rngs: Rngs, resolution: int, num_steps: int, device: Device
    ) -> Solution:
        """Solve samples with these random numbers, without checks."""

    def solve(
        self,
        seed: int,
        indices: Sequence[int],
        *,
        resolution: int,
        num_steps: int = 1,
        device: Device = "cpu",
    ) -> Solution:
        """Solve the samples of a data set with these numbers, and check the solution.

        Raises:
            UserError: A solution fails its checks.
        """
        self.times(num_steps)
        rngs = [sample_rng(seed, self.name, index) for index in indices]
        solution = self.solution(rngs, resolution, num_steps, device)
        infinite = (~torch.isfinite(solution.u)).flatten(1).sum(dim=1)
        limits = {"number of infinite values": (infinite, 0), **solution.limits}
        for quantity, (values, limit) in limits.items():
            number = int(values.double().nan_to_num(torch.inf).argmax())
            if not values[number] <= limit:
                raise UserError(
                    f"{self.name} sample {indices[number]} with {quantity} "
                    f"{values[number]:.2g}",
                    f"at most {limit:g}",
                    "raise the resolution, or have smoother or smaller fields",
                )
        return solution


def stacked(samples: Iterable[Sequence[Any]]) -> tuple[Tensor, ...]:
    """Stack the arrays of samples along a new first axis."""
    arrays = zip(*samples, strict=True)
    return tuple(torch.from_numpy(np.stack(array)) for array in arrays)
