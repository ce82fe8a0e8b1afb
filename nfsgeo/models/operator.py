"""The frame of all mixers: lift, resample, mix, resample back, project."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.model import Model
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GridResampling, Lift, Points, Projector, Resampling

__all__ = ["MixerOperator"]

# Rows of the projector's hidden layer that a prediction holds at a time.
ROWS = 1 << 19


class MixerOperator(Model):
    r"""A solution operator of the Vision Mixer family.

    .. math:: G(a) = Q \circ H' \circ \mathrm{Block}_L \circ \dots \circ
        \mathrm{Block}_1 \circ H \circ P (a)

    Table 5 of "Non-equispaced Fourier Neural Solvers for PDEs": the input records are
    channels, the output records tokens with times in [0, 1], and all of them are
    predicted at once.

    Args:
        problem: sizes of the fields.
        resampling: :math:`H` and :math:`H'`.
        blocks: mix a field ``[B, C, *grid(, T)]``.
        channels: :math:`C`.
        back_channels: channels of the field that ``blocks`` give; ``None`` for as many.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        resampling: Resampling,
        blocks: nn.Module,
        channels: int,
        back_channels: int | None = None,
    ) -> None:
        super().__init__(problem)
        self.lift = Lift(
            problem.num_features, problem.domain.dim, channels, time=problem.has_time
        )
        self.resampling = resampling
        self.needs_grid = isinstance(resampling, GridResampling)
        self.predicts_anywhere = self.differentiable_points = not self.needs_grid
        self.blocks = blocks
        self.projector = Projector(back_channels or channels, problem.out_components)

    def connect_sample(self, pos: Tensor, query_pos: Tensor | None) -> Graphs:
        """The positions of one sample, with the edges of the resampling."""
        graphs = super().connect_sample(pos, query_pos)
        return replace(graphs, edges=self.resampling.connect(pos, graphs.query_pos))

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the queries of ``graphs``; see :class:`Model`."""
        points = self.resampling.prepare(Points(x.flatten(1), graphs))
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        field = self.blocks(self.resampling(points, self.lift, times))
        num, some = graphs.queries.size(0), max(1, ROWS // self.problem.n_out)
        if torch.compiler.is_compiling() or torch.is_grad_enabled() or num <= some:
            result: Tensor = self.projector(self.resampling.back(field, points))
            return result
        # Memory for a million queries is that of some, and of the result.
        pieces = [slice(at, min(at + some, num)) for at in range(0, num, some)]
        back = self.resampling.back
        return torch.cat([self.projector(back(field, points, p)) for p in pieces])
