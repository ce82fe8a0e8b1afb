"""`fno`, `nfs`, `fno-spline` and `dse`: Fourier layers on grids and at points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs, equispaced_grid
from nfsgeo.models.base import Model
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
from nfsgeo.models.settings import PAPER_FOURIER, ModelSettings, SpectralSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import (
    FactorisedSpectralConv,
    Lift,
    PointSpectralConv,
    PointWaves,
    Projector,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
)

__all__ = ["DSE", "FNO", "NFS", "FNOSpline"]

# Default number of degrees, with as many harmonics as frequencies in two dimensions.
SPHERE_DEGREES = 16
# Frequencies on an axis of layers that convolve along each axis alone.
FACTORISED_MODES = 12


class FourierSettings(SpectralSettings, MixerSettings):
    """Settings of the Fourier blocks.

    On a sphere, ``modes`` is the number of degrees of spherical harmonics, 16 for
    ``None``, at most what the grid resolves.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
        factorised: whether a layer convolves along each axis alone, see
            :class:`~nfsgeo.nn.FactorisedSpectralConv`; ``modes`` are then 12 for
            ``None`` in two and three dimensions.
        skip: whether a block adds to its input, see :class:`~nfsgeo.nn.MixerBlock`.
    """

    time_modes: PositiveInt = 8
    factorised: bool = False
    skip: bool = False

    def modes_of(self, problem: Problem) -> int:
        """Non-negative frequencies on every space axis of ``problem``."""
        if self.factorised and self.modes is None and problem.domain.dim > 1:
            return FACTORISED_MODES
        return super().modes_of(problem)


class FNOSettings(FourierSettings):
    """Settings of `fno`, which works at any resolution without Layer-Norm."""

    norm: Literal["element", "channel", "none"] = "none"


class FNO(MixerOperator):
    """Fourier Neural Operator (Li et al., 2021), over space and time."""

    Settings: ClassVar[type[ModelSettings]] = FNOSettings
    source = "Fourier Neural Operator for Parametric PDEs (Li et al., 2021)"
    paper = PAPER_FOURIER

    def make_blocks(self, problem: Problem, shape: Sequence[int]) -> nn.Module:
        """Make Fourier blocks over space and time, on a sphere with harmonics.

        A block of "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2, is a
        spectral convolution with Layer-Norm, plus a 1×1 convolution, then GELU.
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
            layer = FactorisedSpectralConv if settings.factorised else SpectralConv
            mix = partial(layer, width, width, modes)
        blocks = (
            mixer_block(settings, sizes, mix(), skip=settings.skip)
            for _ in range(settings.depth)
        )
        return nn.Sequential(*blocks)


PAPER_BLOCKS = {"factorised": False, "skip": False}
IN_ONE_DIMENSION = {
    "width": 32,
    "depth": 2,
    "time": "tokens",
    "kernel": "channel",
    "norm": "none",
    "point_channels": 0,
    "neighbours": 0,
    **PAPER_BLOCKS,
}
IN_MORE = {
    "width": 64,
    "depth": 6,
    "time": "channels",
    "kernel": "none",
    "point_channels": 32,
    "neighbours": 8,
    "factorised": True,
    "skip": True,
}
ON_SPHERE = {**IN_MORE, "depth": 4, **PAPER_BLOCKS}
SPHERE_NODES = 1 << 14
NO_PATH = {"latent": False, "point_channels": 0, "neighbours": 0, "margin": 0.0}
PAPER_NFS = {
    "width": 32,
    "norm": "element",
    "time": "tokens",
    **NO_PATH,
    **PAPER_BLOCKS,
}


class NFSSettings(FourierSettings, InterpolationSettings):
    """Settings of `nfs`; the value of ``None`` depends on the problem.

    Attributes:
        width: channels, ``C``; ``None`` for 32 in one dimension, 64 in more.
        depth: number of blocks; ``None`` for 2 in one dimension, 4 on a sphere, and 6
            elsewhere.
        time: see :class:`MixerSettings`; ``None`` for tokens in one dimension, channels
            in more.
        norm: see :class:`MixerSettings`; ``None`` for ``channel`` with time in more
            than one dimension, and else for ``none``: the scale of a static solution
            depends on that of its coefficient, which Layer-Norm hides.
        kernel: see :class:`InterpolationSettings`; ``None`` for ``channel`` in one
            dimension, where it is worth its cost, and ``none`` in more.
        latent: see :class:`InterpolationSettings`; ``None`` for true in one and two
            dimensions. In three, points often lie on surfaces, which maps of the axes
            cannot spread.
        point_channels: likewise; ``None`` for 32 in more than one dimension, else 0.
        neighbours: likewise; ``None`` for 8 in more than one dimension, else 0.
        margin: likewise.
        factorised: see :class:`FourierSettings`; ``None`` for true in two and three
            dimensions but on a sphere.
        skip: likewise.
    """

    width: PositiveInt | None = None  # type: ignore[assignment]
    depth: PositiveInt | None = None  # type: ignore[assignment]
    norm: Literal["element", "channel", "none"] | None = None  # type: ignore[assignment]
    time: Literal["tokens", "channels"] | None = None  # type: ignore[assignment]
    kernel: KernelName | None = None  # type: ignore[assignment]
    latent: bool | None = None  # type: ignore[assignment]
    margin: NonNegativeFloat = 0.25
    point_channels: NonNegativeInt | None = None  # type: ignore[assignment]
    neighbours: NonNegativeInt | None = None  # type: ignore[assignment]
    factorised: bool | None = None  # type: ignore[assignment]
    skip: bool | None = None  # type: ignore[assignment]

    def completed(self, problem: Problem) -> Self:
        """Return the settings with the values of ``None`` filled in."""
        defaults: dict[str, Any] = {"norm": "channel" if problem.has_time else "none"}
        defaults["latent"] = problem.domain.dim < 3
        if problem.domain.curved:
            defaults |= ON_SPHERE
        else:
            defaults |= IN_ONE_DIMENSION if problem.domain.dim == 1 else IN_MORE
        missing = {k: v for k, v in defaults.items() if getattr(self, k) is None}
        return super().completed(problem).model_copy(update=missing)


class NFS(PointMixer, FNO):
    """Fourier blocks on a grid that follows the points, with learned messages.

    "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et al., 2022), section 3.2.
    Local splines, or moving least squares without time, interpolate to the grid and
    back, and learned layers add to them. In two and three dimensions these are messages
    from the nearest points to the points and to the query points, see
    :class:`~nfsgeo.nn.PointPath`. In one dimension they are kernels among the nodes and
    on the way back. For the points of a graded mesh, the grid is equispaced in latent
    coordinates, see :class:`~nfsgeo.geometry.LatentCoordinates`.

    The paper's kernels are sums over points, added to the mean of the neighbours:
    ``kernel="dense"`` and ``base="mean"``.
    """

    Settings: ClassVar[type[ModelSettings]] = NFSSettings
    paper = PAPER_KERNEL | PAPER_FOURIER | PAPER_NFS
    spheres = True
    learning_rate = 3e-3

    def max_nodes(self) -> int:
        """Return the number of points, on a sphere at most ``SPHERE_NODES``."""
        most, curved = self.problem.num_points, self.problem.domain.curved
        return min(most, SPHERE_NODES) if curved else most


class FNOSplineSettings(NFSSettings):
    """Settings of `nfs`, with an equispaced grid and fixed interpolations."""

    kernel: KernelName = "none"
    latent: bool = False
    point_channels: NonNegativeInt = 0
    neighbours: NonNegativeInt = 0


class FNOSpline(NFS):
    """`nfs` on an equispaced grid, with fixed interpolations to the grid and back.

    It has no point features, learned messages or kernels, nor latent coordinates. A
    step takes less time than one of `nfs`.
    """

    Settings = FNOSplineSettings
    paper = PAPER_FOURIER | {"margin": 0.0}


class DSESettings(SpectralSettings):
    """Settings of `dse`, as of `fno` without Layer-Norm.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
        skip: whether a layer adds to its input, as in `nfs`.
    """

    time_modes: PositiveInt = 8
    skip: bool = False


class DSE(Model):
    r"""A Fourier Neural Operator on points, without a grid.

    .. math:: v' = s v + \mathrm{GELU}(K v + W v + b)

    Direct spectral evaluation: the spectral convolution :math:`K` of every layer
    evaluates its Fourier sums at the points. Input time steps are channels and
    predicted ones a further axis, as in all mixers. On an equispaced grid this is
    `fno`. :math:`s` is 0, or 1 with the setting ``skip``.
    """

    Settings = DSESettings
    source = (
        "Beyond Regular Grids: Fourier-Based Neural Operators (Lingsch et al., 2024)"
    )
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
        """Predict at the observed points; see :class:`Model`."""
        frequencies = self.spectral[0].frequencies()  # type: ignore[operator]
        domain = self.problem.domain.normalised
        waves = PointWaves.of(graphs.pos, graphs.sizes, domain, frequencies)
        value, slope = self.lift(x.flatten(1), graphs.pos)
        field = value.unsqueeze(1)
        if slope is not None:
            times = torch.linspace(0, 1, self.problem.n_out, device=x.device).to(field)
            field = field + times[:, None] * slope
        for spectral, pointwise in zip(self.spectral, self.pointwise, strict=True):
            mixed = nn.functional.gelu(spectral(field, waves) + pointwise(field))
            field = field + mixed if self.settings.skip else mixed
        result: Tensor = self.projector(field)
        return result
