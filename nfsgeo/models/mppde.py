"""`mppde`: message passing on a graph, many time steps at once, on any points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.base import BatchLoss, GraphSettings, Model
from nfsgeo.models.task import Problem
from nfsgeo.nn import MPPDELayer, TemporalDecoder
from nfsgeo.nn.missing_values import fill_in_time

__all__ = ["MPPDE"]


class MPPDESettings(GraphSettings):
    """Settings of `mppde`.

    Attributes:
        width: hidden channels.
        depth: number of layers.
        window: time steps that go in and come out at once.
        pushforward: whether half of the training windows start from a prediction.
    """

    width: PositiveInt = 128
    depth: PositiveInt = 6
    window: PositiveInt = 10
    pushforward: bool = True


class MPPDE(Model):
    r"""Message passing from a window of time steps to the next.

    .. math:: \hat u_{k+l} = u_k + \frac{l}{w} d_l, \quad l = 1 \dots w

    "Message Passing Neural PDE Solvers", section 3: a network turns a window of
    :math:`w` time steps into as many changes :math:`d_l`, by layers of messages between
    an embedding and a decoder; windows follow each other until the result is complete.
    Where there are fewer input time steps than a window has, the first is repeated.
    What is known ahead comes with the variables, at the steps of both windows. A
    problem without time has windows of one step, and the network's output is the result
    itself.

    In training a window starts at any true time step. Of those with room for two, half
    are predicted from a prediction that gets no gradient (the pushforward trick); that
    takes three windows of time steps, see :attr:`steps_beyond`.
    """

    Settings = MPPDESettings
    source = "Message Passing Neural PDE Solvers"
    paper = {"radius": 0.05}
    spheres = True
    predicts_anywhere = False
    autoregressive = True
    elapsed: Tensor

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        self.builder = settings.builder(problem)
        self.window = settings.window if problem.has_time else 1
        fields = problem.out_components if problem.has_time else problem.in_components
        coefficients = problem.step_components - fields - problem.forcings
        known = 2 * self.window * problem.forcings
        variables = coefficients + known + problem.has_time
        width, sizes = settings.width, (self.window * fields, problem.dim, variables)
        self.step = nn.ModuleDict(
            {
                "embedding": nn.Sequential(
                    nn.Linear(sum(sizes), width),
                    nn.SiLU(),
                    nn.Linear(width, width),
                    nn.SiLU(),
                ),
                "layers": nn.ModuleList(
                    MPPDELayer(width, *sizes) for _ in range(settings.depth)
                ),
                "decoder": TemporalDecoder(width, self.window, problem.out_components),
            }
        )
        elapsed = torch.arange(1, self.window + 1) / self.window
        self.register_buffer("elapsed", elapsed[:, None], persistent=False)
        # What is known ahead is not known there.
        if settings.pushforward and problem.has_time and not problem.forcings:
            used = max(problem.n_in, self.window) + problem.n_out
            self.steps_beyond = max(0, 3 * self.window - used)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """All pairs within the radius."""
        return {"near": self.builder.points_to_points(pos)}

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the observed points; see :class:`Model`."""
        fields, *known = self._split(x)
        windows = [fields[:, -self.window :]]
        for start in range(0, self.problem.n_out, self.window):
            time = x.new_full((len(x),), start)
            windows.append(self._next(windows[-1], known, time, graphs))
        return torch.cat(windows[1:], dim=1)[:, : self.problem.n_out]

    def training_loss(
        self, x: Tensor, target: Tensor, graphs: Graphs, loss: BatchLoss
    ) -> Tensor:
        """The mean loss of windows drawn from ``x`` and ``target``.

        There are as many of them as the result has; see :class:`Model`.
        """
        fields, *known = self._split(x)
        choices = fields.size(1) + target.size(1) - 2 * self.window + 1
        if not self.problem.has_time or choices < 1:
            return super().training_loss(x, target, graphs, loss)
        true = torch.cat([fields, target], dim=1)
        filled = fill_in_time(true)
        batch, num_samples = graphs.batch, graphs.num_samples
        losses = []
        for _ in range(0, self.problem.n_out, self.window):
            pushed = self.settings.pushforward and bool(torch.rand(()) < 0.5)
            ahead = self.window if pushed and choices > self.window else 0
            # Each sample has a start of its own.
            start = torch.randint(choices - ahead, (num_samples,), device=x.device)
            start = start.expand(len(x)) if batch is None else start[batch]
            time = start + self.window - fields.size(1)
            window = _time_steps(filled, start, self.window)
            if ahead:
                with torch.no_grad():
                    window = self._next(window, known, time, graphs)
            after = self._next(window, known, time + ahead, graphs)
            truth = _time_steps(true, start + ahead + self.window, self.window)
            losses.append(loss(after, truth))
        return torch.stack(losses).mean()

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Fields of at least a window of time steps, coefficients, what is known.

        That begins with the fields and ends with the result.
        """
        if not self.problem.has_time:
            return x, x[:, -1, :0], x[..., :0]
        fields, given, rest = self.problem.split(x)
        lacking = max(0, self.window - x.size(1))
        fields, given = (
            torch.cat([each[:, :1].expand(-1, lacking, -1), each], dim=1)
            for each in (fields, given)
        )
        return fields, rest[:, -1], given

    def _next(
        self, window: Tensor, known: Sequence[Tensor], time: Tensor, graphs: Graphs
    ) -> Tensor:
        """The window after ``window``; ``time [N]`` counts steps since the input."""
        coefficients, given = known
        if not self.problem.has_time:
            return self.network(window, coefficients, graphs)
        relative = (time / self.problem.n_out).to(window.dtype).unsqueeze(1)
        variables = torch.cat([relative, coefficients], dim=1)
        if self.problem.forcings:
            start = time.long() + given.size(1) - self.problem.n_out - self.window
            given = _time_steps(given, start, 2 * self.window)
            variables = torch.cat([variables, given.flatten(1)], dim=1)
        change = self.network(window, variables, graphs)
        return window[:, -1:] + self.elapsed * change

    def network(self, window: Tensor, variables: Tensor, graphs: Graphs) -> Tensor:
        """The decoded output for a window, ``[N, window, components]``.

        Args:
            window: fields ``[N, window, fields]``.
            variables: ``[N, variables]``.
            graphs: with the edges ``near``.
        """
        u, near, batch = window.flatten(1), graphs.edges["near"], graphs.batch
        place = self.in_unit_box(graphs.pos)
        h = self.step["embedding"](torch.cat([u, place, variables], dim=1))
        away = near.displacement.to(u.dtype) / self.builder.radius
        samples = None if batch is None else graphs.num_samples
        for layer in self.step["layers"].children():
            h = layer(h, u, away, variables, near.edge_index, batch, samples)
        decoded: Tensor = self.step["decoder"](h)
        return decoded


def _time_steps(fields: Tensor, start: Tensor, number: int) -> Tensor:
    """``number`` time steps of each point from its ``start [N]`` on.

    Past the end of the fields it is their last one.
    """
    index = start[:, None] + torch.arange(number, device=start.device)
    index = index.clamp(max=fields.size(1) - 1)
    return fields.take_along_dim(index[:, :, None], dim=1)
