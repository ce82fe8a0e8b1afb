"""The frame of the recurrent graph models: encode the input, decode the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.model import Model
from nfsgeo.models.own_loss import BatchLoss
from nfsgeo.models.problem import Problem
from nfsgeo.models.supports import Supports

__all__ = ["RecurrentOperator"]


class RecurrentOperator(Model):
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
        cells: map input ``[N, F]``, hidden state ``[N, C]`` and support to the next
            hidden state.
        supports: one for each cell.
        residual: whether to predict changes.
        sampling_decay: :math:`\tau`; ``None`` for no scheduled sampling.
    """

    predicts_anywhere = False
    records_beyond = 0
    steps: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        cells: Sequence[nn.Module],
        supports: Supports,
        residual: bool = True,
        sampling_decay: float | None = None,
    ) -> None:
        super().__init__(problem)
        self.cells = nn.ModuleList(cells)
        self.supports = supports
        self.width: int = cells[-1].hidden_channels  # type: ignore[assignment]
        self.output = nn.Linear(self.width, problem.out_components)
        self.residual = residual and problem.has_time
        self.sampling_decay = sampling_decay
        # A run that goes on must know how far sampling has come.
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def connect_sample(self, pos: Tensor, query_pos: Tensor | None) -> Graphs:
        """The positions of one sample, with the edges of the supports."""
        graphs = super().connect_sample(pos, query_pos)
        return replace(graphs, edges=self.supports.connect(pos))

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        return self._predict(x, graphs)

    def training_loss(
        self, x: Tensor, target: Tensor, graphs: Graphs, loss: BatchLoss
    ) -> Tensor:
        """The loss, with scheduled sampling where it is asked for."""
        true = None
        if self.sampling_decay is not None:
            chance = torch.rand(self.problem.n_out).to(self.steps.device)
            true = chance < self._true_share(self.sampling_decay)
            self.steps += 1
        return loss(self._predict(x, graphs, target, true), target)

    def _true_share(self, decay: float) -> Tensor:
        return torch.sigmoid(math.log(decay) - self.steps / decay)

    def _predict(
        self,
        x: Tensor,
        graphs: Graphs,
        target: Tensor | None = None,
        true: Tensor | None = None,
    ) -> Tensor:
        """The result; steps at which ``true [n_t']`` holds are fed the ``target``."""
        supports = self.supports(graphs, list(self.cells))
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
            last = records[-1]
            if target is not None and true is not None:
                last = torch.where(true[t], target[:, t], last)
        return torch.stack(records, dim=1)

    def _step(
        self, x: Tensor, hidden: Sequence[Tensor], supports: Sequence[Any]
    ) -> list[Tensor]:
        states = []
        for cell, h, support in zip(self.cells, hidden, supports, strict=True):
            x = cell(x, h, support)
            states.append(x)
        return states
