"""From a table of stations to a forecast: names, calendar, columns, held-out points."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import nfsgeo
from nfsgeo.training import RunPaths

NAMES = [f"{number:03d}" for number in range(10)]
COLUMNS = {"static": "height"}


def write_table(path: Path, months: Any) -> Path:
    """A wave that travels over ten stations, of which one has a gap."""
    random = np.random.default_rng(0)
    rows = [
        [name, month, x, y, 100 * x, np.sin(6 * x + 0.5 * month.month)]
        for name, (x, y) in zip(NAMES, random.random((10, 2)), strict=True)
        for month in months
    ]
    rows[7][-1] = np.nan
    names = ["station", "date", "lon", "lat", "height", "wave"]
    pandas.DataFrame(rows, columns=names).to_csv(path, index=False)
    return path


def check_series(run: RunPaths, table: Path) -> None:
    """The series of a report are the file's, and what is predicted from there."""
    nfsgeo.evaluate(run)
    with np.load(run.evaluation) as arrays, nfsgeo.open(table, columns=COLUMNS) as file:
        names, last = arrays["station"].tolist(), arrays["station_times"][-2:]
        first = int(np.searchsorted(file.times, last[0])) - 3
        rows = [NAMES.index(name) for name in names]
        with nfsgeo.predict(run, table, "again.nc", first=first) as found:
            assert found.times.tolist() == last.tolist() and found.stations() == NAMES
            for fields, steps, key in (
                (found, slice(None), "station_prediction"),
                (file, slice(first + 3, first + 5), "station_truth"),
            ):
                u = fields.read(0, steps)[rows]
                np.testing.assert_allclose(arrays[key][:, -2:], u, rtol=1e-4, atol=1e-5)


@pytest.fixture
def months() -> Any:
    """Sixty months without one."""
    return pandas.date_range("2015-01", periods=60, freq="MS").delete(20)


@pytest.fixture
def settings(tiny: dict[str, Any]) -> dict[str, Any]:
    sizes = {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}
    return tiny | sizes | {"data.columns": COLUMNS}


@pytest.mark.slow
def test_a_table_becomes_a_forecast_in_the_same_terms(months, settings, refuses):
    table = write_table(Path("a.csv"), months)
    refuses("static=height", nfsgeo.prepare, table, settings | {"data.columns": None})
    run = nfsgeo.fit(nfsgeo.prepare(table, settings), Path("run"))
    later = write_table(
        Path("b.csv"), pandas.date_range("2030-05", periods=3, freq="MS")
    )
    for each, months_ahead in (
        (table, ["2020-01", "2020-02"]),
        (later, ["2030-08", "2030-09"]),
    ):
        out = each.with_suffix(".out.csv")
        nfsgeo.predict(run, each, out)
        found = pandas.read_csv(out, dtype={"station": str}, parse_dates=["time"])
        assert found["station"].unique().tolist() == NAMES
        assert found["time"].dt.strftime("%Y-%m").unique().tolist() == months_ahead
        assert (found["time"].dt.day == 1).all() and found["wave"].notna().all()
    copy = write_table(Path("c.csv"), months)
    scored = nfsgeo.evaluate(run, data=copy, part="all")["scored"]
    assert scored["windows"] == 56  # over the month that lacks, too
    check_series(run, table)
    daily = write_table(Path("d.csv"), pandas.date_range("2015-01-01", periods=40))
    refuses("1 day.*1 month, as in training", nfsgeo.evaluate, run, data=daily)


@pytest.mark.slow
def test_held_out_stations_are_never_seen(months, settings, refuses):
    table = write_table(Path("a.csv"), months)
    held = settings | {"data.hold_out": 0.2}
    experiment = nfsgeo.prepare(table, held)
    for windows in experiment.data.parts.values():
        seen = {tuple(at) for window in windows for at in window.pos.tolist()}
        assert len(seen) == 8 and not any("query_pos" in window for window in windows)
    with nfsgeo.open(table, columns=COLUMNS) as file:
        assert len(seen.intersection(map(tuple, file.coordinates().tolist()))) == 8
    summary = nfsgeo.evaluate(nfsgeo.fit(experiment, Path("run")))
    assert summary["scored"]["points"] == 8 and summary["unobserved"]["num_points"] == 2
    for also in ({"data.points": 5}, {"data.mesh": "all"}, {"data.hold_out": 0.97}):
        refuses("data.hold_out=", nfsgeo.prepare, table, held | also)


@pytest.mark.slow
def test_a_held_out_station_is_unseen_where_another_is_observed(months, settings):
    table = write_table(Path("a.csv"), months)
    frame = pandas.read_csv(table, dtype={"station": str})
    places = frame[["lon", "lat"]].to_numpy()[:: len(months)]
    pairs = places[frame["station"].astype(int) // 2]
    frame.assign(lon=pairs[:, 0], lat=pairs[:, 1]).to_csv(table, index=False)
    experiment = nfsgeo.prepare(table, settings | {"data.hold_out": 0.2})
    used = experiment.used
    assert used.trained_points(0).tolist() == used.mesh(0).index.tolist()
    assert len(used.mesh(0)) == 8


@pytest.mark.slow
def test_forecasts_of_a_season_have_error_bands(settings):
    table = write_table(
        Path("a.csv"), pandas.date_range("1990-01", periods=200, freq="MS")
    )
    prepared = nfsgeo.prepare(table, settings | {"model.bands": True})
    assert prepared.task.seasonal
    with nfsgeo.predict(nfsgeo.fit(prepared), table, "ahead.nc") as found:
        assert found.component_names == ["wave", "wave_lower", "wave_upper"]
        wave, lower, upper = np.moveaxis(found.read(0, slice(None)), -1, 0)
        assert (lower < wave).all() and (wave < upper).all()
