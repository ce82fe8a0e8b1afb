"""`fno`: the Fourier Neural Operator on equispaced grids."""

from __future__ import annotations

from nfsgeo.models.fourier import FourierSettings, fourier_blocks
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GridResampling

__all__ = ["FNOSettings", "build_fno"]


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it changes resolution freely."""


def build_fno(problem: Problem, settings: FNOSettings) -> MixerOperator:
    """Fourier Neural Operator over space and time, as the paper compares with it.

    After "Fourier Neural Operator for Parametric Partial Differential Equations".
    """
    shape = problem.grid_shape or ()
    return MixerOperator(
        problem,
        resampling=GridResampling(),
        blocks=fourier_blocks(settings, problem, shape),
        channels=settings.width,
    )
