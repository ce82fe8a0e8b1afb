"""Tables of points: names of columns, any order of rows, values that are missing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.data.readers.columns import ROLES
from nfsgeo.data.readers.table import scattered
from nfsgeo.errors import UserError

HEALTH = [HealthCheck.function_scoped_fixture]
FAST = settings(max_examples=60, deadline=None, suppress_health_check=HEALTH)
WORDS = st.text("abcdefgh", min_size=3, max_size=6).map("q".__add__)


def test_a_static_input_that_changes_in_time_is_no_static_input(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,t,p,a_k,a_q\n0,0,1,5,1\n0,1,1,5,2\n1,0,1,4,3\n1,1,1,4,3\n")
    message = one_line(nfsgeo.data.open, path)
    assert "a.csv with a_q, which changes in time" in message and "rename it" in message
    path.write_text("x,t,a_q\n0,0,1\n1,0,2\n")
    assert "no field but a_q, by the name a static" in one_line(nfsgeo.data.open, path)


def test_columns_that_never_change_are_asked_about(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    """Elevations and numbers of stations, which would be predicted otherwise."""
    names, path = ["x", "t", "p", "height", "id", "w"], tmp_path / "a.csv"
    rows = [[x, t, x + t, 10 * x, x, 0] for x in (1.0, 2.0) for t in (0.0, 1.0, 2.0)]
    written(path, names, rows)
    message = one_line(nfsgeo.data.open, path)
    assert "columns height and id, which never change in time" in message
    assert "--columns static=height, or field=height, or ignore=height" in message
    kinds = {"static": ["height"], "ignore": "id"}
    with open_sources(path, columns=kinds) as file:
        assert file.component_names == ["p", "w"]  # the same everywhere: no question
        assert file.static_names == ["height"]
        assert file.read_static(0).ravel().tolist() == [10.0, 20.0]
    with open_sources(path, columns={"field": ["height", "id"], "x": "x"}) as file:
        assert file.component_names == ["p", "height", "id", "w"]
    for columns, words in (
        ({"static": "depth"}, "no column 'depth'"),
        ({"static": "id", "ignore": "id"}, "each of them once"),
        ({"x": "id", "ignore": "id"}, "each of them once"),
        ({"fields": "p"}, "one of static, field, ignore"),
    ):
        assert words in one_line(open_sources, path, columns=columns)
    rows[0][3] = ""  # one value is missing, and the others are the same
    assert "never change" in one_line(nfsgeo.data.open, written(path, names, rows))
    for row in rows:  # one value at each point tells nothing
        row[3] = row[4] = "" if row[1] else row[0]
    with nfsgeo.data.open(written(path, names, rows)) as file:
        assert file.component_names == ["p", "height", "id", "w"]


def rows_of(num: int, steps: int, seed: int) -> np.ndarray:
    """Rows x, y, t, u of points that are all there at all times; u = 100 p + t."""
    random = np.random.default_rng(seed)
    pos = np.unique(random.integers(-9, 9, (num, 2)) / 4, axis=0)
    t = np.cumsum(random.integers(1, 5, steps)) / 2
    p = np.arange(len(pos))
    point, step = (v.ravel() for v in np.meshgrid(p, np.arange(steps), indexing="ij"))
    return np.c_[pos[point], t[step], 100 * point + t[step]]


def written(path: Path, names: list[str], rows: Any, separator: str = ",") -> Path:
    lines = [separator.join(map(str, row)) for row in [names, *np.asarray(rows)]]
    path.write_text("\n".join(lines))
    return path


def check(file: nfsgeo.data.FieldFile, rows: np.ndarray, name: str = "u") -> None:
    assert file.component_names == [name] and file.num_samples == 1
    assert np.array_equal(file.times, np.unique(rows[:, 2]))
    assert np.array_equal(file.coordinates(), np.unique(rows[:, :2], axis=0))
    u = file.read(0, slice(None))[..., 0]
    p = np.arange(len(u))[:, None]
    assert np.array_equal(u, (100 * p + file.times).astype(np.float32))


sizes = st.tuples(st.integers(2, 8), st.integers(1, 5), st.integers(0, 99))


@FAST
@given(size=sizes, data=st.data())
def test_names_and_order_change_nothing(
    tmp_path: Path, size: tuple[int, int, int], data: st.DataObject
) -> None:
    """Known names in any case and with a unit, columns and rows in any order."""
    rows = rows_of(*size)
    names = []
    for role in ("x", "y", "time"):
        name = data.draw(st.sampled_from(ROLES[role]))
        name = (
            name
            if name == "t"
            else data.draw(st.sampled_from([name, name.upper(), name.title()]))
        )
        names.append(name + data.draw(st.sampled_from(["", " [m]", "_s", " (deg)"])))
    names.append("u")
    columns = data.draw(st.permutations(range(4)))
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    separator = data.draw(st.sampled_from(",;\t"))
    named = [names[c] for c in columns]
    path = written(tmp_path / "a.csv", named, rows[order][:, columns], separator)
    with nfsgeo.data.open(path) as file:
        check(file, rows)


@FAST
@given(size=sizes, names=st.lists(WORDS, min_size=4, max_size=4, unique=True))
def test_names_that_say_nothing_have_to_be_explained(
    tmp_path: Path, size: tuple[int, int, int], names: list[str]
) -> None:
    rows = rows_of(*size)
    path = written(tmp_path / "a.csv", names, rows)
    with pytest.raises(UserError, match="--columns x=COLUMN"):
        nfsgeo.data.open(path)
    columns = dict(zip(("x", "y", "time"), names, strict=False))
    with open_sources(path, columns=columns) as file:
        check(file, rows, names[3])


@FAST
@given(size=sizes, data=st.data())
def test_rows_that_are_missing_are_gaps_and_those_there_twice_are_named(
    tmp_path: Path, size: tuple[int, int, int], data: st.DataObject
) -> None:
    rows = rows_of(size[0], size[1] + 1, size[2])
    at = data.draw(st.integers(0, len(rows) - 1))
    x, y, t, _ = rows[at]
    path = written(tmp_path / "a.csv", ["x", "y", "t", "u"], np.delete(rows, at, 0))
    if len(np.unique(rows[:, :2], axis=0)) > 1 and len(np.unique(rows[:, 2])) > 2:
        with nfsgeo.data.open(path) as file:
            u, places = file.read(0, slice(None))[..., 0], file.coordinates()
            point, step = np.argwhere(np.isnan(u))[0]
            assert np.isnan(u).sum() == 1
            assert places[point].tolist() == [x, y] and file.times[step] == t
    point = rf"\[{x}, {y}\]"
    written(path, ["x", "y", "t", "u"], np.vstack([rows, rows[at]]))
    with pytest.raises(UserError, match=rf"2 rows for the point {point} at t = {t:g}"):
        nfsgeo.data.open(path)


@FAST
@given(
    size=sizes,
    column=st.integers(0, 3),
    mark=st.sampled_from(["", "NA", "NaN", "null", "-", "nan", " "]),
    data=st.data(),
)
def test_cells_without_a_value_are_counted(
    tmp_path: Path,
    size: tuple[int, int, int],
    column: int,
    mark: str,
    data: st.DataObject,
) -> None:
    rows = rows_of(*size).astype(object)
    places = st.sets(st.integers(0, len(rows) - 1), min_size=1)
    bad = sorted(data.draw(places))
    rows[bad, column] = mark
    path = written(tmp_path / "a.csv", ["x", "y", "t", "u"], rows)
    if column == 3:
        with nfsgeo.data.open(path) as file:
            assert np.isnan(file.read(0, slice(None))).sum() == len(bad)
        return
    what = f"column {'xytu'[column]} with {len(bad)} of {len(rows)} values missing"
    with pytest.raises(UserError, match=what):
        nfsgeo.data.open(path)


def test_a_time_that_went_for_a_field(tmp_path: Path) -> None:
    """3600 points and one time step, where there are 60 of each."""
    t, x = np.meshgrid(np.arange(60.0), np.arange(60.0))
    rows = np.c_[x.ravel(), t.ravel(), (x + t).ravel()]
    for name in ("time", "Time [s]", "t", "timestamp"):
        path = written(tmp_path / "a.csv", ["x", name, "u"], rows)
        with nfsgeo.data.open(path) as file:
            assert (file.num_points(), len(file.times)) == (60, 60)
            assert file.component_names == ["u"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["x", "y", "T", "u"], "column T, which may be the time"),
        (["x", "y", "travel_time", "u"], "column travel_time, which may be the time"),
        (["x", "y", "t", "date"], "t and date, each of which may be the time"),
        (["x", "y", "lat", "u"], "y and lat, each of which may be coordinate y"),
        (["x", "y", "t", "t"], "two columns 't'"),
        (["", "x", "y", "u"], "without a name"),
        (["x", "z", "t", "u"], "columns x[, y[, z]]"),
        (["lat", "t", "u", "v"], "columns x[, y[, z]]"),
        (["x", "y", "frame", "u"], "time=COLUMN"),
    ],
)
def test_names_that_can_be_read_in_two_ways(
    tmp_path: Path, one_line: Callable[..., str], names: list[str], words: str
) -> None:
    path = written(tmp_path / "a.csv", names, rows_of(3, 4, 0))
    assert words in one_line(nfsgeo.data.open, path)


def test_fields_that_look_like_times(tmp_path: Path) -> None:
    rows = rows_of(3, 1, 0)
    path = written(tmp_path / "a.csv", ["x", "y", "T", "u"], rows)
    with open_sources(path, columns={"time": ""}) as file:
        assert file.component_names == ["T", "u"]
    written(path, ["x", "y", "t", "T"], rows)
    with nfsgeo.data.open(path) as file:
        assert file.component_names == ["T"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"when": "t"}, "when=t"),
        ({"time": "date"}, "no column 'date'"),
        ({"x": "y", "y": "y"}, "each of them once"),
    ],
)
def test_columns_that_are_not_there(
    tmp_path: Path, one_line: Callable[..., str], columns: dict[str, str], words: str
) -> None:
    path = written(tmp_path / "a.csv", ["x", "y", "t", "u"], rows_of(3, 4, 0))
    assert words in one_line(open_sources, path, columns=columns)


@pytest.mark.parametrize("form", ["{}", "{}Z", "{}+00:00"])
@pytest.mark.parametrize("separator", [" ", "T"])
def test_dates_become_seconds(tmp_path: Path, form: str, separator: str) -> None:
    dates = ["2026-01-01 00:00:00", "2026-01-01 06:00:00", "2026-01-02 00:00:00"]
    texts = [form.format(date.replace(" ", separator)) for date in dates]
    rows = [[x, text, 1.0] for x in (0.0, 1.0) for text in texts]
    path = written(tmp_path / "a.csv", ["x", "date", "u"], rows)
    with nfsgeo.data.open(path) as file:
        assert (file.times - 1767225600.0).tolist() == [0.0, 21600.0, 86400.0]


@pytest.mark.parametrize("name", ["date", "t"])
def test_days_without_hyphens_are_not_numbers(
    tmp_path: Path, one_line: Callable[..., str], name: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    days = [20260630, 20260701]
    rows = [[x, day, 1.0] for x in (0.0, 1.0) for day in days]
    path = written(tmp_path / "a.csv", ["x", name, "u"], rows)
    columns = dict(zip(["x", name, "u"], zip(*rows, strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for each in (path, tmp_path / "a.parquet"):
        message = one_line(nfsgeo.data.open, each)
        assert f"20260630 in column {name}" in message and "hyphens" in message
    rows[0][1] = rows[2][1] = 20260631  # no day
    with nfsgeo.data.open(written(path, ["x", name, "u"], rows)) as file:
        assert file.times.tolist() == [20260631, 20260701]


@pytest.mark.parametrize("form", ["%Y%m", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"])
def test_dates_without_hyphens_are_not_numbers(
    tmp_path: Path, one_line: Callable[..., str], form: str
) -> None:
    dates = [f"{datetime(2000 + k // 12, k % 12 + 1, 2, 3):{form}}" for k in range(14)]
    rows = [[x, day, x + k] for x in (0.0, 1.0) for k, day in enumerate(dates)]
    path = written(tmp_path / "a.csv", ["x", "date", "u"], rows)
    assert "a number or a date" in one_line(nfsgeo.data.open, path)


def test_underscores_are_no_digits(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = written(tmp_path / "a.csv", ["x", "u"], [[0.0, "1_5"], [1.0, 2.0]])
    assert "'1_5' in column u" in one_line(nfsgeo.data.open, path)


def test_comments_ahead_of_the_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# made by a model, 2020\n# twice\nx,u\n0,1\n# half\n1,2\n")
    with nfsgeo.data.open(path) as file:
        assert file.component_names == ["u"]
        assert file.read(0, slice(None)).ravel().tolist() == [1, 2]
    path.write_text("# x,u\n0,1\n1,2\n")
    with nfsgeo.data.open(path) as file:
        assert file.component_names == ["u"] and file.num_points() == 2


def test_decimals_may_be_missing(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"x": [0.0, 1.0, 2.0], "u": [None, Decimal("1.5"), Decimal("2.5")]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with nfsgeo.data.open(tmp_path / "a.parquet") as file:
        values = file.read(0, slice(None)).ravel()
    np.testing.assert_array_equal(values, [np.nan, 1.5, 2.5])


def test_dates_with_offsets_are_in_utc(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    dates = ["2026-01-01T02:00:00.5+02:00", "2026-01-01T06:00-0100", "20260102T000000Z"]
    seconds = [0.5, 25200.0, 86400.0]
    rows = [[x, text, 1.0] for x in (0.0, 1.0) for text in dates]
    path = written(tmp_path / "a.csv", ["x", "date", "u"], rows)
    columns = dict(zip(["x", "date", "u"], zip(*rows, strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for each in (path, tmp_path / "a.parquet"):
        with nfsgeo.data.open(each) as file:
            assert (file.times - 1767225600.0).tolist() == seconds
            assert file.provenance["units"] == {"time": "seconds since 1970-01-01"}
    rows[1][1] = "2026-01-01T06:00"
    written(path, ["x", "date", "u"], rows)
    assert "with and without an offset" in one_line(nfsgeo.data.open, path)


def test_longitudes_around_the_globe(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    rows = [[x, y, 1.0] for x in (-170.0, 170.0) for y in (0.0, 1.0)]
    path = written(tmp_path / "a.csv", ["lon", "lat", "u"], rows)
    assert "340 degrees" in one_line(nfsgeo.data.open, path)
    with nfsgeo.data.open(written(path, ["x", "y", "u"], rows)) as file:
        assert file.num_points() == 4


def test_rows_that_are_missing_leave_no_value() -> None:
    """A gap is NaN, and every other row is in its place."""
    at = np.array([0, 2, 1]), np.array([1, 0, 1])
    values = scattered(np.array([[1.0], [2.0], [3.0]]), at, (3, 2))
    wanted = [[np.nan, 1], [np.nan, 3], [2, np.nan]]
    np.testing.assert_array_equal(values[..., 0], wanted)


@pytest.mark.parametrize("cell", ["today", "1,5", "01/02/2026", "2026-01-01T00:00+05"])
def test_cells_that_are_no_numbers(
    tmp_path: Path, one_line: Callable[..., str], cell: str
) -> None:
    rows = [[0.0, 0.0, 1.0], [1.0, 0.0, cell]]
    path = written(tmp_path / "a.csv", ["x", "t", "u"], rows, ";")
    assert f"{cell!r} in column u" in one_line(nfsgeo.data.open, path)
    rows.append([2.0, 0.0, ""])  # an empty cell does not make it a column of dates
    path = written(tmp_path / "b.csv", ["x", "t", "u"], rows, ";")
    assert f"{cell!r} in column u" in one_line(nfsgeo.data.open, path)


def test_row_numbers_that_pandas_kept_are_no_field(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": [0.0, 1.0, 2.0], "t": 0.0, "u": [4.0, 5.0, 6.0]})
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "a.parquet")
    with nfsgeo.data.open(tmp_path / "a.parquet") as file:
        assert file.component_names == ["u"]
        assert file.read(0, slice(None)).ravel().tolist() == [4.0, 5.0, 6.0]


def test_parquet_with_dates_and_nulls(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    days = np.array(["2026-01-01", "2026-01-02"] * 2, "datetime64[ns]")
    table = {"lon": [0.0, 0.0, 1.0, 1.0], "date": days, "u": [1, 2, 3, 4]}
    for unit in ("s", "ms", "us", "ns"):
        column = pyarrow.array(days).cast(pyarrow.timestamp(unit, "UTC"))
        parquet.write_table(
            pyarrow.table({**table, "date": column}), tmp_path / "a.parquet"
        )
        with nfsgeo.data.open(tmp_path / "a.parquet") as file:
            assert file.times.tolist() == [1767225600.0, 1767312000.0]
            assert file.read(0, slice(None))[:, :, 0].tolist() == [[1, 2], [3, 4]]
    table["u"] = [1, None, 3, None]
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with nfsgeo.data.open(tmp_path / "a.parquet") as file:
        found = file.read(0, slice(None))[:, :, 0]
    np.testing.assert_array_equal(found, [[1, np.nan], [3, np.nan]])
    table["date"] = [days[0], None, days[0], days[1]]
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    message = one_line(nfsgeo.data.open, tmp_path / "a.parquet")
    assert "column date with 1 of 4 values missing" in message
