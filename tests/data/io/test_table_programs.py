"""Files with the layout of other programs, read as docs/formats.md says."""

import bz2
import gzip
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from small_series import P, U, marked, series

import nfsgeo
from nfsgeo.errors import UserError

DAYS = pandas.date_range("2026-01-01", periods=3)


PLACES = "id,lat,lon\n" + "".join(f"0{k},{y},{x}\n" for k, (x, y) in enumerate(P))


COMSOL = (
    "% Model:              heat.mph\n% Version:            COMSOL 6.1.0.252\n"
    "% Dimension:          2\n% Length unit:        m\n"
    "% x                 y                  T (K)             spf.U (m/s)\n"
)


def rows(text: str, times: Any = (0,)) -> str:
    """A line for each point and time, ``{k}`` the point, ``{u}`` a value."""
    lines = [
        text.format(k=k, x=x, y=y, t=t, u=10 + k + 5 * step)
        for step, t in enumerate(times)
        for k, (x, y) in enumerate(P)
    ]
    return "\n".join([*lines, ""])


def star() -> str:
    head = '"X (m)","Y (m)","Z (m)","Pressure (Pa)","Velocity[i] (m/s)"\n'
    return head + rows("{x},{y},{k},{x},{y}")


def comsol_in_time() -> str:
    head = COMSOL.replace("spf.U (m/s)", "T (K) @ t=0.5").replace("(K)   ", "(K) @ t=0")
    return head + rows("{x}  {y}   {k}    1{k}")


def open_aq() -> str:
    head = "location_id,sensors_id,location_name,parameter,value,unit,datetimeUtc,"
    head += "datetimeLocal,timezone,latitude,longitude,country_iso,isMobile,provider\n"
    of = "{k},1{k},L{k},pm25,{u},ug/m3,{t}Z,{t}+00:00,Europe,{y},{x},DE,,A"
    other = "{k},2{k},L{k},co,0.{u},ppm,{t}Z,{t}+00:00,Europe,{y},{x},DE,,A"
    times = ["2026-01-01T00:00:00", "2026-01-01T01:00:00"]
    return head + rows(of, times) + rows(other, times)


def nwis() -> str:
    head = (
        "# -- WARNING --\n#    USGS 01646500 POTOMAC\n#\nagency_cd\tsite_no\tdatetime"
    )
    head += "\ttz_cd\t69928_00060\t69928_00060_cd\n5s\t15s\t20d\t6s\t14n\t10s\n"
    times = [f"{day:%Y-%m-%d} 00:00" for day in DAYS]
    return head + rows("USGS\t0{k}\t{t}\tEST\t{u}\tP", times)


def ghcn() -> str:
    head = '"STATION","DATE","LATITUDE","LONGITUDE","ELEVATION","NAME","PRCP",'
    head += '"PRCP_ATTRIBUTES"\n'
    line = '"US{k}","{t:%Y-%m-%d}","{y}","{x}","{k}.0","N{k}, US","{u}",",,N"'
    return head + rows(line, DAYS)


def erddap() -> str:
    head = "time,latitude,longitude,sst\nUTC,degrees_north,degrees_east,m s-1\n"
    return head + rows("{t:%Y-%m-%d}T00:00:00Z,{y},{x},{u}", DAYS)


def camels(folder: Path) -> None:
    """Caravan's: a file for each basin, joined by the line in the documentation."""
    folder.mkdir()
    for k in range(len(P)):
        lines = "".join(f"{d:%Y-%m-%d},{k},{10 + k + d.day}\n" for d in DAYS)
        (folder / f"0{k}.csv").write_text("date,precipitation,streamflow\n" + lines)
    read = ((f.stem, pandas.read_csv(f)) for f in sorted(folder.glob("*.csv")))
    whole = pandas.concat(table.assign(gauge_id=name) for name, table in read)
    whole.to_csv(folder.parent / "camels.csv", index=False)


CARAVAN = {"station": "gauge_id", "field": "streamflow", "x": "lon", "y": "lat"}


WEATHER = {"time": "datetimeUtc", "quantity": "parameter", "field": ["pm25", "co"]}


FLOW = {"station": "site_no", "points": "places.csv", "field": "69928_00060"}


@pytest.mark.parametrize(
    ("text", "columns", "names", "shape", "first"),
    [
        (star, {}, ["Pressure", "Velocity[i]"], (4, 1), None),
        (
            lambda: COMSOL + rows("{x}  {y}   {k} 2"),
            {},
            ["T", "spf.U"],
            (4, 1),
            None,
        ),
        (comsol_in_time, {}, ["T"], (4, 2), None),
        (
            lambda: '"PointID","x","y","Density"\n' + rows("{k},{x},{y},1{k}"),
            {"ignore": "PointID"},
            ["Density"],
            (4, 1),
            None,
        ),
        (
            lambda: (
                "nodenumber,    x-coordinate,    y-coordinate,    pressure\n"
                + rows("{k}, {x}, {y}, 1{k}")
            ),
            {"ignore": "nodenumber", "x": "x-coordinate", "y": "y-coordinate"},
            ["pressure"],
            (4, 1),
            None,
        ),
        (open_aq, WEATHER, ["co", "pm25"], (4, 2), [0.1, 10.0]),
        (nwis, FLOW, ["69928_00060"], (4, 3), [10.0]),
        (ghcn, {"field": "PRCP"}, ["PRCP"], (4, 3), [10.0]),
        (
            lambda: (
                "station,date,datatype,value\n"
                + rows("0{k},{t:%Y-%m-%d},TMAX,{u}", DAYS)
                + rows("0{k},{t:%Y-%m-%d},TMIN,0{u}", DAYS)
            ),
            {"quantity": "datatype", "points": "places.csv"},
            ["TMAX", "TMIN"],
            (4, 3),
            [10.0, 10.0],
        ),
        (erddap, {}, ["sst"], (4, 3), None),
        (
            lambda: ",00,01,02\n2012-03-01 00:00:00,1,2,3\n2012-03-01 00:05:00,2,3,4\n",
            {"points": "places.csv", "field": "speed"},
            ["speed"],
            (3, 2),
            [1.0],
        ),
        (
            lambda: (
                "#YY  MM DD hh mm id WDIR WSPD\n#yr  mo dy hr mn - degT m/s\n"
                + rows("2026 01 01 0{t} 30 0{k} MM {u}", range(3))
            ),
            {"time": "YY+MM+DD+hh+mm", "points": "places.csv", "missing": "MM"},
            ["WDIR", "WSPD"],
            (4, 3),
            [np.nan, 10.0],
        ),
    ],
)
def test_tables_of_programs(
    text: Callable[[], str], columns, names, shape, first, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(PLACES)
    Path("a.csv").write_text(text())
    fields = nfsgeo.open("a.csv", columns=columns)
    assert fields.component_names == names
    assert fields.read(0, slice(None)).shape == (*shape, len(names))
    if first is not None:
        np.testing.assert_allclose(fields.read(0, slice(None))[0, 0], first)


def test_a_file_for_each_basin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(PLACES.replace("lat", "gauge_lat"))
    camels(Path("timeseries"))
    columns = CARAVAN | {"points": "places.csv", "y": "gauge_lat"}
    fields = nfsgeo.open("camels.csv", columns=columns)
    assert fields.stations() == ["00", "01", "02", "03"]
    assert fields.component_names == ["streamflow"]
    assert fields.read(0, slice(None))[:, 0, 0].tolist() == [11, 12, 13, 14]


def test_dates_of_the_german_weather_service(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(PLACES.replace("\n0", "\n"))
    text = "STATIONS_ID;MESS_DATUM;QN_9;TT_TU;RF_TU;eor\n"
    text += rows("          {k};2026010{t};    3;   {u}.0;  -999;eor", range(1, 4))
    Path("a.txt").write_text(text)
    columns = {"station": "STATIONS_ID", "time": "MESS_DATUM", "field": "TT_TU"}
    columns |= {"points": "places.csv", "missing": "-999"}
    with pytest.raises(UserError, match="format='%Y%m%d'"):
        nfsgeo.open("a.txt", columns=columns)
    table = pandas.read_csv("a.txt", sep=";")
    table["MESS_DATUM"] = pandas.to_datetime(table["MESS_DATUM"], format="%Y%m%d")
    table.to_csv("b.csv", index=False)
    fields = nfsgeo.open("b.csv", columns=columns)
    assert len(fields.times) == 3 and fields.component_names == ["TT_TU"]


def clocks(date: str, *times: str) -> str:
    return f"{date},time,x,y,u\n" + rows("{t},{x},{y},{u}", times)


@pytest.mark.parametrize(
    ("text", "told", "hours"),
    [
        (
            clocks("date", *(f"2026-01-01,{t}" for t in ("11:00 AM", "12:00 PM"))),
            "date+time",
            [11, 12],
        ),
        (clocks("d", "2026-01-01,12:05am", "2026-01-01,1:05am"), "d+time", [1 / 12]),
        (clocks("d", "2026-01-01,7:30", "2026-01-01,24:00"), "d+time", [7.5, 24]),
        (clocks("d", "2026-01-01,7:30:15.5"), "d+time", [7.5 + 15.5 / 3600]),
        (
            "date,hh,mm,x,y,u\n" + rows("2026-01-01,0{t},30,{x},{y},{u}", (1, 2)),
            "date+hh+mm",
            [1.5, 2.5],
        ),
        (clocks("d", "2026-01-01,0", "2026-01-01,0.25"), "d+time", None),
        (clocks("d", "2026-01-01,1:00 PM", "2026-01-01,2:00"), "d+time", None),
        (clocks("d", "2026-01-01,13:00 PM", "2026-01-01,2:00 PM"), "d+time", None),
        (clocks("d", "2026-01-01,25:00"), "d+time", None),
        (clocks("d", "2026-01-01,1300"), "d+time", [13]),
        (clocks("d", "2026-01-01T06:00,06:00"), "d+time", None),
        (clocks("YY,MM,DD", "97,11,15,01:00"), "YY+MM+DD+time", None),
    ],
)
def test_times_in_several_columns_are_read_right_or_not(text, told, hours, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    if hours is None:
        with pytest.raises(UserError, match="row [125] under the names"):
            nfsgeo.open(tmp_path / "a.csv", columns={"time": told})
        return
    times = nfsgeo.open(tmp_path / "a.csv", columns={"time": told}).times
    since = (times - pandas.Timestamp("2026-01-01").timestamp()) / 3600
    np.testing.assert_allclose(since[: len(hours)], hours)


def test_rows_that_begin_with_a_hash_are_told_of(tmp_path, caplog):
    text = "station,time,x,y,u\n" + rows("#{k},{t},{x},{y},{u}", (0, 1))
    (tmp_path / "a.csv").write_text(text.replace("#", "S").replace("S2", "#S2"))
    assert nfsgeo.open(tmp_path / "a.csv").num_points(0) == 3
    assert "left out 2 lines under the names that begin with #" in caplog.text


@pytest.mark.parametrize("odd", ["-9999", "inf", "1e300"])
def test_columns_that_are_left_out_are_free(odd, tmp_path):
    path = tmp_path / "a.csv"
    series(U).assign(w=marked(U, odd)).to_csv(path, index=False)
    fields = nfsgeo.open(path, columns={"field": "u"})
    assert fields.component_names == ["u"]


def numbered(table: pandas.DataFrame, index: Any) -> pandas.DataFrame:
    return table.set_axis([*index], axis=0)


@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0"])
@pytest.mark.parametrize(
    "index",
    [
        range(24),
        range(1, 25),
        range(50, 2, -2),
        np.random.default_rng(0).permutation(24),
        [*range(12)] * 2,
        [*range(1, 13)] * 2,
    ],
)
def test_numbers_of_rows_are_left_out_with_a_line(index, name, tmp_path, caplog):
    text = numbered(series(U), index).to_csv()
    (tmp_path / "a.csv").write_text(name + text)
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.component_names == ["u"]
    assert "left out the numbers of the rows" in caplog.text


def test_numbers_of_rows_of_tables_saved_twice(tmp_path):
    series(U).to_csv(path := tmp_path / "a.csv")
    pandas.read_csv(path).to_csv(path)
    assert nfsgeo.open(path).component_names == ["u"]


@pytest.mark.parametrize("first", [U, [3, 1, 2] * 8])
def test_other_columns_without_a_name_are_refused(first, tmp_path):
    numbered(series(U), first).to_csv(tmp_path / "a.csv")
    with pytest.raises(UserError, match="a column without a name"):
        nfsgeo.open(tmp_path / "a.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "ends", [("{}", "{}"), ("{0},", "{0},"), ("{0},,", "{0},,"), ("{0}", "{0},")]
)
@pytest.mark.parametrize("after", ["", ",,,\n,,,\n"])
def test_separators_at_the_ends(after, ends, separator, tmp_path):
    head, *lines = series(U).to_csv(index=False).splitlines()
    lines = [ends[0].format(head), *map(ends[1].format, lines)]
    width = lines[1].count(",")
    text = "\n".join(lines) + "\n" + after.replace(",,,", "," * width)
    (tmp_path / "a.csv").write_text(text.replace(",", separator))
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.component_names == ["u"]
    assert not np.isnan(fields.read(0, slice(None))).any()


@pytest.mark.parametrize(
    "units",
    [
        *("s,m,m,-", "s,m,m,1", "s,-,-,1", "s,m,m,K", "-,m,m,K"),
        *("1,1,1,1", "-,-,-,-", "1,1,1,"),
    ],
)
def test_a_row_of_units(units, tmp_path):
    text = "time,x,y,u\n" + units + "\n" + rows("{t},{x},{y},{u}", range(5))
    (tmp_path / "a.csv").write_text(text)
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert (len(fields.times), fields.num_points(0)) == (5, 4)


@pytest.mark.parametrize(
    ("footer", "words"),
    [("Total,,,9", "row 25 .*remove the row"), ("time,x,y,u", "25.*repeats the names")],
)
def test_rows_that_are_none_are_to_be_removed(footer, words, tmp_path):
    text = series(U).to_csv(index=False)
    (tmp_path / "a.csv").write_text(text + footer)
    with pytest.raises(UserError, match=words) as caught:
        nfsgeo.open(tmp_path / "a.csv")
    assert "missing=" not in caught.value.line


TOA5 = (
    '"TOA5","CR1000","CR1000","1234","CR1000.Std.32","CPU:x.CR1"\n'
    '"TIMESTAMP","RECORD","lon","lat","AirT"\n"TS","RN","deg","deg","C"\n'
    '"","","Smp","Smp","Avg"\n'
)


RECORDS = TOA5 + rows('"2026-01-01 0{t}:00:00",{t},{x},{y},{u}', range(3))


TITLE = "My title\n" + series(U).to_csv(index=False)


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (RECORDS.encode(), {"ignore": "RECORD"}),
        (TITLE.encode(), {}),
        (b"Made by: me\nIn the year 2026\n\n" + TITLE[9:].encode(), {}),
        (TITLE.encode("utf-16"), {}),
        (gzip.compress(TITLE.encode()), {}),
        (bz2.compress(TITLE.replace(",", ";").encode()), {}),
        (series(U).to_csv(index=False).replace("u\n", "é\n", 1).encode("latin-1"), {}),
        (
            gzip.compress(
                series(U).to_csv(index=False).replace("u\n", "é\n", 1).encode("latin-1")
            ),
            {},
        ),
        (series(U).to_csv(index=False, sep=";", decimal=",").encode(), {}),
        (series(U).to_csv(sep=";", decimal=",").encode(), {}),
        (
            series([f"{1 + u:.3f}".replace(".", ",") for u in U])
            .to_csv(index=False)
            .encode(),
            {},
        ),
        (
            b"[Name]\nPlane 1\n\n[Data]\nX [ m ], Y [ m ], u [ m s^-1 ]\n"
            + rows("{x}, {y}, {u}").encode()
            + b"\n[Faces]\n0, 1, 2\n",
            {},
        ),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "my table (1).csv"])
def test_remedies_work_as_they_are_printed(
    name, content, columns, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        nfsgeo.open(name)
    said = str(caught.value)
    if found := re.search(r"pandas\.read_csv\(.*?\.to_csv\('NAME.csv'.*?\)", said):
        eval(found[0], {"pandas": pandas})
    else:
        command = re.search(r"(tail|iconv|awk) .* > NAME\.csv", said)
        subprocess.run(command[0], shell=True, check=True)
    fields = nfsgeo.open("NAME.csv", columns=columns)
    assert fields.num_points(0) == 4 and len(fields.component_names) == 1
