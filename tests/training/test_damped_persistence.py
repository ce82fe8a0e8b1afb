"""Damped persistence with learned factors, and networks that add to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nfsgeo.evaluation import export_run, program_inputs
from nfsgeo.training import Forecaster, RunPaths, load_config
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo.training.damped_persistence import SPEED, DampedPersistence
from nfsgeo.training.restore import restore

DAMPED = {"model.prediction": "damped"}


def test_factors_go_from_persistence_to_the_mean() -> None:
    damped, last = DampedPersistence(2, 1), torch.randn(5, 1, 1)
    mean = torch.tensor([3.0])
    torch.testing.assert_close(damped(last, mean), last.expand(-1, 2, -1))
    with torch.no_grad():
        damped.change[1] = -1 / SPEED
    found = damped(last, mean)
    torch.testing.assert_close(found[:, 0], last[:, 0])
    torch.testing.assert_close(found[:, 1], mean.expand(5, 1))


def test_least_squares_finds_the_attenuation_of_noise() -> None:
    """With noise of the signal's variance, half of what is observed is the signal."""
    torch.manual_seed(0)
    signal = torch.randn(20_000, 1, 1)
    noisy = signal + torch.randn_like(signal)
    damped = DampedPersistence(1, 1)
    optimiser = torch.optim.LBFGS(damped.parameters())

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        error = (damped(noisy, torch.zeros(1)) - signal).square().mean()
        error.backward()  # type: ignore[no-untyped-call]
        return error

    optimiser.step(loss)  # type: ignore[arg-type]
    assert damped.factor.item() == pytest.approx(0.5, abs=0.02)


@pytest.fixture
def run(train: Callable[..., Any]) -> RunPaths:
    paths: RunPaths = train("damped", DAMPED).paths
    return paths


@pytest.fixture
def forecaster(run: RunPaths) -> Forecaster:
    return restore(run, load_config(run.config))


def test_a_trained_network_adds_to_damped_persistence(
    run: RunPaths, forecaster: Forecaster
) -> None:
    damped = forecaster.damped
    assert damped is not None
    saved = read_checkpoint(run.best)["state_dict"]["damped.change"]
    assert torch.equal(damped.change, saved)
    assert (damped.factor - 1).abs().max() > 1e-3
    x, pos = torch.randn(40, 10, 1), torch.rand(40, 2)
    with torch.no_grad():
        found = forecaster(x, pos)
        forecaster.damped = None
        residual = forecaster(x, pos)
    anomaly = x[:, -1:] - forecaster.inputs.mean
    expected = residual + (damped.factor.detach() - 1) * anomaly
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_exported_programs_damp_as_well(run: RunPaths, forecaster: Forecaster) -> None:
    target = run.root / "program.pt2"
    export_run(run.root, target)
    x, pos = torch.randn(40, 10, 1), torch.rand(40, 2)
    query_pos = torch.rand(30, 2)
    program = torch.export.load(target).module()
    with torch.no_grad():
        found = program(*program_inputs(forecaster, x, pos, query_pos))
        expected = forecaster(x, pos, query_pos=query_pos)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)
