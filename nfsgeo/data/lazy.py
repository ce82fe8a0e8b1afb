"""Arrays that are read, or computed, when their values are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray, CachingFileManager
from xarray.core import indexing

__all__ = ["deferred", "flattened", "hdf5_arrays", "opened_hdf5", "part", "read_hdf5"]
__all__ += ["spread", "stacked"]

Key = tuple[int | slice, ...]


class _Deferred(BackendArray):
    """An array whose parts ``read`` returns, by a key of integers and slices."""

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
    attrs: Mapping[Any, Any] | None = None,
) -> Variable:
    """A variable whose values are read when they are asked for.

    ``read`` returns the part of a key, an integer or a slice for each dimension, as
    numpy indexes. It pickles if the variable is to reach other processes.
    """
    array = _Deferred(tuple(shape), dtype, read)
    return Variable(dims, indexing.LazilyIndexedArray(array), attrs)


def opened_hdf5(path: Path) -> CachingFileManager[h5py.File]:
    """An HDF5 file that stays open between reads, as long as few others are read."""
    return CachingFileManager(h5py.File, path, mode="r")


def hdf5_arrays(file: h5py.File) -> dict[str, h5py.Dataset]:
    """All arrays of an HDF5 file, those in groups by their paths."""
    arrays: dict[str, h5py.Dataset] = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item

    file.visititems(add)
    return arrays


def read_hdf5(
    opened: CachingFileManager[h5py.File], name: str, key: Key
) -> NDArray[Any]:
    """Read a part of an array of an HDF5 file, NaN where a file of it is missing."""
    array = opened.acquire()[name]
    return np.asarray(_with_gaps(array, key) if array.is_virtual else array[key])


def _with_gaps(array: h5py.Dataset, key: Key) -> NDArray[Any]:
    """Read a part of a virtual array by a copy in memory, which fills gaps with NaN.

    Raises:
        ValueError: The array is of whole numbers, and has a gap.
    """
    kind = np.result_type(array.dtype, np.float32)
    if "." in {source.file_name for source in array.virtual_sources()}:
        return np.asarray(array[key])  # of this file, which the copy cannot reach
    plan = array.id.get_create_plist()
    plan.set_fill_value(np.array(np.nan, kind))
    # No file is made, but HDF5 looks for others in the folder of its name.
    beside = f"{array.file.filename}.gaps"
    with h5py.File(beside, "w", driver="core", backing_store=False) as memory:
        form, space = h5py.h5t.py_create(kind), array.id.get_space()
        copy = h5py.Dataset(h5py.h5d.create(memory.id, b"copy", form, space, plan))
        values = copy[key]
    if kind != array.dtype and np.isnan(values).any():
        raise ValueError(f"{array.name}, whole numbers of which files are missing")
    return values if kind == array.dtype else array[key]


def part(variable: Variable, sizes: Mapping[Any, int], key: Key) -> NDArray[Any]:
    """Read a part of a variable, repeated along the dimensions that it lacks.

    Args:
        variable: The variable.
        sizes: Sizes of all dimensions, in the order of the result.
        key: An integer or a slice for each of them.
    """
    index = dict(zip(sizes, key, strict=True))
    taken = variable.isel(index, missing_dims="ignore")
    loaded = Variable(taken.dims, np.asarray(taken.values))
    slices = {dim: k for dim, k in index.items() if isinstance(k, slice)}
    return loaded.set_dims(
        {d: len(range(sizes[d])[k]) for d, k in slices.items()}
    ).values


def spread(variable: Variable, sizes: Mapping[Any, int]) -> Variable:
    """A variable repeated along the dimensions of ``sizes`` that it lacks, lazily."""
    if variable.dims == tuple(sizes):
        return variable
    read = partial(part, variable, sizes)
    shape = [*sizes.values()]
    return deferred([*sizes], shape, variable.dtype, read, variable.attrs)


def flattened(
    variable: Variable, ahead: Mapping[Any, int], dims: Mapping[Any, int], dim: str
) -> Variable:
    """A variable with one dimension for all ``dims``, behind those ``ahead``, lazily.

    It is repeated along those that it lacks.
    """
    whole, names = spread(variable, {**ahead, **dims}), [*ahead, dim]
    if len(dims) == 1:
        return Variable(names, whole, variable.attrs)
    shape, read = [*ahead.values(), prod(dims.values())], partial(_flat, whole)
    return deferred(names, shape, variable.dtype, read, variable.attrs)


def _flat(whole: Variable, key: Key) -> NDArray[Any]:
    taken = whole[key[:-1]].values
    kept = taken.shape[: sum(isinstance(index, slice) for index in key[:-1])]
    return np.asarray(taken.reshape(*kept, -1)[..., key[-1]])


def stacked(parts: Sequence[Variable], dim: str) -> Variable:
    """Concatenate variables along one of their dimensions, or a new one, lazily.

    The attributes are those of the first.
    """
    parts = [v if dim in v.dims else spread(v, {dim: 1, **v.sizes}) for v in parts]
    if len(parts) == 1:
        return parts[0]
    if len({frozenset(({**part.sizes, dim: 0}).items()) for part in parts}) > 1:
        raise ValueError("samples or files with values of other shapes")
    first, ends = parts[0], np.cumsum([part.sizes[dim] for part in parts])
    shape = [int(ends[-1]) if d == dim else first.sizes[d] for d in first.dims]
    dtype = np.result_type(*(part.dtype for part in parts))
    alike = [part.transpose(*first.dims) for part in parts]
    read = partial(_read_parts, alike, ends, first.dims.index(dim))
    return deferred(first.dims, shape, dtype, read, first.attrs)


def _read_parts(
    parts: Sequence[Variable], ends: NDArray[Any], axis: int, key: Key
) -> NDArray[Any]:
    """Read from several variables along an axis, along which they end at ``ends``."""
    along, starts = key[axis], np.append(0, ends)
    if not isinstance(along, slice):
        number = int(np.searchsorted(ends, along, side="right"))
        index = (*key[:axis], along - int(starts[number]), *key[axis + 1 :])
        return np.asarray(parts[number][index].values)
    rows = np.arange(*along.indices(int(ends[-1])))  # xarray asks for increasing ones
    numbers, values = np.searchsorted(ends, rows, side="right"), []
    for number in np.unique(numbers).tolist() or [0]:
        inside = (rows[numbers == number] - starts[number]).tolist() or [0, -1]
        some = slice(inside[0], inside[-1] + 1, along.step)
        values.append(parts[number][(*key[:axis], some, *key[axis + 1 :])].values)
    axes_before = sum(isinstance(index, slice) for index in key[:axis])
    return np.concatenate(values, axis=axes_before)
