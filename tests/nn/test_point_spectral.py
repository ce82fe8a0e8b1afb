"""Spectral convolution at points: sums written out, and the FFT on grids."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.nn import PointSpectralConv, PointWaves, SpectralConv

CHANNELS, NUM_STEPS = 3, 6
BOXES = [
    Domain((-1.0,), (2.0,), (True,)),
    Domain((0.0, -1.0), (1.0, 1.0), (True, True)),
    Domain.unit(3),
]


def layer(domain: Domain, time_modes: int | None, modes: int = 2) -> PointSpectralConv:
    modes_of_axes = [modes] * domain.dim
    return PointSpectralConv(CHANNELS, CHANNELS, modes_of_axes, time_modes).double()


def waves_of(
    made: PointSpectralConv, domain: Domain, pos: Tensor, *sizes: int
) -> PointWaves:
    return PointWaves.of(pos, sizes or [len(pos)], domain, made.frequencies())


def inputs(domain: Domain, num: int, num_steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Fields, positions, and these as shares of the box."""
    share = torch.rand(num, domain.dim, dtype=torch.float64)
    pos = torch.tensor(domain.lower) + share * torch.tensor(domain.lengths)
    return torch.randn(num, num_steps, CHANNELS, dtype=torch.float64), pos, share


@pytest.mark.parametrize("domain", BOXES)
@pytest.mark.parametrize("time_modes", [3, None])
def test_on_a_grid_it_is_the_fft(domain, time_modes):
    made = layer(domain, time_modes)
    num_steps = 1 if time_modes is None else NUM_STEPS
    shape = (6, 8, 6)[: domain.dim]
    pos = equispaced_grid(domain, shape, dtype=torch.float64)
    x = torch.randn(len(pos), num_steps, CHANNELS, dtype=torch.float64)
    modes = [*made.modes, time_modes] if time_modes else [*made.modes]
    fft = SpectralConv(CHANNELS, CHANNELS, modes)
    kept = [2 * m for m in modes[:-1]] + [modes[-1]]
    fft.weight = nn.Parameter(made.weight.detach().view(*kept, CHANNELS, CHANNELS, 2))
    grid = x.movedim(-1, 0).unflatten(1, shape)[None]
    if time_modes is None:
        grid = grid.squeeze(-1)
    expected = fft(grid)[0].reshape(CHANNELS, -1, num_steps).movedim(0, -1)
    torch.testing.assert_close(made(x, waves_of(made, domain, pos)), expected)


@pytest.mark.parametrize("domain", BOXES)
@pytest.mark.parametrize("time_modes", [2, None])
def test_elsewhere_it_is_a_sum_over_waves(domain, time_modes):
    """Over all frequencies and their negatives, one by one."""
    made = layer(domain, time_modes, modes=1)
    num_steps = 1 if time_modes is None else NUM_STEPS
    x, pos, share = inputs(domain, 7, num_steps)
    time = (torch.arange(num_steps).double() / num_steps)[:, None].expand(7, -1, 1)
    at = torch.cat([share[:, None].expand(-1, num_steps, -1), time], dim=-1)
    total = torch.zeros_like(x)
    kept = itertools.product(*made.frequencies(), range(made.weight.size(1)))
    weights = torch.view_as_complex(made.weight).flatten(0, 1)
    for k, weight in zip(kept, weights, strict=True):
        wave = torch.exp(2j * math.pi * (at @ torch.tensor(k, dtype=torch.float64)))
        coefficient = torch.einsum("nt,ntc->c", wave.conj(), x.to(wave.dtype))
        term = wave[..., None] * (coefficient / wave.numel() @ weight)
        half = (k[-1] if time_modes else k[-2]) == 0
        total = total + (1 if half else 2) * term.real
    torch.testing.assert_close(made(x, waves_of(made, domain, pos)), total)
