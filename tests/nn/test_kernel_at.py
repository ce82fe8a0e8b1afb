"""Learned kernels among the nodes of the grid, and what they know of the mesh."""

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, Graphs
from nfsgeo.nn import (
    ChannelKernel,
    EdgeNetwork,
    InterpolationResampling,
    KernelInterpolation,
)

DOMAIN, RADIUS, CHANNELS = Domain.unit(2), 0.15, 4


def resampling(kernel_at: str, base: str = "spline") -> InterpolationResampling:
    torch.manual_seed(0)
    layers = []
    for _ in range(2):
        network = EdgeNetwork(2, CHANNELS, 8, scale=RADIUS)
        layers.append(KernelInterpolation(ChannelKernel(CHANNELS, network)))
    return InterpolationResampling(
        *layers,
        DOMAIN,
        (16, 16),
        RADIUS,
        interpolation=base,
        kernel_at=kernel_at,
    )


def on_grid(layer: InterpolationResampling, *samples: Tensor) -> Tensor:
    slope, times = torch.ones(CHANNELS), torch.arange(3) / 2
    points = points_of(layer, *samples)
    return layer(*points, lambda values, _: (values, slope), times)


def points_of(
    layer: InterpolationResampling, *samples: Tensor
) -> tuple[Tensor, Graphs]:
    graphs = [
        Graphs(pos, (len(pos),), edges=layer.connect(pos, pos)) for pos in samples
    ]
    turns = torch.cat(samples) @ torch.tensor([[1.0, 0, 1, 2], [0, 1, 1, -1]])
    return torch.sin(2 * torch.pi * turns), Graphs.join(graphs)


@torch.no_grad()
def test_states_on_the_grid_do_not_depend_on_the_mesh():
    """With an untrained kernel, as large as the base interpolation."""
    differences = {}
    for kernel_at in ("points", "nodes"):
        layer = resampling(kernel_at)
        coarse, fine = (on_grid(layer, torch.rand(n, 2)) for n in (800, 3200))
        differences[kernel_at] = (coarse - fine).abs().mean() / fine.abs().mean()
    assert differences["nodes"] < 2e-3 < 1e-2 < differences["points"]


@torch.no_grad()
def test_points_on_the_nodes_are_the_nodes():
    """There both kernels are one."""
    at_points, at_nodes = resampling("points", "quadratic"), resampling("nodes")
    at_nodes.load_state_dict(at_points.state_dict())
    torch.testing.assert_close(
        on_grid(at_points, at_points.grid), on_grid(at_nodes, at_points.grid)
    )


@pytest.mark.parametrize("kernel_at", ["points", "nodes"])
def test_a_batch_of_meshes_is_its_samples(kernel_at):
    layer, samples = resampling(kernel_at), (torch.rand(60, 2), torch.rand(90, 2))
    together = on_grid(layer, *samples)
    for found, sample in zip(together, samples, strict=True):
        torch.testing.assert_close(found, on_grid(layer, sample)[0])
    together.sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.to_grid.parameters())


@torch.no_grad()
def test_the_lift_at_the_nodes_is_given_their_own_positions():
    """Interpolated ones have a seam where axes wrap, another one on every mesh."""
    layer = resampling("nodes")
    points = points_of(layer, torch.rand(200, 2))
    seen: list[Tensor] = []

    def lift(values: Tensor, pos: Tensor) -> tuple[Tensor, None]:
        seen.append(pos)
        return values, None

    layer(*points, lift, torch.zeros(1))
    assert torch.equal(seen[0], layer.grid)
