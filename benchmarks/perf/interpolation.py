"""The learned interpolation up to a grid and back down."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch

from nfsgeo.geometry import Domain, bipartite_graph, equispaced_grid, spatial_order
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation

CHANNELS, GROUPS, HIDDEN, FEATURES = 32, 8, 32, 10


def up_and_down(
    folder: Path,
    *,
    points: int,
    time_steps: int,
    training: bool,
    fused: bool = True,
    neighbours: float = 16,
    ordered: bool = False,
) -> Callable[[], float]:
    """Interpolates two fields from random points to a grid, and all time steps back.

    The kernels are those of `nfs` with twice as many hidden units, at its width and
    with its inputs.

    Args:
        points: Number of points, a square number; there are as many nodes.
        time_steps: Number of time steps on the way back.
        training: Whether to run the backward pass as well.
        fused: Whether to sum by sparse products, not by messages.
        neighbours: Mean number of neighbours of a node.
        ordered: Whether the points are in spatial order.
    """
    torch.manual_seed(0)
    domain, side = Domain.unit(2), round(points**0.5)
    radius = math.sqrt(neighbours / (math.pi * points))
    pos, grid = torch.rand(points, 2), equispaced_grid(domain, (side, side))
    if ordered:
        pos = pos[spatial_order(pos, domain)]
    layers = [_layer(radius, fused) for _ in range(2)]
    graphs = [
        bipartite_graph(*ends, radius, domain, interpolation="quadratic")
        for ends in ((pos, grid), (grid, pos))
    ]
    for graph in graphs:
        assert graph.transpose  # which the first backward pass would make
    x = torch.randn(points, 2, CHANNELS, requires_grad=training)
    field = torch.randn(points, time_steps, CHANNELS, requires_grad=training)
    features = torch.randn(points, FEATURES)

    def run() -> float:
        with torch.set_grad_enabled(training):
            total = torch.zeros(())
            fields, places = (x, field), (pos, grid)
            for layer in layers:
                layer.zero_grad()
            for layer, graph, u, at in zip(layers, graphs, fields, places, strict=True):
                u.grad = None
                mean = layer(u, at, graph, features).square().mean()
                if training:
                    mean.backward()
                total = total + mean.detach()
        return total.item()

    return run


def _layer(radius: float, fused: bool) -> KernelInterpolation:
    network = EdgeNetwork(2, FEATURES, HIDDEN, scale=radius)
    kernel = ChannelKernel(CHANNELS, network, groups=GROUPS)
    return KernelInterpolation(kernel, fused=fused)
