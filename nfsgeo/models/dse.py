"""`dse`: the Fourier Neural Operator with its sums over waves taken at the points."""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, PositiveInt
from torch import Tensor, nn

from nfsgeo.models.modes import modes_for
from nfsgeo.models.observed import observed
from nfsgeo.models.problem import Problem
from nfsgeo.models.queries import check_queries
from nfsgeo.nn import Lift, PointSpectralConv, PointWaves, Projector

__all__ = ["DSE", "DSESettings"]


class DSESettings(BaseModel):
    """Settings of `dse`, which are those of `fno` without Layer-Norm.

    Attributes:
        width: channels.
        depth: number of layers.
        modes: non-negative frequencies kept on every space axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more.
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: PositiveInt = 32
    depth: PositiveInt = 2
    modes: PositiveInt | None = None
    time_modes: PositiveInt = 8


class DSE(nn.Module):
    r"""A Fourier Neural Operator on points, without a grid.

    .. math:: v' = \mathrm{GELU}(K v + W v + b)

    Direct spectral evaluation, "Beyond Regular Grids: Fourier-Based Neural Operators
    on Arbitrary Domains": the spectral convolution :math:`K` of every layer sums over
    waves at the points themselves. Input records are channels, result records a
    further axis, as in all mixers; on an equispaced grid this is `fno`.

    Args:
        problem: sizes and domain of the fields.
        settings: of the network.

    Shapes:
        ``x`` ``[N, n_t, F]``, ``pos`` ``[N, d]``, ``batch`` ``[N]``; result
        ``[N, n_t', F']``.
    """

    def __init__(self, problem: Problem, settings: DSESettings) -> None:
        super().__init__()
        self.problem = problem
        dim, width, depth = problem.domain.dim, settings.width, settings.depth
        time_modes = None
        if problem.has_time:
            time_modes = min(settings.time_modes, problem.n_out // 2 + 1)
        self.lift = Lift(problem.num_features, dim, width, time=problem.has_time)
        modes = [modes_for(settings.modes, problem)] * dim
        self.spectral = nn.ModuleList(
            PointSpectralConv(width, width, modes, time_modes) for _ in range(depth)
        )
        self.pointwise = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.projector = Projector(width, problem.out_components)

    def forward(
        self,
        x: Tensor,
        pos: Tensor,
        batch: Tensor | None = None,
        *,
        query_pos: Tensor | None = None,
        query_batch: Tensor | None = None,
    ) -> Tensor:
        """Predict the result's records at the observed points.

        Args:
            x: input fields at the observed points.
            pos: positions of the observed points.
            batch: sample of each observed point, sorted; ``None`` for one sample.
            query_pos: ``None`` or ``pos``, since it predicts nowhere else.
            query_batch: ``None`` or ``batch``.

        Raises:
            UserError: for other query points.
            ValueError: when shapes do not fit the problem.
        """
        check_queries("dse", pos, query_pos)
        points, _, _ = observed(self.problem, x, pos, batch, None, None)
        frequencies = self.spectral[0].frequencies()  # type: ignore[operator]
        waves = PointWaves.of(
            pos, batch, points.num_samples, self.problem.domain, frequencies
        )
        value, slope = self.lift(points.features, pos)
        field = value.unsqueeze(1)
        if slope is not None:
            times = torch.linspace(0, 1, self.problem.n_out).to(field)
            field = field + times[:, None] * slope
        for spectral, pointwise in zip(self.spectral, self.pointwise, strict=True):
            mixed = spectral(field, waves) + pointwise(field)
            field = nn.functional.gelu(mixed)
        result: Tensor = self.projector(field)
        return result
