"""`mlpmixer`: matrices over patches, and on points as `nfs-mlpmixer`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer, layer_norm
from nfsgeo.models.patches import InterpolatedSettings, PatchSettings, over_patches
from nfsgeo.models.point_mixer import PointMixer, point_mixer_info
from nfsgeo.models.problem import Problem
from nfsgeo.nn import MixerBlock, Pointwise, TokenMLP

__all__ = ["MLPMIXER_INFO", "NFSMLPMixer", "NFS_MLPMIXER_INFO", "MLPMixer"]


@over_patches
def mlpmixer_blocks(
    settings: PatchSettings, problem: Problem, sizes: Sequence[int]
) -> MixerBlock:
    """A matrix over all tokens of space and time, then one over channels."""
    width = settings.width
    return MixerBlock(
        nn.Sequential(TokenMLP(sizes), Pointwise(width, width)),
        norm=layer_norm(settings, sizes),
        activation=nn.GELU(),
    )


class MLPMixer(GridMixer):
    """MLP-Mixer whose tokens are patches of space and time.

    After "MLP-Mixer: An all-MLP Architecture for Vision", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """

    Settings = PatchSettings
    make_blocks = staticmethod(mlpmixer_blocks)


class NFSMLPMixer(PointMixer):
    """The same on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    spheres = True
    make_blocks = staticmethod(mlpmixer_blocks)


MLPMIXER_INFO = ModelInfo(
    name="mlpmixer",
    model=MLPMixer,
    points=False,
    unseen_meshes=False,
    source="MLP-Mixer: An all-MLP Architecture for Vision",
    parameters_paper=79_749_953,
    paper={"depth": 3},
)
NFS_MLPMIXER_INFO = point_mixer_info("nfs-mlpmixer", NFSMLPMixer, {"depth": 3})
