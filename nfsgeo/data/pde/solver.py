"""What every equation offers: its description, its options and its solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from nfsgeo.data.pde.random_fields import Rngs, sample_rng
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["Device", "Limits", "Positive", "Rngs", "Solution", "Solver"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Device = torch.device | str
# Quantity to its value in each sample [B] and its upper limit.
Limits = Mapping[str, tuple[Tensor, float]]


@dataclass(frozen=True)
class Solution:
    """A solved batch, float64."""

    u: Tensor  # time steps [B, T, *S, C]
    a: Tensor  # initial condition or coefficient [B, *S, C_a]
    limits: Limits  # to check
    dt: Tensor | None = None  # that each sample was solved with [B]
    # Points of each sample [B, P, d], where it has a mesh of its own; *S is P then.
    pos: Tensor | None = None
    scalars: Tensor | None = None  # parameters of the equation [B, P_s]


class Solver(BaseModel, ABC):
    """An equation, how its samples are solved, and as fields the options of a user.

    A full set has ``samples`` of ``num_steps`` time steps, ``spacing`` apart or 0 for a
    steady problem, with ``resolution`` points on each axis.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]  # on the command line
    title: ClassVar[str]  # the equation in one line
    domain: ClassVar[Domain] = Domain.unit(2, periodic=False)
    first: ClassVar[int] = 0  # time step that is stored; 0 is the initial condition
    component_names: ClassVar[tuple[str, ...]] = ("u",)
    static_names: ClassVar[tuple[str, ...]] = ("u0",)  # of what `Solution.a` holds
    # Whether these are inputs of a model, as those of a steady problem are.
    static_inputs: ClassVar[bool] = False
    node_types: ClassVar[tuple[str, ...]] = ()  # meanings of 0, 1, ... in `node_type`
    scalar_names: ClassVar[tuple[str, ...]] = ()  # of `Solution.scalars`, also inputs
    method: ClassVar[str]  # how it is solved, for the file
    units: ClassVar[Mapping[str, str]] = {}  # of coordinates and fields, if not 1
    samples: ClassVar[int] = 1200
    needs: ClassVar[tuple[str, ...]] = ()  # packages of nfsgeo[fem] that it imports

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
        """Points along each axis, or in all where a sample has a mesh of its own."""
        return (resolution,) * self.domain.dim

    def axes(self, resolution: int) -> tuple[np.ndarray, ...]:
        """Coordinates of each axis; none where a sample has a mesh of its own."""
        return ()

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
        """Solve the samples of a data set with these numbers and check them.

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
