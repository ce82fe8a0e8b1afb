"""`nfs`: the Non-equispaced Fourier Solver, on any points."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from nfsgeo.geometry import Domain, radius_for
from nfsgeo.models.fourier import FourierSettings, fourier_blocks
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.problem import Problem
from nfsgeo.nn import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationKernel,
    InterpolationResampling,
    KernelInterpolation,
)

__all__ = ["InterpolationSettings", "NFSSettings", "build_nfs", "interpolation"]


class InterpolationSettings(FourierSettings):
    """Settings of the interpolation to and from the grid.

    Attributes:
        grid: nodes along each axis, or along the shortest of a box that is no cube;
            ``None`` for about as many nodes as points.
        neighbours: the radius is that which gives every node ``c log n_s``
            neighbours on average; this is ``c``.
        radius: the radius itself, in the units of the positions, in place of
            ``neighbours``.
        kernel: a ``dense`` matrix for each edge, one of low ``rank``, a weight for
            each ``channel``, or a ``gaussian``.
        rank: number of learned matrices of the ``low-rank`` kernel.
        hidden: width of the kernel's network.
        absolute_position: whether the kernel sees the position of the source.
        backend: of the radius search.
    """

    grid: PositiveInt | None = None
    neighbours: PositiveFloat = 2.3
    radius: PositiveFloat | None = None
    kernel: Literal["dense", "low-rank", "channel", "gaussian"] = "channel"
    rank: PositiveInt = 8
    hidden: PositiveInt = 64
    absolute_position: bool = True
    backend: Literal["auto", "scipy", "cell-list", "torch-cluster", "pyg-lib"] = "auto"


class NFSSettings(InterpolationSettings):
    """Settings of `nfs`."""

    norm: Literal["element", "channel", "none"] = "element"


def build_nfs(problem: Problem, settings: NFSSettings) -> MixerOperator:
    """Learned interpolation to a grid, Fourier blocks with Layer-Norm, and back.

    The system of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2.
    """
    resampling = interpolation(problem, settings)
    return MixerOperator(
        problem,
        resampling=resampling,
        blocks=fourier_blocks(settings, problem, resampling.shape),
        channels=settings.width,
    )


def interpolation(
    problem: Problem, settings: InterpolationSettings
) -> InterpolationResampling:
    """Interpolation layers for any mixer, on a grid that suits the problem."""
    domain = problem.domain
    radius = settings.radius or radius_for(
        problem.num_points, domain, settings.neighbours
    )

    def layer() -> KernelInterpolation:
        return KernelInterpolation(_kernel(problem, settings, radius))

    return InterpolationResampling(
        layer(),
        layer(),
        domain,
        _grid_shape(domain, settings.grid, problem.num_points),
        radius,
        backend=settings.backend,
    )


def _kernel(
    problem: Problem, settings: InterpolationSettings, radius: float
) -> InterpolationKernel:
    width, dim = settings.width, problem.domain.dim
    if settings.kernel == "gaussian":
        return GaussianKernel(width, dim, scale=radius)
    network = EdgeNetwork(
        dim,
        problem.num_features,
        settings.hidden,
        scale=radius,
        absolute_position=settings.absolute_position,
    )
    if settings.kernel == "channel":
        return ChannelKernel(width, network)
    rank = settings.rank if settings.kernel == "low-rank" else None
    return DenseKernel(width, network, rank=rank)


def _grid_shape(domain: Domain, grid: int | None, num_points: int) -> tuple[int, ...]:
    """Nodes along each axis, spaced alike; even numbers, which FFTs like."""
    shortest = min(domain.lengths)
    if grid is None:
        spacing = (domain.volume / num_points) ** (1 / domain.dim)
        grid = max(2, 2 * math.ceil(shortest / spacing / 2))
    return tuple(
        grid if length == shortest else max(2, 2 * round(grid * length / shortest / 2))
        for length in domain.lengths
    )
