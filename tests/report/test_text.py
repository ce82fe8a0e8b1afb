"""Quantities and times as text, and the axes of pictures."""

import numpy as np
import pytest

from nfsgeo.data.times import EPOCH, time_text, time_texts
from nfsgeo.geometry import Domain
from nfsgeo.report.text import axis_labels, time_axis

NOON = 1704283200.0  # 2024-01-03 12:00 UTC


@pytest.mark.parametrize(
    ("times", "unit", "texts"),
    [
        ([2.75], "", ["t = 2.75"]),
        ([2.75], "h", ["t = 2.75 h"]),
        ([-1.0], EPOCH, ["1969-12-31 23:59"]),
        ([1000.01, 1000.02], "s", ["t = 1000.01 s", "t = 1000.02 s"]),
        ([NOON, NOON + 1], EPOCH, ["2024-01-03 12:00:00", "2024-01-03 12:00:01"]),
        ([NOON, NOON + 1e-3], EPOCH, [f"2024-01-03 12:00:00.00{k}" for k in (0, 1)]),
        ([2.0, 2.0], "", ["t = 2", "t = 2"]),
    ],
)
def test_times_have_units_or_are_dates_and_digits_tell_them_apart(times, unit, texts):
    assert time_texts(times, unit) == texts
    if len(times) == 1:
        assert time_text(times[0], unit) == texts[0]


@pytest.mark.parametrize(
    ("times", "unit", "values", "name"),
    [
        ([86400, 2 * 86400], EPOCH, [1, 2], "days {}"),
        (3600 * np.arange(1, 11), EPOCH, np.arange(1, 11), "hours {}"),
        ([600], EPOCH, [10], "minutes {}"),
        ([0.5], EPOCH, [0.5], "seconds {}"),
        ([0.5, 1.0], "s", [0.5, 1.0], "time {} (s)"),
        ([0.5, 1.0], "", [0.5, 1.0], "time {}"),
    ],
)
def test_an_axis_of_time_counts_from_the_last_input(times, unit, values, name):
    found, label = time_axis(np.array(times), unit)
    np.testing.assert_allclose(found, values)
    assert label == name.format("after the last input")


def test_axes_have_names_and_units():
    assert axis_labels(Domain.sphere(), ["°", "°"]) == ["longitude (°)", "latitude (°)"]
    assert axis_labels(Domain.unit(2)) == ["x", "y"]
