"""Arrays that are read, or computed, when their values are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

__all__ = ["deferred", "stacked"]

Key = tuple[int | slice, ...]


class _Deferred(BackendArray):
    """An array of which ``read`` returns the part of a key of integers and slices."""

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, read: Callable[[Key], NDArray[Any]]
    ) -> None:
        self.shape, self.dtype, self._read = shape, np.dtype(dtype), read

    def __getitem__(self, key: indexing.ExplicitIndexer) -> NDArray[Any]:
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self._read)


def deferred(
    dims: Sequence[Any],
    shape: Sequence[int],
    dtype: Any,
    read: Callable[[Key], NDArray[Any]],
) -> Variable:
    """A variable whose values are read when they are asked for.

    Args:
        dims: Names of its dimensions.
        shape: Their lengths.
        dtype: Type of the values.
        read: Returns the part of a key, an integer or a slice for each dimension, as
            numpy indexes. It pickles if the variable is to reach other processes.
    """
    array = _Deferred(tuple(shape), dtype, read)
    return Variable(dims, indexing.LazilyIndexedArray(array))


def stacked(parts: Sequence[Variable], dim: str) -> Variable:
    """Variables one behind the other along a dimension that all of them have.

    Args:
        parts: Of the same dimensions, and but for ``dim`` of the same lengths.
        dim: The dimension.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    axis = first.dims.index(dim)
    ends = np.cumsum([each.sizes[dim] for each in parts])
    shape = list(first.shape)
    shape[axis] = int(ends[-1])
    dtype = np.result_type(*(each.dtype for each in parts))
    read = _Stack([each.transpose(*first.dims) for each in parts], ends, axis)
    return deferred(first.dims, shape, dtype, read)


class _Stack:
    """Reads from several variables along one axis."""

    def __init__(self, parts: list[Variable], ends: NDArray[Any], axis: int) -> None:
        self.parts, self.ends, self.axis = parts, ends, axis

    def __call__(self, key: Key) -> NDArray[Any]:
        along = key[self.axis]
        rows = np.arange(int(self.ends[-1]))[along]
        which = np.searchsorted(self.ends, rows, side="right")
        starts = np.concatenate([[0], self.ends[:-1]])
        if np.ndim(rows) == 0:
            inner = int(rows - starts[which])
            return self._take(int(which), key, inner)
        found = [
            self._take(int(part), key, rows[which == part] - starts[part])
            for part in dict.fromkeys(which.tolist())
        ]
        if not found:
            return self._take(0, key, slice(0, 0))
        axis = sum(isinstance(each, slice) for each in key[: self.axis])
        return found[0] if len(found) == 1 else np.concatenate(found, axis=axis)

    def _take(self, part: int, key: Key, inner: Any) -> NDArray[Any]:
        if isinstance(inner, np.ndarray) and len(inner):
            step = int(inner[1] - inner[0]) if len(inner) > 1 else 1
            end = int(inner[-1]) + (1 if step > 0 else -1)
            inner = slice(int(inner[0]), end if end >= 0 else None, step)
        at = (*key[: self.axis], inner, *key[self.axis + 1 :])
        return np.asarray(self.parts[part][at].values)
