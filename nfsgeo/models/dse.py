"""`dse`: the Fourier Neural Operator with Fourier sums at the points themselves."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.settings import PAPER_FOURIER, SpectralSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import Lift, PointSpectralConv, PointWaves, Projector

__all__ = ["DSE"]


class DSESettings(SpectralSettings):
    """Settings of `dse`, which are those of `fno` without Layer-Norm.

    Attributes:
        time_modes: frequencies kept in time, at most ``n_t' // 2 + 1``.
    """

    time_modes: PositiveInt = 8


class DSE(Model):
    r"""A Fourier Neural Operator on points, without a grid.

    .. math:: v' = \mathrm{GELU}(K v + W v + b)

    Direct spectral evaluation: the spectral convolution :math:`K` of every layer
    evaluates its Fourier sums at the points themselves. Input time steps are channels,
    predicted ones a further axis, as in all mixers; on an equispaced grid this is
    `fno`.
    """

    Settings = DSESettings
    source = "Beyond Regular Grids: Fourier-Based Neural Operators"
    paper = PAPER_FOURIER
    predicts_anywhere = False

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        dim, width, depth = problem.domain.dim, settings.width, settings.depth
        time_modes = None
        if problem.has_time:
            time_modes = min(settings.time_modes, problem.n_out // 2 + 1)
        self.lift = Lift(problem.num_features, dim, width, time=problem.has_time)
        modes = [settings.modes_of(problem)] * dim
        self.spectral = nn.ModuleList(
            PointSpectralConv(width, width, modes, time_modes) for _ in range(depth)
        )
        self.pointwise = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.projector = Projector(width, problem.out_components)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        frequencies = self.spectral[0].frequencies()  # type: ignore[operator]
        domain = self.problem.domain.normalised
        waves = PointWaves.of(graphs.pos, graphs.sizes, domain, frequencies)
        value, slope = self.lift(x.flatten(1), graphs.pos)
        field = value.unsqueeze(1)
        if slope is not None:
            times = torch.linspace(0, 1, self.problem.n_out, device=x.device).to(field)
            field = field + times[:, None] * slope
        for spectral, pointwise in zip(self.spectral, self.pointwise, strict=True):
            mixed = spectral(field, waves) + pointwise(field)
            field = nn.functional.gelu(mixed)
        result: Tensor = self.projector(field)
        return result
