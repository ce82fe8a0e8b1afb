"""Climatology and linear forecast of one long series, against closed forms."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import nfsgeo
from nfsgeo.stations.climatology import at_times
from nfsgeo.stations.series_fit import SeriesFit, fitted_series
from nfsgeo.training import load_config, prepare
from nfsgeo.training.complete_config import complete_config
from nfsgeo.training.run_data import RunData
from nfsgeo.training.source import open_source

DAY, YEAR = 86400.0, 365.2425 * 86400.0
STATIONS, SIZES = 24, {"data.n_in": 3, "data.n_out": 2}


@pytest.fixture
def places() -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform(size=(STATIONS, 2))


def fitted(
    folder: Path, u: Any, pos: Any, times: Any = None, **settings: Any
) -> SeriesFit | None:
    """The fit to a file of ``u [S, T]``, 3 time steps in and 2 out."""
    times = np.arange(u.shape[1]) * 86400 * 1e6 if times is None else times
    dates = np.asarray(times).astype(np.int64).astype("M8[us]")
    static = settings.pop("static", None)
    fields = nfsgeo.from_arrays(u[None], pos, dates, static=static)
    path = fields.write(folder / "series.nc")
    given = SIZES | {"data.file": path, **settings}
    config = load_config(overrides=given)
    file = open_source(config.data)
    return fitted_series(RunData(complete_config(config, file), file))


def climatology(found: SeriesFit, times: Any) -> torch.Tensor:
    """The climatology at all points and times ``[S, T, C]``."""
    return at_times(found.table, found.cycles, torch.as_tensor(times).double())


def test_a_climatology_is_linear_between_phases_and_repeats():
    table = torch.tensor([[5.0], [1.0], [2.0], [4.0], [2.0]]).double()[None]
    cycles, times = [(math.inf, 1), (DAY, 4)], DAY / 4 * torch.arange(-8, 9).double()
    found = at_times(table, cycles, times)[0, :, 0]
    assert found.tolist() == [*[6.0, 7.0, 9.0, 7.0] * 4, 6.0]
    half = at_times(table, cycles, times + DAY / 8)[0, :4, 0]
    assert half.tolist() == [6.5, 8.0, 8.0, 6.5]
    assert at_times(table, cycles, times[:8].view(2, 4)).shape == (1, 2, 4, 1)


@pytest.mark.slow
def test_a_season_is_found_at_every_station(tmp_path, places):
    days = np.arange(1200)
    phase = 2 * np.pi * days * DAY / YEAR
    level, swing = 10 + 3 * places[:, :1], 4 - 2 * places[:, 1:]
    noise = 1e-3 * np.random.default_rng(1).standard_normal((STATIONS, len(days)))
    u = level + swing * np.cos(phase) + noise
    u[3, 100:] = np.nan  # too short for a season of its own: the others tell it
    u[4, ::3] = np.nan
    found = fitted(tmp_path, u, places)
    assert found is not None and found.level
    assert [period for period, _ in found.cycles] == [math.inf, YEAR]  # no week
    expected = level + swing * np.cos(phase)
    error = np.abs(climatology(found, days * DAY)[..., 0].numpy() - expected).max(1)
    assert np.delete(error, 3).max() < 0.02 * 4  # of the largest swing
    assert error[3] < 0.2 * 4


def test_a_sharp_daily_cycle_is_kept(tmp_path, places):
    """As good as the mean by time of day, smoothed over half an hour."""
    random, steps = np.random.default_rng(3), 7 * 288
    hours = np.arange(steps) / 12 % 24
    rush = 8 + random.random((STATIONS, 1))
    dip = 30 * np.exp(-(((hours - rush) / 0.5) ** 2))
    u = 60 - dip + 3 * random.standard_normal((STATIONS, steps))
    u[random.random(u.shape) < 0.05] = np.nan
    times = np.arange(steps) * 300 * 1e6
    found = fitted(tmp_path, u, places, times)
    assert found is not None and found.level
    num = round(0.7 * steps)
    by_time = np.stack([np.nanmean(u[:, k:num:288], 1) for k in range(288)], 1)
    window = [np.roll(by_time, k, 1) for k in range(-3, 4)]
    smoothed = np.mean(window, 0)[:, np.arange(steps) % 288]
    later = slice(round(0.8 * steps), None)
    errors = [
        np.abs(60 - dip - mean)[:, later].mean()
        for mean in (climatology(found, times / 1e6)[..., 0].numpy(), smoothed)
    ]
    assert errors[0] < 1.02 * errors[1]


@pytest.mark.slow
def test_weekends_differ_where_training_has_some(tmp_path, places):
    random, hours = np.random.default_rng(4), np.arange(60 * 24)
    weekday = (hours // 24 + 3) % 7 < 5  # 1970 began on a Thursday
    u = 5 * weekday * np.sin(np.pi * (hours % 24) / 24)
    u = u + 0.3 * random.standard_normal((STATIONS, len(hours)))
    times = hours * 3600 * 1e6
    found = fitted(tmp_path, u, places, times)
    assert found is not None
    truth = 5 * weekday * np.sin(np.pi * (hours % 24) / 24)
    error = np.abs(climatology(found, times / 1e6)[..., 0].numpy() - truth)
    assert error.mean() < 0.3


@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_a_week_is_a_cycle_where_it_predicts_the_rest_of_the_training_data(
    tmp_path, places, effect
):
    """Days of one weather are alike, so that nine weeks of them have uneven means."""
    random, days = np.random.default_rng(5), np.arange(90)
    weather = np.zeros(len(days))
    for day in days[1:]:
        weather[day] = 0.7 * weather[day - 1] + random.standard_normal()
    noise = random.standard_normal((STATIONS, len(days)))
    u = 20 + effect * (days % 7 < 5) + weather + noise
    found = fitted(tmp_path, u, places)
    assert found is not None
    weekly = 7 * DAY in [period for period, _ in found.cycles]
    assert weekly == (effect > 0)


@pytest.mark.slow
def test_a_static_input_tells_the_level_of_a_station_without_values(tmp_path, places):
    height = np.random.default_rng(2).uniform(0, 3, STATIONS)
    noise = np.random.default_rng(1).standard_normal((STATIONS, 1000))
    u = (20 - 6.5 * height)[:, None] + noise
    u[5, :900] = np.nan
    found = fitted(tmp_path, u, places, static=height[None, :, None])
    assert found is not None
    assert float(found.table[5, 0, 0]) == pytest.approx(20 - 6.5 * height[5], abs=0.5)


@pytest.mark.slow
def test_an_autoregression_is_found(tmp_path, places):
    random, steps = np.random.default_rng(3), 2000
    u = np.zeros((STATIONS, steps))
    for step in range(1, steps):
        u[:, step] = 0.7 * u[:, step - 1] + random.standard_normal(STATIONS)
    found = fitted(tmp_path, u, places, **{"data.split_by": "time"})
    assert found is not None
    own = (found.own + found.regional)[..., 0]
    expected = torch.tensor([[0.0, 0.0, 0.7], [0.0, 0.0, 0.49]]).double()
    torch.testing.assert_close(own, expected, atol=0.06, rtol=0)
    spread = (1 + 0.49 / 2) ** 0.5  # of the two lead times together
    assert float(found.left[0]) == pytest.approx(spread, rel=0.05)


def test_a_random_walk_has_no_level(tmp_path, places):
    u = np.random.default_rng(4).standard_normal((STATIONS, 150)).cumsum(axis=1)
    found = fitted(tmp_path, u, places)
    assert found is not None and not found.level  # dates of less than a year
    assert [period for period, _ in found.cycles] == [math.inf]
    total = (found.own + found.regional).sum(1)
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [3.0, 1e-9, 1e9])
def test_units_and_order_of_points_do_not_matter(tmp_path, places, unit):
    u = np.random.default_rng(5).standard_normal((STATIONS, 800)).cumsum(axis=1)
    u[::4, 100:150] = np.nan
    order = np.random.default_rng(6).permutation(STATIONS)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = fitted(tmp_path / "a", u, places)
    other = fitted(tmp_path / "b", unit * (u[order] - 50), places[order])
    assert one is not None and other is not None
    moved = one.table[torch.from_numpy(order)]
    moved[:, 0] -= 50
    found = other.table / unit
    torch.testing.assert_close(found, moved, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(other.own, one.own, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other.left / unit, one.left, rtol=1e-4, atol=0)


@pytest.mark.slow
def test_a_network_begins_as_the_linear_forecast(tmp_path, places):
    random = np.random.default_rng(7)
    season = np.cos(2 * np.pi * np.arange(900) * DAY / YEAR)
    u = 5 + season + 0.3 * random.standard_normal((STATIONS, 900))
    found = fitted(tmp_path, u, places)
    assert found is not None
    made = prepare(load_config(overrides=SIZES | {"data.file": tmp_path / "series.nc"}))
    assert (made.config.loss.name, made.data.batch_size) == ("mae", 32)  # noise
    window = made.data.parts["valid"][3]
    season = climatology(found, window.times)
    past = window.x.double() - season[:, :3]
    forecast = torch.einsum("tkc,skc->stc", found.own, past)
    forecast += torch.einsum("tkc,kc->tc", found.regional, past.mean(0))
    predicted = made.forecaster(window.x, window.pos, times=window.times)
    expected = season[:, 3:] + forecast
    torch.testing.assert_close(predicted, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [12, 40])
def test_a_short_series_is_predicted_as_before(tmp_path, places, steps):
    u = np.random.default_rng(8).standard_normal((STATIONS, steps))
    if steps == 12:
        assert fitted(tmp_path, u, places, **{"data.n_out": 1, "data.n_in": 2}) is None
    else:
        assert fitted(tmp_path, u, places, **{"model.prediction": "residual"}) is None


@pytest.mark.slow
def test_a_smooth_series_is_trained_as_others_are(tmp_path, places):
    u = np.sin(0.05 * np.arange(900) + 7 * places[:, :1])
    assert (found := fitted(tmp_path, u, places)) and not found.noisy
    settings = SIZES | {"data.file": tmp_path / "series.nc", "optimiser.lr": 7e-3}
    made = prepare(load_config(overrides=settings))
    assert made.config.loss.name == "relative_l2" and made.data.batch_size == 4
    assert made.config.optimiser.lr == 7e-3


@pytest.mark.slow
def test_a_component_that_never_changes_is_predicted_as_it_is(tmp_path, places):
    random = np.random.default_rng(9)
    u = random.standard_normal((STATIONS, 300, 2))
    u[..., 1] = 5.3
    assert fitted(tmp_path, u, places) is not None
    made = prepare(load_config(overrides=SIZES | {"data.file": tmp_path / "series.nc"}))
    window = made.data.parts["valid"][0]
    found = made.forecaster(window.x, window.pos, times=window.times)
    assert found.isfinite().all()
    torch.testing.assert_close(found[..., 1], window.y[..., 1], rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_the_linear_forecast_alone_is_among_the_epochs(tmp_path, places, caplog):
    random = np.random.default_rng(10)
    u = 0.3 * random.standard_normal((STATIONS, 300)).cumsum(axis=1)
    assert fitted(tmp_path, u, places) is not None
    settings = {"data.file": tmp_path / "series.nc", "trainer.epochs": 1}
    settings |= {"optimiser.lr": 3.0, "model.settings.width": 4}
    made = prepare(load_config(overrides=SIZES | settings))
    window = made.data.parts["valid"][0]
    with torch.no_grad():
        expected = made.forecaster(window.x, window.pos, times=window.times)
        run = nfsgeo.fit(made, tmp_path / "run")
        found = nfsgeo.load(run)(window.x, window.pos, times=window.times)
        trained = made.forecaster(window.x, window.pos, times=window.times)
    assert (trained - expected).abs().max() > 0.1
    torch.testing.assert_close(found, expected)
    assert "the run keeps the linear forecast" in caplog.text
