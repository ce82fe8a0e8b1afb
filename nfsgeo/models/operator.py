"""The frame of all mixers: lift, resample, mix, resample back, project."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.models.observed import observed
from nfsgeo.models.problem import Problem
from nfsgeo.nn import Lift, Points, Projector, Resampling

__all__ = ["MixerOperator"]

# Rows of the projector's hidden layer that a prediction holds at a time.
ROWS = 1 << 19


class MixerOperator(nn.Module):
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

    Shapes:
        ``x`` ``[N, n_t, F]``, ``pos`` ``[N, d]``, ``batch`` ``[N]``; result
        ``[M, n_t', F']``.
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
        super().__init__()
        self.problem = problem
        self.lift = Lift(
            problem.num_features, problem.domain.dim, channels, time=problem.has_time
        )
        self.resampling = resampling
        self.blocks = blocks
        self.projector = Projector(back_channels or channels, problem.out_components)

    def forward(
        self,
        x: Tensor,
        pos: Tensor,
        batch: Tensor | None = None,
        *,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
    ) -> Tensor:
        """Predict the result's records at the query points.

        Args:
            x: input fields at the observed points.
            pos: positions of the observed points.
            batch: sample of each observed point, sorted; ``None`` for one sample.
            query_pos: where to predict; ``None`` for the observed points.
            query_batch: sample of each query point.

        Raises:
            ValueError: when shapes do not fit the problem.
        """
        points, query_pos, query_batch = observed(
            self.problem, x, pos, batch, query_pos, query_batch
        )
        points = self.resampling.prepare(points)
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        field = self.resampling(points, self.lift, times)
        field = self.blocks(field)
        if query_pos is pos or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self._at(field, points, query_pos, query_batch)
        # Memory for a million queries is that of some, and of the result.
        some_rows = max(1, ROWS // self.problem.n_out)
        size = some_rows if self.resampling.splits else query_pos.size(0)
        batches = None if query_batch is None else query_batch.split(size)
        return torch.cat(
            [
                self._at(field, points, some, None if batches is None else batches[i])
                for i, some in enumerate(query_pos.split(size))
            ]
        )

    def _at(
        self,
        field: Tensor,
        points: Points,
        query_pos: Tensor,
        query_batch: Tensor | None,
    ) -> Tensor:
        """The result at some points of the field on the grid."""
        back = self.resampling.back(field, points, query_pos, query_batch)
        result: Tensor = self.projector(back)
        return result
