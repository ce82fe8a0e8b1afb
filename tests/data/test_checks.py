"""Missing values and what is no real number are refused, with their count."""

import re
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas
import pytest

from nfsgeo.data.checks import as_real
from nfsgeo.data.times import (
    EPOCH,
    as_times,
    check_no_dates,
    dates,
    time_texts,
    unit_of_times,
)
from nfsgeo.errors import UserError


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.array([1.0, None]), "1 of 2 values missing"),
        (np.array([1 + 2j]), "two components"),
        (np.array(["a", "1"]), "real numbers"),
        (np.array([{}]), "real numbers"),
        (np.array(["2020-01-01"], "datetime64[D]"), "real numbers"),
    ],
)
def test_what_is_no_real_number(values, complaint, one_line):
    assert complaint in one_line(as_real, values, "u")


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "ns"])
def test_dates_become_seconds_whatever_their_unit(unit, one_line):
    dates = np.array(["2020-01-01", "2020-01-03"], f"datetime64[{unit}]")
    assert as_times(dates, "t").tolist() == [1577836800.0, 1577836800.0 + 2 * 86400]
    spans = dates - dates[0]
    assert as_times(spans, "t").tolist() == [0.0, 2 * 86400.0]
    missing = np.append(dates, np.datetime64("NaT"))
    assert "1 of 3 values missing" in one_line(as_times, missing, "t")


@pytest.mark.parametrize(
    ("times", "asks"),
    [
        ([20260101, 20260102], True),
        ([20260131.75], True),
        ([2026013112, 2026020112], True),
        ([202601, 202602, 202603], True),
        ([201230, 201231, 210101], True),
        ([10130, 10131, 10201], True),
        ([2020001, 2020002], True),
        ([0.0, 1.0, 2.0], False),
        ([100000.0, 200000.0, 300000.0], False),
        ([123456.0], False),
        ([20261301.0, 20261302.0], False),
        ([10101010.5, 1e9], False),
    ],
)
def test_numbers_that_may_be_dates(times, asks):
    if asks:
        with pytest.raises(UserError, match="a number or the date 20") as error:
            check_no_dates(np.array(times), "t")
        call = re.search(r"pandas\..*\)", str(error.value))[0]
        names = {"pandas": pandas, "numpy": np, "times": times}
        dates = as_times(eval(call, names), "t")  # as a user would follow it
        day = re.search(r"the date (\S+),?:", str(error.value))[1]
        first = np.datetime64(day, "s").astype(float)
        assert first <= dates[0] < first + 86400 and (np.diff(dates) > 0).all()
        if share := times[0] % 1:
            assert dates[0] == first + share * 86400
    else:
        check_no_dates(np.array(times), "t")


def test_dates_of_every_kind(one_line):
    days = [datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 500_000)]
    found = as_times(np.array(days, object), "t")
    assert np.diff(found).tolist() == [0.5]
    assert unit_of_times(np.array(days, object)) == EPOCH
    assert unit_of_times(np.array([1], "m8[h]")) == "s" and unit_of_times([1]) == ""
    np.testing.assert_array_equal(dates(found, EPOCH), np.array(days, "M8[us]"))
    np.testing.assert_array_equal(dates(found, "s"), found)
    zone = timezone(timedelta(hours=1))
    zoned = np.array([day.replace(tzinfo=zone) for day in days], object)
    np.testing.assert_array_equal(as_times(zoned, "t"), found - 3600)
    assert "time zone" in one_line(as_times, np.append(zoned, days), "t")
    for texts, unit, times in (
        (["t = 0.25 h", "t = 0.26 h"], "h", [0.25, 0.26]),
        (["2026-01-01", "2026-01-02"], EPOCH, [1767225600, 1767312000]),
    ):
        assert [t.split(" 00:")[0] for t in time_texts(times, unit)] == texts
