"""The networks of the DeepONets."""

import pytest
import torch
from torch import nn

from nfsgeo.nn import Trunk, UNet


@pytest.mark.parametrize("levels", [1, 2])
def test_periodic_unet_commutes_with_shifts_of_its_coarsest_grid(levels):
    net = UNet(2, 4, 2, levels=levels, periodic=True).double()
    x = torch.randn(1, 2, 16, 8, dtype=torch.float64)
    shift = (2**levels, -(2**levels))
    moved = net(x.roll(shift, (2, 3)))
    torch.testing.assert_close(moved, net(x).roll(shift, (2, 3)))


def test_zeros_surround_an_open_domain():
    net = UNet(1, 4, 1, levels=1)
    x = torch.randn(1, 1, 8)
    assert not torch.allclose(net(x.roll(2, 2)), net(x).roll(2, 2), atol=1e-4)


def test_every_level_is_used():
    net = UNet(1, 4, 2, levels=2)
    for pair in (net.top, *net.down, *net.up):
        # Its statistics are those of the whole field.
        pair[1] = pair[4] = nn.Identity()
    far = torch.zeros(1, 1, 32, 32, requires_grad=True)
    net(far)[0, :, 16, 16].sum().backward()
    reach = (far.grad[0, 0, :, 16].abs() > 0).nonzero()
    # Two convolutions of size 3 at a time: 4 nodes away without the coarser grids.
    assert reach.min() <= 16 - 12 and reach.max() >= 16 + 12


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("time", [True, False])
def test_trunk_is_a_perceptron_of_position_and_time(dim, time):
    trunk = Trunk(dim, 5, hidden=8, depth=3, time=time)
    pos, times = torch.rand(4, dim), torch.tensor([0.0, 0.3, 1.0])
    out = trunk(pos, times)
    linear = [layer for layer in trunk.rest if isinstance(layer, nn.Linear)]
    assert len(linear) == 3 and out.shape == (4, 3 if time else 1, 5)
    for j, t in enumerate(times if time else [0.0]):
        inner = trunk.first.space(pos) + (t * trunk.first.time if time else 0)
        for layer in linear:
            inner = layer(nn.functional.gelu(inner))
        torch.testing.assert_close(out[:, j], inner)
