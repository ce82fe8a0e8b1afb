"""Navier-Stokes solver against closed forms, a plain reference and refinements."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde import navier_stokes
from nfsgeo.data.pde.etdrk4 import flush_denormals
from nfsgeo.data.pde.navier_stokes import NavierStokes


def grid(n: int) -> tuple[Tensor, Tensor]:
    x = torch.arange(n, dtype=torch.float64) / n
    return x[:, None].expand(n, n), x.expand(n, n)


def test_taylor_green() -> None:
    equation = NavierStokes(forcing=0.0)
    x, y = grid(128)
    w = torch.sin(2 * torch.pi * x) * torch.sin(2 * torch.pi * y)
    out, _ = equation.evolve(w[None], 20, dt=equation.step)
    times = torch.from_numpy(equation.times(20))
    decay = torch.exp(-8 * torch.pi**2 * equation.nu * times)
    assert (out[0] - decay[:, None, None] * w).abs().max() < 1e-11


def test_forced_from_rest() -> None:
    equation = NavierStokes()
    x, y = grid(128)
    phase = 2 * torch.pi * (x + y)
    force = 0.1 * (torch.sin(phase) + torch.cos(phase))
    out, _ = equation.evolve(torch.zeros(1, 128, 128).double(), 20, dt=equation.step)
    rate = 8 * torch.pi**2 * equation.nu
    growth = -torch.expm1(-rate * torch.from_numpy(equation.times(20))) / rate
    assert (out[0] - growth[:, None, None] * force).abs().max() < 1e-11


def test_basdevant_form_is_the_advection_term() -> None:
    n = 64
    w = NavierStokes().initial(0, range(2), n)
    flow = navier_stokes._Flow(NavierStokes(forcing=0.0), n, "cpu")
    fast = torch.fft.irfft2(flow.nonlinear(torch.fft.rfft2(w)), s=(n, n))

    k = 2 * torch.pi * torch.fft.fftfreq(n, 1 / n, dtype=torch.float64)
    kx, ky = k[:, None].expand(n, n), k.expand(n, n)
    spectrum = torch.fft.fft2(w)
    stream = spectrum / (kx**2 + ky**2).clamp_min(1)
    u, v = (torch.fft.ifft2(1j * m * stream).real for m in (ky, -kx))
    wx, wy = (torch.fft.ifft2(1j * m * spectrum).real for m in (kx, ky))
    kept = (3 * k.abs() < 2 * torch.pi * n).to(torch.float64)
    plain = torch.fft.fft2(-(u * wx + v * wy)) * kept[:, None] * kept
    assert_close(fast, torch.fft.ifft2(plain).real, rtol=0, atol=1e-12)


def test_translation_along_the_forcing() -> None:
    """A flow moved along a line of constant forcing moves and does not change."""
    equation = NavierStokes()
    w = equation.initial(2, [0], 64)
    moved = w.roll((5, -5), dims=(1, 2))
    out, _ = equation.evolve(w, 8, dt=equation.step)
    out_moved, _ = equation.evolve(moved, 8, dt=equation.step)
    assert_close(out.roll((5, -5), dims=(2, 3)), out_moved, rtol=0, atol=1e-12)


def test_coarser_grids_hold_the_same_flow() -> None:
    fine = NavierStokes().solve(0, [0], resolution=128, num_steps=4)
    for resolution in (64, 32):
        coarse = NavierStokes().solve(0, [0], resolution=resolution, num_steps=4)
        every = 128 // resolution
        assert_close(fine.a[:, ::every, ::every], coarse.a, rtol=0, atol=1e-12)
        assert_close(fine.u[:, :, ::every, ::every], coarse.u, rtol=0, atol=1e-5)


def test_fast_flow_gets_a_smaller_step() -> None:
    fast = NavierStokes(sigma2=1e4 * 7.0**3, nu=2e-2)
    solution = fast.solve(0, range(2), resolution=64, num_steps=2)
    assert (solution.dt < 0.025).all()


@pytest.mark.slow
def test_accuracy_at_the_end_of_the_long_horizon() -> None:
    equation = NavierStokes()
    w = equation.initial(0, [0], 128)
    with flush_denormals():
        out, guard = equation.evolve(w, 4, dt=equation.step, spacing=12.5)
        finer, _ = equation.evolve(w, 4, dt=equation.step / 2, spacing=12.5)
    error = float((out - finer).norm() / finer.norm()) * 16 / 15
    assert guard < 2
    assert error < 5e-9


def test_fourth_order_in_time() -> None:
    equation = NavierStokes()
    w = equation.initial(0, [0], 64)
    reference, _ = equation.evolve(w, 1, dt=1 / 640, spacing=1.0)
    errors = [
        float((equation.evolve(w, 1, dt=dt, spacing=1.0)[0] - reference).norm())
        for dt in (0.05, 0.025, 0.0125)
    ]
    orders = [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]
    assert min(orders) > 3.8


@pytest.mark.slow
def test_scale_of_the_fields() -> None:
    # 64 points an axis hold the flow of the shipped 128 (tested above).
    equation = NavierStokes()
    with flush_denormals():
        out, _ = equation.evolve(equation.initial(0, range(32), 64), 50, dt=0.025)
    assert float(out.abs().mean()) == pytest.approx(0.44, rel=0.05)
    assert float(out.std()) == pytest.approx(0.54, rel=0.05)
    assert float(out.abs().max()) == pytest.approx(1.4, rel=0.05)
