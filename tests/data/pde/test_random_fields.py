"""Random fields have the covariance they claim, however they are computed."""

import numpy as np
import pytest
import torch
from scipy.fft import dctn
from torch.testing import assert_close

from nfsgeo.data.pde import Burgers, NavierStokes
from nfsgeo.data.pde.random_fields import neumann_field, periodic_field, sample_rng


def rngs(equation: str) -> list[np.random.Generator]:
    return [sample_rng(0, equation, index) for index in range(1200)]


def eigenvalue(squared_wavenumber: torch.Tensor, scale: float) -> torch.Tensor:
    """Of the covariance on the torus."""
    return scale * (4 * torch.pi**2 * squared_wavenumber + 49) ** -2.5


def test_variance_of_burgers_modes():
    u = Burgers().initial(rngs("burgers"), 256)
    modes = torch.fft.rfft(u, norm="forward")[:, 1:6]
    expected = eigenvalue(torch.arange(1, 6).double() ** 2, 7.0**4)
    # Orthonormal cosine and sine coefficients are sqrt(2) times these parts.
    for part in (modes.real, modes.imag):
        assert_close(2 * part.square().mean(dim=0), expected, rtol=0.15, atol=0)


def test_variance_of_navier_stokes_modes():
    w = NavierStokes().initial(rngs("navier-stokes"), 64)
    modes = torch.fft.fft2(w, norm="forward")
    k = torch.arange(-5, 6)
    modes = modes[:, k][:, :, k]
    expected = eigenvalue((k[:, None] ** 2 + k**2).double(), 7.0**3)
    expected[5, 5] = 0
    assert_close(modes.abs().square().mean(dim=0), expected, rtol=0.15, atol=1e-30)


def test_variance_of_neumann_modes():
    field = neumann_field(rngs("darcy"), dim=2, resolution=32, cutoff=32, tau=3.0)
    modes = torch.from_numpy(dctn(field.numpy(), axes=(1, 2), norm="ortho")) / 32
    k = torch.arange(6).double()
    expected = (3 / (torch.pi**2 * (k[:, None] ** 2 + k**2) + 9)) ** 2
    expected[0, 0] = 0
    variance = modes[:, :6, :6].square().mean(dim=0)
    assert_close(variance, expected, rtol=0.15, atol=1e-25)


@pytest.mark.parametrize("dim", [1, 2])
def test_coarse_grid_drops_the_modes_it_cannot_carry(dim):
    def field(resolution: int) -> torch.Tensor:
        rngs = [sample_rng(1, "x", 0)]
        return periodic_field(
            rngs, dim=dim, resolution=resolution, cutoff=20, scale=1.0
        )[0]

    axes = tuple(range(dim))
    coarse = torch.fft.fftn(field(16), dim=axes, norm="forward")
    fine = torch.fft.fftn(field(64), dim=axes, norm="forward")
    k = torch.arange(-5, 6)
    for axis in axes:
        coarse = coarse.index_select(axis, k % 16)
        fine = fine.index_select(axis, k % 64)
    assert_close(coarse, fine, rtol=0, atol=1e-12)
    assert coarse.abs().max() > 1e-3


def test_seed_out_of_range(one_line):
    assert "seed -1" in one_line(sample_rng, -1, "burgers", 0)


def test_neumann_field_is_one_function():
    def field(resolution: int) -> torch.Tensor:
        rngs = [sample_rng(1, "darcy", 0)]
        return neumann_field(rngs, dim=2, resolution=resolution, cutoff=32, tau=3.0)[0]

    # The centres of a grid are every third centre of one three times as fine.
    assert_close(field(120)[1::3, 1::3], field(40), rtol=0, atol=1e-12)
    modes = [dctn(field(n).numpy(), norm="ortho")[:32, :32] / n for n in (64, 128)]
    assert_close(*map(torch.from_numpy, modes), rtol=0, atol=1e-12)
