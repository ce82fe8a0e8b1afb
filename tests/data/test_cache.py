"""What is unused for longest goes first, and other processes begin with nothing."""

import copy
from functools import partial

import numpy as np

from nfsgeo.data.windows import Cache


def test_memory_is_bounded():
    made: list[int] = []

    def make(key: int) -> np.ndarray:
        made.append(key)
        return np.full(100, key, np.uint8)

    cache = Cache(200)
    for key in (0, 1, 0, 2, 0, 1):
        assert cache.get(key, partial(make, key))[0] == key
    assert made == [0, 1, 2, 1]
    again = copy.copy(cache)  # as other processes are given it
    again.get(1, partial(make, 1))
    none = Cache(99)
    for _ in range(2):
        assert none.get(3, partial(make, 3))[0] == 3
    assert made[4:] == [1, 3, 3]
