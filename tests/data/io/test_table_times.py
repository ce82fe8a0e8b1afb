"""Times of tables: in several columns, of forecasts, local and in zones."""

import re
import shlex
from datetime import datetime

import click
import numpy as np
import pandas
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import P, answer, lines

import nfsgeo
from nfsgeo.data.times import as_times
from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import COLUMNS


@pytest.mark.parametrize(
    ("head", "cells", "told", "step"),
    [
        ("year,doy", "2026,{}", {"time": "year+doy"}, 86400),
        ("Date,Time UTC", "2026-01-01,0{}:00", {"time": "Date+Time UTC"}, 3600),
        ("Date GMT,Time GMT", "2026-01-01,0{}:00", {"time": "Date GMT+Time GMT"}, 3600),
        ("date,hour,minute", "2026-01-01,{},30", {"time": "date+hour+minute"}, 3600),
        (
            "time,timestamp",
            "{0},2026-03-08T0{0}:00:00Z",
            {"time": "timestamp", "ignore": ["time"]},
            3600,
        ),
    ],
)
def test_the_time_in_several_columns(head, cells, told, step, tmp_path, one_line):
    rows = lines(cells.replace("{}", "{0}") + ",{1},{2},{u}", [1, 2, 3])
    (tmp_path / "a.csv").write_text(f"{head},lon,lat,u\n{rows}")
    message = one_line(nfsgeo.open, tmp_path / "a.csv", columns={})
    said = shlex.split(message.partition("--columns ")[2].partition(" (or train")[0])
    assert COLUMNS.convert(said[0], click.Option(["--columns"]), None) == told
    fields = nfsgeo.open(tmp_path / "a.csv", columns=told)
    assert np.diff(fields.times).tolist() == [step] * 2
    assert fields.component_names == ["u"]


CLOCKS = ["", " %H:%M", "T%H:%M:%S"]


@settings(max_examples=30)
@given(
    start=st.datetimes(datetime(1970, 1, 1), datetime(2060, 1, 1)),
    order=st.sampled_from(["%d.%m.%y", "%m/%d/%y", "%y-%m-%d"]),
    clock=st.sampled_from(CLOCKS),
)
def test_advice_for_dates_of_two_digit_years_can_be_followed(
    start, order, clock, tmp_path, one_line
):
    """One of the calls that it names gives the dates, and is the right one."""
    days = pandas.date_range(start.date(), periods=3, freq="D")
    rows = "".join(
        f"{day.strftime(order + clock)},0,{k}\n" for k, day in enumerate(days)
    )
    (tmp_path / "a.csv").write_text(f"date,x,u\n{rows}")
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    formats = re.findall(r"'(%[^']+)'", message)
    assert order + clock in formats
    table = pandas.read_csv(tmp_path / "a.csv")
    table["date"] = pandas.to_datetime(table["date"], format=order + clock)
    table.to_csv(tmp_path / "b.csv", index=False)
    times = nfsgeo.open(tmp_path / "b.csv").times
    assert times.tolist() == as_times(days.to_numpy(), "t").tolist()
    for form in {*formats} - {order + clock}:  # which fit the dates as well
        pandas.to_datetime([d.strftime(order + clock) for d in days], format=form)


@pytest.mark.parametrize("years", [(26, 26), (97, 98), (99, 0), (2001, 2), (126, 126)])
def test_advice_for_columns_of_short_years_can_be_followed(years, tmp_path, one_line):
    path, answers = tmp_path / "a.csv", {"time": "YY+MM+DD"}
    rows = "".join(f"{year},{k + 1},1,0,{k}\n" for k, year in enumerate(years))
    path.write_text(f"YY,MM,DD,x,u\n{rows}")
    message = one_line(nfsgeo.open, path, columns=answers)
    call = re.search(r"table\['YY'\] \+= .*(?= in pandas)", message)[0]
    table = pandas.read_csv(path)
    exec(call, {"numpy": np, "table": table})  # as a user would follow it
    table.to_csv(path, index=False)
    times = nfsgeo.open(path, columns=answers).times
    read = times.astype("M8[s]").astype("M8[Y]").astype(int) + 1970
    expected = [1900 + y if 70 <= y < 1000 else y + 2000 * (y < 70) for y in years]
    assert sorted(read) == sorted(expected)


def test_numbers_of_rows_are_no_field(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text("Unnamed: 0.1,t,x,y,u\n" + lines("{u},{},{},{},{u}", [0, 1]))
    assert nfsgeo.open(path).component_names == ["u"]
    assert "Unnamed: 0.1" in caplog.text


def forecasts(*names: str) -> str:
    """Forecasts begun at three times, for four hours ahead."""
    begun = pandas.date_range("2026-01-01", periods=3, freq="6h")
    rows = [
        {"begun": t, "valid": t + pandas.Timedelta(hours=h), "lead": h}
        | {"x": x, "y": y, "u": np.sin(h + x + t.hour)}
        for t in begun
        for h in (0, 6, 12, 18)
        for x, y in P
    ]
    table = pandas.DataFrame(rows).rename(
        columns=dict(zip(("begun", "valid", "lead"), names, strict=False))
    )
    return table.drop(columns=["lead"] * (len(names) < 3)).to_csv(index=False)


@pytest.mark.parametrize(
    "names",
    [
        ("init_time", "valid_time", "lead"),
        ("reference_time", "time", "step"),
        ("time", "valid", "forecast_hour"),
        ("forecast_date", "date", "lead"),
    ],
)
def test_forecasts_are_samples_by_their_beginning(names, tmp_path, one_line):
    path = tmp_path / "a.csv"
    path.write_text(forecasts(*names))
    right = {"sample": names[0], "time": names[2], "ignore": [names[1]]}
    for columns in ({}, {"time": names[1]}, {"time": names[0]}):
        assert answer(one_line(nfsgeo.open, path, columns=columns)) == right
    fields = nfsgeo.open(path, columns=right)
    assert (fields.num_samples, len(fields.times)) == (3, 4)
    path.write_text(forecasts(*names[:2]))
    assert "table['lead'] = " in one_line(nfsgeo.open, path)


@pytest.mark.parametrize("names", [("time_local", "time_utc"), ("time", "timeGMT")])
def test_local_times_beside_utc_are_asked_about(names, tmp_path, one_line):
    hours = pandas.date_range("2026-10-25", periods=4, freq="h", tz="UTC")
    path, at = tmp_path / "a.csv", "%Y-%m-%d %H:%M"
    lines = [
        f"{t.tz_convert('Europe/Berlin'):{at}},{t:{at}},{x},{y},1{k}"
        for t in hours
        for k, (x, y) in enumerate(P)
    ]
    path.write_text("\n".join([",".join([*names, "x", "y", "u"]), *lines]))
    for columns in ({}, {"field": "u"}):
        said = one_line(nfsgeo.open, path, columns=columns)
        assert answer(said) == {"time": names[1], "ignore": [names[0]]}
        assert f"time={names[0]}," not in said  # has an hour twice


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("tz_cd", lambda t: t.tzname()),
        ("timezone", lambda t: t.strftime("UTC%z")),
        ("utc_offset", lambda t: int(t.utcoffset().total_seconds() / 3600)),
    ],
)
def test_zones_of_times_are_applied_with_a_line(name, zone, tmp_path, caplog):
    hours = pandas.date_range("2026-11-01 04:00", periods=6, freq="h", tz="UTC")
    here = hours.tz_convert("America/New_York")
    lines = [
        f"{t:%Y-%m-%d %H:%M},{zone(t)},{x},{y},1{k}"
        for t in here
        for k, (x, y) in enumerate(P)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"datetime,{name},x,y,u", *lines]))
    for columns in ({}, {"field": "u"}, {"time": f"datetime+{name}"}):
        fields = nfsgeo.open(path, columns=columns)
        assert fields.times.tolist() == [t.timestamp() for t in hours]
    assert "UTC-4" in caplog.text
    with pytest.raises(UserError) as caught:
        nfsgeo.open(path, columns={"ignore": name})
    assert "quantity=" not in str(caught.value)


DATES = pandas.date_range("2026-03-01 06:00", periods=4, freq="6h")
SECONDS = DATES.as_unit("s").astype("int64").to_numpy()
COUNTS = {
    "MATLAB datenum": SECONDS / 86400 + 719529,
    "Unix time in s": SECONDS,
    "Unix time in ms": SECONDS * 1000,
    "Unix time in ns": SECONDS * 10**9,
}


@pytest.mark.parametrize("kind", COUNTS)
def test_numbers_that_count_until_a_date_are_told(kind, tmp_path, caplog, one_line):
    """A line tells it of each source, and its call makes the dates."""
    times, u = COUNTS[kind], np.random.default_rng(0).random((1, 5, 4))
    pos = np.random.default_rng(1).random((5, 2))
    rows = [
        [t, *xy, u[0, k, n]] for k, xy in enumerate(pos) for n, t in enumerate(times)
    ]
    table = pandas.DataFrame(rows, columns=["time", "x", "y", "u"])
    table.to_csv(tmp_path / "a.csv", index=False)
    axes = {"x": ("point", pos[:, 0]), "y": ("point", pos[:, 1]), "time": times}
    dataset = xarray.Dataset({"u": (("point", "time"), u[0])}, axes)
    openers = {
        "a.csv": lambda: nfsgeo.open(tmp_path / "a.csv"),
        "arrays": lambda: nfsgeo.from_arrays(u, pos, times),
        "dataset": lambda: nfsgeo.from_xarray(dataset),
    }
    for source, opener in openers.items():
        caplog.clear()
        fields = opener()
        (line,) = caplog.messages
        assert f"{source}: times from" in line and f"numbers, not as {kind};" in line
        np.testing.assert_array_equal(fields.times, times)
        made = eval(line.partition("give ")[2], {"pandas": pandas, "times": times})
        assert (made == DATES).all()
    caplog.clear()
    nfsgeo.open(fields.write(tmp_path / "a.nc"))
    nfsgeo.open(tmp_path / "a.csv", times=np.arange(4.0))
    nfsgeo.from_arrays(u, pos, DATES)
    nfsgeo.from_arrays(u, pos, 4e4 + np.arange(4))  # seconds, perhaps
    assert not caplog.messages
    table.rename(columns={"time": "date"}).to_csv(tmp_path / "b.csv", index=False)
    assert kind in one_line(nfsgeo.open, tmp_path / "b.csv")


FORMS = ["%Y-%m-%d", "%Y-%m-%d 00:00", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y"]
FORMS += ["%d.%m.%y %H:%M", "%d-%b-%Y", "%b %d %Y"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["Zeit", "fecha", "when"])
def test_dates_are_the_time_whatever_their_column_is_called(
    name, form, tmp_path, one_line
):
    """They are no samples, quantities, names of points or fields."""
    days = [day.strftime(form) for day in pandas.date_range("2026-01-01", periods=5)]
    text = f"{name},x,y,u\n" + "".join(
        f"{day},{x},{y},{k + x}\n" for k, day in enumerate(days) for x, y in P
    )
    (tmp_path / "a.csv").write_text(text)
    assert answer(one_line(nfsgeo.open, tmp_path / "a.csv")) == {"time": name}
    assert "sample=" not in one_line(nfsgeo.open, tmp_path / "a.csv")
    message = one_line(nfsgeo.open, tmp_path / "a.csv", columns={"quantity": name})
    assert f"time={name}" in message
    if form[1] in "dm":
        message = one_line(nfsgeo.open, tmp_path / "a.csv", columns={"time": name})
        assert "pandas.to_datetime" in message
    once = "".join(f"{day},{x},{y},1\n" for day, (x, y) in zip(days, P, strict=True))
    (tmp_path / "a.csv").write_text(f"{name},x,y,u\n{once}")
    assert f"column {name}" in one_line(nfsgeo.open, tmp_path / "a.csv")


@pytest.mark.parametrize("day", ["2026-01-0{0}", "0{0}.01.2026", "2026-01-0{0} 00:00"])
def test_dates_and_clocks_of_any_names_make_a_time(day, tmp_path, one_line):
    rows = lines(day + ",{1}:00,{2},{3},{u}", [1, 2], [10, 11])
    (tmp_path / "a.csv").write_text(f"Datum,Uhrzeit,x,y,u\n{rows}")
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    assert answer(message) == {"time": "Datum+Uhrzeit"}


@pytest.mark.parametrize("name", ["time", "hour", "HHMM", "Uhrzeit", "Time UTC"])
@pytest.mark.parametrize("form", ["%H%M", "%-H%M", "%H%M%S", "%-H", "%H:%M"])
def test_clocks_without_colons(form, name, tmp_path, one_line, caplog):
    times = pandas.date_range("2026-01-01", periods=16, freq="3h")
    rows = "".join(
        f"{t:%Y-%m-%d},{t.strftime(form)},{x},{y},{x + t.hour}\n"
        for t in times
        for x, y in P
    )
    (tmp_path / "a.csv").write_text(f"date,{name},x,y,u\n{rows}")
    told = answer(one_line(nfsgeo.open, tmp_path / "a.csv"))
    assert told == {"time": f"date+{name}"}
    fields = nfsgeo.open(tmp_path / "a.csv", columns=told)
    assert fields.times.tolist() == as_times(times.to_numpy(), "t").tolist()
    assert form == "%H:%M" or name == "hour" or "are read as clocks" in caplog.text


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (range(0, 80, 10), {"time": "time", "ignore": "date"}),
        ([0.5, 70, 71, 99] * 2, {"sample": "date", "time": "time"}),
    ],
)
def test_numbers_beside_dates_that_are_no_clocks(cells, told, tmp_path, one_line):
    """The advice works."""
    rows = "".join(
        f"2026-01-0{1 + k // 4},{cell},{x},{y},{k}\n"
        for k, cell in enumerate(cells)
        for x, y in P
    )
    (tmp_path / "a.csv").write_text(f"date,time,x,y,u\n{rows}")
    found = answer(one_line(nfsgeo.open, tmp_path / "a.csv"))
    assert {k: "".join(v) for k, v in found.items()} == told
    assert nfsgeo.open(tmp_path / "a.csv", columns=found).component_names == ["u"]
