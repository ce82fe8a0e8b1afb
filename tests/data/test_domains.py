"""Domains around points, and where axes end."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfsgeo.data import Fields
from nfsgeo.data.build import Array, build
from nfsgeo.data.domains import check_within
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

WAVED = Domain((0.0, 0.0), (1.0, 2.0), (True, False))


def line(axis: np.ndarray, domain: Domain | None = None) -> Fields:
    u = Array(np.sin(axis)[None], "tx", ["u"])
    return build(Path("line"), [u], axes=[axis], domain=domain)


@given(st.floats(-1.5, 2.5), st.floats(-1.5, 2.5), st.floats(-1, 3))
def test_points_may_be_a_period_away_but_span_no_more_than_one(one_line, a, b, y):
    points = np.array([[a, 0.5], [b, y]])
    ends = np.array([a + 1, b + 1, 2 - a, 2 - b, 1 - abs(a - b), y, 2 - y])
    u = Array(np.zeros((1, 2)), "tp", ["u"])
    fields = build(Path("cloud"), [u], points=points)
    if (ends >= 0).all():
        assert fields.with_domain(WAVED).domain == WAVED
        np.testing.assert_array_equal(fields.with_domain(WAVED).coordinates(), points)
    elif ends.min() < -1e-5:  # more than rounding
        assert "points in the domain" in one_line(fields.with_domain, WAVED)


def test_grids_lie_in_their_domain(one_line):
    axis = np.arange(4.0)
    for upper, periodic in ((4.0, True), (3.0, False), (9.0, True)):
        line(axis, Domain((0.0,), (upper,), (periodic,)))
    for lower, upper, periodic, message in (
        (0.0, 3.0, True, "periodic axis without its upper end"),
        (0.0, 2.0, False, "from 0 to 3"),
        (0.5, 4.5, True, "from 0 to 3 in a periodic domain"),
        (0.0, 2.5, True, "periodic domain"),
    ):
        assert message in one_line(line, axis, Domain((lower,), (upper,), (periodic,)))
    with pytest.raises(UserError, match="a domain of 2 axes: expected 1"):
        check_within(Domain.unit(2), [axis[:, None]], Path("line"))
