"""What holds for the solver of every equation, and its guards and checks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.equations import EQUATIONS
from nfsgeo.data.pde.etdrk4 import spectral_tail
from nfsgeo.data.pde.solver import check_samples, solve_guarded
from nfsgeo.errors import UserError

# Points on each axis and time steps: small, but resolved.
SIZES = {
    "burgers": (1024, 21),
    "kdv": (1024, 21),
    "darcy": (64, 1),
    "navier-stokes": (64, 20),
    "elasticity": (4, 1),
    "sphere-waves": (16, 5),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_sample_does_not_depend_on_its_batch(name: str) -> None:
    resolution, steps = SIZES[name]
    size = {"resolution": resolution, "num_steps": steps}
    together = EQUATIONS[name].solve(7, range(5), **size)
    alone = EQUATIONS[name].solve(7, [3], **size)
    assert_close(together.u[3:4], alone.u, rtol=0, atol=1e-12)
    assert_close(together.a[3:4], alone.a, rtol=0, atol=1e-12)
    if alone.pos is not None and together.pos is not None:
        assert torch.equal(together.pos[3:4], alone.pos)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", EQUATIONS)
def test_cuda_agrees(name: str) -> None:
    resolution, steps = SIZES[name]
    here, there = (
        EQUATIONS[name].solve(
            0, range(3), resolution=resolution, num_steps=steps, device=device
        )
        for device in ("cpu", "cuda")
    )
    assert_close(there.u.cpu(), here.u, rtol=0, atol=1e-9)
    assert_close(there.a.cpu(), here.a, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("darcy", {"coefficient": "3/12"}),
        ("kdv", {"ic": "wave"}),
        ("elasticity", {"nu": 0.5}),
        ("burgers", {"nu": "inf"}),
        ("burgers", {"time_stride": 0}),
        ("sphere-waves", {"speed": -1}),
        ("navier-stokes", {"viscosity": 1}),
    ],
)
def test_options_without_meaning_are_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(given))):
        EQUATIONS[name].with_options(given)


@pytest.mark.parametrize("name", ["darcy", "elasticity"])
def test_a_steady_problem_has_one_time(name: str) -> None:
    with pytest.raises(UserError, match="--records 2"):
        EQUATIONS[name].solve(0, [0], resolution=4, num_steps=2)


def test_only_the_sample_that_needs_it_gets_a_smaller_step() -> None:
    runs = []

    def run(initial: Tensor, dt: float) -> tuple[Tensor, Tensor]:
        runs.append((len(initial), dt))
        return initial[:, None] * dt, initial * dt

    found, steps = solve_guarded(run, torch.tensor([1.0, 7.0, 1.0]), 1.0, name="x")
    assert steps.tolist() == [1.0, 0.25, 1.0]
    assert found.flatten().tolist() == [1.0, 1.75, 1.0]
    assert runs == [(3, 1.0), (1, 0.5), (1, 0.25)]


def test_guard_that_cannot_be_met() -> None:
    def run(initial: Tensor, dt: float) -> tuple[Tensor, Tensor]:
        return initial, torch.full((len(initial),), torch.nan)

    with pytest.raises(UserError, match="x with step guard inf"):
        solve_guarded(run, torch.ones(2), 1.0, name="x")


def test_checks_name_the_sample() -> None:
    u, values = torch.zeros(3, 4), torch.tensor([0.0, 1.0, 0.5])
    check_samples(u, {"mass": (values, 1.0)}, range(10, 13), "x")
    for bad in (1.5, float("nan")):
        values[1] = bad
        with pytest.raises(UserError, match="x sample 11 with mass .*at most 1"):
            check_samples(u, {"mass": (values, 1.0)}, range(10, 13), "x")
    u[2, 1] = torch.nan
    with pytest.raises(UserError, match="x sample 12 with infinite"):
        check_samples(u, {}, range(10, 13), "x")


@pytest.mark.parametrize("dim", [1, 2])
def test_spectral_tail(dim: int) -> None:
    x = torch.arange(60, dtype=torch.float64) / 60
    low, high = torch.sin(2 * torch.pi * 3 * x), torch.sin(2 * torch.pi * 19 * x)
    u = torch.stack([low, low + 0.1 * high]).reshape(2, 1, *[1] * (dim - 1), 60)
    u = u.expand(2, 5, *[60] * dim) + 7.0
    tail = spectral_tail(u, dim)
    assert tail.tolist() == pytest.approx([0, 0.01 / 1.01], abs=1e-12)
