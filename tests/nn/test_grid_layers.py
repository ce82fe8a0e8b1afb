"""Layers on grids: normalisation, lift, pointwise maps, grid resampling."""

import pytest
import torch

from nfsgeo.geometry import Domain, Graphs, equispaced_grid
from nfsgeo.nn import FieldLayerNorm, GridResampling, Lift, Pointwise
from nfsgeo.nn.resampling import grid_shape


@pytest.mark.parametrize("shape", [None, (5, 6, 3)], ids=["channel", "element"])
def test_layer_norm_has_joint_statistics_and_an_affine_map(shape):
    norm = FieldLayerNorm(4, shape)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    weight, bias = (p.view(4, *(shape or (1, 1, 1))) for p in (norm.weight, norm.bias))
    x = 3 + 2 * torch.randn(2, 4, 5, 6, 3)
    for sample, raw in zip(norm(x), x, strict=True):
        expected = (raw - raw.mean()) / (raw.var(correction=0) + 1e-6).sqrt()
        expected = weight * expected + bias
        torch.testing.assert_close(sample, expected, rtol=1e-4, atol=1e-4)


def test_pointwise_equals_a_convolution_of_size_one():
    layer, conv = Pointwise(3, 5), torch.nn.Conv3d(3, 5, 1)
    conv.weight.data = layer.weight.data.view(5, 3, 1, 1, 1)
    conv.bias.data = layer.bias.data
    x = torch.randn(2, 3, 4, 5, 6)
    torch.testing.assert_close(layer(x), conv(x))


def test_lift_equals_a_linear_map_of_all_inputs_and_time():
    lift = Lift(3, 2, 7)
    features, pos = torch.randn(5, 3), torch.rand(5, 2)
    value, slope = lift(features, pos)
    for t in (0.0, 0.4, 1.0):
        inputs = torch.cat([features, pos, torch.full((5, 1), t)], dim=1)
        weight = torch.cat([lift.space.weight, lift.time[:, None]], dim=1)
        expected = inputs @ weight.T + lift.space.bias
        torch.testing.assert_close(value + t * slope, expected)
    assert Lift(3, 2, 7, time=False)(features, pos)[1] is None


@pytest.mark.parametrize("shape", [(7,), (4, 6), (2, 3, 5)])
@pytest.mark.parametrize("periodic", [True, False])
def test_grid_comes_and_goes(shape, periodic):
    dim = len(shape)
    grid = equispaced_grid(Domain.unit(dim, periodic), shape)
    one = Graphs(grid, (len(grid),), grid_shape=grid_shape(grid))
    assert one.grid_shape == shape
    given = torch.empty(0), Graphs.join([one] * 3)
    value, slope = torch.randn(3 * len(grid), 2), torch.randn(2)
    times = torch.tensor([0.0, 0.5])
    resampling = GridResampling()
    field = resampling(*given, lambda *_: (value, slope), times)
    assert field.shape == (3, 2, *shape, 2)
    # Row-major: the last axis of the grid runs fastest.
    node = value.view(3, *shape, 2)[1, ..., 0, :]
    torch.testing.assert_close(field[1, :, ..., 0, 0], node.movedim(-1, 0))
    back = resampling.back(field, *given)
    torch.testing.assert_close(back[:, 1], value + 0.5 * slope)
    still = resampling(*given, lambda *_: (value, None), times)
    assert still.shape == (3, 2, *shape)
    torch.testing.assert_close(resampling.back(still, *given)[:, 0], value)


def test_refuses_what_is_no_grid(refuses):
    grid = equispaced_grid(Domain.unit(2), (4, 4))
    stretched = grid * torch.linspace(0.5, 1, 16)[:, None]
    for pos in (torch.rand(16, 2), grid[torch.randperm(16)], stretched):
        refuses("no grid.*nfs", grid_shape, pos)
