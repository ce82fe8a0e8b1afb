"""`nfs`: the Non-equispaced Fourier Solver, on any points."""

from __future__ import annotations

from typing import Literal

from nfsgeo.models.fourier import FourierSettings, fourier_blocks
from nfsgeo.models.framing import on_points
from nfsgeo.models.interpolation import InterpolationSettings
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.problem import Problem

__all__ = ["NFSSettings", "build_nfs"]


class NFSSettings(FourierSettings, InterpolationSettings):
    """Settings of `nfs`; its Layer-Norm holds on any grid."""

    norm: Literal["element", "channel", "none"] = "channel"


def build_nfs(problem: Problem, settings: NFSSettings) -> MixerOperator:
    """Interpolation to a grid, Fourier blocks with Layer-Norm, and back.

    By default a spline interpolates to the grid, and learned kernels add to it among
    the nodes and on the way back; with ``base="mean"`` kernels interpolate from the
    points, as in the paper. The system of "Non-equispaced Fourier Neural Solvers for
    PDEs", section 3.2.
    """
    return on_points(problem, settings, fourier_blocks, max_nodes=None)
