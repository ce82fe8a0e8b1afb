"""Training steps and predictions of `nfs`, and of what its cost is given in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MixerOperator, Problem, build_model
from nfsgeo.nn import InterpolationResampling, LiftedBy, Points, Resampling
from nfsgeo_benchmarks.perf.steps import step

STEPS_IN = 10
DOMAIN = Domain.unit(2)
# What its interpolation and its core cost at most: by default `nfs` has no learned
# kernel and no tokens of time in two dimensions.
LEARNED = {"width": 32, "depth": 2, "time": "tokens", "kernel": "channel"}


def nfs_step(
    folder: Path,
    *,
    points: int,
    time_steps: int,
    samples: int,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[], float]:
    """A training step of `nfs` on random points; the graphs are there already.

    Args:
        points: Points per sample, a square number; there are as many nodes.
        time_steps: Number of predicted time steps, after 10 observed ones.
        samples: Samples per batch, each with its own points.
        settings: Settings of the model besides :data:`LEARNED`.
    """
    network, _, batch = _nfs(points, time_steps, samples, settings or {})
    target = torch.randn(len(batch["pos"]), time_steps, 1)
    return step(network, lambda: network(**batch), target)


def plain_nfs_step(
    folder: Path,
    *,
    points: int,
    time_steps: int,
    samples: int,
    settings: Mapping[str, Any],
) -> Callable[[], float]:
    """The same numbers by equation (7) of the paper, written out edge by edge.

    Every time step is interpolated to the grid, and every edge holds its matrix and its
    message for each time step.
    """
    network, resampling, batch = _nfs(points, time_steps, samples, settings)
    target = torch.randn(len(batch["pos"]), time_steps, 1)
    network.resampling = _WrittenOut(resampling)
    return step(network, lambda: network(**batch), target)


def core_step(
    folder: Path, *, points: int, time_steps: int, samples: int, norm: str = "channel"
) -> Callable[[], float]:
    """A training step of the Fourier blocks of `nfs` on a grid of as many points.

    Args:
        points, time_steps, samples: As for :func:`nfs_step`.
        norm: Layer-Norm, as `nfs` has it by default; ``none`` makes it `fno`.
    """
    side = _side(points)
    problem = Problem(DOMAIN, 1, 1, STEPS_IN, time_steps, points, (side, side), True)
    network = build_model("fno", problem, {"norm": norm})
    pos = equispaced_grid(DOMAIN, (side, side)).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(points)
    x, target = torch.randn(len(pos), STEPS_IN, 1), torch.randn(len(pos), time_steps, 1)
    return step(network, lambda: network(x, pos, batch), target)


def nfs_prediction(
    folder: Path, *, points: int, time_steps: int, queries: int
) -> Callable[[], float]:
    """A prediction of `nfs` at random query points; the graphs are there already.

    Args:
        points: Number of observed points, a square number.
        time_steps: Number of predicted time steps.
        queries: Number of query points.
    """
    network, _, batch = _nfs(points, time_steps, 1, {})
    graphs = network.connect(batch["pos"], query_pos=torch.rand(queries, 2))

    def run() -> float:
        with torch.inference_mode():
            return network(batch["x"], batch["pos"], graphs=graphs).mean().item()

    return run


def _nfs(
    points: int, time_steps: int, samples: int, settings: Mapping[str, Any]
) -> tuple[MixerOperator, InterpolationResampling, dict[str, Any]]:
    """The network and a batch, drawn alike whatever is done with them."""
    torch.manual_seed(0)
    problem = Problem(DOMAIN, 1, 1, STEPS_IN, time_steps, points, None, True)
    settings = {"grid": _side(points), **LEARNED, **settings}
    network = build_model("nfs", problem, settings)
    assert isinstance(network, MixerOperator)
    pos = torch.rand(samples * points, 2)
    batch = torch.arange(samples).repeat_interleave(points)
    resampling = network.resampling
    assert isinstance(resampling, InterpolationResampling)
    graphs = network.connect(pos, batch)
    for graph in graphs.edges.values():
        assert graph.transpose  # which the first backward pass would make
    x = torch.randn(len(pos), STEPS_IN, 1)
    return network, resampling, {"x": x, "pos": pos, "batch": batch, "graphs": graphs}


def _side(points: int) -> int:
    side = round(points**0.5)
    if side**2 != points:
        raise ValueError(f"{points} points: expected a square number")
    return side


class _WrittenOut(Resampling):
    """Learned interpolation of every time step, without any saving.

    Args:
        sparing: The one whose layers and graphs it uses.
    """

    def __init__(self, sparing: InterpolationResampling) -> None:
        super().__init__()
        self.sparing = sparing
        sparing.to_grid.use_fused = sparing.from_grid.use_fused = False

    def prepare(self, points: Points) -> Points:
        """The points, with what both ways need; see :class:`nfsgeo.nn.Resampling`."""
        return self.sparing.prepare(points)

    def forward(self, points: Points, lift: LiftedBy, times: Tensor) -> Tensor:
        """The field on the grid; see :class:`nfsgeo.nn.Resampling`."""
        pos = points.graphs.pos
        value, slope = lift(points.features, pos)
        assert slope is not None
        fields = value.unsqueeze(1) + times[:, None] * slope
        graph = points.graphs.edges["up"]
        field = self.sparing.to_grid(fields, pos, graph, points.features)
        shape = points.graphs.num_samples, *self.sparing.shape
        return field.unflatten(0, shape).movedim(-1, 1)

    def back(self, field: Tensor, points: Points, some: slice | None = None) -> Tensor:
        """The field at any points; see :class:`nfsgeo.nn.Resampling`."""
        return self.sparing.back(field, points, some)
