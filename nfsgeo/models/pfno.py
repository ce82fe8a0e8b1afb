"""`pfno`: the Fourier Neural Operator on patches, and on points as `nfs-pfno`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt
from torch import nn

from nfsgeo.models.fourier import spectral_block
from nfsgeo.models.framing import on_grid, on_points
from nfsgeo.models.modes import modes_for
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.patching import InterpolatedSettings, PatchSettings, patched
from nfsgeo.models.problem import Problem

__all__ = ["NFSPFNOSettings", "PFNOSettings", "build_nfs_pfno", "build_pfno"]


class PFNOSettings(PatchSettings):
    """Settings of `pfno`.

    Attributes:
        modes: non-negative frequencies kept on every space axis, as many as the
            grid of patches has at most; ``None`` for 64 in one dimension and 8 in
            more. In time all are kept.
    """

    modes: PositiveInt | None = None


class NFSPFNOSettings(InterpolatedSettings, PFNOSettings):
    """Settings of `nfs-pfno`."""


def pfno_blocks(
    settings: PFNOSettings, problem: Problem, shape: Sequence[int]
) -> nn.Module:
    """Fourier blocks over patches, with all frequencies of time."""
    dim = problem.domain.dim

    def block(sizes: tuple[int, ...]) -> nn.Module:
        most = modes_for(settings.modes, problem)
        modes = [min(most, max(1, n // 2)) for n in sizes[:dim]]
        modes += [n // 2 + 1 for n in sizes[dim:]]
        return spectral_block(settings, sizes, modes)

    return patched(settings, problem, shape, block)


def build_pfno(problem: Problem, settings: PFNOSettings) -> MixerOperator:
    """Fourier Neural Operator with Layer-Norm, a patch of nodes a token.

    `pfno` of "Non-equispaced Fourier Neural Solvers for PDEs", table 5.
    """
    return on_grid(problem, settings, pfno_blocks)


def build_nfs_pfno(problem: Problem, settings: NFSPFNOSettings) -> MixerOperator:
    """The same on any points: interpolation to a small grid in place of patches."""
    return on_points(problem, settings, pfno_blocks)
