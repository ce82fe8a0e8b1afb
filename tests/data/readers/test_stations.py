"""Tables with a column for each station, and their positions in another table."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nfsgeo.data.opening import open_sources

PLACES = {"773869": (3.0, 1.0), "767541": (1.0, 2.0), "S 3": (2.0, 0.5)}
TIMES = ["2012-03-01 00:00", "2012-03-01 00:05", "2012-03-01 00:10"]


def value(station: str, time: int) -> float:
    return PLACES[station][0] + 10 * time


@pytest.fixture
def speeds(tmp_path: Path) -> Path:
    lines = [["timestamp", *PLACES]]
    for number, time in enumerate(TIMES):
        lines.append([time, *(f"{value(name, number)}" for name in PLACES)])
    path = tmp_path / "speeds.csv"
    path.write_text("\n".join(map(",".join, lines)))
    return path


@pytest.fixture
def sensors(tmp_path: Path) -> Path:
    path = tmp_path / "sensors.csv"
    rows = [f"{i},{name},{x},{y}" for i, (name, (x, y)) in enumerate(PLACES.items())]
    # In another order, with a station that has no column.
    path.write_text("\n".join(["index,id,x,y", "7,unused,9,9", *reversed(rows)]))
    return path


def test_a_column_is_the_series_of_a_station(speeds: Path, sensors: Path) -> None:
    with open_sources(speeds, columns={"points": str(sensors)}) as file:
        assert file.component_names == ["speeds"]
        pos = file.coordinates(0)
        assert sorted(map(tuple, pos.tolist())) == sorted(PLACES.values())
        values = file.read(0, slice(None))[..., 0]
        assert values.tolist() == [[x + 10 * t for t in range(3)] for x, _ in pos]
        assert np.diff(file.times).tolist() == [300.0, 300.0]
        assert "1970" in file.time_unit


def test_longitudes_are_known_as_such(speeds: Path, tmp_path: Path) -> None:
    places = tmp_path / "places.csv"
    places.write_text("lat;lon;name\n1;-170;773869\n2;0;767541\n3;170;S 3\n")
    with pytest.raises(Exception, match="longitudes over 340 degrees"):
        open_sources(speeds, columns={"points": str(places)})


def test_empty_cells_are_missing_values(speeds: Path, sensors: Path) -> None:
    text = speeds.read_text().replace("12.0", "")
    speeds.write_text(text)
    with open_sources(speeds, columns={"points": str(sensors)}) as file:
        values = file.read(0, slice(None))[..., 0]
        (missing,) = np.argwhere(np.isnan(values)).tolist()
        assert file.coordinates(0)[missing[0]].tolist() == [2.0, 0.5]
        assert missing[1] == 1


def test_samples_and_columns_that_are_no_stations(
    tmp_path: Path, sensors: Path
) -> None:
    path = tmp_path / "levels.csv"
    header, rows = ["day", "hour", "remark", *PLACES], []
    for day in ("mon", "tue"):
        for hour in range(2):
            values = [str(value(name, hour) + (day == "tue")) for name in PLACES]
            rows.append([day, str(hour), "fine", *values])
    path.write_text("\n".join(map(",".join, [header, *rows])))
    told = {"points": str(sensors), "sample": "day", "time": "hour", "ignore": "remark"}
    with open_sources(path, columns=told) as file:
        assert file.num_samples == 2 and file.times.tolist() == [0.0, 1.0]
        for sample in range(2):
            at = file.coordinates(sample)[:, 0]
            values = file.read(sample, slice(None))[..., 0]
            assert values.tolist() == [
                [x + 10 * t + sample for t in (0, 1)] for x in at
            ]


def test_what_is_told_must_be_there(
    speeds: Path, sensors: Path, one_line: Callable[..., str]
) -> None:
    def message(**told: str) -> str:
        return one_line(open_sources, speeds, columns={"points": str(sensors)} | told)

    assert "points=FILE" in one_line(open_sources, speeds)
    assert "no column 'when'" in message(time="when")
    assert "x= beside points=" in message(x="767541")
    assert "sensors.csv without timestamp" in message(time="")
    assert "points=gone.csv" in message(points="gone.csv")
    lines = sensors.read_text()
    sensors.write_text(lines + "\n9,767541,5,5")
    assert "2 rows for 767541" in message()
    sensors.write_text("id,again,x,y\n" + "\n".join(f"{n},{n},1,2" for n in PLACES))
    assert "in 2 columns" in message()
    sensors.write_text(lines.replace("x,y", "x,z"))
    assert "x[, y[, z]], or lon and lat" in message()
    sensors.write_text(lines.replace("767541", "1"))
    assert "sensors.csv without 767541" in message()


def test_a_name_that_may_be_the_time_or_a_station(
    speeds: Path, sensors: Path, one_line: Callable[..., str]
) -> None:
    speeds.write_text(speeds.read_text().replace("timestamp", "T"))
    message = one_line(open_sources, speeds, columns={"points": str(sensors)})
    assert "column T, which may be the time" in message


def test_an_index_without_a_name(
    speeds: Path, sensors: Path, one_line: Callable[..., str]
) -> None:
    speeds.write_text(speeds.read_text().removeprefix("timestamp"))
    message = one_line(open_sources, speeds, columns={"points": str(sensors)})
    assert "column without a name" in message and "index_label" in message


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_table_is_that_of_its_rows(tmp_path: Path, data: st.DataObject) -> None:
    """The same fields as from a table with a row for each point and time step."""
    num = data.draw(st.integers(1, 4))
    times = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True))
    cell = st.one_of(st.just(math.nan), st.floats(-9, 9, width=32))
    rows = [[data.draw(cell) for _ in range(num)] for _ in times]
    rows[0][0] = 1.0  # a table without any value is refused
    names = data.draw(st.permutations([f"s{i}" for i in range(num)]))
    at = {name: (float(i % 2), i / 7) for i, name in enumerate(names)}

    def text(lines: list[list[object]]) -> str:
        shown = [["" if cell != cell else str(cell) for cell in line] for line in lines]
        return "\n".join(map(",".join, shown))

    wide, long, places = (tmp_path / f"{n}.csv" for n in ("u", "long", "places"))
    places.write_text(text([["x", "y", "id"], *([*at[n], n] for n in sorted(at))]))
    wide.write_text(
        text([["t", *names], *([t, *r] for t, r in zip(times, rows, strict=True))])
    )
    each = [
        [t, *at[name], value]
        for t, row in zip(times, rows, strict=True)
        for name, value in zip(names, row, strict=True)
    ]
    long.write_text(text([["t", "x", "y", "u"], *each]))
    told = {"field": "u"}
    with (
        open_sources(wide, columns={"points": str(places)}) as one,
        open_sources(long, columns=told) as other,
    ):
        assert one.times.tolist() == other.times.tolist()
        np.testing.assert_array_equal(one.coordinates(0), other.coordinates(0))
        np.testing.assert_array_equal(
            one.read(0, slice(None)), other.read(0, slice(None))
        )
