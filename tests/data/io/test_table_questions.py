"""What tables are asked about, and that what the message says works."""

import bz2
import json
import lzma
import re
import zipfile

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import DAY, P, Q, R, answer, lines, stations

import nfsgeo
from nfsgeo.errors import UserError

ROWS = "t,x,u\n0,0,1\n0,1,{}\n1,0,2\n1,1,3\n"


@pytest.mark.parametrize(
    ("text", "told", "samples", "points", "names"),
    [
        (
            "day,lon,lat,kind,unit,reading\n"
            + lines("1,{1},{2},c,m,{u}", [0])
            + lines("1,{1},{2},b,s,{u}", [0]),
            {"time": "day", "quantity": "kind"},
            1,
            5,
            ["b", "c"],
        ),
        (
            "time,lon,lat,depth,variable,value\n"
            + lines(DAY + ",{3},{4},{1},q{2},{u}", [1, 2], [0, 10], [0, 1]),
            {"quantity": "variable", "z": "depth"},
            1,
            10,
            ["q0", "q1"],
        ),
        (
            "run,t,x,y,u\n" + lines("{},{},{},{},{u}", [1, 2], [0, 1]),
            {"sample": "run"},
            2,
            5,
            ["u"],
        ),
        (
            "n,t,x,y,u\n" + lines("{},{},{},{},{u}", [1, 2], [0, 1]),
            {"sample": "n"},
            2,
            5,
            ["u"],
        ),
        (
            "x,y,frame,u\n" + lines("{1},{2},{0},{u}", [1, 2]),
            {"time": "frame"},
            1,
            5,
            ["u"],
        ),
        (
            "date,hour,lon,lat,u\n" + lines(DAY + ",{1},{2},{3},{u}", [1, 2], [0, 12]),
            {"time": "date+hour"},
            1,
            5,
            ["u"],
        ),
        (
            "date,time,lon,lat,u\n"
            + lines(DAY + ",{1}:00,{2},{3},{u}", [1, 2], [3, 12]),
            {"time": "date+time"},
            1,
            5,
            ["u"],
        ),
        (
            "Year,Month,Day,x,u\n" + lines("2026,{},{},{},{u}", [1, 2], [3, 4]),
            {"time": "Year+Month+Day"},
            1,
            5,
            ["u"],
        ),
        (
            "time,lead,lon,lat,u\n" + lines(DAY + ",{1},{2},{3},{u}", [1, 2], [0, 6]),
            {"sample": "time", "time": "lead"},
            2,
            5,
            ["u"],
        ),
        (
            "wmo,t,x,y,u\n"
            + "".join(
                f"4{k},{t},{x},{y},{k + t}\n"
                for t in (0, 1)
                for k, (x, y) in enumerate(P)
            ),
            {"station": "wmo"},
            1,
            5,
            ["u"],
        ),
        (
            "time,year,lon,lat,u\n" + lines("{0}-01-01,{0},{1},{2},{u}", [2020, 2021]),
            {"ignore": ["year"]},
            1,
            5,
            ["u"],
        ),
        (
            "t,x,y,u\n" + lines("{},{},{},{u}", [0, 1]) + "2,0,0,-999.9\n",
            {"missing": ["-999.9"]},
            1,
            6,
            ["u"],
        ),
    ],
)
def test_the_first_answer_works(text, told, samples, points, names, tmp_path, one_line):
    (tmp_path / "a.csv").write_text(text)
    assert answer(one_line(nfsgeo.open, tmp_path / "a.csv", columns={})) == told or (
        told.keys() >= {"time", "quantity"}
    )
    fields = nfsgeo.open(tmp_path / "a.csv", columns=told)
    assert (fields.num_samples, fields.num_points(0)) == (samples, points)
    assert fields.component_names == names


@pytest.mark.parametrize(
    "name", ["parameter", "Pollutant", "variable_name", "indicator"]
)
def test_quantities_are_no_samples(name, tmp_path, one_line):
    text = f"time,lon,lat,{name},value\n" + lines(
        DAY + ",{2},{3},q{1},{u}", [1, 2], [0, 1]
    )
    (tmp_path / "a.csv").write_text(text)
    for columns in ({}, {"sample": name}):
        message = one_line(nfsgeo.open, tmp_path / "a.csv", columns=columns)
        assert f"--columns quantity={name}" in message
    fields = nfsgeo.open(tmp_path / "a.csv", columns={"quantity": name})
    expected = np.arange(20).reshape(2, 2, 5).transpose(2, 0, 1)[np.lexsort(P.T[::-1])]
    assert fields.read(0, slice(None)).tolist() == expected.tolist()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["case", "sim_id", "Re", "q", "trajectory", "id"]),
    groups=st.integers(3, 6),
    size=st.integers(12, 30),
    steps=st.integers(1, 3),
    shared=st.booleans(),
    by_time=st.booleans(),
    seed=st.integers(0, 99),
)
def test_simulations_never_lie_over_each_other(
    tmp_path_factory, refuses, name, groups, size, steps, shared, by_time, seed
):
    random, rows = np.random.default_rng(seed), []
    for group in range(groups):
        points = (P[:1] if shared else 0) + random.random((size, 2))
        points = points if not shared else np.random.default_rng(seed).random((size, 2))
        rows += [(10 * group, t, *p, p[0] + t) for p in points for t in range(steps)]
    table = pandas.DataFrame(rows, columns=[name, "t", "x", "y", "u"])
    table = table.sort_values("t", kind="stable") if by_time else table
    path = tmp_path_factory.mktemp("cases") / "a.csv"
    table.to_csv(path, index=False)
    for columns in ({}, {"ignore": name}, {"static": name}, {"field": [name, "u"]}):
        refuses(f"--columns sample={name}", nfsgeo.open, path, columns=columns)
    fields = nfsgeo.open(path, columns={"sample": name})
    assert (fields.num_samples, fields.num_points(0)) == (groups, size)


def test_classes_of_stations_are_no_simulations(tmp_path):
    soil = np.random.default_rng(3).integers(0, 3, 30)
    places = R.random((30, 2)).round(4)
    for name, kind, at in (
        ("soil", soil, places),
        ("county", np.arange(30) // 10, places + (np.arange(30) // 10)[:, None]),
    ):
        rows = [
            (d, k, *p, d * p[0])
            for d in range(3)
            for k, p in zip(kind, at, strict=True)
        ]
        table = pandas.DataFrame(rows, columns=["t", name, "x", "y", "u"])
        table.to_csv(tmp_path / "a.csv", index=False)
        fields = nfsgeo.open(tmp_path / "a.csv", columns={"static": name})
        assert fields.static_names == [name] and fields.num_points(0) == 30


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ROWS.format("1;5").replace(",", ";").replace("1;5", "1,5"),
            "'1,5'.*row 2.*decimal=",
        ),
        (ROWS.format("***"), r"'\*\*\*' in column u, row 2.*missing=\*\*\*"),
        (ROWS.format("-9999"), "-9999 in 1 rows of column u.*missing=-9999"),
        ("Made by: me\n\n" + ROWS.format(4), "2 lines before.*tail -n [+]3"),
        (ROWS.format(4) + "Total,4\n", "2 cells in row 5"),
        ("t,x,u,u\n,,mean,std\n0,0,1,2\n0,1,1,2\n", "in two lines.*header="),
        ("date,x,u\n46000.5,0,1\n46001.5,0,2\n", "1899-12-30"),
        (
            "date,x,u\n2026-03-01 22:00,0,1\n2026-03-01 24:00,0,2\n",
            "'2026-03-01 24:00'.*row 2",
        ),
        ("date,x,u\n2026-02-28,0,1\n2026-02-30,0,2\n2026-03-01,0,2\n", "'2026-02-30'"),
        (
            "date,x,u\n2026-02-28T00Z,0,1\n2026-03-01T00,0,2\n2026-03-02T00Z,0,2\n",
            "'2026-03-01T00'",
        ),
        ("date,x,u\n31.01.2026,0,1\n28.02.2026,0,2\n", "'31.01.2026'.*dayfirst"),
        (
            "t,x,a,b,u\n0,0,k,l,1\n0,1,m,n,2\n1,0,k,o,1\n1,1,o,n,2\n",
            "ignore=a,ignore=b",
        ),
        ('{"hourly": {"t": [0]}}', "JSON that is no table"),
        ("<!DOCTYPE html><p>404", "a web page"),
        (b"GRIB\0\0\1\2" + bytes(600), "cfgrib"),
        (b"\x28\xb5\x2f\xfd" + bytes(99), "zstd -d"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "read_excel"),
    ],
)
def test_the_bad_cell_and_the_remedy(text, words, tmp_path, refuses):
    text = text.encode() if isinstance(text, str) else text
    (tmp_path / "a.csv").write_bytes(text)
    refuses(words, nfsgeo.open, tmp_path / "a.csv")


def test_wrappings(tmp_path):
    text = ROWS.format(4)
    table = pandas.DataFrame({"t": [0, 0, 1, 1], "x": [0, 1, 0, 1], "u": [1, 4, 2, 3]})
    (tmp_path / "a.bz2").write_bytes(bz2.compress(text.encode()))
    (tmp_path / "a.xz").write_bytes(lzma.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", text)
    table.to_feather(tmp_path / "a.feather")
    table.to_orc(tmp_path / "a.orc")
    table.to_json(tmp_path / "a.json", orient="records")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    table.to_csv(tmp_path / "a.csv")  # with numbers of rows
    (tmp_path / "utf16.csv").write_text(text, "utf-16")
    for path in tmp_path.iterdir():
        fields = nfsgeo.open(path)
        assert fields.component_names == ["u"], path
        assert fields.read(0, slice(None))[..., 0].tolist() == [[1, 2], [4, 3]]
    places = [{"type": "Point", "coordinates": [k, k * k]} for k in range(3)]
    features = [{"properties": {"u": k}, "geometry": p} for k, p in enumerate(places)]
    (tmp_path / "b.geojson").write_text(json.dumps({"features": features}))
    assert nfsgeo.open(tmp_path / "b.geojson").coordinates().shape == (3, 2)
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
        archive.writestr("xl/styles.xml", "")
    with pytest.raises(UserError, match="read_excel"):
        nfsgeo.open(tmp_path / "b.xlsx")


def test_text_is_left_out_where_fields_are_chosen(tmp_path, caplog):
    text = "time,lon,lat,county,flag,u,v\n" + lines(
        DAY + ",{1},{2},C,q{u},{u},9", [1, 2]
    )
    (tmp_path / "a.csv").write_text(text)
    fields = nfsgeo.open(tmp_path / "a.csv", columns={"field": "u"})
    assert fields.component_names == ["u"] and "left out county, flag" in caplog.text


@pytest.mark.parametrize("told", [{}, {"static": "node_type"}])
def test_types_of_nodes_are_no_simulations(told, tmp_path):
    rows = [
        f"{t},{x},{y},{k // 14},{t + k}" for t in range(3) for k, (x, y) in enumerate(Q)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["t,x,y,node_type,u", *rows]))
    assert nfsgeo.open(tmp_path / "a.csv", columns=told).static_names == ["node_type"]


def test_numbers_of_each_time_that_may_be_known_ahead(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(stations("wind", lambda k, t, n: t % 3))
    assert nfsgeo.open(path).component_names == ["wind", "u"]
    path.write_text(stations("hour", lambda k, t, n: t % 3))
    assert nfsgeo.open(path).component_names == ["u"]
    fields = nfsgeo.open(path, known=["hour"])
    assert (fields.component_names, fields.forcing_names) == (["u"], ["hour"])


def test_simulations_within_samples_and_in_any_order(tmp_path, one_line):
    rows = [
        f"{s},{c},{t},{x + 10 * c},{y},{np.sin(s + c + t + x):.3f}"
        for s in range(2)
        for c in range(3)
        for t in range(3)
        for x, y in P
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["sample,case,t,x,y,u", *rows]))
    for columns in ({}, {"static": "case"}, {"ignore": "case"}):
        told = answer(one_line(nfsgeo.open, path, columns=columns))
        assert told == {"sample": "sample+case"}
    assert nfsgeo.open(path, columns=told).num_samples == 6
    random = np.random.default_rng(0)
    rows = [
        f"{100 * c},{t},{x:.5f},{y:.5f},{np.sin(c * x + t):.4f}"
        for c in range(6)
        for x, y in random.random((20, 2))
        for t in range(4)
    ]
    path.write_text("\n".join(["Re,t,x,y,u", *random.permutation(rows)]))
    for columns in ({}, {"static": "Re"}, {"ignore": "Re"}):
        told = answer(one_line(nfsgeo.open, path, columns=columns))
        assert told == {"sample": "Re"}
    assert nfsgeo.open(path, columns=told).num_samples == 6


@pytest.mark.parametrize("name", ["model", "gcm", "specimen", "treatment", "run"])
@pytest.mark.parametrize("own", [True, False])
def test_samples_with_names(name, own, tmp_path, one_line):
    rows = [
        f"{group},{t},{x + i * own},{y},{i + t + x}"
        for i, group in enumerate(["CESM2", "MIROC6"])
        for t in (0, 1)
        for x, y in P
    ]
    (tmp_path / "a.csv").write_text("\n".join([f"{name},time,x,y,value", *rows]))
    if not own:
        told = answer(one_line(nfsgeo.open, tmp_path / "a.csv", columns={}))
        assert told == {"sample": name}
    fields = nfsgeo.open(tmp_path / "a.csv", columns={"sample": name})
    assert (fields.num_samples, fields.num_points(0)) == (2, 5)


def test_a_named_station_with_other_digits_is_rounded(tmp_path, one_line):
    places = (R.random((6, 2)) * [4, 3] + [5, 47]).round(7)
    rows = [
        (f"S{k}", t, *(p if t < 5 else p.round(6)), t)
        for t in range(10)
        for k, p in enumerate(places)
    ]
    table = pandas.DataFrame(rows, columns=["station", "t", "lon", "lat", "u"])
    table.to_csv(tmp_path / "a.csv", index=False)
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    digits = int(re.search(r"nearly the same.*to (-?\d+) digits", message)[1])
    table[["lon", "lat"]] = table[["lon", "lat"]].round(digits)
    table.to_csv(tmp_path / "a.csv", index=False)
    assert nfsgeo.open(tmp_path / "a.csv").stations() == [f"S{k}" for k in range(6)]


@pytest.mark.parametrize("value", [lambda s: s, lambda s: f"A{s}", lambda s: 0.5 + s])
def test_simulations_of_several_sizes_in_any_order(value, tmp_path, one_line):
    random = np.random.default_rng(0)
    rows = [
        f"{value(s)},{x:.4f},{y:.4f},{np.sin(s + x):.3f}"
        for s in range(9)
        for x, y in random.random((20 + s, 2))
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["foo,x,y,u", *random.permutation(rows)]))
    assert answer(one_line(nfsgeo.open, path)) == {"sample": "foo"}
    assert nfsgeo.open(path, columns={"sample": "foo"}).num_samples == 9


def test_what_is_known_ahead_is_kept_beside_chosen_fields(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(stations("hour", lambda k, t, n: t % 3))
    fields = nfsgeo.open(path, columns={"field": "u"}, known=["hour"])
    assert (fields.component_names, fields.forcing_names) == (["u"], ["hour"])


@pytest.mark.parametrize("answered", [False, True])
def test_classes_of_points_by_words_may_be_ignored(answered, tmp_path, one_line):
    """Types of soil at as many points each are no simulations, if users say so."""
    places = np.random.default_rng(1).random((8, 2))
    rows = [
        f"{t},{x:.4f},{y:.4f},{np.sin(t + i):.4f},{('sand', 'clay')[i % 2]}"
        for t in range(12)
        for i, (x, y) in enumerate(places)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["time,x,y,u,soil", *rows]))
    if answered:
        fields = nfsgeo.open(path, columns={"ignore": "soil"})
        assert (fields.num_samples, fields.component_names) == (1, ["u"])
    else:
        assert "ignore" in one_line(nfsgeo.open, path)


def test_percentages_are_no_names_of_quantities(tmp_path, one_line):
    rows = [f"{t},{x},{y},{t},{50 + t}%" for t in range(12) for x, y in P]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["time,x,y,u,rh", *rows]))
    assert "percentages in column rh, such as 50%" in one_line(nfsgeo.open, path)
