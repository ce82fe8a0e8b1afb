"""Marks of missing values in tables."""

import numpy as np
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
