"""Deferred and stacked variables against numpy's own indexing."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from xarray import Variable

from nfsgeo.data.lazy import deferred, stacked

DIMS = ("a", "b", "c")
shapes = array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=5)


class Read:
    """Reads from an array, and keeps in mind what was asked for."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.keys = values, list[Any]()

    def __call__(self, key: Any) -> np.ndarray:
        assert all(isinstance(each, (int, slice, np.integer)) for each in key)
        self.keys.append(key)
        return self.values[key]


def keys(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Integers and slices; xarray itself fails at empty ones that run backwards."""

    def one(size: int) -> st.SearchStrategy[Any]:
        some = st.slices(size).filter(
            lambda s: (s.step or 1) > 0 or len(range(*s.indices(size)))
        )
        return some | st.integers(0, size - 1) if size else some

    return st.tuples(*map(one, shape))


def numbered(shape: tuple[int, ...], first: int = 0) -> np.ndarray:
    return np.arange(first, first + np.prod(shape, dtype=int)).reshape(shape)


@given(shapes, st.data())
def test_deferred_values_are_those_of_numpy(sent, shape, data):
    values = numbered(shape)
    read = Read(values)
    variable = deferred(DIMS, shape, values.dtype, read)
    assert variable.shape == shape and variable.dtype == values.dtype
    key = data.draw(keys(shape))
    taken = variable[key]
    assert not read.keys  # nothing is read before it is asked for
    np.testing.assert_array_equal(taken.values, values[key])
    rows = np.array(data.draw(st.lists(st.integers(0, shape[0] - 1))), int)
    np.testing.assert_array_equal(variable[rows].values, values[rows])
    again = sent(variable)
    np.testing.assert_array_equal(again.values, values)


@given(shapes, st.integers(0, 2), st.lists(st.integers(0, 4), min_size=1), st.data())
def test_stacked_variables_are_concatenated_arrays(shape, axis, lengths, data):
    parts = []
    for number, length in enumerate(lengths):
        one = (*shape[:axis], length, *shape[axis + 1 :])
        parts.append(numbered(one, 1000 * number).astype("f8" if number else "f4"))
    whole = np.concatenate(parts, axis=axis)
    variables = [Variable(DIMS, each).transpose("c", "a", "b") for each in parts]
    variables[0] = deferred(DIMS, parts[0].shape, parts[0].dtype, Read(parts[0]))
    found = stacked(variables, DIMS[axis]).transpose(*DIMS)
    assert found.shape == whole.shape and found.dtype == whole.dtype
    key = data.draw(keys(whole.shape))
    np.testing.assert_array_equal(found[key].values, whole[key])
    np.testing.assert_array_equal(found.values, whole)


def test_only_the_parts_that_are_asked_for_are_read():
    reads = [Read(numbered((4, 2))) for _ in range(3)]
    parts = [deferred(("a", "b"), (4, 2), int, read) for read in reads]
    whole = stacked(parts, "a")
    np.testing.assert_array_equal(whole[5:7].values, numbered((4, 2))[1:3])
    assert [len(read.keys) for read in reads] == [0, 1, 0]
