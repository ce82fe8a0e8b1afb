"""Training that starts from the weights of another run."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.forecast.transforms import Normalise, Residual
from nfsgeo.models import num_parameters
from nfsgeo.training import read_config

POINTS = np.random.default_rng(0).random((50, 2))


@pytest.fixture
def other() -> Path:
    """Fields ten times as large as the waves, on other points, at other times."""
    phase = 6 * np.random.default_rng(1).random((12, 1, 1))
    u = 10 * np.sin(6 * POINTS[:, :1] + phase + 0.1 * np.arange(30.0))
    domain = nfsgeo.geometry.Domain.unit(2)
    fields = nfsgeo.from_arrays(u, POINTS, 0.25 * np.arange(30.0), domain=domain)
    return fields.write(Path("other.nc"))


@pytest.mark.slow
def test_weights_and_scales_are_taken_for_other_points_and_times(run, tiny, other):
    where = os.path.relpath(run.root)
    mine = nfsgeo.prepare(other, tiny | {"model.start_from": where})
    trained, fresh = nfsgeo.load(run), nfsgeo.prepare(other, tiny)
    for name, value in trained.model.state_dict().items():
        assert torch.equal(mine.forecaster.model.state_dict()[name], value), name
    for kind in (Normalise, Residual):
        found, theirs = mine.forecaster.find(kind), trained.find(kind)
        assert found is not None and theirs is not None
        for key in ("mean", "std", "out_mean", "out_std"):
            assert found.settings.get(key) == theirs.settings.get(key)
    scales = [
        forecaster.find(Normalise).results.std * forecaster.find(Residual).std
        for forecaster in (mine.forecaster, fresh.forecaster)
    ]
    assert scales[0] < 0.2 * scales[1]
    # Errors are still in the units of the new data, and the task is theirs.
    assert mine.task == fresh.task
    num = len(trained.model.state_dict())
    assert mine.lines[0] == f"{num} of {num} tensors taken from {where}"
    assert mine.lines[1:] == ("scales of the fields taken as well",)
    # What was taken is a start alone: it changes, and the run has its own checkpoint.
    paths = nfsgeo.fit(mine, other.parent / "started")
    assert read_config(paths.config).model.start_from == run.root
    best = nfsgeo.load(paths).model.state_dict()
    weights = trained.model.state_dict().items()
    assert any(not torch.equal(best[name], value) for name, value in weights)


def test_learned_factors_are_taken_with_the_weights(train, waves, tiny):
    damped = {"model.prediction": "damped"}
    trained = train("run", damped | {"trainer.epochs": 1}).paths
    mine = nfsgeo.prepare(waves, tiny | damped | {"model.start_from": trained.root})
    found, theirs = mine.forecaster.find(Residual), nfsgeo.load(trained).find(Residual)
    assert found is not None and theirs is not None
    assert theirs.change.abs().max() > 0
    assert torch.equal(found.change, theirs.change)


def test_what_does_not_fit_is_new(run, waves, tiny):
    more = {"model.settings.depth": 2, "model.start_from": str(run.root)}
    found = nfsgeo.prepare(waves, tiny | more)
    taken, new, _ = found.lines
    names = [n for n in found.forecaster.model.state_dict() if f" {n}" in new]
    fresh = nfsgeo.prepare(waves, tiny | {"model.settings.depth": 2}).forecaster.model
    weights, num = fresh.state_dict(), len(nfsgeo.load(run).model.state_dict())
    assert taken.startswith(f"{num} of {len(weights)} tensors taken")
    assert new.startswith("new: ") and len(names) == len(weights) - num > 0
    for name in names:
        value = found.forecaster.model.state_dict()[name]
        assert torch.equal(value, weights[name]), name


@pytest.mark.parametrize(("name", "taken"), [("w", True), ("pressure", False)])
def test_scales_go_by_names_that_are_not_made_up(train, tiny, name, taken):
    def named(name: str) -> Path:
        u, times = np.random.default_rng(0).random((12, 50, 30)), 0.25 * np.arange(30.0)
        more = {"domain": nfsgeo.geometry.Domain.unit(2), "component_names": [name]}
        fields = nfsgeo.from_arrays(u, POINTS, times, **more)
        return fields.write(Path(f"{name}.nc"))

    # Those of the waves are called u.
    data = {} if taken else {"data.file": str(named("p"))}
    run = train("run", {"trainer.epochs": 1} | data).paths
    found = nfsgeo.prepare(named(name), tiny | {"model.start_from": str(run.root)})
    assert ("taken as well" in found.lines[-1]) == taken
    assert ("components differ" in found.lines[-1]) != taken


@pytest.mark.slow
def test_frozen_parts_keep_their_weights_bit_for_bit(run, train, resume):
    chosen = {"model.start_from": str(run.root), "model.freeze": ["blocks"]}
    started = train("started", chosen)
    assert started.experiment.lines[-1].startswith("frozen: blocks (")
    model = started.experiment.forecaster.model
    fresh = num_parameters(nfsgeo.load(run).model)
    assert 0 < num_parameters(model) < fresh
    after = started.weights("last")
    trained = nfsgeo.load(run).model.state_dict()
    moved = 0
    for name, value in trained.items():
        same = torch.equal(after[f"forecaster.model.{name}"], value)
        assert same or "blocks" not in name, name
        moved += not same
    assert moved and any("blocks" in name for name in trained)
    # Going on needs the other run no more.
    run.root.rename(Path("elsewhere"))
    assert resume(started.paths.root).rows() == started.rows()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # Whose blocks fit all the same.
        ({"model.name": "gino"}, "of nfs to start gino from"),
        ({"model.freeze": ["block"]}, "freeze=.block.*the nearest is blocks"),
        ({"model.start_from": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_be_started_from(trained, waves, settings, message):
    with pytest.raises(UserError, match=message):
        nfsgeo.prepare(waves, {"model.start_from": str(trained)} | settings)
