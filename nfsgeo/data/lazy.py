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
    return loaded.set_dims({dim: len(each) for dim, each in ranges.items()}).values


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
    first, sizes = parts[0], [part.sizes[dim] for part in parts]
    shape = [sum(sizes) if d == dim else first.sizes[d] for d in first.dims]
    dtype = np.result_type(*(part.dtype for part in parts))
    alike = [part.transpose(*first.dims) for part in parts]
    axis, ends = first.dims.index(dim), np.cumsum(sizes)
    return deferred(first.dims, shape, dtype, partial(_of_parts, alike, ends, axis))


def _of_parts(
    parts: Sequence[Variable], ends: NDArray[Any], axis: int, key: Key
) -> NDArray[Any]:
    """Reads from several variables along one axis."""
    along, starts = key[axis], np.append(0, ends)

    def read(number: int, inner: int | slice) -> NDArray[Any]:
        taken = parts[number][(*key[:axis], inner, *key[axis + 1 :])]
        return np.asarray(taken.values)

    if not isinstance(along, slice):
        number = int(np.searchsorted(ends, along, side="right"))
        return read(number, int(along - starts[number]))
    rows = np.arange(*along.indices(int(ends[-1])))  # xarray asks for increasing ones
    which, found = np.searchsorted(ends, rows, side="right"), []
    for number in np.unique(which).tolist():
        inner = rows[which == number] - starts[number]
        found.append(read(number, slice(int(inner[0]), int(inner[-1]) + 1, along.step)))
    left = sum(isinstance(each, slice) for each in key[:axis])  # axes before this one
    return np.concatenate(found, axis=left) if found else read(0, slice(0, 0))
