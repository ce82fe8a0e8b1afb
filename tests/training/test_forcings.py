"""Training with what is known ahead, and forecasts that ask for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo_cli import main


def driven(samples: int, *, given: bool, ahead: int = 0, **more: Any) -> Fields:
    """Fields that are the running sum of a forcing that nobody could foresee."""
    rng = np.random.default_rng(0)
    pos, slope = rng.random((16, 2)), rng.random((1, 16, 1))
    forcing = 0.5 + slope * rng.normal(size=(samples, 1, 12))
    u = forcing.cumsum(2)
    u[..., 12 - ahead :] = np.nan
    known = {"forcing": forcing, "forcing_names": ["rain"]} if given else {}
    domain = Domain.unit(2, periodic=False)
    return nfsgeo.from_arrays(u, pos, np.arange(12.0), domain=domain, **known, **more)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["nfs", "gcgru"])
def test_a_model_that_is_given_the_forcing_errs_far_less(model):
    """The change of the field is the forcing: without it nothing is to be learnt."""
    errors = []
    for given in (True, False):
        chosen = {"model.name": model, "data.n_in": 4, "data.n_out": 4}
        chosen |= {"trainer.epochs": 15, "optimiser.lr": 1e-2, "data.batch_size": 8}
        chosen |= {"data.query_points": 0, "trainer.device": "cpu"}
        chosen["model.settings.width"] = 32
        if model == "nfs":
            chosen |= {"model.settings.modes": 2, "model.settings.grid": 4}
        experiment = nfsgeo.prepare(driven(60, given=given), chosen)
        run = nfsgeo.fit(experiment, f"{model}-{given}")
        errors.append(nfsgeo.evaluate(run)["test"]["mae"])
    assert errors[0] < errors[1] / 2, errors


@pytest.mark.slow
def test_predict_asks_for_them_by_name(tiny, refuses):
    chosen = tiny | {"data.n_in": 4, "data.n_out": 3, "trainer.epochs": 1}
    scalars = {"scalars": {"nu": np.arange(10.0)}}
    data = driven(10, given=True, **scalars)
    experiment = nfsgeo.prepare(data, chosen)
    assert experiment.forecaster.model.problem.forcings == 1
    # The field, a scalar, and a forcing at two folds of the input.
    assert experiment.forecaster.model.problem.num_features == 4 * (1 + 1 + 2)
    run = nfsgeo.fit(experiment, "run")
    summary = nfsgeo.evaluate(run, steps=6)
    assert len(summary["rollout"]["times"]) == 6

    short = driven(10, given=True, ahead=3, **scalars)
    with nfsgeo.predict(run, short, "ahead.nc") as ahead:
        assert ahead.times.tolist() == [9, 10, 11] and not ahead.forcing_names
        told = ahead.read(2, slice(None))
    whole = nfsgeo.predict(run, data, "first.nc", first=5).read(2, slice(None))
    np.testing.assert_array_equal(told, whole)

    forecaster = nfsgeo.load(run)
    x = np.concatenate(
        [data.read(2, slice(5, 9)), np.full((16, 4, 1), 2.0, "f4")], axis=-1
    )
    forcing = data.read_all(2, slice(5, 12))[..., 1:]
    again = forecaster.predict(x, data.coordinates(2), forcing=forcing)
    np.testing.assert_allclose(again, told, atol=1e-5)
    with pytest.raises(UserError, match=r"expected x .*nu\)"):
        forecaster.predict(x[..., :1], data.coordinates(2), forcing=forcing)

    for other, message in (
        (driven(10, given=True), "no nu: expected"),
        (driven(10, given=False, **scalars), "no rain: expected"),
        (driven(10, given=False), "no rain, nu"),
        (data, "without rain at t = 12: expected .* t = 12 to 14"),
    ):
        refuses(message, nfsgeo.predict, run, other, "out.nc")
    refuses("without rain at t = 12", nfsgeo.predict, run, short, "out.nc", steps=4)
    assert not Path("out.nc").exists()
    two = nfsgeo.predict(run, short, "two.nc", steps=2)
    assert two.times.tolist() == [9, 10]


@pytest.mark.slow
def test_inputs_that_the_file_does_not_tell_are_named_in_the_settings(tiny):
    """A table whose columns have any names; what a model is not asked for is left."""
    rng = np.random.default_rng(0)
    points, rain = rng.random((8, 2)), rng.normal(size=40)
    rows = ["x,y,t,level,rain,wind"]
    for (x, y), size in zip(points, rng.random(8), strict=True):
        for t, level in enumerate(size * rain.cumsum()):
            shown = "" if t >= 36 else f"{level}"
            rows.append(f"{x},{y},{t},{shown},{rain[t]},{t % 3}")
    Path("river.csv").write_text("\n".join(rows))
    chosen = tiny | {"data.n_in": 4, "data.n_out": 4, "trainer.epochs": 1}
    chosen |= {"data.window_stride": 2}
    known = ["--set", "data.known=[rain, wind]"]
    settings = [f"{key}={value}" for key, value in chosen.items()]
    options = [word for each in settings for word in ("--set", each)]
    command = ["train", "--data", "river.csv", "--out", "run", *options, *known]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    summary = json.loads(Path("run/summary.json").read_text())
    assert np.isfinite(summary["test"]["mae"])
    with nfsgeo.predict("run", "river.csv", "ahead.csv") as ahead:
        assert ahead.component_names == ["level"]
        assert ahead.times.tolist() == [36, 37, 38, 39]
        assert np.isfinite(ahead.read(0, slice(None))).all()
    file = nfsgeo.open("river.csv").with_known(["rain", "wind"])
    experiment = nfsgeo.prepare(file, chosen)
    assert experiment.config.data.known == ["rain", "wind"]
    train = experiment.data.parts["train"]
    last = max(float(train[i].times[-1]) for i in range(len(train)))
    assert last < 36
