"""`pfno`: the Fourier Neural Operator on patches, and on points as `nfs-pfno`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt

from nfsgeo.models.fourier_blocks import PAPER_MODES, modes_for, spectral_block
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.mixer import GridMixer
from nfsgeo.models.patches import InterpolatedSettings, PatchSettings, over_patches
from nfsgeo.models.point_mixer import NFS_PAPER, PointMixer, point_mixer_info
from nfsgeo.models.problem import Problem
from nfsgeo.nn import MixerBlock

__all__ = ["NFSPFNO", "NFS_PFNO_INFO", "PFNO", "PFNO_INFO"]


class PFNOSettings(PatchSettings):
    """Settings of `pfno`.

    Attributes:
        modes: non-negative frequencies kept on every space axis, at most as many as the
            grid of patches has; ``None`` for 64 in one dimension and 8 in more. In time
            all are kept.
    """

    modes: PositiveInt | None = None


class NFSPFNOSettings(InterpolatedSettings, PFNOSettings):
    """Settings of `nfs-pfno`."""


@over_patches
def pfno_blocks(
    settings: PFNOSettings, problem: Problem, sizes: Sequence[int]
) -> MixerBlock:
    """A Fourier block over patches, with all frequencies of time."""
    dim, most = problem.domain.dim, modes_for(settings.modes, problem)
    modes = [min(most, max(1, n // 2)) for n in sizes[:dim]]
    modes += [n // 2 + 1 for n in sizes[dim:]]
    return spectral_block(settings, sizes, modes)


class PFNO(GridMixer):
    """Fourier Neural Operator with Layer-Norm whose tokens are patches of nodes.

    `pfno` of "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """

    Settings = PFNOSettings
    make_blocks = staticmethod(pfno_blocks)


class NFSPFNO(PointMixer):
    """The same on any points: interpolation to a small grid in place of patches."""

    Settings = NFSPFNOSettings
    make_blocks = staticmethod(pfno_blocks)


PFNO_INFO = ModelInfo(
    name="pfno",
    model=PFNO,
    points=False,
    unseen_meshes=False,
    source=NFS_PAPER,
    parameters_paper=9_742_145,
    paper={"depth": 3, "modes": PAPER_MODES},
)
NFS_PFNO_INFO = point_mixer_info(
    "nfs-pfno", NFSPFNO, {"depth": 3, "modes": PAPER_MODES}
)
