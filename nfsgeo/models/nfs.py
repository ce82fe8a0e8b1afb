"""`nfs`: the Non-equispaced Fourier Solver, on any points."""

from __future__ import annotations

from typing import Literal

from nfsgeo.models.frames.fourier import PAPER_MODES, FourierSettings, fourier_blocks
from nfsgeo.models.frames.interpolation import (
    InterpolationSettings,
    PointMixer,
    point_mixer_info,
)
from nfsgeo.models.frames.problem import Problem

__all__ = ["NFS", "NFS_INFO", "NFSSettings"]

SPHERE_NODES = 1 << 14


class NFSSettings(FourierSettings, InterpolationSettings):
    """Settings of `nfs`; its Layer-Norm holds on any grid."""

    norm: Literal["element", "channel", "none"] = "channel"


class NFS(PointMixer):
    """Interpolation to a grid, Fourier blocks with Layer-Norm, and interpolation back.

    By default a spline interpolates to the grid, and learned kernels add to it among
    the nodes and on the way back; with ``base="mean"`` kernels interpolate from the
    points, as in the paper. The system of "Non-equispaced Fourier Neural Solvers for
    PDEs", section 3.2.
    """

    Settings = NFSSettings
    spheres = True
    make_blocks = staticmethod(fourier_blocks)

    @staticmethod
    def max_nodes(problem: Problem) -> int:
        """As many as points; on a sphere no more than a matrix of harmonics bears."""
        most = SPHERE_NODES if problem.domain.curved else problem.num_points
        return min(problem.num_points, most)


NFS_INFO = point_mixer_info(
    "nfs",
    NFS,
    {"depth": 3, "modes": PAPER_MODES, "norm": "element"},
    parameters_paper=37_891_937,
)
