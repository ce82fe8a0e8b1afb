"""The frame of the recurrent graph models: encode the input, decode the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from nfsgeo.models.observed import observed
from nfsgeo.models.problem import Problem
from nfsgeo.models.queries import check_queries
from nfsgeo.models.supports import Supports

__all__ = ["RecurrentOperator"]


class RecurrentOperator(nn.Module):
    r"""A solution operator that steps from record to record on a graph.

    .. math::
        h_{t+1} = \mathrm{cells}(u_t, h_t), \quad t \le n_t; \qquad
        \hat u_t = W h_t + b, \quad h_{t+1} = \mathrm{cells}(\hat u_t, h_t)

    The cells take in the input records one by one. The same cells then go on from a
    record of zeros, each prediction being their next input; coefficients stay. With
    ``residual`` the last input record is added to every prediction. A problem without
    time takes one step each.

    While it learns, scheduled sampling replaces a prediction that is fed back by the
    true record, at step :math:`i` with probability :math:`\tau / (\tau + e^{i/\tau})`
    ("Diffusion Convolutional Recurrent Neural Network", section 2.3).

    Args:
        problem: sizes of the fields.
        name: of the model.
        cells: map input ``[N, F]``, hidden state ``[N, C]`` and support to the next
            hidden state.
        supports: one for each cell.
        residual: whether to predict changes.
        sampling_decay: :math:`\tau`; ``None`` for no scheduled sampling.

    Shapes:
        ``x`` ``[N, n_t, F]``, ``pos`` ``[N, d]``, ``batch`` ``[N]``; result
        ``[N, n_t', F']``.
    """

    records_beyond = 0
    steps: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        name: str,
        cells: Sequence[nn.Module],
        supports: Supports,
        residual: bool = True,
        sampling_decay: float | None = None,
    ) -> None:
        super().__init__()
        self.problem, self.name = problem, name
        self.cells = nn.ModuleList(cells)
        self.supports = supports
        self.width: int = cells[-1].hidden_channels  # type: ignore[assignment]
        self.output = nn.Linear(self.width, problem.out_components)
        self.residual = residual and problem.has_time
        self.sampling_decay = sampling_decay
        # A run that goes on must know how far sampling has come.
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

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
        check_queries(self.name, pos, query_pos)
        observed(self.problem, x, pos, batch, None, None)
        return self._predict(x, pos, batch)

    def training_loss(
        self, x: Tensor, pos: Tensor, batch: Tensor | None, target: Tensor
    ) -> Tensor:
        """Mean squared error, with scheduled sampling where it is asked for."""
        fed: list[Tensor | None] = [None] * self.problem.n_out
        if self.sampling_decay is not None:
            chance = torch.rand(self.problem.n_out) < self._true_share()
            fed = [
                target[:, t] if true else None for t, true in enumerate(chance.tolist())
            ]
            self.steps += 1
        return mse_loss(self._predict(x, pos, batch, fed), target)

    def _true_share(self) -> float:
        assert self.sampling_decay is not None
        decay = self.sampling_decay
        exponent = math.log(decay) - int(self.steps) / decay
        return float(torch.sigmoid(torch.tensor(exponent)))

    def _predict(
        self,
        x: Tensor,
        pos: Tensor,
        batch: Tensor | None,
        fed: Sequence[Tensor | None] | None = None,
    ) -> Tensor:
        supports = self.supports(pos, batch, list(self.cells))
        hidden = [x.new_zeros(len(x), self.width) for _ in self.cells]
        for record in x.unbind(1):
            hidden = self._step(record, hidden, supports)
        num_fields = self.problem.out_components if self.problem.has_time else 0
        coefficients = x[:, -1, num_fields:]
        last = x.new_zeros(len(x), num_fields)
        records = []
        for t in range(self.problem.n_out):
            record = torch.cat([last, coefficients], dim=-1)
            hidden = self._step(record, hidden, supports)
            out = self.output(hidden[-1])
            records.append(x[:, -1, :num_fields] + out if self.residual else out)
            true = None if fed is None else fed[t]
            last = records[-1] if true is None else true
        return torch.stack(records, dim=1)

    def _step(
        self, x: Tensor, hidden: Sequence[Tensor], supports: Sequence[Any]
    ) -> list[Tensor]:
        states = []
        for cell, h, support in zip(self.cells, hidden, supports, strict=True):
            x = cell(x, h, support)
            states.append(x)
        return states
