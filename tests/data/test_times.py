"""Regular times: equal steps, and those of a calendar."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfsgeo.data.times import EPOCH, MONTHS, clock, filled, later, same_steps

BEGIN = np.arange("1999-11", "2003-05", dtype="M8[M]").astype("M8[s]").astype(float)
START, END = BEGIN[:-1], BEGIN[1:]
PLACES = {
    "first of a month": START,
    "a day and hour": START + 17.25 * 86400,
    "last of a month": END - 86400,
    "end of a month": END - 1,
    "middle of a month": (START + END) / 2,
}


@pytest.mark.parametrize("place", PLACES)
@given(first=st.integers(0, 20), num=st.integers(3, 9), apart=st.integers(1, 3))
def test_calendar_months_are_equal_steps(place, first, num, apart):
    if "middle" in place:
        apart = 1  # every second month may have 31 days
    series = PLACES[place][first::apart]
    numbers, unit = clock(series[:num], EPOCH)
    assert unit == MONTHS and same_steps(np.diff(numbers), apart).all()
    ahead = later(apart * np.arange(1.0, 4.0), series[:num], unit)
    expected = series[num : num + 3]
    np.testing.assert_allclose(ahead[: len(expected)], expected, atol=0.5, rtol=0)


@pytest.mark.parametrize("series", [*PLACES.values(), 60.0 * np.arange(30)])
@given(data=st.data())
def test_what_a_regular_series_lacks_is_filled(series, data):
    inner = st.integers(1, len(series) - 2)
    gone = data.draw(st.lists(inner, max_size=len(series) // 5, unique=True))
    given = np.delete(series, gone)
    whole, number = filled(given)
    np.testing.assert_array_equal(whole[number], given)
    np.testing.assert_allclose(whole, series, atol=0.5, rtol=0)


def test_irregular_times_stay_as_they_are():
    for times in ([0.0, 1.0, 2.5, 3.5], [0.0, 60.0, 6000.0, 6060.0], [5.0]):
        whole, number = filled(np.array(times))
        assert whole.tolist() == times and number.tolist() == [*range(len(times))]
