"""`mppde`: message passing, many records at a time, on any points."""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import PositiveInt
from torch import Tensor

from nfsgeo.geometry import Graphs
from nfsgeo.models.graph_settings import GraphSettings, graph_builder
from nfsgeo.models.model import Model
from nfsgeo.models.own_loss import BatchLoss
from nfsgeo.models.problem import Problem
from nfsgeo.models.window_step import WindowStep

__all__ = ["MPPDE", "MPPDESettings"]


class MPPDESettings(GraphSettings):
    """Settings of `mppde`.

    Attributes:
        width: hidden channels.
        depth: number of layers.
        window: records that go in and come out at once.
        pushforward: whether half of the training windows start from a prediction.
    """

    width: PositiveInt = 128
    depth: PositiveInt = 6
    window: PositiveInt = 10
    pushforward: bool = True


class MPPDE(Model):
    r"""Message passing from a window of records to the next.

    .. math:: \hat u_{k+l} = u_k + \frac{l}{w} d_l, \quad l = 1 \dots w

    "Message Passing Neural PDE Solvers", section 3: a network turns a window of
    records into as many changes :math:`d_l`; windows follow each other until the
    result is complete. Where there are fewer input records than a window has, the
    first is repeated. A problem without time has windows of one record, and what the
    network gives is the result itself.

    In training a window starts at any true record. Of those with room for two, half
    are predicted from a prediction that gets no gradient (the pushforward trick); that
    takes three windows of records, see :attr:`records_beyond`.

    Args:
        problem: sizes and domain of the fields.
        settings: of network and graph.
    """

    predicts_anywhere = False
    elapsed: Tensor

    def __init__(self, problem: Problem, settings: MPPDESettings) -> None:
        super().__init__(problem)
        self.builder = graph_builder(problem, settings)
        self.pushforward = settings.pushforward
        self.window = settings.window if problem.has_time else 1
        self.num_fields = (
            problem.out_components if problem.has_time else problem.in_components
        )
        coefficients = problem.in_components - self.num_fields
        self.step = WindowStep(
            problem.domain.normalised,
            self.builder.radius,
            window=self.window,
            fields=self.num_fields,
            components=problem.out_components,
            variables=coefficients + problem.has_time,
            width=settings.width,
            depth=settings.depth,
        )
        elapsed = torch.arange(1, self.window + 1) / self.window
        self.register_buffer("elapsed", elapsed[:, None], persistent=False)

    @property
    def records_beyond(self) -> int:
        """Records after the result's that the pushforward trick has a use for."""
        if not (self.pushforward and self.problem.has_time):
            return 0
        known = max(self.problem.n_in, self.window) + self.problem.n_out
        return max(0, 3 * self.window - known)

    def connect_sample(self, pos: Tensor, query_pos: Tensor | None) -> Graphs:
        """The positions of one sample, with all pairs within the radius."""
        graphs = super().connect_sample(pos, query_pos)
        return replace(graphs, edges={"near": self.builder.points_to_points(pos)})

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        fields, rest = self._split(x)
        windows = [fields[:, -self.window :]]
        for start in range(0, self.problem.n_out, self.window):
            time = rest.new_full((len(x),), start)
            windows.append(self._next(windows[-1], rest, time, graphs))
        return torch.cat(windows[1:], dim=1)[:, : self.problem.n_out]

    def training_loss(
        self, x: Tensor, target: Tensor, graphs: Graphs, loss: BatchLoss
    ) -> Tensor:
        """The mean loss of as many windows as the result has, drawn anew."""
        fields, rest = self._split(x)
        records = torch.cat([fields, target], dim=1)
        choices = records.size(1) - 2 * self.window + 1
        if not self.problem.has_time or choices < 1:
            return loss(self.predict(x, graphs), target[:, : self.problem.n_out])
        batch, num_samples = graphs.batch, graphs.num_samples
        losses = []
        for _ in range(0, self.problem.n_out, self.window):
            pushed = self.pushforward and bool(torch.rand(()) < 0.5)
            ahead = self.window if pushed and choices > self.window else 0
            # Each sample has a start of its own.
            start = torch.randint(choices - ahead, (num_samples,)).to(x.device)
            start = start.expand(len(x)) if batch is None else start[batch]
            time = start + self.window - fields.size(1)
            window = _records(records, start, self.window)
            if ahead:
                with torch.no_grad():
                    window = self._next(window, rest, time, graphs)
            after = self._next(window, rest, time + ahead, graphs)
            truth = _records(records, start + ahead + self.window, self.window)
            losses.append(loss(after, truth))
        return torch.stack(losses).mean()

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Fields, a window of records at least, and coefficients."""
        fields, rest = x[:, :, : self.num_fields], x[:, -1, self.num_fields :]
        missing = max(0, self.window - x.size(1))
        return torch.cat([fields[:, :1].expand(-1, missing, -1), fields], dim=1), rest

    def _next(
        self,
        window: Tensor,
        coefficients: Tensor,
        time: Tensor,
        graphs: Graphs,
    ) -> Tensor:
        """The window after ``window``; ``time [N]`` counts records since the input."""
        if not self.problem.has_time:
            result: Tensor = self.step(window, coefficients, graphs)
            return result
        share = (time / self.problem.n_out).to(window.dtype).unsqueeze(1)
        variables = torch.cat([share, coefficients], dim=1)
        change = self.step(window, variables, graphs)
        return window[:, -1:] + self.elapsed * change


def _records(records: Tensor, start: Tensor, number: int) -> Tensor:
    """``number`` records of each point from its ``start [N]`` on."""
    index = start[:, None] + torch.arange(number, device=start.device)
    return records.take_along_dim(index[:, :, None], dim=1)
