"""`fno`: the Fourier Neural Operator on equispaced grids."""

from __future__ import annotations

from typing import Literal

from nfsgeo.models.fourier import FourierSettings, fourier_blocks
from nfsgeo.models.framing import on_grid
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.problem import Problem

__all__ = ["FNOSettings", "build_fno"]


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it changes resolution freely."""

    norm: Literal["element", "channel", "none"] = "none"


def build_fno(problem: Problem, settings: FNOSettings) -> MixerOperator:
    """Fourier Neural Operator over space and time, as the paper compares with it.

    After "Fourier Neural Operator for Parametric Partial Differential Equations".
    """
    return on_grid(problem, settings, fourier_blocks)
