"""`mppde`: message passing on a graph, for many time steps at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.base import BatchLoss, Model
from nfsgeo.models.settings import GraphSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import MPPDELayer, TemporalDecoder
from nfsgeo.nn.missing_values import fill_in_time

__all__ = ["MPPDE"]


class MPPDESettings(GraphSettings):
    """Settings of `mppde`.

    Attributes:
        width: hidden channels.
        depth: number of layers.
        window: time steps of input and output of the network.
        pushforward: whether half of the training windows start from a prediction.
    """

    width: PositiveInt = 128
    depth: PositiveInt = 6
    window: PositiveInt = 10
    pushforward: bool = True


class MPPDE(Model):
    r"""Message passing from a window of time steps to the next.

    .. math:: \hat u_{k+l} = u_k + \frac{l}{w} d_l, \quad l = 1 \dots w

    "Message Passing Neural PDE Solvers" (Brandstetter et al., 2022), section 3. A
    network of an embedding, message passing and a decoder maps a window of :math:`w`
    time steps to as many changes :math:`d_l`. Windows follow each other until the
    result is complete. If there are fewer input time steps than a window has, the first
    is repeated. Forcings at the time steps of both windows are among the variables.
    Without time, windows have one step, and the output of the network is the result.

    In training a window starts at any true time step. Half of those with room for two
    start from a prediction that gets no gradient (the pushforward trick), which takes
    three windows of time steps, see :attr:`steps_beyond`.
    """

    Settings = MPPDESettings
    source = "Message Passing Neural PDE Solvers (Brandstetter et al., 2022)"
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
        forcings = 2 * self.window * problem.forcings
        variables = problem.in_components - fields + forcings + problem.has_time
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
        # Forcings are not known beyond the target, so there is no pushforward.
        if settings.pushforward and problem.has_time and not problem.forcings:
            used = max(problem.n_in, self.window) + problem.n_out
            self.steps_beyond = max(0, 3 * self.window - used)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Make the edges of all pairs within the radius."""
        return {"near": self.builder.points_to_points(pos)}

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the observed points; see :class:`Model`."""
        return self.predict_forced(x, graphs, None)

    def predict_forced(
        self, x: Tensor, graphs: Graphs, forcing: Tensor | None
    ) -> Tensor:
        """Predict with a forcing; see :class:`Model`."""
        fields, *inputs = self._split(x, forcing)
        windows = [fields[:, -self.window :]]
        for start in range(0, self.problem.n_out, self.window):
            time = x.new_full((len(x),), start)
            windows.append(self._next(windows[-1], inputs, time, graphs))
        return torch.cat(windows[1:], dim=1)[:, : self.problem.n_out]

    def training_loss(
        self,
        x: Tensor,
        target: Tensor,
        graphs: Graphs,
        loss: BatchLoss,
        forcing: Tensor | None = None,
    ) -> Tensor:
        """Return the mean loss of windows drawn from ``x`` and ``target``.

        The number of windows is that of the result; see :class:`Model`.
        """
        fields, *inputs = self._split(x, forcing)
        choices = fields.size(1) + target.size(1) - 2 * self.window + 1
        if not self.problem.has_time or choices < 1:
            return super().training_loss(x, target, graphs, loss, forcing)
        true = torch.cat([fields, target], dim=1)
        filled = fill_in_time(true)
        batch, num_samples = graphs.batch, graphs.num_samples
        losses = []
        for _ in range(0, self.problem.n_out, self.window):
            pushed = self.settings.pushforward and bool(torch.rand(()) < 0.5)
            ahead = self.window if pushed and choices > self.window else 0
            # Each sample has its own start.
            start = torch.randint(choices - ahead, (num_samples,), device=x.device)
            start = start.expand(len(x)) if batch is None else start[batch]
            time = start + self.window - fields.size(1)
            window = _time_steps(filled, start, self.window)
            if ahead:
                with torch.no_grad():
                    window = self._next(window, inputs, time, graphs)
            after = self._next(window, inputs, time + ahead, graphs)
            truth = _time_steps(true, start + ahead + self.window, self.window)
            losses.append(loss(after, truth))
        return torch.stack(losses).mean()

    def _split(
        self, x: Tensor, forcing: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Split inputs into fields, coefficients and forcing.

        Fields have at least the time steps of a window. The forcing begins with them
        and ends with the result.
        """
        if not self.problem.has_time:
            return x, x[:, -1, :0], x[..., :0]
        fields, rest = x.tensor_split([self.problem.out_components], dim=-1)
        if forcing is None:
            forcing = x.new_empty(len(x), self.problem.n_in + self.problem.n_out, 0)
        lacking = max(0, self.window - x.size(1))
        fields, forcing = (
            torch.cat([series[:, :1].expand(-1, lacking, -1), series], dim=1)
            for series in (fields, forcing)
        )
        return fields, rest[:, -1], forcing

    def _next(
        self, window: Tensor, inputs: Sequence[Tensor], time: Tensor, graphs: Graphs
    ) -> Tensor:
        """Predict the next window; ``time [N]`` counts steps since the input."""
        coefficients, forcing = inputs
        if not self.problem.has_time:
            return self.network(window, coefficients, graphs)
        relative = (time / self.problem.n_out).to(window.dtype).unsqueeze(1)
        variables = torch.cat([relative, coefficients], dim=1)
        if self.problem.forcings:
            start = time.long() + forcing.size(1) - self.problem.n_out - self.window
            forcing = _time_steps(forcing, start, 2 * self.window)
            variables = torch.cat([variables, forcing.flatten(1)], dim=1)
        change = self.network(window, variables, graphs)
        return window[:, -1:] + self.elapsed * change

    def network(self, window: Tensor, variables: Tensor, graphs: Graphs) -> Tensor:
        """Apply the network to a window, ``[N, window, components]``.

        Args:
            window: fields ``[N, window, fields]``.
            variables: time, coefficients and forcings ``[N, variables]``.
            graphs: graphs with the edges ``near``.
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
    """Take ``number`` time steps of each point from its ``start [N]`` on.

    The last time step is repeated.
    """
    index = start[:, None] + torch.arange(number, device=start.device)
    index = index.clamp(max=fields.size(1) - 1)
    return fields.take_along_dim(index[:, :, None], dim=1)
