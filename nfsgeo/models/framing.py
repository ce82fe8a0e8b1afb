"""Mixer blocks framed for data on a grid, and for data on points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import nn

from nfsgeo.models.interpolation import InterpolationSettings, back_width, interpolation
from nfsgeo.models.mixer_settings import MixerSettings
from nfsgeo.models.operator import MixerOperator
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GridResampling, Pointwise

__all__ = ["on_grid", "on_points"]

OnGrid = TypeVar("OnGrid", bound=MixerSettings)
OnPoints = TypeVar("OnPoints", bound=InterpolationSettings)


def on_grid(
    problem: Problem,
    settings: OnGrid,
    blocks: Callable[[OnGrid, Problem, Sequence[int]], nn.Module],
) -> MixerOperator:
    """A mixer on the grid that the data lie on.

    Args:
        problem: with a grid.
        settings: of the mixer.
        blocks: makes its blocks for settings, problem and the shape of a grid.
    """
    return MixerOperator(
        problem,
        resampling=GridResampling(),
        blocks=blocks(settings, problem, problem.grid_shape or ()),
        channels=settings.width,
    )


def on_points(
    problem: Problem,
    settings: OnPoints,
    blocks: Callable[[OnPoints, Problem, Sequence[int]], nn.Module],
    *,
    max_nodes: int | None = 256,
) -> MixerOperator:
    """The same mixer between interpolations from points and back to them.

    After "Non-equispaced Fourier Neural Solvers for PDEs", section 4.4.

    Args:
        problem: on any points.
        settings: of the mixer and of the interpolation.
        blocks: makes its blocks for settings, problem and the shape of a grid.
        max_nodes: most nodes of a grid whose size the settings leave open, about;
            ``None`` for as many as points.
    """
    resampling = interpolation(problem, settings, max_nodes=max_nodes)
    mixer = blocks(settings, problem, resampling.shape)
    back = back_width(problem, settings)
    if back is not None:
        mixer = nn.Sequential(mixer, Pointwise(settings.width, back))
    return MixerOperator(
        problem,
        resampling=resampling,
        blocks=mixer,
        channels=settings.width,
        back_channels=back,
    )
