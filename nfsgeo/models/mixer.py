"""The frame of all mixers: lift, resampling, blocks, resampling back, projector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import pad

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import (
    FieldLayerNorm,
    GridResampling,
    InterpolationResampling,
    Lift,
    MixerBlock,
    PointPath,
    Pointwise,
    Projector,
    Resampling,
)

__all__ = [
    "MixerOperator",
    "MixerSettings",
    "layer_norm",
    "mixer_block",
    "token_sizes",
]

# Rows of the projector's hidden layer that a prediction computes at a time.
ROWS = 1 << 19


class MixerSettings(ModelSettings):
    """Settings of all mixers.

    Attributes:
        width: channels, ``C``.
        depth: number of blocks.
        norm: Layer-Norm over grid, time and channels, with an affine map for each
            ``element`` (node, time step and channel) or for each ``channel``; or
            ``none``.
        time: whether the predicted time steps are ``tokens``, as in the paper, or
            ``channels`` of the result. Blocks then mix only space, and cost as much as
            for one time step.
    """

    width: PositiveInt = 32
    depth: PositiveInt = 2
    norm: Literal["element", "channel", "none"] = "element"
    time: Literal["tokens", "channels"] = "tokens"


def layer_norm(settings: MixerSettings, sizes: Sequence[int]) -> FieldLayerNorm | None:
    """Make the Layer-Norm of one block, for tokens on a grid of ``sizes``."""
    if settings.norm == "none":
        return None
    return FieldLayerNorm(settings.width, sizes if settings.norm == "element" else None)


def mixer_block(
    settings: MixerSettings,
    sizes: Sequence[int],
    mix: nn.Module,
    *,
    residual: bool = True,
    skip: bool = False,
) -> MixerBlock:
    """Make a block for a grid of ``sizes``, its residual a 1×1 convolution or not."""
    width = settings.width
    return MixerBlock(
        mix,
        norm=layer_norm(settings, sizes),
        residual=Pointwise(width, width) if residual else None,
        activation=nn.GELU(),
        skip=skip,
    )


def token_sizes(problem: Problem, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the field on the grid, with time last if there is time."""
    return (*shape, problem.n_out) if problem.has_time else tuple(shape)


class MixerOperator(Model):
    r"""A solution operator of the Vision Mixer family.

    .. math:: G(a) = Q \circ H' \circ \mathrm{Block}_L \circ \dots \circ
        \mathrm{Block}_1 \circ H \circ P (a)

    Table 5 of "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et al., 2022): the
    input time steps are channels, the predicted ones tokens with times in [0, 1], and
    all of them are predicted at once. This class works on the grid of the data, without
    :math:`H`; :class:`~nfsgeo.models.point_mixer.PointMixer` works on any points.
    Subclasses make the blocks.
    """

    points = False
    predicts_anywhere = False
    # Whether positions are inputs.
    sees_positions = True

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        width = self.settings.width
        self.time_tokens = problem.has_time and self.settings.time == "tokens"
        resampling, shape, back_width = self.make_resampling()
        mixed = replace(problem, has_time=self.time_tokens)
        self.margin = self.margin_of(shape)
        padded = [size + more for size, more in zip(shape, self.margin, strict=True)]
        blocks = self.make_blocks(mixed, padded)
        if back_width is not None:
            blocks = nn.Sequential(blocks, Pointwise(width, back_width))
        seen = problem.dim if self.sees_positions else 0
        self.lift = Lift(self.grid_features, seen, width, time=self.time_tokens)
        self.resampling = resampling
        self.blocks = blocks
        self.path = self.make_path(back_width or width)
        steps = 1 if self.time_tokens else problem.n_out
        channels = self.path.out_channels if self.path else back_width or width
        self.projector = Projector(channels, steps * problem.out_components)

    @property
    def grid_features(self) -> int:
        """Number of inputs at each node of the grid."""
        return self.problem.num_features

    @abstractmethod
    def make_blocks(self, problem: Problem, shape: Sequence[int]) -> nn.Module:
        """Make the blocks, from fields ``[B, C, *grid(, T)]`` to the same sizes.

        Args:
            problem: the problem, without time if time steps are channels.
            shape: shape of the grid.
        """

    def make_resampling(self) -> tuple[Resampling, Sequence[int], int | None]:
        """Make :math:`H` and :math:`H'`.

        Returns:
            The resampling, the shape of the grid, and the number of channels that
            :math:`H'` interpolates, ``None`` for ``width``.
        """
        return GridResampling(), self.problem.grid_shape or (), None

    def margin_of(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the nodes by which each axis of a grid is padded for the blocks."""
        return (0,) * len(shape)

    def make_path(self, back_width: int) -> PointPath | None:
        """Make the path that bypasses the grid; by default, none.

        Args:
            back_width: channels that are interpolated from the grid.
        """
        return None

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the query points; see :class:`Model`."""
        features, path = x.flatten(1), self.path
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        types = encoded = None
        if path is not None:
            features, types = path.split(features)
        field = self.resampling(features, graphs, self.lift, times)
        if path is not None:
            encoded = path.encode(features, graphs, types)
            assert isinstance(self.resampling, InterpolationResampling)
            added = self.resampling.on_grid(path.at_nodes(encoded, graphs), graphs)
            field = field + (added[..., None] if self.time_tokens else added)
        field = self.cropped(self.blocks(self.padded(field)))
        num, rows = graphs.queries.size(0), max(1, ROWS // self.problem.n_out)
        pieces: list[slice | None] = [None]
        single = torch.compiler.is_compiling() or torch.is_grad_enabled() or num <= rows
        if not single:
            # Pieces bound the memory, apart from that of the result.
            pieces = [slice(at, min(at + rows, num)) for at in range(0, num, rows)]
        results = []
        for piece in pieces:
            result = self.resampling.back(field, features, graphs, piece)
            if path is not None and encoded is not None:
                result = path.decode(result, encoded, graphs, piece)
            results.append(self.projector(result))
        return torch.cat(results).reshape(num, self.problem.n_out, -1)

    def padded(self, field: Tensor) -> Tensor:
        """Pad a field ``[B, C, *grid(, T)]`` with zeros at the nodes of the margin."""
        if not any(self.margin):
            return field
        widths = [0, 0] * self.time_tokens
        for more in reversed(self.margin):
            widths += [0, more]
        return pad(field, widths)

    def cropped(self, field: Tensor) -> Tensor:
        """Remove the nodes of the margin from a field."""
        # Gradients have the layout of what is cut.
        last = field.stride(1) == 1
        field = field.movedim(1, -1) if last else field
        for axis, more in enumerate(self.margin, start=1 if last else 2):
            field = field.narrow(axis, 0, field.size(axis) - more)
        return field.movedim(-1, 1) if last else field
