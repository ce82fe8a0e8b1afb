"""`gfn`: global filters over patches, and on points as `nfs-gfn`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer, layer_norm
from nfsgeo.models.patches import InterpolatedSettings, PatchSettings, over_patches
from nfsgeo.models.point_mixer import PointMixer, point_mixer_info
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GlobalFilter, MixerBlock, Pointwise

__all__ = ["GFN", "GFN_INFO", "NFSGFN", "NFS_GFN_INFO"]


@over_patches
def gfn_blocks(
    settings: PatchSettings, problem: Problem, sizes: Sequence[int]
) -> MixerBlock:
    """A weight for each frequency and channel, then a linear map of channels."""
    width = settings.width
    return MixerBlock(
        nn.Sequential(GlobalFilter(width, sizes), Pointwise(width, width)),
        norm=layer_norm(settings, sizes),
        activation=nn.GELU(),
    )


class GFN(GridMixer):
    """Global Filter Network whose tokens are patches of space and time.

    After "Global Filter Networks for Image Classification", in the frame of
    "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """

    Settings = PatchSettings
    make_blocks = staticmethod(gfn_blocks)


class NFSGFN(PointMixer):
    """The same on any points: interpolation to a small grid in place of patches."""

    Settings = InterpolatedSettings
    make_blocks = staticmethod(gfn_blocks)


GFN_INFO = ModelInfo(
    name="gfn",
    model=GFN,
    points=False,
    unseen_meshes=False,
    source="Global Filter Networks for Image Classification",
    parameters_paper=1_361_729,
    paper={"depth": 3},
)
NFS_GFN_INFO = point_mixer_info("nfs-gfn", NFSGFN, {"depth": 3})
