"""`deeponet-u`: DeepONet with a U-Net as its branch."""

from __future__ import annotations

from pydantic import PositiveInt

from nfsgeo.models.deeponet import DeepONet, DeepONetSettings
from nfsgeo.models.problem import Problem
from nfsgeo.nn import UNet

__all__ = ["DeepONetUSettings", "build_deeponet_u"]


class DeepONetUSettings(DeepONetSettings):
    """Settings of `deeponet-u`.

    Attributes:
        width: channels of the U-Net.
        levels: number of times that the U-Net halves the grid.
    """

    width: PositiveInt = 32
    levels: PositiveInt = 3


def build_deeponet_u(problem: Problem, settings: DeepONetUSettings) -> DeepONet:
    """DeepONet with a U-Net for its branch.

    A variant that "Non-equispaced Fourier Neural Solvers for PDEs" compares with.
    """
    domain = problem.domain
    branch = UNet(
        problem.num_features + domain.dim,
        settings.width,
        domain.dim,
        levels=settings.levels,
        periodic=all(domain.periodic),
    )
    return DeepONet(problem, branch=branch, width=settings.width, settings=settings)
