"""The learned interpolation up to a grid and back down."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch

from nfsgeo.geometry import Domain, bipartite_graph, equispaced_grid, spatial_order
from nfsgeo.nn import ChannelKernel, EdgeNetwork, KernelInterpolation

__all__ = ["up_and_down"]

CHANNELS, GROUPS, HIDDEN, FEATURES = 32, 8, 32, 10


def up_and_down(
    folder: Path,
    *,
    points: int,
    records: int,
    training: bool,
    fused: bool = True,
    compiled: bool = False,
    neighbours: float = 16,
    ordered: bool = False,
) -> Callable[[], float]:
    """Two fields from random points to a grid, and all records back.

    Kernels as `nfs` has them, with twice its hidden units; its width, and the inputs
    that it sees.

    Args:
        folder: Unused.
        points: Number of them, a square; there are as many nodes.
        records: That go back.
        training: Whether to go backwards as well.
        fused: Whether to sum by sparse products or one kernel, or to write the
            messages out.
        compiled: Whether PyTorch's compiler puts a layer together.
        neighbours: Of a node, on average.
        ordered: Whether the points are in spatial order.
    """
    torch.manual_seed(0)
    domain, side = Domain.unit(2), round(points**0.5)
    radius = math.sqrt(neighbours / (math.pi * points))
    pos, grid = torch.rand(points, 2), equispaced_grid(domain, (side, side))
    if ordered:
        pos = pos[spatial_order(pos, domain)]
    layers = [_layer(radius, fused) for _ in range(2)]
    calls = [torch.compile(layer) if compiled else layer for layer in layers]
    graphs = [
        bipartite_graph(*ends, radius, domain, interpolation="quadratic")
        for ends in ((pos, grid), (grid, pos))
    ]
    for graph in graphs:
        assert graph.transpose  # which the first backward pass would make
    x = torch.randn(points, 2, CHANNELS, requires_grad=training)
    field = torch.randn(points, records, CHANNELS, requires_grad=training)
    features = torch.randn(points, FEATURES)

    def run() -> float:
        with torch.set_grad_enabled(training):
            total = torch.zeros(())
            fields, places = (x, field), (pos, grid)
            for layer in layers:
                layer.zero_grad()
            for call, graph, u, at in zip(calls, graphs, fields, places, strict=True):
                u.grad = None
                mean = call(u, at, graph, features).square().mean()
                if training:
                    mean.backward()
                total = total + mean.detach()
        return total.item()

    return run


def _layer(radius: float, fused: bool) -> KernelInterpolation:
    network = EdgeNetwork(2, FEATURES, HIDDEN, scale=radius)
    kernel = ChannelKernel(CHANNELS, network, groups=GROUPS)
    return KernelInterpolation(kernel, fused=fused)
