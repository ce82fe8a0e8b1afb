"""What is measured over the library neuraloperator: its FNO and its GINO."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Domain, GraphBuilder, equispaced_grid
from nfsgeo.models import Problem, build_model
from nfsgeo_benchmarks.perf.steps import step


def our_fno(
    folder: Path,
    *,
    size: int,
    time_steps: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
) -> Callable[[], float]:
    """A training step of `fno` over space and time, as many time steps in as out.

    Args:
        size: Nodes on each of the two axes.
        time_steps: Number of input and of predicted time steps.
        samples: Samples per batch.
        width: Channels.
        depth: Blocks.
        modes: Frequencies of either sign on each space axis; in time all.
    """
    domain = Domain.unit(2)
    problem = Problem(domain, 1, 1, time_steps, time_steps, size**2, (size, size), True)
    time_modes = time_steps // 2 + 1
    network = build_model(
        "fno",
        problem,
        {"width": width, "depth": depth, "modes": modes, "time_modes": time_modes},
    )
    pos = equispaced_grid(domain, (size, size)).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(size**2)
    x = torch.randn(len(pos), time_steps, 1)
    target = torch.randn(len(pos), time_steps, 1)
    return step(network, lambda: network(x, pos, batch), target)


def their_fno(
    folder: Path,
    *,
    size: int,
    time_steps: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
) -> Callable[[], float]:
    """The same for neuraloperator: as many weights, GELU, one linear map to lift.

    Its input already has a copy for each predicted time step, and it has no activation
    after the last block; both save it a little time.

    Args:
        size, time_steps, samples, width, depth, modes: As for :func:`our_fno`.
    """
    with warnings.catch_warnings():
        # The import changes the filters of the whole process.
        from neuralop.models import FNO
    network = FNO(
        n_modes=(2 * modes, 2 * modes, time_steps),  # of which it keeps n / 2 + 1
        in_channels=time_steps,
        out_channels=1,
        hidden_channels=width,
        n_layers=depth,
        lifting_channel_ratio=0,
        projection_channel_ratio=128 / width,
        use_channel_mlp=False,
        channel_mlp_skip=None,
    )
    x = torch.randn(samples, time_steps, size, size, time_steps)
    target = torch.randn(samples, 1, size, size, time_steps)
    return step(network, lambda: network(x), target)


DOMAIN = Domain.unit(2)
INPUTS = 10


def nfs_beside_gino(
    folder: Path,
    *,
    side: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
    hidden: int,
    radius: float,
    time_steps: int | None = None,
) -> Callable[[], float]:
    """A training step of `nfs`, of 10 inputs at a point.

    Args:
        side: Nodes on each axis; there are as many random points as nodes, the same
            in all samples, since GINO takes no others.
        samples: Samples per batch.
        width: Channels on the grid.
        depth: Fourier layers.
        modes: Frequencies of either sign on each axis.
        hidden: Width of the networks that give the kernels.
        radius: Radius of the neighbourhoods.
        time_steps: Number of predicted time steps; None for a problem without time.
    """
    points, time = side**2, time_steps is not None
    problem = Problem(DOMAIN, INPUTS, 1, 1, time_steps or 1, points, None, time)
    settings = {"width": width, "depth": depth, "modes": modes, "hidden": hidden}
    # Theirs learns its kernels, and brings all channels back.
    own = {"time": "tokens", "kernel": "channel", "back_width": None}
    network = build_model(
        "nfs", problem, {**settings, **own, "grid": side, "radius": radius}
    )
    pos = _points(points).repeat(samples, 1)
    batch = torch.arange(samples).repeat_interleave(points)
    graphs = network.connect(pos, batch)
    for graph in graphs.edges.values():
        assert graph.transpose  # which the first backward pass would make
    x, target = (
        torch.randn(len(pos), 1, INPUTS),
        torch.randn(len(pos), time_steps or 1, 1),
    )
    return step(network, lambda: network(x, pos, batch, graphs=graphs), target)


def their_gino(
    folder: Path,
    *,
    side: int,
    samples: int,
    width: int,
    depth: int,
    modes: int,
    hidden: int,
    radius: float,
    time_steps: int | None = None,
) -> Callable[[], float]:
    """A training step of ``neuralop.models.GINO`` with torch-scatter.

    Width, modes and the edges are those of :func:`nfs_beside_gino`; the search, which
    GINO repeats in every step, is left out. Time steps are channels of its result.
    """
    with warnings.catch_warnings():
        # It changes the filters of the whole process.
        from neuralop.models import GINO
    network = GINO(
        in_channels=INPUTS,
        out_channels=time_steps or 1,
        gno_coord_dim=2,
        in_gno_radius=radius,
        out_gno_radius=radius,
        fno_in_channels=INPUTS,
        fno_n_modes=(2 * modes, 2 * modes - 2),  # of the last it keeps n / 2 + 1
        fno_hidden_channels=width,
        fno_n_layers=depth,
        in_gno_channel_mlp_hidden_layers=[hidden],
        out_gno_channel_mlp_hidden_layers=[hidden],
        gno_use_open3d=False,
        gno_use_torch_scatter=True,
    )
    points, grid = _points(side**2), equispaced_grid(DOMAIN, (side, side))
    near = GraphBuilder(DOMAIN, radius)
    network.gno_in.neighbor_search = _Known(near.points_to_grid(points, grid))
    network.gno_out.neighbor_search = _Known(near.grid_to_points(grid, points))
    nodes = grid.view(1, side, side, 2)
    x = torch.randn(samples, len(points), INPUTS)
    target = torch.randn(samples, len(points), time_steps or 1)
    return step(network, lambda: network(points[None], nodes, points[None], x), target)


class _Known(nn.Module):
    """Gives the edges of a graph in place of a search."""

    def __init__(self, graph: BipartiteGraph) -> None:
        super().__init__()
        self.edges = {
            "neighbors_index": graph.edge_index[0],
            "neighbors_row_splits": graph.ptr,
        }

    def forward(
        self, data: Tensor, queries: Tensor, radius: float
    ) -> dict[str, Tensor]:
        return self.edges


def _points(count: int) -> Tensor:
    return torch.rand(count, 2, generator=torch.Generator().manual_seed(0))
