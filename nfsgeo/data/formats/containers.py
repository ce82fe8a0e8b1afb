"""Named arrays in files of numpy, MATLAB, HDF5, PyTorch and pickle."""

from __future__ import annotations

import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.io import loadmat, matlab, whosmat
from xarray import Variable

from nfsgeo.data.checks import on_cpu
from nfsgeo.data.formats.pickles import PICKLE, arrays_of_pickle
from nfsgeo.data.lazy import Key, deferred, opened_hdf5, read_hdf5

__all__ = ["FILLS", "as_text", "attributes", "read", "shapes"]

NUMPY, MATLAB = b"\x93NUMPY", b"MATLAB 7.3"  # the latter HDF5 with axes in reverse
TORCH = bytes.fromhex("80028a0a6cfc9c46f920")  # how files of old PyTorch begin
VERSION_5 = 1  # as SciPy numbers it; it takes many other files for version 4
BLOCK_BYTES = 2**28  # of MATLAB 7.3, read at once
FILLS = ("_FillValue", "missing_value")


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of each array of numbers, those in groups of HDF5 by their paths.

    Empty where the file is none of these.
    """
    found: dict[str, tuple[int, ...]] = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.shape:
            found[name] = item.shape[:: -1 if _head(path).startswith(MATLAB) else 1]

    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            file.visititems(add)
    elif _head(path).startswith(b"MATLAB 5"):
        numbers = ("double", "single", "int", "uint", "logical")
        if matlab.matfile_version(path)[0] == VERSION_5:
            found = {n: s for n, s, kind in whosmat(path) if kind.startswith(numbers)}
    elif zipfile.is_zipfile(path) and not _is_torch(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    if name.endswith(".npy") and (shape := _header(member)):
                        found[name.removesuffix(".npy")] = shape
    else:
        found = {name: values.shape for name, values in _loaded(path).items()}
    return found


def read(path: Path, names: Iterable[str]) -> dict[str, Variable]:
    """Arrays by name, dimensions ``0``, ``1``, ...; NaN where HDF5 marks them.

    Raises:
        ValueError: An array has complex numbers.
        KeyError: There is none of that name.
    """
    names = list(names)
    if h5py.is_hdf5(path):
        return {name: _of_hdf5(path, name) for name in names}
    if _head(path).startswith(b"MATLAB 5"):
        arrays: Any = loadmat(path, variable_names=names)
    elif zipfile.is_zipfile(path) and not _is_torch(path):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in names}
    else:
        arrays = _loaded(path)
    return {name: Variable(_dims(arrays[name].ndim), arrays[name]) for name in names}


def _is_torch(path: Path) -> bool:
    """Whether PyTorch saved the file."""
    if not zipfile.is_zipfile(path):
        return _head(path).startswith(TORCH)
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())


def _loaded(path: Path) -> dict[str, NDArray[Any]]:
    about = path.stat()
    return _once(path, (about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=1)  # asked what there is, then for it
def _once(path: Path, version: Any) -> dict[str, NDArray[Any]]:
    """Arrays of numpy, or of a dictionary that PyTorch or pickle saved."""
    found: dict[str, Any] = {}
    if _head(path).startswith(NUMPY):
        found = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    elif _is_torch(path):
        try:
            mapped = zipfile.is_zipfile(path)
            held = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except pickle.UnpicklingError as error:
            names = " ".join(re.findall(r"GLOBAL (\S+)", str(error)))
            raise ValueError(f"other objects than tensors, {names}") from None
        if not isinstance(held, dict):
            raise ValueError(f"a {type(held).__name__} in place of a dict of tensors")
        pairs = held.items()
        found = {str(k): on_cpu(v).numpy() for k, v in pairs if torch.is_tensor(v)}
    elif re.match(PICKLE, _head(path), re.S):
        found = arrays_of_pickle(path)
    return {name: values for name, values in found.items() if values.ndim}


def attributes(path: Path, name: str = "/") -> dict[str, Any]:
    """Attributes of a group or an array of HDF5, text as ``str``."""
    with h5py.File(path, "r") as file:
        return {k: as_text(v) for k, v in file[name].attrs.items()}


def as_text(value: Any) -> Any:
    """Bytes as text, also those in arrays; all else as it is."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return [as_text(each) for each in value.tolist()]
    return value


def _of_hdf5(path: Path, name: str) -> Variable:
    with h5py.File(path, "r") as file:
        source = file[name]
        dtype, shape = source.dtype, source.shape
        fills = [np.ravel(source.attrs[key]) for key in FILLS if key in source.attrs]
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} of type {dtype}, which are no real numbers")
    marks = [mark for mark in fills if mark.dtype.kind in "biuf"]
    if dtype.kind == "f":  # 1e20 in double precision marks single 1e20
        marks = [mark.astype(dtype) for mark in marks]
    elif marks:
        dtype = np.result_type(dtype, np.float32)
    stored = partial(_marked, opened_hdf5(path), name, marks)
    if not _head(path).startswith(MATLAB):
        return deferred(_dims(len(shape)), shape, dtype, stored)
    row = dtype.itemsize * math.prod(shape[:-1])
    read = _Reversed(stored, BLOCK_BYTES // (row or 1))
    return deferred(_dims(len(shape)), shape[::-1], dtype, read)


def _marked(opened: Any, name: str, marks: Sequence[Any], key: Key) -> NDArray[Any]:
    """A part of an array of HDF5, NaN in place of values that mark missing ones."""
    values = read_hdf5(opened, name, key)
    for mark in marks:
        values = np.where(np.isin(values, mark), np.float32(np.nan), values)
    return values


class _Reversed:
    """Reads from an array of MATLAB 7.3, which stores its axes in reverse.

    A sample, along the first axis, is spread over the whole array. So samples are read
    in blocks, of which the last one is kept.
    """

    def __init__(self, stored: Callable[[Key], Any], step: int) -> None:
        self.stored, self.step = stored, max(1, step)
        self._block, self._values = -1, np.empty(0)

    def __call__(self, key: Key) -> NDArray[Any]:
        first, *rest = key
        if isinstance(first, slice):
            return self.stored(key[::-1]).T
        block = int(first) // self.step
        if block != self._block:
            part = slice(block * self.step, (block + 1) * self.step)
            self._values = self.stored((*(slice(None) for _ in rest), part)).T
            self._block = block
        return np.asarray(self._values[(int(first) - block * self.step, *rest)])

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_block": -1, "_values": np.empty(0)}


def _dims(num: int) -> list[str]:
    return [str(i) for i in range(num)]


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(16)


def _header(member: Any) -> tuple[int, ...]:
    """Shape of an array of numbers or dates in an archive; of anything else none."""
    form = np.lib.format
    first = form.read_magic(member) == (1, 0)
    read = form.read_array_header_1_0 if first else form.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape if dtype.kind in "biufM" else ()
