"""Arrays of MATLAB files: version 5, which SciPy reads, and 7.3, which is HDF5."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat, matlab, whosmat

from nfsgeo.data.numbers import with_gaps

__all__ = ["load", "shapes"]

BLOCK_BYTES = 2**28
VERSION_5 = 1  # as SciPy numbers it; it takes many other files for version 4
NUMBERS = re.compile("double|single|u?int|logical")


class Reversed:
    """An array of version 7.3, which stores axes in reverse, samples last.

    One sample is spread over the whole data set, so samples are read in blocks;
    ``np.asarray`` reads all of it.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset, self.attrs = dataset, dataset.attrs
        self.shape = dataset.shape[::-1]
        size = dataset.dtype.itemsize * int(np.prod(self.shape[1:]))
        self._step = max(1, BLOCK_BYTES // max(1, size))
        self._block, self._values = -1, np.empty(0)

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        sample, *rest = index
        block = sample // self._step
        if block != self._block:
            start = block * self._step
            self._values = self._dataset[..., start : start + self._step].T
            self._block = block
        return self._values[(sample - block * self._step, *rest)]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(with_gaps(self._dataset[...].T, self), dtype)


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name and logical shape of each array, nothing where it is no MATLAB file."""
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                sets = [v for v in file.values() if isinstance(v, h5py.Dataset)]
                return {v.name.lstrip("/"): v.shape[::-1] for v in sets}
        if matlab.matfile_version(path)[0] != VERSION_5:
            return {}
        found = whosmat(path)
        return {name: shape for name, shape, kind in found if NUMBERS.match(kind)}
    except Exception:  # a damaged file is not recognised, whatever breaks in it
        return {}


def load(path: Path, *names: str) -> tuple[dict[str, Any], h5py.File | None]:
    """Arrays by name in logical order, and the handle to close, if one stays open."""
    if not h5py.is_hdf5(path):
        found = loadmat(path, variable_names=names)
        arrays = {name: found[name] for name in names if name in found}
        if any(map(np.iscomplexobj, arrays.values())):
            raise ValueError("an array of complex numbers")
        return arrays, None
    file = h5py.File(path, "r")
    return {name: Reversed(file[name]) for name in names if name in file}, file
