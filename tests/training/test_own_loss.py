"""Models that are trained on a loss of their own."""

from typing import Any

import pytest

import nfsgeo.data
from nfsgeo.training import load_config
from nfsgeo.training.complete_config import complete_config
from nfsgeo.training.experiment import prepare
from nfsgeo.training.run_data import RunData

SMALL: dict[str, dict[str, Any]] = {
    "gcgru": {"width": 4},
    "dcrnn": {"width": 4},
    "agcrn": {"width": 4},
    "mppde": {"width": 18, "depth": 1, "window": 4},
    "dse": {"width": 4, "depth": 1, "modes": 2, "time_modes": 2},
}


def chosen(model: str) -> dict[str, Any]:
    """Overrides that choose a model and make it small."""
    settings = {f"model.settings.{key}": value for key, value in SMALL[model].items()}
    return {"model.name": model, **settings}


def test_steps_beyond_are_as_many_as_there_are(waves):
    with nfsgeo.data.open(waves) as file:
        used = RunData(
            complete_config(load_config(overrides={"data.n_in": 5}), file), file
        )
        # Of 24 time steps, 5 are observed and 10 predicted.
        lengths = [
            used.windows("train", beyond=beyond)[0].y.size(1) for beyond in (0, 4, 100)
        ]
    assert lengths == [10, 14, 19]


@pytest.fixture
def tiny() -> dict[str, Any]:
    sizes = {"data.points": 30, "data.n_in": 4, "data.n_out": 4}
    return sizes | {"trainer.epochs": 3, "trainer.device": "cpu"}


@pytest.mark.slow
@pytest.mark.parametrize("model", SMALL)
def test_every_model_trains_and_predicts(train, model):
    run = train("run", chosen(model))
    assert run.rmse()[-1] < run.rmse()[0]
    parts = run.experiment.data.parts
    # The pushforward trick wants three windows of four time steps.
    assert parts["train"][0].y.size(1) == (8 if model == "mppde" else 4)
    assert len(run.experiment.task.times) == 8
    item = parts["valid"][0]
    assert nfsgeo.load(run.paths).predict(item.x, item.pos).shape == (30, 4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gcgru", "mppde"])
def test_what_was_drawn_is_drawn_again(interrupt_and_resume, model):
    """Weights and windows, in a run that was cut short and went on."""
    interrupt_and_resume(chosen(model), 1)


def test_it_takes_the_loss_and_the_weights_of_the_configuration(waves, tiny):
    def loss(**section: str) -> float:
        overrides = {f"loss.{key}": value for key, value in section.items()}
        overrides |= {"data.file": str(waves), **tiny, **chosen("dcrnn")}
        experiment = prepare(load_config(overrides=overrides))
        module, train = experiment.module, experiment.data.parts["train"]
        module.log = lambda *_, **__: None  # type: ignore[method-assign]
        collate = experiment.data.collate["train"]
        return module.training_step(collate([train[0], train[1]]), 0).item()

    values = [loss(), *(loss(name=name) for name in ("mae", "mse"))]
    values.append(loss(weighting="quadrature"))
    assert len(set(values)) == 4 and values[0] == loss(weighting="uniform")
