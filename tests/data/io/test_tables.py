"""Tables of points and of stations: names, order, gaps, dates, text, and back again."""

import shlex
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data.conventions import COLUMN_NAMES as ROLES
from nfsgeo.data.fields import Fields
from nfsgeo.errors import UserError

FAST = settings(max_examples=60)
WORDS = st.text("abcdefgh", min_size=3, max_size=6).map("q".__add__)


def test_a_static_input_that_changes_in_time_is_no_static_input(tmp_path, one_line):
    path = tmp_path / "a.csv"
    path.write_text("x,t,p,a_k,a_q\n0,0,1,5,1\n0,1,1,5,2\n1,0,1,4,3\n1,1,1,4,3\n")
    message = one_line(nfsgeo.data.open, path)
    assert "a.csv with a_q, which changes in time" in message and "rename it" in message
    path.write_text("x,t,a_q\n0,0,1\n1,0,2\n")
    assert "no field to predict but the inputs q" in one_line(nfsgeo.data.open, path)


def test_columns_that_never_change_are_asked_about(tmp_path, one_line):
    """Elevations and other numbers, which would be predicted otherwise."""
    names, path = ["x", "t", "p", "height", "rank", "w"], tmp_path / "a.csv"
    rows = [[x, t, x + t, 10 * x, x, 0] for x in (1.0, 2.0) for t in (0.0, 1.0, 2.0)]
    written(path, names, rows)
    message = one_line(nfsgeo.data.open, path)
    assert "a.csv with height and rank, which never change in time" in message
    assert "--columns static=height, or field=height, or ignore=height" in message
    kinds = {"static": ["height"], "ignore": "rank"}
    with nfsgeo.data.open(path, columns=kinds) as file:
        assert file.component_names == ["p", "w"]  # the same everywhere: no question
        assert file.static_names == ["height"]
        assert file.read_static(0).ravel().tolist() == [10.0, 20.0]
    with nfsgeo.data.open(
        path, columns={"field": ["height", "rank"], "x": "x"}
    ) as file:
        assert file.component_names == ["p", "height", "rank", "w"]
    for columns, words in (
        ({"static": "depth"}, "no column 'depth'"),
        ({"static": "rank", "ignore": "rank"}, "given 2 times"),
        ({"x": "rank", "ignore": "rank"}, "given 2 times"),
        ({"fields": "p"}, "static, field, ignore before the ="),
    ):
        assert words in one_line(nfsgeo.data.open, path, columns=columns)
    rows[0][3] = ""  # one value is missing, and the others are the same
    assert "never change" in one_line(nfsgeo.data.open, written(path, names, rows))
    for row in rows:  # one value at each point tells nothing
        row[3] = row[4] = "" if row[1] else row[0]
    with nfsgeo.data.open(written(path, names, rows)) as file:
        assert file.component_names == ["p", "height", "rank", "w"]


def rows_of(num: int, steps: int, seed: int) -> np.ndarray:
    """Rows x, y, t, u of points that are all there at all times; u = 100 p + t."""
    random = np.random.default_rng(seed)
    pos = random.integers(-9, 9, (num, 2)) / 4
    pos[-1:] += 5 * (num > 1)  # in no line along an axis
    pos = np.unique(pos, axis=0)
    t = np.cumsum(random.integers(1, 5, steps)) / 2
    p = np.arange(len(pos))
    point, step = (v.ravel() for v in np.meshgrid(p, np.arange(steps), indexing="ij"))
    return np.c_[pos[point], t[step], 100 * point + t[step]]


def written(path: Path, names: list[str], rows: Any, separator: str = ",") -> Path:
    lines = [separator.join(map(str, row)) for row in [names, *np.asarray(rows)]]
    path.write_text("\n".join(lines))
    return path


def tables(folder: Path, names: list[str], rows: list[list[Any]]) -> list[Path]:
    """The same rows as CSV and as Parquet."""
    pandas.DataFrame(rows, columns=names).to_parquet(folder / "a.parquet")
    return [written(folder / "a.csv", names, rows), folder / "a.parquet"]


def check(file: Fields, rows: np.ndarray, name: str = "u") -> None:
    assert file.component_names == [name] and file.num_samples == 1
    assert np.array_equal(file.times, np.unique(rows[:, 2]))
    assert np.array_equal(file.coordinates(), np.unique(rows[:, :2], axis=0))
    u = file.read(0, slice(None))[..., 0]
    p = np.arange(len(u))[:, None]
    assert np.array_equal(u, (100 * p + file.times).astype(np.float32))


sizes = st.tuples(st.integers(2, 8), st.integers(1, 5), st.integers(0, 99))


@pytest.mark.slow
@FAST
@given(size=sizes, data=st.data())
def test_names_and_order_change_nothing(tmp_path, size, data):
    """Known names in any case and with a unit, columns and rows in any order."""
    rows = rows_of(*size)
    names = ["u"]
    for role in ("time", "y", "x"):
        name = data.draw(st.sampled_from(ROLES[role]))
        cases = [name] if name == "t" else [name, name.upper(), name.title()]
        unit = st.sampled_from(["", " [m]", "_s", " (deg)"])
        names.insert(0, data.draw(st.sampled_from(cases)) + data.draw(unit))
    columns = data.draw(st.permutations(range(4)))
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    separator = data.draw(st.sampled_from(",;\t"))
    named = [names[c] for c in columns]
    path = written(tmp_path / "a.csv", named, rows[order][:, columns], separator)
    with nfsgeo.data.open(path) as file:
        check(file, rows)


@FAST
@given(size=sizes, names=st.lists(WORDS, min_size=4, max_size=4, unique=True))
def test_names_that_say_nothing_have_to_be_explained(tmp_path, size, names, one_line):
    rows = rows_of(*size)
    path = written(tmp_path / "a.csv", names, rows)
    assert "--columns x=COLUMN" in one_line(nfsgeo.data.open, path)
    columns = dict(zip(("x", "y", "time"), names, strict=False))
    with nfsgeo.data.open(path, columns=columns) as file:
        check(file, rows, names[3])


@pytest.mark.slow
@FAST
@given(size=sizes, data=st.data())
def test_rows_that_are_missing_are_gaps_and_those_there_twice_are_named(
    tmp_path, size, data
):
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
def test_cells_without_a_value_are_counted(tmp_path, size, column, mark, data):
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


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["x", "y", "t", "date"], "t and date, each of which may be the time"),
        (["x", "y", "lat", "u"], "y and lat, each of which may be coordinate y"),
        (["x", "y", "t", "t"], "given 2 times"),
        (["", "x", "y", "u"], "without a name"),
        (["", "x", "", "u"], "without a name"),
        (["x", "z", "t", "u"], "coordinates x[, y[, z]]"),
        (["lat", "t", "u", "v"], "coordinates x[, y[, z]]"),
        (["x", "y", "frame", "u"], "time=frame"),
        (["lon", "lat", "t", "u"], "longitudes over 360 degrees"),
    ],
)
def test_names_that_can_be_read_in_two_ways(tmp_path, one_line, names, words):
    rows = rows_of(3, 4, 0)
    rows[:, 0] *= 360 / np.ptp(rows[:, 0])
    path = written(tmp_path / "a.csv", names, rows)
    assert words in one_line(nfsgeo.data.open, path)
    assert "without rows" in one_line(nfsgeo.data.open, written(path, ["x", "u"], []))


@pytest.mark.parametrize(
    ("dates", "seconds"),
    [
        (["2026-01-01 00:00:00", "2026-01-01 06:00:00"], [0.0, 21600.0]),
        (["2026-01-01T00:00:00", "2026-01-02T00:00:00"], [0.0, 86400.0]),
        (["2026-01-01 06:00:00Z", "2026-01-02T00:00:00+00:00"], [21600.0, 86400.0]),
        (["2026-01-01T02:00:00.5+02:00", "2026-01-01T06:00-0100"], [0.5, 25200.0]),
        (["20260102T000000Z"], [86400.0]),
    ],
)
def test_dates_become_seconds(tmp_path, dates, seconds):
    for each in tables(tmp_path, ["x", "date", "u"], [[0.0, d, 1.0] for d in dates]):
        with nfsgeo.data.open(each) as file:
            assert (file.times - 1767225600.0).tolist() == seconds
            assert file.time_unit == "seconds since 1970-01-01"


def test_rows_twice_are_told_by_their_date(tmp_path, one_line):
    rows = [[0.0, "2026-01-01T06:00", 1.0]] * 2
    path = written(tmp_path / "a.csv", ["x", "time", "u"], rows)
    assert "at 2026-01-01 06:00" in one_line(nfsgeo.data.open, path)


@pytest.mark.parametrize("name", ["date", "t"])
def test_days_without_hyphens_are_not_numbers(tmp_path, one_line, name):
    days = [20260630, 20260701]
    rows = [[x, day, 1.0] for x in (0.0, 1.0) for day in days]
    for each in tables(tmp_path, ["x", name, "u"], rows):
        message = one_line(nfsgeo.data.open, each)
        assert "with 20260630" in message and "give them as dates" in message
    rows[0][1] = rows[2][1] = 20260631  # no day
    with nfsgeo.data.open(tables(tmp_path, ["x", name, "u"], rows)[0]) as file:
        assert file.times.tolist() == [20260631, 20260701]


@pytest.mark.parametrize(
    "cell", ["today", "1,5", "1_5", "01/02/2026", "2026-01-01T00:00+05"]
)
def test_cells_that_are_no_numbers(tmp_path, one_line, cell):
    rows = [[0.0, 0.0, 1.0], [1.0, 0.0, cell]]
    path = written(tmp_path / "a.csv", ["x", "t", "u"], rows, ";")
    assert f"{cell!r} in column u" in one_line(nfsgeo.data.open, path)
    rows.append([2.0, 0.0, ""])  # an empty cell does not make it a column of dates
    path = written(tmp_path / "b.csv", ["x", "t", "u"], rows, ";")
    assert f"{cell!r} in column u" in one_line(nfsgeo.data.open, path)


def test_parquet_with_dates_and_nulls(tmp_path, one_line):
    days = np.array(["2026-01-01", "2026-01-02"] * 2, "datetime64[ns]")
    table, path = (
        {"lon": [0.0, 0.0, 1.0, 1.0], "u": [1, 2, 3, 4]},
        tmp_path / "a.parquet",
    )
    for unit in ("s", "ms", "us", "ns"):
        column = pandas.Series(days.astype(f"M8[{unit}]")).dt.tz_localize("UTC")
        pandas.DataFrame({**table, "date": column}).to_parquet(path)
        with nfsgeo.data.open(path) as file:
            assert file.times.tolist() == [1767225600.0, 1767312000.0]
            assert file.read(0, slice(None))[:, :, 0].tolist() == [[1, 2], [3, 4]]
    table |= {"date": days, "u": [1, None, 3, None]}
    pandas.DataFrame(table).to_parquet(path)
    found = nfsgeo.data.open(path).read(0, slice(None))[:, :, 0]
    np.testing.assert_array_equal(found, [[1, np.nan], [3, np.nan]])
    table["date"] = [days[0], None, days[0], days[1]]
    pandas.DataFrame(table).to_parquet(path)
    message = one_line(nfsgeo.data.open, path)
    assert "column date with 1 of 4 values missing" in message


def test_times_are_an_index_without_a_name(tmp_path):
    """Of a frame of pandas with rows for each point, and of joined frames."""
    days = pandas.to_datetime(["2026-01-01", "2026-01-02"] * 2)
    frame = pandas.DataFrame({"x": [0.0, 0.0, 1.0, 1.0], "u": [1, 2, 3, 4]}, days)
    numbered = [f.reset_index(names="date") for f in (frame[:2], frame[2:])]
    for number, each in enumerate([frame, pandas.concat(numbered)]):
        each.to_parquet(path := tmp_path / f"{number}.parquet")
        with nfsgeo.data.open(path) as file:
            assert file.times.tolist() == [1767225600.0, 1767312000.0]
            assert file.read(0, slice(None))[:, :, 0].tolist() == [[1, 2], [3, 4]]


def test_samples_are_told_apart_by_text_in_the_order_of_the_rows(tmp_path):
    rows = [
        [run, t, x, f"S{x}", x + 10 * t + number]
        for number, run in enumerate(["wet", "dry", "dusk"])
        for t, x in np.ndindex(3, 2)
    ]
    columns = {"sample": "run", "ignore": "station"}
    for each in tables(tmp_path, ["run", "t", "x", "station", "p"], rows):
        with nfsgeo.data.open(each, columns=columns) as file:
            assert file.num_samples == 3 and file.component_names == ["p"]
            expected = np.arange(2)[:, None] + 10 * np.arange(3)
            for sample in range(3):
                values = file.read(sample, slice(None))[..., 0]
                assert np.array_equal(values, expected + sample)


@pytest.mark.parametrize(
    "text",
    [
        "x y  t p\n0 0 0 1\n  1 0 0 2\n0 0 1\t3 \n\n1 0 1 4\n",
        "# x y t p\n0. 0. 0. 1.\n1e0 0 0 2\n# more\n0 0 1 3\n1 0 1 4",
        "# by a model\n# twice\nx,y,t,p\n0,0,0,1\n1,0,0,2\n# half\n0,0,1,3\n1,0,1,4",
        "# x,y,t,p\n0,0,0,1\n1,0,0,2\n0,0,1,3\n1,0,1,4",
    ],
)
def test_white_space_and_comments(tmp_path, text):
    """As ``numpy.savetxt`` and many solvers write them."""
    (tmp_path / "a.txt").write_text(text)
    with nfsgeo.data.open(tmp_path / "a.txt") as file:
        assert file.component_names == ["p"]
        assert file.read(0, slice(None))[..., 0].tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("separator", [",", ";", " ", "\t"])
def test_numbers_without_names(tmp_path, one_line, separator):
    lines = [separator.join(f"{x}.5" for x in range(k, k + 3)) for k in range(2)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    message = one_line(nfsgeo.data.open, tmp_path / "a.csv")
    assert "the numbers 0.5, 1.5, 2.5 in its first line" in message
    assert "add a line with a name" in message


def test_what_a_message_says_to_type_is_one_word_of_a_shell(tmp_path, one_line):
    rows = [[k % 2, k % 3, k // 6, k, 5 * (k % 2)] for k in range(12)]
    path = written(tmp_path / "a.csv", ["x", "y", "t", "u", "mean height [m]"], rows)
    message = one_line(nfsgeo.data.open, path)
    option, told = shlex.split(message.partition("--columns ")[2])[0].split("=")
    with nfsgeo.data.open(path, columns={option: told.rstrip(",")}) as file:
        assert file.static_names == ["mean height"]


def test_units_with_a_slash_and_a_field_called_z(tmp_path):
    names = ["x [m]", "y [m]", "t", "u [m/s]", "q", "z"]
    rows = [[k % 2, k % 3, k // 6, k, 2 * k, 3 * k] for k in range(12)]
    path = written(tmp_path / "a.csv", names, rows)
    kept = nfsgeo.data.convert(path, tmp_path / "a.nc", columns={"ignore": "z"})
    with nfsgeo.data.open(kept) as file:
        assert file.component_names == ["u", "q"] and file.units["u"] == "m/s"
    with nfsgeo.data.open(path, columns={"field": ["z", "u [m/s]"]}) as file:
        assert file.component_names == ["u", "z_field"] and file.domain.dim == 2


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [[], ["x", "y"], ["x", "y", "t"]])
def test_many_columns_are_answered_in_short(tmp_path, one_line, ahead):
    names = [f"sensor_{number:06d}" for number in range(200)]
    first = [[k % 2, 0, k // 2][: len(ahead)] for k in range(8)]
    rows = [[*each, *np.arange(200) * (k % 2)] for k, each in enumerate(first)]
    path = written(tmp_path / "a.csv", [*ahead, *names], rows)
    assert len(one_line(nfsgeo.data.open, path).replace(str(path), "")) < 350


def test_text_that_looks_like_numbers_in_most_rows(tmp_path):
    """In whatever pieces the rows are parsed: 007 is no 7, and no digit is lost."""
    runs = ["007"] * 150_000 + ["7"] * 150_000 + ["last"] * 2
    lines = [f"{run},{k % 150_000},{k + 0.1}" for k, run in enumerate(runs)]
    (tmp_path / "a.csv").write_text("\n".join(["run,x,u", *lines]))
    with nfsgeo.data.open(tmp_path / "a.csv", columns={"sample": "run"}) as file:
        assert [file.num_points(sample) for sample in range(3)] == [150_000] * 2 + [2]
        assert file.read(2, slice(None)).ravel().tolist() == [300_000.1, 300_001.1]


def test_points_that_move(tmp_path, one_line):
    path = written(tmp_path / "a.csv", ["x", "t", "u"], [[k, k, 1] for k in range(9)])
    assert "points that stay where they are" in one_line(nfsgeo.data.open, path)
    rows = [[s, x, t, 1] for s in (0, 1) for x in (0, 1) for t in (s, 2)]
    path = written(tmp_path / "b.csv", ["sample", "x", "t", "u"], rows)
    assert "every sample at the same times" in one_line(nfsgeo.data.open, path)
    # Drifters that come by where others have been.
    rows = [[k, k + t, t, k % 3] for t in range(3) for k in range(4)]
    for name in ("id", "buoy"):  # whether or not the name tells what it is
        path = written(tmp_path / "c.csv", [name, "x", "t", "u"], rows)
        message = one_line(nfsgeo.data.open, path)
        assert f"{name} 0 at two places: expected points that stay where" in message
        with nfsgeo.data.open(path, columns={"ignore": name}) as file:
            assert file.num_points(0) == 6 and file.component_names == ["u"]
        with nfsgeo.data.open(path, columns={"field": [name, "u"]}) as file:
            assert file.component_names == [name, "u"]


@pytest.mark.slow
def test_a_large_table_is_read_in_little_memory(tmp_path):
    """In at most four times that of the table."""
    places, t = np.random.default_rng(0).random((100, 2)), np.arange(2000) / 2
    frame = pandas.DataFrame(np.repeat(t, 100), columns=["t"])
    frame[["x", "y"]] = np.tile(places, (2000, 1))
    frame["u"] = np.random.default_rng(1).normal(size=len(frame))
    frame.to_csv(path := tmp_path / "a.csv", index=False)
    nfsgeo.data.open(path)  # which imports what it needs
    tracemalloc.start()
    nfsgeo.data.open(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * frame.memory_usage().sum()
    tracemalloc.stop()
