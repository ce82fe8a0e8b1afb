"""`fnet`: Fourier transforms over patches, and on points as `nfs-fnet`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer, MixerSettings, layer_norm
from nfsgeo.models.patches import InterpolatedSettings, PatchSettings, over_patches
from nfsgeo.models.point_mixer import PointMixer, point_mixer_info
from nfsgeo.models.problem import Problem
from nfsgeo.nn import (
    FourierTokens,
    MixerBlock,
    ModulusGELU,
    Pointwise,
    RealPart,
    SplitComplex,
)

__all__ = ["FNET_INFO", "NFSFNet", "NFS_FNET_INFO", "FNet"]


@partial(over_patches, after=RealPart())
def fnet_blocks(
    settings: PatchSettings, problem: Problem, sizes: Sequence[int]
) -> MixerBlock:
    """Transforms of space and time, complex maps of channels, then the real part.

    The field stays complex from block to block, and alternates between space and
    frequencies.
    """
    width = settings.width
    return MixerBlock(
        nn.Sequential(FourierTokens(), Pointwise(width, width, dtype=torch.cfloat)),
        norm=_complex_layer_norm(settings, sizes),
        activation=ModulusGELU(width),
    )


def _complex_layer_norm(
    settings: MixerSettings, sizes: Sequence[int]
) -> SplitComplex | None:
    real, imaginary = layer_norm(settings, sizes), layer_norm(settings, sizes)
    return SplitComplex(real, imaginary) if real and imaginary else None


class FNet(GridMixer):
    """FNet whose tokens are patches of space and time.

    After "FNet: Mixing Tokens with Fourier Transforms", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5: complex linear maps,
    normalisation and activation.
    """

    Settings = PatchSettings
    make_blocks = staticmethod(fnet_blocks)


class NFSFNet(PointMixer):
    """The same on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    make_blocks = staticmethod(fnet_blocks)


FNET_INFO = ModelInfo(
    name="fnet",
    model=FNet,
    points=False,
    unseen_meshes=False,
    source="FNet: Mixing Tokens with Fourier Transforms",
    paper={"depth": 3},
)
NFS_FNET_INFO = point_mixer_info("nfs-fnet", NFSFNet, {"depth": 3})
