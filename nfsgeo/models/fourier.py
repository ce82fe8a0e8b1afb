"""`fno`, `nfs`, `fno-spline` and `dse`: Fourier layers on grids and on points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs, equispaced_grid
from nfsgeo.models.base import PAPER_FOURIER, Model, ModelSettings, SpectralSettings
from nfsgeo.models.mixer import (
    MixerOperator,
    MixerSettings,
    mixer_block,
    token_sizes,
)
from nfsgeo.models.point_mixer import (
    PAPER_KERNEL,
    InterpolationSettings,
    KernelName,
    PointMixer,
)
from nfsgeo.models.task import Problem
from nfsgeo.nn import (
    Lift,
    PointSpectralConv,
    PointWaves,
    Projector,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
)

__all__ = ["DSE", "FNO", "NFS", "FNOSpline"]

# As many harmonics as frequencies in two dimensions.
SPHERE_DEGREES = 16


class FourierSettings(SpectralSettings, MixerSettings):
    """Settings of the Fourier blocks.

    On a sphere, ``modes`` are the degrees of the spherical harmonics, at most what the
    grid resolves, and 16 for ``None``.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    time_modes: PositiveInt = 8


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it takes grids of any resolution."""

    norm: Literal["element", "channel", "none"] = "none"


class FNO(MixerOperator):
    """Fourier Neural Operator over space and time, as the paper compares with it."""

    Settings: ClassVar[type[ModelSettings]] = FNOSettings
    source = "Fourier Neural Operator for Parametric PDEs"
    paper = PAPER_FOURIER

    def make_blocks(self, problem: Problem, shape: Sequence[int]) -> nn.Module:
        """Fourier blocks over space and time; on a sphere, of spherical harmonics.

        Layers of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2: a
        spectral convolution and Layer-Norm, beside them a 1×1 convolution, then GELU.
        """
        settings, sizes = self.settings, token_sizes(problem, shape)
        mix: Callable[[], nn.Module]
        width, modes = settings.width, []
        if problem.has_time:
            modes = [min(settings.time_modes, problem.n_out // 2 + 1)]
        if problem.domain.curved:
            most = max(1, math.isqrt(shape[0] // 2))
            degrees = min(settings.modes or SPHERE_DEGREES, most)
            domain = problem.domain.normalised
            nodes = equispaced_grid(domain, tuple(shape), torch.float64)
            transform = SphericalTransform(nodes, degrees)
            mix = partial(SphericalConv, width, width, transform, *modes)
        else:
            modes = [settings.modes_of(problem)] * problem.domain.dim + modes
            mix = partial(SpectralConv, width, width, modes)
        blocks = (mixer_block(settings, sizes, mix()) for _ in range(settings.depth))
        return nn.Sequential(*blocks)


IN_ONE_DIMENSION = {
    "width": 32,
    "depth": 2,
    "time": "tokens",
    "kernel": "channel",
    "norm": "none",
    "point_channels": 0,
    "neighbours": 0,
}
IN_MORE = {
    "width": 64,
    "depth": 4,
    "time": "channels",
    "kernel": "none",
    "point_channels": 32,
    "neighbours": 8,
}
SPHERE_NODES = 1 << 14
NO_PATH = {"latent": False, "point_channels": 0, "neighbours": 0, "margin": 0.0}
PAPER_NFS = {"width": 32, "norm": "element", "time": "tokens", **NO_PATH}


class NFSSettings(FourierSettings, InterpolationSettings):
    """Settings of `nfs`; what is ``None`` depends on the problem.

    Attributes:
        width: channels, ``C``; ``None`` for 32 in one dimension, 64 in more.
        depth: number of blocks; ``None`` for 2 in one dimension, 4 in more.
        time: see :class:`MixerSettings`; ``None`` for tokens in one dimension, channels
            in more.
        norm: Layer-Norm of every token by ``channel``, by ``element`` of a grid of one
            size, or ``none``; ``None`` for channels in more than one dimension where
            there is time, and no Layer-Norm elsewhere: the scale of a static solution
            follows from its coefficient, which Layer-Norm hides.
        kernel: see :class:`InterpolationSettings`; ``None`` for a weight for each
            ``channel`` in one dimension, where it is worth its cost, and ``none`` in
            more.
        latent: see :class:`InterpolationSettings`.
        point_channels: likewise; ``None`` for 32 in more than one dimension, else 0.
        neighbours: likewise; ``None`` for 8 in more than one dimension, else 0.
        margin: likewise.
    """

    width: PositiveInt | None = None  # type: ignore[assignment]
    depth: PositiveInt | None = None  # type: ignore[assignment]
    norm: Literal["element", "channel", "none"] | None = None  # type: ignore[assignment]
    time: Literal["tokens", "channels"] | None = None  # type: ignore[assignment]
    kernel: KernelName | None = None  # type: ignore[assignment]
    latent: bool = True
    margin: NonNegativeFloat = 0.25
    point_channels: NonNegativeInt | None = None  # type: ignore[assignment]
    neighbours: NonNegativeInt | None = None  # type: ignore[assignment]

    def completed(self, problem: Problem) -> Self:
        """With what is left open as it suits ``problem``."""
        suits: dict[str, Any] = {"norm": "channel" if problem.has_time else "none"}
        suits |= IN_ONE_DIMENSION if problem.domain.dim == 1 else IN_MORE
        left = {k: v for k, v in suits.items() if getattr(self, k) is None}
        return super().completed(problem).model_copy(update=left)


class NFS(PointMixer, FNO):
    """Interpolation to a grid, Fourier blocks with Layer-Norm, and interpolation back.

    "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2. Local splines, or
    moving least squares where there is no time, interpolate to the grid and back, and
    learned layers add to them. In two and three dimensions these are messages from the
    nearest points to the points and to the queries, see
    :class:`~nfsgeo.nn.PointPath`; in one dimension they are kernels among the nodes
    and on the way back. Where the points are those of a graded mesh, the grid is
    equispaced in latent coordinates, see :class:`~nfsgeo.geometry.LatentCoordinates`.

    The paper's kernels sum over the points: those of ``kernel="dense"`` with
    ``base="mean"``, which are added to the mean of the neighbours.
    """

    Settings: ClassVar[type[ModelSettings]] = NFSSettings
    paper = PAPER_KERNEL | PAPER_FOURIER | PAPER_NFS
    spheres = True

    def max_nodes(self) -> int:
        """As many as points; on a sphere no more than a matrix of harmonics bears."""
        most, curved = self.problem.num_points, self.problem.domain.curved
        return min(most, SPHERE_NODES) if curved else most


class FNOSplineSettings(NFSSettings):
    """Settings of `nfs`, without learned layers beside the grid."""

    kernel: KernelName = "none"
    latent: bool = False
    point_channels: NonNegativeInt = 0
    neighbours: NonNegativeInt = 0


class FNOSpline(NFS):
    """`nfs` without learned layers beside the grid, which is equispaced in space.

    Interpolations alone lead to the grid and back, and what reaches a prediction has
    passed the grid. It takes less time for each step than `nfs`.
    """

    Settings = FNOSplineSettings
    paper = PAPER_FOURIER | {"margin": 0.0}


class DSESettings(SpectralSettings):
    """Settings of `dse`, which are those of `fno` without Layer-Norm.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    time_modes: PositiveInt = 8


class DSE(Model):
    r"""A Fourier Neural Operator on points, without a grid.

    .. math:: v' = \mathrm{GELU}(K v + W v + b)

    Direct spectral evaluation: the spectral convolution :math:`K` of every layer
    evaluates its Fourier sums at the points themselves. Input time steps are channels,
    predicted ones a further axis, as in all mixers; on an equispaced grid this is
    `fno`.
    """

    Settings = DSESettings
    source = "Beyond Regular Grids: Fourier-Based Neural Operators"
    paper = PAPER_FOURIER
    predicts_anywhere = False

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        dim, width, depth = problem.domain.dim, settings.width, settings.depth
        time_modes = None
        if problem.has_time:
            time_modes = min(settings.time_modes, problem.n_out // 2 + 1)
        self.lift = Lift(problem.num_features, dim, width, time=problem.has_time)
        modes = [settings.modes_of(problem)] * dim
        self.spectral = nn.ModuleList(
            PointSpectralConv(width, width, modes, time_modes) for _ in range(depth)
        )
        self.pointwise = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.projector = Projector(width, problem.out_components)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        frequencies = self.spectral[0].frequencies()  # type: ignore[operator]
        domain = self.problem.domain.normalised
        waves = PointWaves.of(graphs.pos, graphs.sizes, domain, frequencies)
        value, slope = self.lift(x.flatten(1), graphs.pos)
        field = value.unsqueeze(1)
        if slope is not None:
            times = torch.linspace(0, 1, self.problem.n_out, device=x.device).to(field)
            field = field + times[:, None] * slope
        for spectral, pointwise in zip(self.spectral, self.pointwise, strict=True):
            mixed = spectral(field, waves) + pointwise(field)
            field = nn.functional.gelu(mixed)
        result: Tensor = self.projector(field)
        return result
