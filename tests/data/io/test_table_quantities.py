"""Numbers and text of tables: quantities, or names of quantities."""

import re

import numpy as np
import pytest
from small_tables import DAY, P, answer, lines, stations

import nfsgeo
from nfsgeo.data.io.table_heads import is_number


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *((name, lambda k, t, n: n) for name in ("id", "entry_id", "gid", "level_0")),
        *((name, lambda k, t, n: 1 + (7 * n) % 144) for name in ("pk", "rownames")),
        *((name, lambda k, t, n: 100 + t) for name in ("iteration", "julian_day")),
        *((name, lambda k, t, n: 2026 + t / 8) for name in ("decimal_year", "epoch")),
        *((name, lambda k, t, n: 1 + t // 3) for name in ("run", "case", "hour")),
        *((name, lambda k, t, n: -5) for name in ("utc_offset", "version")),
        ("depth", lambda k, t, n: 2.5),
    ],
)
def test_numbers_that_are_no_quantities(name, cell, tmp_path, caplog):
    (tmp_path / "a.csv").write_text(stations(name, cell))
    assert nfsgeo.open(tmp_path / "a.csv").component_names == ["u"]
    assert f"left out {name}," in caplog.text
    fields = nfsgeo.open(tmp_path / "a.csv", columns={"field": [name, "u"]})
    assert fields.component_names == [name, "u"]


@pytest.mark.parametrize(
    "cell",
    [
        lambda k, t, n: 0,  # no rain yet
        lambda k, t, n: round(np.sin(t), 3),  # a forcing
        lambda k, t, n: 101000 + (n * n) % 37,
    ],
)
def test_numbers_that_may_be_quantities(cell, tmp_path):
    (tmp_path / "a.csv").write_text(stations("q", cell))
    assert nfsgeo.open(tmp_path / "a.csv").component_names == ["q", "u"]


QUANTITY = [
    ("parameter", "value"),
    ("type", "concentration"),
    ("Messgroesse", "Wert"),
    ("polluant", "valeur"),
    ("_field", "_value"),
    ("sensor", "value"),
    ("name", "value"),
    ("what", "u"),
]


@pytest.mark.parametrize(("name", "value"), QUANTITY)
def test_rows_of_quantities_under_any_name(name, value, tmp_path, one_line):
    form = DAY + ",{2},{3},q{1},{u}"
    text = f"time,lon,lat,{name},{value}\n" + lines(form, [1, 2], [0, 1])
    path = tmp_path / "a.csv"
    path.write_text(text)
    for columns in ({}, {"sample": name}):
        message = one_line(nfsgeo.open, path, columns=columns)
        assert answer(message) == {"quantity": name} and "sample=" not in message[-60:]
    fields = nfsgeo.open(path, columns={"quantity": name})
    assert fields.component_names == ["q0", "q1"] and fields.num_points(0) == 5


@pytest.mark.parametrize(("name", "value"), QUANTITY[:5])
@pytest.mark.parametrize("parts", [["co"] * 3 + ["pm"] * 2, ["co", "pm"] * 2 + ["co"]])
def test_each_station_measures_one_quantity(name, value, parts, tmp_path, one_line):
    path = tmp_path / "a.csv"
    rows = [
        f"2026-01-0{t},{x},{y},{part},{t + x}"
        for t in (1, 2, 3)
        for part, (x, y) in zip(parts, P, strict=True)
    ]
    path.write_text("\n".join([f"time,lon,lat,{name},{value}", *rows]))
    told = answer(one_line(nfsgeo.open, path, columns={}))
    assert told == {"quantity": name}
    assert nfsgeo.open(path, columns=told).component_names == ["co", "pm"]
    if name == "parameter":
        for kind, column in (("ignore", name), ("field", value), ("sample", name)):
            message = one_line(nfsgeo.open, path, columns={kind: column})
            assert answer(message) == told


def test_one_quantity_at_each_of_two_stations(tmp_path, one_line):
    rows = "".join(f"{t},0,1,co,{t}\n{t},1,1,pm,{t + 9}\n" for t in range(4))
    (tmp_path / "a.csv").write_text("time,lon,lat,parameter,value\n" + rows)
    message = one_line(nfsgeo.open, tmp_path / "a.csv", columns={})
    assert answer(message) == {"quantity": "parameter"}
    fields = nfsgeo.open(tmp_path / "a.csv", columns={"station": "parameter"})
    assert fields.stations() == ["co", "pm"]


@pytest.mark.parametrize("name", ["T", "T [K]", "temp", "p"])
@pytest.mark.parametrize(
    "values", ["{0:.1f}", "{0:.0f}", "1.0{0:.0f}.000", "{0:.0f},5"]
)
def test_a_field_never_tells_rows_apart(name, values, tmp_path, one_line):
    """Not as a time, a sample or a quantity; numbers that are not read are named."""
    cells = [values.format(50 + t * t + k) for t in range(5) for k in range(5)]
    rows = [f"{n // 5};{x};{y};" for n, (x, y) in enumerate([*P] * 5)]
    texts = [row + cell for row, cell in zip(rows, cells, strict=True)]
    for head, lines_of in (
        (f"time;x;y;{name}", [*texts, rows[7] + values.format(99)]),
        (
            f"x;y;{name};u",
            [f"{text[2:]};{k % 3 + 0.5}" for k, text in enumerate(texts)],
        ),
    ):
        (tmp_path / "a.csv").write_text("\n".join([head, *lines_of]))
        message = one_line(nfsgeo.open, tmp_path / "a.csv")
        assert not re.search("(sample|time|quantity)=", message)
        assert ("column " + name in message) == (not is_number(cells[0]))


@pytest.mark.parametrize("name", ["T", "step_of_it", "Zeit", "foo"])
def test_equal_steps_may_be_times(name, tmp_path, one_line):
    rows = "".join(f"{k / 4},{x},{y},{k * x}\n" for k in range(5) for x, y in P)
    (tmp_path / "a.csv").write_text(f"{name},x,y,u\n{rows}")
    assert answer(one_line(nfsgeo.open, tmp_path / "a.csv")) == {"time": name}
