"""Mixers whose tokens are patches, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import PositiveInt
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.mixer import MixerSettings, token_sizes
from nfsgeo.models.point_mixer import InterpolationSettings
from nfsgeo.models.problem import Problem
from nfsgeo.nn import PatchEmbedding, PatchUnembedding

__all__ = ["InterpolatedSettings", "PatchSettings", "divided", "patched"]


class PatchSettings(MixerSettings):
    """Settings of a mixer on patches.

    Attributes:
        patch: nodes of a patch along each axis of space.
        time_patch: time steps of a patch. With 1 for both, every node and time step is
            a token, without layers that embed it.
    """

    patch: PositiveInt = 4
    time_patch: PositiveInt = 2


class InterpolatedSettings(InterpolationSettings, PatchSettings):
    """Settings of such a mixer on interpolated points: a small grid, no patches."""

    patch: PositiveInt = 1
    time_patch: PositiveInt = 1


def patched(
    settings: PatchSettings,
    problem: Problem,
    shape: Sequence[int],
    block: Callable[[tuple[int, ...]], nn.Module],
    *,
    after: nn.Module | None = None,
) -> nn.Sequential:
    """Blocks between the embedding of patches and its inverse.

    Args:
        settings: depth, and sizes of the patches.
        problem: with or without time.
        shape: the grid.
        block: makes a block for tokens on a grid of the given sizes.
        after: a layer between the last block and the inverse.

    Raises:
        UserError: when patches do not fill the grid and the time steps, or it is that
            of a sphere.
    """
    if problem.domain.curved and settings.patch > 1:
        raise UserError(
            f"patches of {settings.patch} nodes on a sphere",
            "single nodes, since its grid has no axes",
            "set model.settings.patch=1",
        )
    sizes = token_sizes(problem, shape)
    patch = (settings.patch,) * len(shape)
    if problem.has_time:
        patch = (*patch, settings.time_patch)
    tokens = divided(sizes, patch)
    layers = [block(tokens) for _ in range(settings.depth)]
    if after is not None:
        layers.append(after)
    if max(patch) > 1:
        width = settings.width
        layers.insert(0, PatchEmbedding(width, patch))
        layers.append(PatchUnembedding(width, patch))
    return nn.Sequential(*layers)


def divided(sizes: Sequence[int], patch: Sequence[int]) -> tuple[int, ...]:
    """Number of patches along each axis.

    Raises:
        UserError: when patches do not fill the grid and the time steps.
    """
    if any(n % p for n, p in zip(sizes, patch, strict=True)):
        raise UserError(
            f"patches of {tuple(patch)} on {tuple(sizes)} nodes and time steps",
            "sizes that the patches divide",
            "set model.settings.patch and time_patch, or change grid and time steps",
        )
    return tuple(n // p for n, p in zip(sizes, patch, strict=True))
