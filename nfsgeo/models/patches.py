"""Mixers whose tokens are patches, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import PositiveInt
from torch import nn

from nfsgeo.errors import UserError
from nfsgeo.models.mixer import MixerSettings, token_sizes
from nfsgeo.models.point_mixer import InterpolationSettings
from nfsgeo.models.problem import Problem
from nfsgeo.nn import PatchEmbedding, PatchUnembedding

__all__ = ["InterpolatedSettings", "PatchSettings", "divided", "over_patches"]


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


def over_patches(
    block: Callable[[Any, Problem, tuple[int, ...]], nn.Module],
    after: nn.Module | None = None,
) -> Callable[[Any, Problem, Sequence[int]], nn.Sequential]:
    """Decorates what makes a block: blocks between the embedding of patches and back.

    Args:
        block: makes one of settings and problem, for tokens on a grid of given sizes.
        after: a layer without weights between the last block and the way back.

    Raises:
        UserError: when patches do not fill the grid and the time steps, or it is that
            of a sphere.
    """

    def blocks(
        settings: PatchSettings, problem: Problem, shape: Sequence[int]
    ) -> nn.Sequential:
        if problem.domain.curved and settings.patch > 1:
            raise UserError(
                f"patches of {settings.patch} nodes on a sphere",
                "single nodes, since its grid has no axes",
                "set model.settings.patch=1",
            )
        patch = (settings.patch,) * len(shape)
        if problem.has_time:
            patch = (*patch, settings.time_patch)
        tokens = divided(token_sizes(problem, shape), patch)
        layers = [block(settings, problem, tokens) for _ in range(settings.depth)]
        if after is not None:
            layers.append(after)
        if max(patch) > 1:
            width = settings.width
            layers = [PatchEmbedding(width, patch), *layers]
            layers.append(PatchUnembedding(width, patch))
        return nn.Sequential(*layers)

    return blocks


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
