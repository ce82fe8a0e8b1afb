"""The frame of the DeepONets: a branch on a grid, a trunk at any point."""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.model import Model
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GridResampling, Points, Trunk

__all__ = ["DeepONet", "DeepONetSettings"]


class DeepONetSettings(BaseModel):
    """Settings that the DeepONets share.

    Attributes:
        basis: number of basis functions, ``K``.
        hidden: width of the trunk.
        trunk_depth: hidden layers of the trunk.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    basis: PositiveInt = 128
    hidden: PositiveInt = 128
    trunk_depth: PositiveInt = 4


class DeepONet(Model):
    r"""A solution operator with a basis of its own.

    .. math:: G(a)(x, t) = b_0 + \sum_{k=1}^{K} b_k(a) \, t_k(x, t)

    "Learning nonlinear operators via DeepONet", equation (2), the branch a network on
    the grid of inputs and coordinates, averaged over the grid. The inputs lie on a
    grid; the result may be had at any point.

    Args:
        problem: sizes of the fields.
        branch: maps ``[B, F + d, *grid]``, inputs and coordinates, to
            ``[B, width, *n]``.
        width: channels of the branch.
        settings: sizes of basis and trunk.
    """

    needs_grid = True
    lengths: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        branch: nn.Module,
        width: int,
        settings: DeepONetSettings,
    ) -> None:
        super().__init__(problem)
        self.resampling = GridResampling()
        self.branch = branch
        self.coefficients = nn.Linear(width, problem.out_components * settings.basis)
        self.trunk = Trunk(
            problem.domain.dim,
            settings.basis,
            hidden=settings.hidden,
            depth=settings.trunk_depth,
            time=problem.has_time,
        )
        self.bias = nn.Parameter(torch.zeros(problem.out_components))
        lengths = torch.tensor(problem.domain.normalised.lengths, dtype=torch.float32)
        self.register_buffer("lengths", lengths, persistent=False)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the queries of ``graphs``; see :class:`Model`."""
        points = Points(x.flatten(1), graphs)
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        field = self.resampling(points, self._inputs, times)
        # Pooled over the grid, which may therefore have any size.
        pooled = self.branch(field).flatten(2).mean(2)
        coefficients = self.coefficients(pooled).unflatten(1, (len(self.bias), -1))
        if graphs.query_pos is None:
            # All samples have one grid, hence one basis.
            basis = self.trunk(self._scaled(graphs.pos[: graphs.sizes[0]]), times)
            result = torch.einsum("bfk,ntk->bntf", coefficients, basis).flatten(0, 1)
        else:
            basis = self.trunk(self._scaled(graphs.query_pos), times)
            batch = graphs.query_batch
            if batch is None:
                coefficients = coefficients.expand(len(basis), -1, -1)
            else:
                coefficients = coefficients[batch]
            result = torch.einsum("mfk,mtk->mtf", coefficients, basis)
        return result + self.bias

    def _inputs(self, features: Tensor, pos: Tensor) -> tuple[Tensor, None]:
        """What the branch sees: ``[N, F + d]``, alike at all times."""
        return torch.cat([features, self._scaled(pos)], dim=1), None

    def _scaled(self, pos: Tensor) -> Tensor:
        """Coordinates between 0 and 1."""
        return pos / self.lengths.to(pos.dtype)
