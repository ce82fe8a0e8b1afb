"""Navier-Stokes solver against closed forms, a plain reference and refinements."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde import NavierStokes
from nfsgeo.data.pde.periodic import FourierGrid, flush_denormals
from nfsgeo.data.pde.random_fields import sample_rng


def grid(n: int) -> tuple[Tensor, Tensor]:
    x = torch.arange(n, dtype=torch.float64) / n
    return x[:, None].expand(n, n), x.expand(n, n)


def start(n: int, seed: int = 0, num: int = 1) -> Tensor:
    """Vorticity of some samples."""
    rngs = [sample_rng(seed, "navier-stokes", index) for index in range(num)]
    return NavierStokes().initial(rngs, n)


def test_taylor_green():
    equation = NavierStokes(forcing=0.0)
    x, y = grid(128)
    w = torch.sin(2 * torch.pi * x) * torch.sin(2 * torch.pi * y)
    out, _ = equation.evolve(w[None], 20, substeps=10, spacing=0.25)
    times = torch.arange(21).double() / 4
    decay = torch.exp(-8 * torch.pi**2 * equation.nu * times)
    assert (out[0] - decay[:, None, None] * w).abs().max() < 1e-11


def test_forced_from_rest():
    equation = NavierStokes()
    x, y = grid(128)
    phase = 2 * torch.pi * (x + y)
    force = 0.1 * (torch.sin(phase) + torch.cos(phase))
    rest = torch.zeros(1, 128, 128).double()
    out, _ = equation.evolve(rest, 20, substeps=10, spacing=0.25)
    rate = 8 * torch.pi**2 * equation.nu
    growth = -torch.expm1(-rate * torch.arange(21).double() / 4) / rate
    assert (out[0] - growth[:, None, None] * force).abs().max() < 1e-11


def test_basdevant_form_is_the_advection_term():
    n = 64
    w, points = start(n, num=2), FourierGrid(n, 2)
    _, nonlinear = NavierStokes(forcing=0.0).flow(points)
    fast = points.back(nonlinear(points.forward(w)))

    k = 2 * torch.pi * torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    kx, ky = k[:, None].expand(n, n), k.expand(n, n)
    spectrum = torch.fft.fft2(w)
    stream = spectrum / (kx**2 + ky**2).clamp_min(1)
    u, v = (torch.fft.ifft2(1j * m * stream).real for m in (ky, -kx))
    wx, wy = (torch.fft.ifft2(1j * m * spectrum).real for m in (kx, ky))
    kept = (3 * k.abs() < 2 * torch.pi * n).to(torch.float64)
    plain = torch.fft.fft2(-(u * wx + v * wy)) * kept[:, None] * kept
    assert_close(fast, torch.fft.ifft2(plain).real, rtol=0, atol=1e-12)


def test_translation_along_the_forcing():
    """A flow moved along a line of constant forcing moves and does not change."""
    equation = NavierStokes()
    w = start(64, seed=2)
    out, moved = (
        equation.evolve(state, 8, substeps=10, spacing=0.25)[0]
        for state in (w, w.roll((5, -5), dims=(1, 2)))
    )
    assert_close(out.roll((5, -5), dims=(2, 3)), moved, rtol=0, atol=1e-12)


def test_shipped_batch():
    equation = NavierStokes()
    solution = equation.solve(0, range(2), resolution=128, num_steps=8)
    assert solution.u.mean(dim=(2, 3)).abs().max() < 1e-13
    assert solution.dt.tolist() == [0.025, 0.025]


@pytest.mark.slow
def test_fast_flow_gets_a_smaller_step():
    fast = NavierStokes(sigma2=1e4 * 7.0**3, nu=2e-2)
    solution = fast.solve(0, range(2), resolution=64, num_steps=2)
    assert (solution.dt < 0.025).all()


@pytest.mark.slow
def test_accuracy_at_the_end_of_the_long_horizon():
    equation = NavierStokes()
    with flush_denormals():
        out, guard = equation.evolve(start(128), 4, substeps=500, spacing=12.5)
        finer, _ = equation.evolve(start(128), 4, substeps=1000, spacing=12.5)
    error = float((out - finer).norm() / finer.norm()) * 16 / 15
    assert guard < 2
    assert error < 5e-9


@pytest.mark.slow
def test_fourth_order_in_time(orders):
    equation = NavierStokes()
    reference, *found = (
        equation.evolve(start(64), 1, substeps=substeps, spacing=1.0)[0]
        for substeps in (640, 20, 40, 80)
    )
    errors = [float((u - reference).norm()) for u in found]
    assert min(orders(errors)) > 3.8
