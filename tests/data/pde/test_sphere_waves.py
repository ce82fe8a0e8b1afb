"""Waves on a sphere against the wave equation."""

import numpy as np
import pytest
import torch

from nfsgeo.data.pde import SphereWaves
from nfsgeo.geometry import quadrature_weights


def test_satisfies_the_wave_equation():
    """By finite differences of second order, away from the poles."""
    size, speed = 360, 1.3
    waves = SphereWaves(speed=speed, degree=4)
    longitude, latitude = (np.deg2rad(axis) for axis in waves.axes(size))
    u = waves.solve(3, [0], resolution=size, num_steps=3).u[0, ..., 0].numpy()
    h, k = longitude[1] - longitude[0], latitude[1] - latitude[0]
    now, cosine = u[1], np.cos(latitude)
    along = (np.roll(now, 1, 0) - 2 * now + np.roll(now, -1, 0)) / (h * cosine) ** 2
    middle = np.cos(latitude[:-1] + k / 2)
    flow = middle * np.diff(now, axis=1) / k
    across = np.diff(flow, axis=1) / k / cosine[1:-1]
    laplacian = along[:, 1:-1] + across
    rate = (u[0] - 2 * u[1] + u[2]) / waves.spacing**2
    inside = slice(size // 6, -size // 6)
    error = rate[:, 1:-1] - speed**2 * laplacian
    scale = np.abs(rate).max()
    assert np.abs(error[:, inside]).max() < 0.01 * scale


def test_fields_are_even_in_space_and_of_variance_one():
    waves = SphereWaves()
    u = waves.solve(0, range(300), resolution=12, num_steps=2).u[..., 0]
    longitude, latitude = waves.axes(12)
    grid = torch.cartesian_prod(torch.tensor(longitude), torch.tensor(latitude))
    weights = quadrature_weights(grid, waves.domain)
    spread = u.square().mean((0, 1)).flatten()
    assert (spread * weights).sum().item() == pytest.approx(1, abs=0.05)
    assert spread.std() < 0.1
    # The rows next to the poles belong to nearly one place each.
    assert (u[..., 0].std(dim=2).mean() < 0.5 * u[..., 6].std(dim=2).mean()).item()


def test_samples_do_not_depend_on_the_batch_or_resolution():
    waves = SphereWaves()
    several = waves.solve(1, [4, 7], resolution=8, num_steps=3)
    alone = waves.solve(1, [7], resolution=24, num_steps=5)
    # Every third longitude, and the middle one of three latitudes.
    shared = alone.u[:, :3, ::3, 1::3]
    torch.testing.assert_close(shared[0], several.u[1], atol=1e-12, rtol=0)
    torch.testing.assert_close(several.a, several.u[:, 0])
