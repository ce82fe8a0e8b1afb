"""Baselines against fields that they predict exactly."""

from functools import partial

import pytest
import torch
from torch_geometric.loader import DataLoader

import nfsgeo
import nfsgeo.data
from nfsgeo.data import WindowDataset
from nfsgeo.data.meshes import random_subset
from nfsgeo.evaluation import References, extrapolation, persistence, training_mean
from nfsgeo.evaluation.scored_model import ScoredModel


def test_persistence_repeats_the_last_record():
    u = torch.randn(5, 3, 2)
    assert torch.equal(persistence(u, 4), u[:, 2:].repeat(1, 4, 1))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_extrapolation_is_exact_for_polynomials_at_uneven_times(degree):
    times = torch.tensor([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0], dtype=torch.float64)
    powers = times[:, None] ** torch.arange(degree + 1)
    u = (torch.randn(6, 1, 2, degree + 1).double() * powers[:, None]).sum(-1)
    found = extrapolation(u[:, :5], times, degree)
    torch.testing.assert_close(found, u[:, 5:])
    assert degree == 0 or not torch.allclose(
        extrapolation(u[:, :5], times, degree - 1), u[:, 5:]
    )


@pytest.mark.parametrize("shared", [True, False])
def test_training_mean(waves, shared):
    with nfsgeo.data.open(waves) as file:
        mesh = random_subset(file, 20, 0)
        own = partial(random_subset, file, 20, 0)
        train = WindowDataset(file, range(6), 2, 3, mesh if shared else own)
        targets = torch.stack([train[item].y for item in range(6)])
        batch = next(iter(DataLoader(train, batch_size=2)))
        prediction = training_mean(train)(batch)
    mean = targets.mean(dim=0) if shared else targets.mean(dim=(0, 1)).expand(20, 3, 1)
    assert torch.allclose(prediction, mean.repeat(2, 1, 1), atol=1e-6)


@pytest.mark.slow
def test_a_reference_without_its_time_steps_is_left_out(waves):
    small = {"model.settings.width": 4, "data.n_in": 1, "data.n_out": 3}
    e = nfsgeo.prepare(waves, small)
    scored = ScoredModel(e.forecaster, e.used)
    assert set(References(scored).predictors) == {"persistence", "mean"}
