"""`nfs`, the Non-equispaced Fourier Solver on any points, and `fno-spline`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import PositiveInt

from nfsgeo.models.fno import FNO, FourierSettings
from nfsgeo.models.point_mixer import (
    PAPER_KERNEL,
    InterpolationSettings,
    KernelName,
    PointMixer,
)
from nfsgeo.models.settings import PAPER_FOURIER, ModelSettings
from nfsgeo.models.task import Problem

__all__ = ["NFS", "FNOSpline"]

IN_ONE_DIMENSION: dict[str, Any] = {
    "width": 32,
    "depth": 2,
    "time": "tokens",
    "kernel": "channel",
    "norm": "none",
}
IN_MORE: dict[str, Any] = {
    "width": 64,
    "depth": 4,
    "time": "channels",
    "kernel": "none",
}
SPHERE_NODES = 1 << 14
PAPER_NFS = {"width": 32, "norm": "element", "time": "tokens"}


class NFSSettings(FourierSettings, InterpolationSettings):
    """Settings of `nfs`; what is ``None`` depends on the problem.

    Attributes:
        width: channels, ``C``; ``None`` for 32 in one dimension, 64 in more.
        depth: number of blocks; ``None`` for 2 in one dimension, 4 in more.
        time: whether the predicted time steps are ``tokens`` beside the nodes, as in
            the paper, or ``channels`` of the result: blocks then mix space alone, and
            cost as much as for one time step. ``None`` for tokens in one dimension,
            channels in more.
        norm: Layer-Norm of every token by ``channel``, by ``element`` of a grid of one
            size, or ``none``; ``None`` for channels in more than one dimension where
            there is time, and no Layer-Norm elsewhere: the scale of a static solution
            follows from its coefficient, which Layer-Norm hides.
        kernel: see :class:`InterpolationSettings`; ``None`` for a weight for each
            ``channel`` in one dimension, where it is worth its cost, and ``none`` in
            more.
    """

    width: PositiveInt | None = None  # type: ignore[assignment]
    depth: PositiveInt | None = None  # type: ignore[assignment]
    norm: Literal["element", "channel", "none"] | None = None  # type: ignore[assignment]
    time: Literal["tokens", "channels"] | None = None  # type: ignore[assignment]
    kernel: KernelName | None = None  # type: ignore[assignment]

    def completed(self, problem: Problem) -> Self:
        """With what is left open as it suits ``problem``."""
        suits = {"norm": "channel" if problem.has_time else "none"}
        suits |= IN_ONE_DIMENSION if problem.domain.dim == 1 else IN_MORE
        left = {k: v for k, v in suits.items() if getattr(self, k) is None}
        return super().completed(problem).model_copy(update=left)


class NFS(PointMixer, FNO):
    """Interpolation to a grid, Fourier blocks with Layer-Norm, and interpolation back.

    "Non-equispaced Fourier Neural Solvers for PDEs", section 3.2. By default local
    splines interpolate to the grid and back. In one dimension, and where ``kernel`` is
    set, learned kernels add to them among the nodes and on the way back. The paper's
    kernels sum over the points: those of ``kernel="dense"`` with ``base="mean"``, which
    are added to the mean of the neighbours.
    """

    Settings: ClassVar[type[ModelSettings]] = NFSSettings
    paper = PAPER_KERNEL | PAPER_FOURIER | PAPER_NFS
    spheres = True

    def max_nodes(self) -> int:
        """As many as points; on a sphere no more than a matrix of harmonics bears."""
        most, curved = self.problem.num_points, self.problem.domain.curved
        return min(most, SPHERE_NODES) if curved else most


class FNOSplineSettings(NFSSettings):
    """Settings of `nfs`, without a learned kernel."""

    kernel: KernelName = "none"


class FNOSpline(NFS):
    """`nfs` without a learned kernel: local splines to the grid and back.

    What reaches a prediction has passed the grid. In two dimensions it is as good where
    the fields are smooth and without noise.
    """

    Settings = FNOSplineSettings
    paper = PAPER_FOURIER
