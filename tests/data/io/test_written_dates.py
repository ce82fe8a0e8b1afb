"""Advice about cells of tables that are no numbers: followed, it gives them."""

import re

import numpy as np
import pandas
import pytest

import nfsgeo
from nfsgeo.data.times import as_times

DAYS = pandas.date_range("2026-01-02 21:00", periods=3, freq="91D")
QUARTERS = pandas.date_range("2026-01-01", periods=3, freq="QS")
MONDAYS = pandas.date_range("2026-01-05", periods=3, freq="7D")


def written(path, times, name="time", y="0.5"):
    rows = [f"{time};{x};{y};{x + k}" for k, time in enumerate(times) for x in (1, 2)]
    path.write_text("\n".join([f"{name};x;y;u", *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("form", "days"),
    [
        ("%d-%b-%Y %H:%M:%S", DAYS),
        ("%b %d, %Y", DAYS.normalize()),
        ("%a, %d %b %Y %H:%M:%S GMT", DAYS),
        ("%d %B %Y", DAYS.normalize()),
        ("%Y-%m-%d_%H:%M:%S", DAYS),
        ("%Y-%m-%d %H:%M:%S,000", DAYS),
        ("%Y%m%d%H%MZ", DAYS),
        ("%Y%m%d%HZ", DAYS),
        ("%G-W%V", MONDAYS),
        ("quarter", QUARTERS),
    ],
)
def test_dates_in_words_and_of_programs(form, days, tmp_path, one_line):
    quarters = form == "quarter"
    texts = [*days.to_period("Q").astype(str)] if quarters else days.strftime(form)
    path = written(tmp_path / "a.csv", texts)
    message = one_line(nfsgeo.open, path)
    table = pandas.read_csv(path, sep=";")
    call = re.search(r"pandas\..*", message)
    assert call and "remove" not in message
    table["time"] = eval(call[0], {"pandas": pandas, "table": table})
    table.to_csv(tmp_path / "b.csv", index=False)
    with nfsgeo.open(tmp_path / "b.csv") as fields:
        np.testing.assert_array_equal(fields.times, as_times(days.to_numpy(), ""))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_unix_times_in_a_column_of_dates(unit, tmp_path, one_line):
    numbers = DAYS.as_unit(unit).astype("int64")
    path = written(tmp_path / "a.csv", numbers, "timestamp")
    call = re.search(
        r"pandas\.to_datetime\(.*?\]\s*, unit='\w+'\)", one_line(nfsgeo.open, path)
    )
    table = pandas.read_csv(path, sep=";")
    table["timestamp"] = eval(call[0], {"pandas": pandas, "table": table})
    table.to_csv(tmp_path / "b.csv", index=False)
    with nfsgeo.open(tmp_path / "b.csv") as fields:
        np.testing.assert_array_equal(fields.times, as_times(DAYS.to_numpy(), ""))
    with nfsgeo.open(written(tmp_path / "c.csv", numbers, "time")) as fields:
        assert len(fields.times) == 3  # numbers, unless the name tells dates


@pytest.mark.parametrize("name", ["Marsh 30", "Octopus 12", "gauge 4 May"])
def test_words_that_are_no_dates(name, tmp_path, one_line):
    path = written(tmp_path / "a.csv", [1.0, 2.0], y=name)
    message = one_line(nfsgeo.open, path)
    assert name in message and "to_datetime" not in message


def test_exponents_of_fortran(tmp_path, one_line):
    path = written(tmp_path / "a.csv", [0, 1], y="1.5D-01")
    path.write_text(path.read_text().replace("2;1.5D-01", "2;2.5d-1"))
    call = re.search(r"table\[.*", one_line(nfsgeo.open, path))
    table = pandas.read_csv(path, sep=";")
    table["y"] = eval(call[0], {"table": table})
    table.to_csv(tmp_path / "b.csv", index=False)
    with nfsgeo.open(tmp_path / "b.csv") as fields:
        assert set(fields.coordinates()[:, 1]) == {0.15, 0.25}


@pytest.mark.parametrize("hours", [["01", "02", "02", "03"], ["02", "02"]])
def test_the_only_field_does_not_number_samples(hours, tmp_path, one_line):
    """As at the end of summer time: rows differ in the values alone."""
    rows = [f"2026-10-25T{h}:00,{x},1,{n}" for n, h in enumerate(hours) for x in (1, 2)]
    (tmp_path / "a.csv").write_text("\n".join(["time,x,y,u", *rows]) + "\n")
    message = one_line(nfsgeo.open, tmp_path / "a.csv")
    assert "2 rows" in message and "sample=u" not in message
