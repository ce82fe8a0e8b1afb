"""Learning-rate schedules, step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.module import make_optimiser, make_schedule


def rates(epochs: int, steps: int, **settings: Any) -> list[float]:
    section = OptimiserSection(**settings)
    optimiser = make_optimiser([torch.nn.Parameter(torch.ones(1))], section)
    schedule = make_schedule(optimiser, section, epochs=epochs, steps_per_epoch=steps)
    seen = []
    for _ in range(epochs * steps):
        seen.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return seen


def test_constant_and_step_schedules_count_epochs() -> None:
    assert rates(3, 2, lr=0.1, schedule="constant") == [0.1] * 6
    seen = rates(6, 3, lr=1.0, schedule="step", step_epochs=2, step_factor=0.5)
    assert seen == pytest.approx([1.0] * 6 + [0.5] * 6 + [0.25] * 6)


def test_one_cycle_rises_to_the_rate_and_falls_to_nothing() -> None:
    seen = rates(10, 10, lr=1.0, schedule="one-cycle", one_cycle_rise=0.3)
    top = seen.index(max(seen))
    assert max(seen) == pytest.approx(1.0, rel=1e-3)
    assert 28 <= top <= 30
    assert seen[:top] == sorted(seen[:top])
    assert seen[top:] == sorted(seen[top:], reverse=True)
    assert seen[-1] < 1e-4


def test_betas_are_those_asked_for() -> None:
    section = OptimiserSection(name="adamw", betas=(0.8, 0.9), weight_decay=0.1)
    optimiser = make_optimiser([torch.nn.Parameter(torch.ones(1))], section)
    make_schedule(optimiser, section, epochs=2, steps_per_epoch=2)
    assert isinstance(optimiser, torch.optim.AdamW)
    group = optimiser.param_groups[0]
    assert (group["betas"], group["weight_decay"]) == ((0.8, 0.9), 0.1)
