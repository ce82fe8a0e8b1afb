"""Guards and checks that stand between a solver and a file."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nfsgeo.data.pde.etdrk4 import spectral_tail
from nfsgeo.data.pde.solver import check_samples, solve_guarded
from nfsgeo.errors import UserError


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
