"""Marks of missing values in tables."""

import re

import numpy as np
import pandas
import pytest
from small_series import U, marked, series

import nfsgeo


@pytest.mark.parametrize("mark", ["-9999", "-999.9", "***"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "json"])
def test_marks_of_missing_values_in_every_format(kind, dtype, mark, tmp_path, refuses):
    values = marked(U, mark)
    if mark != "***":
        values = np.array([float(value) for value in values], dtype)
    else:
        values = [str(value) for value in values]
    table, path = series(values), tmp_path / f"a.{kind}"
    how = {"orient": "records", "double_precision": 4} if kind == "json" else {}
    getattr(table, f"to_{kind}")(path, **how)
    refuses(f"missing={mark}".replace("*", r"\*"), nfsgeo.open, path)
    fields = nfsgeo.open(path, columns={"missing": mark})
    assert np.isnan(fields.read(0, slice(None))).sum() == 5


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (980, 1040, ["9999.9"]),
        (99000, 103000, ["-9999"]),
        (0, 5000, ["-9999"]),
        (0, 360, ["999"]),
        (-20, 30, ["-99"]),
        (-20, 30, ["-9999", "-8888"]),
        (-20, 30, ["-888.8", "999.9"]),
        (30, 36, ["-9.99"]),
        (0, 1, ["-10000000000"]),
        (0, 1, ["17"]),
    ],
)
def test_numbers_far_from_all_others_are_asked_about(
    low, high, marks, tmp_path, refuses
):
    values = (low + (high - low) * U).round(2)
    path = tmp_path / "a.csv"
    series(marked(values, *marks)).to_csv(path, index=False)
    asked = ",".join(f"missing={mark}" for mark in marks)
    refuses(asked, nfsgeo.open, path)
    fields = nfsgeo.open(path, columns={"missing": marks})
    assert np.isnan(fields.read(0, slice(None))).sum() == 5
    fields = nfsgeo.open(path, columns={"missing": ""})
    assert not np.isnan(fields.read(0, slice(None))).any()
    if len(marks) > 1:
        refuses(asked, nfsgeo.open, path, columns={"missing": marks[0]})


@pytest.mark.parametrize(
    "values",
    [
        U * 999,
        np.arange(24) % 3 == 0,
        [0, 0, 0, 50] * 6,
        marked(1000 * U, 1001),
        np.exp(9 * U),
        np.minimum(U, 0.5),
    ],
)
def test_other_extremes_are_not_asked_about(values, tmp_path):
    path = tmp_path / "a.csv"
    series(np.array(values, float)).to_csv(path, index=False)
    nfsgeo.open(path, columns={"field": "u"})


@pytest.mark.parametrize(
    ("p", "u", "first"),
    [
        ("101.0{}0,5", "{},5", [101010.5, 1.5]),
        ("1.01{}.000", "{},25", [1011000, 1.25]),
        ("1 01{},5", "{},5", [1011.5, 1.5]),
        ("1'01{}.5", "{}.5", [1011.5, 1.5]),
    ],
)
def test_advice_on_thousands_holds_for_all_columns(p, u, first, tmp_path, one_line):
    path = tmp_path / "a.csv"
    rows = [f"{k};{k * k};{u};{p}".replace("{}", str(k)) for k in range(1, 6)]
    path.write_text("\n".join(["x;y;u;p", *rows]))
    call = re.search(r"pandas\.read_csv.*index=False\)", one_line(nfsgeo.open, path))[0]
    exec(call.replace("NAME.csv", str(path)), {"pandas": pandas})
    fields = nfsgeo.open(path)
    assert fields.component_names == ["u", "p"]
    assert fields.read(0, slice(None))[0, 0].tolist() == first[::-1]


@pytest.mark.parametrize(
    "words", ["TRUE FALSE", "WAHR FALSCH", "vrai faux", "Sí No", "ja nein"]
)
def test_words_for_true_and_false(words, tmp_path):
    words = words.split()
    cells = [[t, x, x * x, t + x, words[(t + x) % 2]] for t, x in np.ndindex(3, 4)]
    rows = "".join(",".join(map(str, row)) + "\n" for row in cells)
    (tmp_path / "a.csv").write_text(f"time,x,y,u,wet\n{rows}")
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.component_names == ["u", "wet"]
    assert fields.read(0, slice(None))[:, 0, 1].tolist() == [1, 0, 1, 0]


def test_the_sign_of_typography_is_a_minus(tmp_path):
    rows = "".join(f"−{x},{x * x},−1.5e−{x}\n" for x in range(4))
    (tmp_path / "a.csv").write_text(f"x,y,u\n{rows}")
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.coordinates()[:, 0].tolist() == [-3, -2, -1, 0]
    read = fields.read(0, slice(None))[:, 0, 0]
    np.testing.assert_allclose(read, [-0.0015, -0.015, -0.15, -1.5])


def test_percent_signs_under_a_unit(tmp_path, one_line):
    (tmp_path / "a.csv").write_text("x,y,rh [%]\n0,0,40 %\n1,0,50 %\n")
    assert one_line(nfsgeo.open, tmp_path / "a.csv").endswith("remove the sign %")
