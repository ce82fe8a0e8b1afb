"""Splits in order, never empty where there are samples enough."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nfsgeo.data.splits import split_in_order


def test_the_papers_counts():
    split = split_in_order(1200)
    assert [len(part) for part in split.values()] == [840, 120, 240]
    assert split["valid"][0] == 840 and split["test"][-1] == 1199


@given(
    st.integers(0, 300),
    st.sampled_from([(0.7, 0.1, 0.2), (0.01, 0.495, 0.495), (0.98, 0.01, 0.01)]),
)
def test_every_sample_once_in_order(num, shares):
    split = split_in_order(num, shares)
    joined = np.concatenate([split["train"], split["valid"], split["test"]])
    np.testing.assert_array_equal(joined, np.arange(num))
    if num >= 3:
        assert all(len(part) for part in split.values())
    else:
        assert len(split["train"]) == num
