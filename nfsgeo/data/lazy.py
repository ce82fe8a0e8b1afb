"""Arrays that are read, or computed, when their values are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray, CachingFileManager
from xarray.core import indexing

__all__ = [
    "deferred",
    "hdf5_variable",
    "opened_hdf5",
    "part",
    "read_hdf5",
    "spread",
    "stacked",
]

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


def opened_hdf5(path: Path) -> CachingFileManager[h5py.File]:
    """An HDF5 file that stays open between two reads, of the last that were read."""
    return CachingFileManager(h5py.File, path, mode="r")


def hdf5_variable(
    opened: CachingFileManager[h5py.File], name: str, dims: Sequence[Any]
) -> Variable:
    """An array of an HDF5 file as a variable."""
    source = opened.acquire()[name]
    read = partial(read_hdf5, opened, name)
    return deferred(dims, source.shape, source.dtype, read)


def read_hdf5(
    opened: CachingFileManager[h5py.File], name: str, key: Key
) -> NDArray[Any]:
    """A part of an array of an HDF5 file."""
    return np.asarray(opened.acquire()[name][key])


def part(variable: Variable, sizes: Mapping[str, int], key: Key) -> NDArray[Any]:
    """Reads a variable along dimensions of these sizes, the same where it lacks one.

    Args:
        variable: Along some of the dimensions, in any order.
        sizes: All of them, in the order of the result.
        key: An integer or a slice for each.
    """
    index = dict(zip(sizes, key, strict=True))
    taken = variable.isel({dim: index[str(dim)] for dim in variable.dims})
    ranges = {d: range(sizes[d])[k] for d, k in index.items() if isinstance(k, slice)}
    loaded = Variable(taken.dims, np.asarray(taken.values))
    whole = loaded.set_dims({dim: len(each) for dim, each in ranges.items()})
    return np.asarray(whole.transpose(*ranges).values)


def spread(variable: Variable, sizes: Mapping[str, int]) -> Variable:
    """A variable along dimensions of these sizes, see :func:`part`."""
    if variable.dims == tuple(sizes):
        return variable
    read = partial(part, variable, sizes)
    return deferred([*sizes], [*sizes.values()], variable.dtype, read)


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
    each = [one.transpose(*first.dims) for one in parts]
    return deferred(first.dims, shape, dtype, partial(_of_parts, each, ends, axis))


def _of_parts(
    parts: Sequence[Variable], ends: NDArray[Any], axis: int, key: Key
) -> NDArray[Any]:
    """Reads from several variables along one axis."""
    rows = np.arange(int(ends[-1]))[key[axis]]
    which = np.searchsorted(ends, rows, side="right")
    starts = np.append(0, ends[:-1])
    along = [0] if not rows.size else dict.fromkeys(np.ravel(which).tolist())
    found = []
    for number in along:
        inner: Any = rows[which == number] - starts[number] if rows.ndim else rows
        if not rows.ndim:
            inner = int(rows - starts[number])
        elif len(inner):  # as a slice, in steps of the key's
            step = int(inner[1] - inner[0]) if len(inner) > 1 else 1
            end = int(inner[-1]) + (1 if step > 0 else -1)
            inner = slice(int(inner[0]), end if end >= 0 else None, step)
        else:
            inner = slice(0, 0)
        taken = parts[number][(*key[:axis], inner, *key[axis + 1 :])]
        found.append(np.asarray(taken.values))
    if len(found) == 1:
        return found[0]
    axis = sum(isinstance(each, slice) for each in key[:axis])
    return np.concatenate(found, axis=axis)
