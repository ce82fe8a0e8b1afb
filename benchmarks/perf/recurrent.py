"""Diffusion recurrent cells, ours and those of torch-geometric-temporal."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Domain, Graphs
from nfsgeo.models import DCRNN, Model, Problem, build_model
from nfsgeo.models.radius_graph import graph_builder
from nfsgeo_benchmarks.perf.steps import step

WIDTH, ORDER = 64, 2


def our_dcrnn(
    folder: Path, *, points: int, time_steps: int, samples: int, radius: float
) -> Callable[[], float]:
    """A training step of `dcrnn` at the paper's setting, as many time steps in as out.

    Args:
        points: Points per sample; all samples have the same.
        time_steps: Number of input and of predicted time steps.
        samples: Samples per batch.
        radius: Radius of the graph, on the periodic unit square.
    """
    problem = _problem(points, time_steps)
    return _step(build_model("dcrnn", problem, {"radius": radius}), problem, samples)


def their_dcrnn(
    folder: Path, *, points: int, time_steps: int, samples: int, radius: float
) -> Callable[[], float]:
    """The same network of the package's cell ``DCRNN``, a sample after the other.

    It makes a dense adjacency matrix in every convolution, so that samples joined in
    one graph would take three times as long. It takes the edges to be sorted by their
    first ends; ours are by their second, and go both ways.
    """
    problem = _problem(points, time_steps)
    cells = [_Samples(_published().DCRNN(c, WIDTH, ORDER), points) for c in (1, WIDTH)]
    return _step(_frame(problem, cells, radius, first=True), problem, samples)


def their_batched_dcrnn(
    folder: Path, *, points: int, time_steps: int, samples: int, radius: float
) -> Callable[[], float]:
    """The same network of the gates of the package's ``BatchedDCRNN``.

    It keeps what follows from the graph, and takes the samples as one graph. Its
    forward pass starts from zeros for every sequence and could not decode, so its
    parts are called one by one.
    """
    problem = _problem(points, time_steps)
    cells = [_Gates(_published().BatchedDCRNN(c, WIDTH, ORDER)) for c in (1, WIDTH)]
    return _step(_frame(problem, cells, radius, first=False), problem, samples)


class _Samples(nn.Module):
    """Calls a cell of theirs for each sample."""

    def __init__(self, cell: Any, points: int) -> None:
        super().__init__()
        self.cell, self.points = cell, points

    def forward(self, x: Tensor, h: Tensor, edges: Tensor) -> Tensor:
        pairs = zip(x.split(self.points), h.split(self.points), strict=True)
        return torch.cat([self.cell(a, edges, None, b) for a, b in pairs])


class _Gates(nn.Module):
    """Calls the gates of a batched cell of theirs for one time step."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell
        self.known: Tensor | None = None

    def forward(self, x: Tensor, h: Tensor, edges: Tensor) -> Tensor:
        cell, known = self.cell, edges is self.known
        self.known = edges
        weight = torch.ones(edges.size(1))
        z = cell._calculate_update_gate(x, edges, weight, h, known)
        r = cell._calculate_reset_gate(x, edges, weight, h, known)
        c = cell._calculate_candidate_state(x, edges, weight, h, r, known)
        new: Tensor = cell._calculate_hidden_state(z, h, c)
        return new


class _Theirs(DCRNN):
    """The frame of `dcrnn` around cells of theirs, which take plain edges."""

    first = False
    known: Tensor | None = None

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        builder = graph_builder(self.problem, self.settings)
        return {"near": builder.points_to_points(pos)}

    def matrices(self, graphs: Graphs) -> Sequence[Any]:
        """The edges of the first sample alone, or of the batch."""
        # The same tensor at all time steps, by which their cells recognise it.
        if self.known is None:
            edges = graphs.edges["near"].edge_index
            if self.first:
                edges = edges[:, edges[1] < graphs.sizes[0]]
            self.known = edges.flip(0)
        return [self.known] * len(self.cells)


def _frame(
    problem: Problem, cells: Sequence[nn.Module], radius: float, *, first: bool
) -> DCRNN:
    network = _Theirs(problem, radius=radius, width=WIDTH)
    network.cells, network.first = nn.ModuleList(cells), first
    return network


def _problem(points: int, time_steps: int) -> Problem:
    return Problem(Domain.unit(2), 1, 1, time_steps, time_steps, points, None, True)


def _step(network: Model, problem: Problem, samples: int) -> Callable[[], float]:
    random = torch.Generator().manual_seed(0)
    points, time_steps = problem.num_points, problem.n_in
    pos = torch.rand(points, 2, generator=random).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(points)
    x = torch.randn(len(pos), time_steps, 1, generator=random)
    target = torch.randn(len(pos), time_steps, 1, generator=random)
    graphs = network.connect(pos, batch)
    return step(network, lambda: network(x, pos, batch, graphs=graphs), target)


def _published() -> ModuleType:
    """The file of the cells, without the package, which imports what is compiled."""
    name = "published_dcrnn"
    if name not in sys.modules:
        package = importlib.util.find_spec("torch_geometric_temporal")
        if package is None or not package.submodule_search_locations:
            raise ModuleNotFoundError("no torch_geometric_temporal")
        folder = Path(package.submodule_search_locations[0])
        spec = importlib.util.spec_from_file_location(
            name, folder / "nn" / "recurrent" / "dcrnn.py"
        )
        assert spec is not None and spec.loader is not None
        # Where PyTorch Geometric looks for the types of a layer's arguments.
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
