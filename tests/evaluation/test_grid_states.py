"""States on the grid and how far two of them are apart, and memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.evaluation import (
    KeepStates,
    grid_states,
    interpolation_memory,
    kept_states,
    relative_difference,
)
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Problem, build_model
from nfsgeo.training import RunPaths, begin_run, fit, load_config, prepare

EDGES = 8 + 8 + 2 * 4 + 4  # bytes of source and target, displacement, weight


def test_the_relative_difference_is_what_the_formula_says():
    one = np.array([1.0, -2.0, 0.0, 3.0], dtype=np.float32)
    other = np.array([3.0, 2.0, 0.0, 3.0], dtype=np.float32)
    assert relative_difference(one, [other]) == pytest.approx(
        (2 / 4 + 4 / 4 + 0 + 0) / 4
    )
    assert relative_difference(one, [one, other]) == pytest.approx(
        relative_difference(one, [other]) / 2
    )
    assert relative_difference(one, [-one]) == 0.75  # opposite but where both are zero
    assert relative_difference(5 * one, [5 * other]) == pytest.approx(
        relative_difference(one, [other])
    )


@pytest.fixture
def settings(waves: Path) -> dict[str, Any]:
    chosen = {"data.file": str(waves), "data.points": 64, "data.n_in": 2}
    chosen |= {"data.n_out": 3, "model.settings.width": 4, "model.settings.depth": 1}
    return chosen | {"trainer.epochs": 3}


@pytest.mark.slow
def test_states_are_what_goes_into_the_blocks_and_comes_out(settings):
    tokens = {"model.settings.time": "tokens"}
    experiment = prepare(load_config(overrides=settings | tokens))
    forecaster, window = experiment.forecaster, experiment.data.parts["valid"][0]
    states = grid_states(forecaster, window)
    assert forecaster.training
    with torch.no_grad():
        forecaster.eval()
        end = forecaster.model.blocks(torch.from_numpy(states["begin"])[None])
    assert np.allclose(states["end"], end[0].numpy(), atol=1e-6)
    assert states["begin"].shape[0] == 4 and states["begin"].shape[-1] == 3


def test_models_without_a_grid_have_no_states(settings):
    experiment = prepare(load_config(overrides=settings | {"model.name": "dse"}))
    with pytest.raises(UserError, match="model dse"):
        grid_states(experiment.forecaster, experiment.data.parts["valid"][0])


@pytest.mark.slow
def test_weights_and_points_have_seeds_of_their_own(settings):
    first, second = (
        prepare(load_config(overrides=settings | {"data.mesh_seed": seed}))
        for seed in (0, 1)
    )
    weights = second.forecaster.model.state_dict()
    for name, each in first.forecaster.model.state_dict().items():
        assert torch.equal(each, weights[name])
    one, other = (e.data.parts["valid"][0].pos for e in (first, second))
    assert not torch.equal(one, other)


@pytest.mark.slow
def test_states_are_kept_every_few_epochs_and_change_no_training(settings):
    def rows(name: str, *callbacks: KeepStates) -> str:
        experiment = prepare(load_config(overrides=settings))
        fit(experiment, begin_run(experiment, Path(name)), callbacks)
        text = RunPaths(Path(name)).metrics.read_text()
        return "\n".join(line.rpartition(",")[0] for line in text.splitlines())

    experiment = prepare(load_config(overrides=settings))
    window = experiment.data.parts["valid"][0]
    kept = rows("kept", KeepStates(Path("states"), window, 2))
    assert kept == rows("plain")
    files = kept_states(Path("states"))
    assert list(files) == [0, 2, 3]
    untrained = grid_states(experiment.forecaster, window)
    assert np.array_equal(files[0]["begin"], untrained["begin"])
    assert not np.array_equal(files[3]["end"], untrained["end"])


def memory(num_points: int, name: str = "nfs", **settings: Any) -> dict[str, int]:
    torch.manual_seed(0)
    problem = Problem(Domain.unit(2), 1, 1, 3, 4, num_points, None, True)
    small: dict[str, Any] = {}
    if name == "nfs":
        small = {"width": 8, "modes": 2, "time": "tokens", "kernel": "channel"}
    model = build_model(name, problem, {**small, **settings})
    found = interpolation_memory(
        model, torch.randn(num_points, 3, 1), torch.rand(num_points, 2)
    )
    assert all(p.grad is None for p in model.parameters())
    return found


def test_grows_with_the_points():
    one, four = memory(256), memory(1024)
    assert set(one) == {"search", "kernel", "sum"}
    # Neighbours grow with the logarithm of the points.
    for part, size in one.items():
        assert 3.9 * size < four[part] < 5.5 * size


def test_graphs_hold_their_edges():
    """Two graphs of 16 points and as many nodes, all within reach of each other."""
    found = memory(16, base="mean", radius=2.0)["search"]
    assert found > 2 * 16 * 16 * EDGES


def test_matrices_of_edges_hold_more_than_their_weights():
    paper = {key: MODELS["nfs"].paper[key] for key in ("kernel", "base", "back_width")}
    dense, channel = memory(256, **paper), memory(256, **{**paper, "kernel": "channel"})
    assert dense["sum"] > 2 * channel["sum"]
