"""Times as text and on axes."""

from __future__ import annotations

import numpy as np
import pytest

import nfsgeo
from nfsgeo.data.times import EPOCH, time_text, time_texts
from nfsgeo.report.times import after_input, along_time

NOON = 1704283200.0  # 2024-01-03 12:00 UTC


@pytest.mark.parametrize(
    ("time", "unit", "text"),
    [
        (2.75, "", "t = 2.75"),
        (2.75, "h", "t = 2.75 h"),
        (NOON, EPOCH, "2024-01-03 12:00"),
        (-1.0, EPOCH, "1969-12-31 23:59"),
    ],
)
def test_times_have_a_unit_or_are_dates(time: float, unit: str, text: str) -> None:
    assert time_text(time, unit) == text


@pytest.mark.parametrize(
    ("times", "unit", "texts"),
    [
        ([1000.01, 1000.02], "s", ["t = 1000.01 s", "t = 1000.02 s"]),
        ([NOON, NOON + 1], EPOCH, ["2024-01-03 12:00:00", "2024-01-03 12:00:01"]),
        ([NOON, NOON + 1e-3], EPOCH, [f"2024-01-03 12:00:00.00{k}" for k in (0, 1)]),
        ([2.0, 2.0], "", ["t = 2", "t = 2"]),
    ],
)
def test_digits_tell_times_apart(
    times: list[float], unit: str, texts: list[str]
) -> None:
    assert time_texts(times, unit) == texts


@pytest.mark.parametrize(
    ("step", "num", "values", "label"),
    [
        (86400, 3, [0, 1, 2], "days after 2024-01-03 12:00"),
        (3600, 10, range(10), "hours after 2024-01-03 12:00"),
        (600, 2, [0, 10], "minutes after 2024-01-03 12:00"),
        (0.5, 2, [0, 0.5], "seconds after 2024-01-03 12:00"),
    ],
)
def test_an_axis_of_dates_counts_from_the_first(
    step: float, num: int, values: list[float], label: str
) -> None:
    found, name = along_time(NOON + step * np.arange(num), EPOCH)
    np.testing.assert_allclose(found, list(values))
    assert name == label
    leads, name = after_input(step * np.arange(1, num), EPOCH)
    if num > 2:
        np.testing.assert_allclose(leads, list(values)[1:])
        assert name == label.split()[0] + " after the last input"


def test_an_axis_of_times_has_their_unit() -> None:
    times = np.array([0.5, 1.0])
    assert along_time(times, "s")[1] == "time (s)"
    assert after_input(times, "s")[1] == "time after the last input (s)"
    assert along_time(times)[0] is times and along_time(times)[1] == "time"


def test_dates_of_arrays_stay_dates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    days = np.array(["2024-01-01", "2024-01-02"], "M8[D]")
    with nfsgeo.from_arrays(np.ones((1, 4, 2)), np.random.rand(4, 2), days) as file:
        assert file.time_unit == EPOCH
        assert time_text(file.times[1], file.time_unit) == "2024-01-02 00:00"
