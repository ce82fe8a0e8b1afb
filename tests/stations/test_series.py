"""Climatology and linear forecast of one long series, against closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import nfsgeo
from nfsgeo.forecast.transforms import SeriesFit
from nfsgeo.stations.climatology import harmonics
from nfsgeo.stations.series import fitted_series
from nfsgeo.training import load_config, prepare
from nfsgeo.training.resolution import resolved
from nfsgeo.training.run_data import RunData, open_source

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
    return fitted_series(RunData(resolved(config, file), file))


def test_harmonics_repeat_with_their_period():
    times = torch.linspace(0, 3 * YEAR, 50).double()
    basis = harmonics(times, (YEAR, DAY))
    assert basis.shape == (50, 5)
    torch.testing.assert_close(harmonics(times + 400 * YEAR, (YEAR,)), basis[:, :3])


def test_a_season_is_found_at_every_station(tmp_path, places):
    days = np.arange(1200)
    phase = 2 * np.pi * days * DAY / YEAR
    level, swing = 10 + 3 * places[:, :1], 4 - 2 * places[:, 1:]
    noise = 1e-3 * np.random.default_rng(1).standard_normal((STATIONS, len(days)))
    u = level + swing * np.cos(phase) + noise
    u[3, 100:] = np.nan  # too short for a season of its own: the others tell it
    u[4, ::3] = np.nan
    found = fitted(tmp_path, u, places)
    assert found is not None and found.periods == (YEAR, YEAR / 2) and found.level
    coefficients = found.coefficients[..., 0].numpy()
    np.testing.assert_allclose(coefficients[:, 0], level[:, 0], atol=0.02)
    np.testing.assert_allclose(coefficients[:, 1], swing[:, 0], atol=0.02)
    np.testing.assert_allclose(coefficients[:, 2:], 0, atol=0.02)


def test_a_static_input_tells_the_level_of_a_station_without_values(tmp_path, places):
    height = np.random.default_rng(2).uniform(0, 3, STATIONS)
    noise = np.random.default_rng(1).standard_normal((STATIONS, 1000))
    u = (20 - 6.5 * height)[:, None] + noise
    u[5, :900] = np.nan
    found = fitted(tmp_path, u, places, static=height[None, :, None])
    assert found is not None
    assert float(found.coefficients[5, 0, 0]) == pytest.approx(
        20 - 6.5 * height[5], abs=0.5
    )


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
    total = (found.own + found.regional).sum(1)
    torch.testing.assert_close(total, torch.ones_like(total))


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
    moved = one.coefficients[torch.from_numpy(order)]
    moved[:, 0] -= 50
    found = other.coefficients / unit
    torch.testing.assert_close(found, moved, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(other.own, one.own, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other.left / unit, one.left, rtol=1e-4, atol=0)


def test_a_network_begins_as_the_linear_forecast(tmp_path, places):
    random = np.random.default_rng(7)
    season = np.cos(2 * np.pi * np.arange(900) * DAY / YEAR)
    u = 5 + season + 0.3 * random.standard_normal((STATIONS, 900))
    found = fitted(tmp_path, u, places)
    assert found is not None
    made = prepare(load_config(overrides=SIZES | {"data.file": tmp_path / "series.nc"}))
    assert (made.config.loss.name, made.data.batch_size) == ("mae", 32)  # noise
    window = made.data.parts["valid"][3]
    climatology = torch.einsum(
        "tk,skc->stc", harmonics(window.times, found.periods), found.coefficients
    )
    past = window.x.double() - climatology[:, :3]
    forecast = torch.einsum("tkc,skc->stc", found.own, past)
    forecast += torch.einsum("tkc,kc->tc", found.regional, past.mean(0))
    predicted = made.forecaster(window.x, window.pos, times=window.times)
    expected = climatology[:, 3:] + forecast
    torch.testing.assert_close(predicted, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [12, 40])
def test_a_short_series_is_predicted_as_before(tmp_path, places, steps):
    u = np.random.default_rng(8).standard_normal((STATIONS, steps))
    if steps == 12:
        assert fitted(tmp_path, u, places, **{"data.n_out": 1, "data.n_in": 2}) is None
    else:
        assert fitted(tmp_path, u, places, **{"model.prediction": "residual"}) is None


def test_a_smooth_series_is_trained_as_others_are(tmp_path, places):
    u = np.sin(0.05 * np.arange(900) + 7 * places[:, :1])
    assert (found := fitted(tmp_path, u, places)) and not found.noisy
    settings = SIZES | {"data.file": tmp_path / "series.nc", "optimiser.lr": 7e-3}
    made = prepare(load_config(overrides=settings))
    assert made.config.loss.name == "relative_l2" and made.data.batch_size == 4
    assert made.config.optimiser.lr == 7e-3


def test_a_component_that_never_changes_is_predicted_as_it_is(tmp_path, places):
    random = np.random.default_rng(9)
    u = random.standard_normal((STATIONS, 300, 2))
    u[..., 1] = 5.3
    assert fitted(tmp_path, u, places) is not None
    made = prepare(load_config(overrides=SIZES | {"data.file": tmp_path / "series.nc"}))
    window = made.data.parts["valid"][0]
    found = made.forecaster(window.x, window.pos)
    assert found.isfinite().all()
    torch.testing.assert_close(found[..., 1], window.y[..., 1], rtol=1e-6, atol=1e-6)
