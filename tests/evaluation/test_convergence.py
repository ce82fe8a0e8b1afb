"""States on the grid, and how far those of two networks are apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nfsgeo.errors import UserError
from nfsgeo.evaluation import convergence
from nfsgeo.evaluation.convergence import KeepStates, deviation, grid_states
from nfsgeo.training import RunPaths, begin_run, fit, load_config, prepare


def test_the_deviation_is_what_the_formula_says() -> None:
    one = np.array([1.0, -2.0, 0.0, 3.0], dtype=np.float32)
    other = np.array([3.0, 2.0, 0.0, 3.0], dtype=np.float32)
    assert deviation(one, [other]) == pytest.approx((2 / 4 + 4 / 4 + 0 + 0) / 4)
    assert deviation(one, [one, other]) == pytest.approx(deviation(one, [other]) / 2)
    assert deviation(one, [-one]) == 0.75  # opposite but where both are zero
    assert deviation(5 * one, [5 * other]) == pytest.approx(deviation(one, [other]))


@pytest.fixture
def settings(waves: Path) -> dict[str, Any]:
    chosen = {"data.file": str(waves), "data.points": 64, "data.n_in": 2}
    chosen |= {"data.n_out": 3, "model.settings.width": 4, "model.settings.depth": 1}
    return chosen | {"trainer.epochs": 3}


def test_states_are_what_goes_into_the_blocks_and_comes_out(
    settings: dict[str, Any],
) -> None:
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


def test_models_without_a_grid_have_no_states(settings: dict[str, Any]) -> None:
    experiment = prepare(load_config(overrides=settings | {"model.name": "dse"}))
    with pytest.raises(UserError, match="model dse"):
        grid_states(experiment.forecaster, experiment.data.parts["valid"][0])


def test_weights_and_points_have_seeds_of_their_own(settings: dict[str, Any]) -> None:
    first, second = (
        prepare(load_config(overrides=settings | {"data.mesh_seed": seed}))
        for seed in (0, 1)
    )
    weights = second.forecaster.model.state_dict()
    for name, each in first.forecaster.model.state_dict().items():
        assert torch.equal(each, weights[name])
    assert not np.array_equal(first.mesh.pos, second.mesh.pos)


@pytest.mark.slow
def test_states_are_kept_every_few_epochs_and_change_no_training(
    settings: dict[str, Any],
) -> None:
    def rows(name: str, *callbacks: KeepStates) -> str:
        experiment = prepare(load_config(overrides=settings))
        fit(experiment, begin_run(experiment, Path(name)), callbacks)
        text = RunPaths(Path(name)).metrics.read_text()
        return "\n".join(line.rpartition(",")[0] for line in text.splitlines())

    experiment = prepare(load_config(overrides=settings))
    window = experiment.data.parts["valid"][0]
    kept = rows("kept", KeepStates(Path("states"), window, 2))
    assert kept == rows("plain")
    files = convergence.kept_states(Path("states"))
    assert list(files) == [0, 2, 3]
    untrained = grid_states(experiment.forecaster, window)
    assert np.array_equal(files[0]["begin"], untrained["begin"])
    assert not np.array_equal(files[3]["end"], untrained["end"])
