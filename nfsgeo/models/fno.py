"""`fno`: the Fourier Neural Operator on equispaced grids."""

from __future__ import annotations

from typing import Literal

from nfsgeo.models.fourier_blocks import PAPER_MODES, FourierSettings, fourier_blocks
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer

__all__ = ["FNO", "FNO_INFO", "FNOSettings"]


class FNOSettings(FourierSettings):
    """Settings of `fno`; without Layer-Norm it takes grids of any resolution."""

    norm: Literal["element", "channel", "none"] = "none"


class FNO(GridMixer):
    """Fourier Neural Operator over space and time, as the paper compares with it.

    After "Fourier Neural Operator for Parametric Partial Differential Equations".
    """

    Settings = FNOSettings
    make_blocks = staticmethod(fourier_blocks)


FNO_INFO = ModelInfo(
    name="fno",
    model=FNO,
    points=False,
    source="Fourier Neural Operator for Parametric PDEs",
    parameters_paper=6_299_425,
    paper={"depth": 3, "modes": PAPER_MODES},
)
