"""Stations in tables: a column for each, positions in another table, names, days."""

import math
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data

PLACES = {"773869": (3.0, 1.0), "767541": (1.0, 2.0), "S 3": (2.0, 0.5)}


@pytest.fixture
def sensors(tmp_path: Path) -> Path:
    """Their positions in another order, with a station that has no column."""
    rows = [f"{i},{name},{x},{y}" for i, (name, (x, y)) in enumerate(PLACES.items())]
    path = tmp_path / "sensors.csv"
    path.write_text("\n".join(["index,id,x,y", "7,unused,9,9", *reversed(rows)]))
    return path


def test_samples_and_columns_that_are_no_stations(tmp_path, sensors):
    names, x = ["day", "hour", "remark", *PLACES], [x for x, _ in PLACES.values()]
    rows = [
        [day, hour, "fine", *(place + 10 * hour + (day == "tue") for place in x)]
        for day in ("mon", "tue")
        for hour in (0, 1)
    ]
    path = tmp_path / "levels.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    told = {"points": str(sensors), "sample": "day", "time": "hour", "ignore": "remark"}
    with nfsgeo.data.open(path, columns=told) as file:
        assert file.num_samples == 2 and file.times.tolist() == [0.0, 1.0]
        for sample in range(2):
            at = file.coordinates(sample)[:, :1]
            values = file.read(sample, slice(None))[..., 0]
            assert np.array_equal(values, at + [sample, 10 + sample])


def test_what_is_told_must_be_there(tmp_path, sensors, one_line):
    names, days = ["timestamp", *PLACES], ["2012-03-01", "2012-03-02"]
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("\n".join([",".join(names), *(f"{day},1,2,3" for day in days)]))
    lines, ids = sensors.read_text(), "\n".join(f"{n},{n},1,2" for n in PLACES)
    assert "points=FILE" in one_line(nfsgeo.data.open, speeds)
    for told, places, words in (
        ({"time": "when"}, lines, "no column 'when'"),
        ({"x": "767541"}, lines, "no column '767541'"),
        ({"time": ""}, lines, "not once with timestamp"),
        ({"ignore": [*PLACES]}, lines, "expected stations"),
        ({"points": "gone.csv"}, lines, "points=gone.csv"),
        ({"static": "767541"}, lines, "static= beside points="),
        ({}, lines + "\n9,767541,5,5", "not once with 767541"),
        ({}, f"id,again,x,y\n{ids}", "each station once"),
        ({}, lines.replace("x,y", "x,z"), "x[, y[, z]]"),
        ({}, lines.replace("767541", "1"), "not once with 767541"),
    ):
        sensors.write_text(places)
        columns = {"points": str(sensors)} | told
        assert words in one_line(nfsgeo.data.open, speeds, columns=columns)


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_any_table_is_that_of_its_rows(tmp_path, data):
    """The same fields as from a table with a row for each point and time step, of
    coordinates or of the names of stations.
    """
    num = data.draw(st.integers(1, 4))
    times = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True))
    cell = st.one_of(st.just(math.nan), st.floats(-9, 9, width=32))
    rows = [[data.draw(cell) for _ in range(num)] for _ in times]
    rows[0][0] = 1.0  # a table without any value is refused
    names = data.draw(st.permutations([f"s{i}" for i in range(num)]))
    at = {name: (float(i % 2), i / 7) for i, name in enumerate(names)}

    files = ("u", "long", "places", "named")
    wide, long, places, named = (tmp_path / f"{n}.csv" for n in files)
    stations = [[*at[name], name] for name in sorted(at)]
    pandas.DataFrame(stations, columns=["x", "y", "id"]).to_csv(places, index=False)
    table = pandas.DataFrame(rows, times, names).rename_axis("t")
    table.to_csv(wide)
    each = [[t, *at[n], table.loc[t, n]] for t in times for n in names]
    pandas.DataFrame(each, columns=["t", "x", "y", "u"]).to_csv(long, index=False)
    each = [[t, n, table.loc[t, n]] for t in times for n in names]
    pandas.DataFrame(each, columns=["t", "site", "u"]).to_csv(named, index=False)
    third = nfsgeo.data.open(named, columns={"points": str(places), "field": "u"})
    one = nfsgeo.data.open(wide, columns={"points": str(places), "field": "level"})
    assert one.component_names == ["level"] and third.component_names == ["u"]
    other = nfsgeo.data.open(long, columns={"field": "u"})
    assert one.times.tolist() == other.times.tolist()
    assert one.stations() == names
    assert one.coordinates().tolist() == [[*at[name]] for name in names]
    order = sorted(range(num), key=names.__getitem__)
    assert third.stations() == sorted(names)
    assert np.array_equal(third.coordinates(), one.coordinates()[order])
    expected = one.read(0, slice(None))[order]
    np.testing.assert_array_equal(third.read(0, slice(None)), expected)
    order = sorted(range(num), key=lambda k: at[names[k]])
    u = one.read(0, slice(None))[order]
    np.testing.assert_array_equal(u, other.read(0, slice(None)))


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_names_of_stations_go_through_files(tmp_path, data):
    """Numbers with zeros in front, too; rows in any order, points in that of names."""
    word = st.text("0123456789ü", min_size=1, max_size=4)
    names = data.draw(st.lists(word, min_size=2, max_size=4, unique=True))
    column = data.draw(st.sampled_from(["station", "ID", "Site", "name"]))
    apart = data.draw(st.booleans())  # or else several at one place
    rows = [
        [n, k % 2, k * apart, t, 10 * k + t]
        for k, n in enumerate(names)
        for t in (0, 1)
    ]
    table = pandas.DataFrame(rows, columns=[column, "x", "y", "t", "u"])
    order = data.draw(st.permutations(range(len(rows))))
    path = tmp_path / f"a.csv{data.draw(st.sampled_from(['', '.gz']))}"
    table.iloc[order].to_csv(path, index=False)
    kept = tmp_path / f"b{data.draw(st.sampled_from(['.nc', '.csv', '.parquet']))}"
    kept.unlink(missing_ok=True)
    nfsgeo.data.convert(path, kept)
    for each in (path, kept):
        with nfsgeo.data.open(each) as file:
            assert file.component_names == ["u"] and file.stations() == sorted(names)
            for name, values in zip(
                sorted(names), file.read(0, slice(None)), strict=True
            ):
                k = names.index(name)
                assert values.ravel().tolist() == [10 * k, 10 * k + 1]


def test_a_day_that_all_stations_lack_is_a_gap(tmp_path):
    days = pandas.date_range("2026-02-01", periods=9).delete([3, 4])
    rows = [[day, x, x * day.day] for day in days for x in (1, 2)]
    path = tmp_path / "a.csv"
    pandas.DataFrame(rows, columns=["date", "x", "u"]).to_csv(path, index=False)
    with nfsgeo.data.open(path) as file:
        assert np.diff(file.times).tolist() == [86400.0] * 8
        absent = np.isnan(file.read(0, slice(None))).all(axis=(0, 2))
        assert np.flatnonzero(absent).tolist() == [3, 4]
