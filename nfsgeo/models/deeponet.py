"""The frame of the DeepONets: a branch on a grid, a trunk at any point."""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, PositiveInt
from torch import Tensor, nn

from nfsgeo.models.observed import observed
from nfsgeo.models.problem import Problem
from nfsgeo.nn import GridResampling, Trunk

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


class DeepONet(nn.Module):
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

    Shapes:
        ``x`` ``[N, n_t, F]``, ``pos`` ``[N, d]``, ``batch`` ``[N]``; result
        ``[M, n_t', F']``.
    """

    lower: Tensor
    lengths: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        branch: nn.Module,
        width: int,
        settings: DeepONetSettings,
    ) -> None:
        super().__init__()
        self.problem = problem
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
        for name in ("lower", "lengths"):
            values = torch.tensor(getattr(problem.domain, name), dtype=torch.float32)
            self.register_buffer(name, values, persistent=False)

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
            x: input fields on the grid.
            pos: positions of the grid's nodes, row-major, the same in every sample.
            batch: sample of each observed point, sorted; ``None`` for one sample.
            query_pos: where to predict; ``None`` for the observed points.
            query_batch: sample of each query point.

        Raises:
            ValueError: when shapes do not fit the problem, or points are no grid.
        """
        points, query_pos, query_batch = observed(
            self.problem, x, pos, batch, query_pos, query_batch
        )
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        field = self.resampling(points, self._inputs, times)
        # Pooled over the grid, which may therefore have any size.
        pooled = self.branch(field).flatten(2).mean(2)
        coefficients = self.coefficients(pooled).unflatten(1, (len(self.bias), -1))
        if query_pos is pos:
            # All samples have one grid, hence one basis.
            basis = self.trunk(self._scaled(pos[: len(pos) // len(field)]), times)
            result = torch.einsum("bfk,ntk->bntf", coefficients, basis).flatten(0, 1)
        else:
            basis = self.trunk(self._scaled(query_pos), times)
            if query_batch is None:
                coefficients = coefficients.expand(len(query_pos), -1, -1)
            else:
                coefficients = coefficients[query_batch]
            result = torch.einsum("mfk,mtk->mtf", coefficients, basis)
        return result + self.bias

    def _inputs(self, features: Tensor, pos: Tensor) -> tuple[Tensor, None]:
        """What the branch sees: ``[N, F + d]``, alike at all times."""
        return torch.cat([features, self._scaled(pos)], dim=1), None

    def _scaled(self, pos: Tensor) -> Tensor:
        """Coordinates between 0 and 1."""
        return (pos - self.lower.to(pos.dtype)) / self.lengths.to(pos.dtype)
