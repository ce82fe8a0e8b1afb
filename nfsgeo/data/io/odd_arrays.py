"""Arrays of numpy and HDF5 that hold no plain numbers, and what to do about them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nfsgeo.data.conventions import listed
from nfsgeo.data.io.array_files import npy_header, npz_headers
from nfsgeo.data.io.matlab_files import is_matlab
from nfsgeo.data.lazy import hdf5_arrays
from nfsgeo.errors import UserError

__all__ = ["about_odd_arrays", "describe", "odd_arrays"]

NUMBERS = "biufcmM"
HOLDS = "arrays of numbers"


def odd_arrays(path: Path, *, text: bool = False) -> dict[str, np.dtype[Any]]:
    """Return the types of structured arrays, arrays of objects or of ``text``."""
    types = dict[str, np.dtype[Any]]()
    if is_matlab(path):  # which has cells and structs
        return types
    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            types = {name: item.dtype for name, item in hdf5_arrays(file).items()}
    elif headers := npz_headers(path):
        types = {name: dtype for name, (_, dtype) in headers.items()}
    elif path.is_file():
        with path.open("rb") as stream:
            if stream.peek(6).startswith(np.lib.format.MAGIC_PREFIX):
                types[path.stem] = npy_header(stream)[1]
    odd = {name: kind for name, kind in types.items() if kind.kind not in NUMBERS}
    return {name: kind for name, kind in odd.items() if text or not _is_text(kind)}


def about_odd_arrays(path: Path, wanted: str = "") -> UserError | None:
    """The error that tells what a file holds instead of arrays of numbers.

    Args:
        path: The file.
        wanted: The name of an array; any but text if empty.

    Returns:
        The error, or None if there is no such array.
    """
    odd = odd_arrays(path, text=bool(wanted))
    odd = {name: kind for name, kind in odd.items() if wanted in ("", name)}
    if not odd:
        return None
    name, kind = next(iter(odd.items()))
    given = f"{path} with {listed([describe(*item) for item in odd.items()])}"
    text, hdf5 = str(path), h5py.is_hdf5(path)
    load = f"h5py.File({text!r})[{name!r}][()]" if hdf5 else f"numpy.load({text!r})"
    if not hdf5 and zipfile.is_zipfile(path):
        load += f"[{name!r}]"
    if kind.names:
        todo = f"write a table: pandas.DataFrame({load})"
        todo += ".to_csv('NAME.csv', index=False)"
    elif _is_text(kind):
        todo = "name others"
    else:
        todo = "write arrays of numbers, one for all samples or a file for each"
        if not hdf5:
            pickled = load.replace(f"{text!r}", f"{text!r}, allow_pickle=True")
            todo += f", from {pickled} if you trust the file"
    return UserError(given, HOLDS, todo)


def describe(name: str, kind: np.dtype[Any]) -> str:
    """The name of an array with what it holds."""
    what = "objects of Python" if kind.metadata is None else "lists of any length"
    what = "text" if _is_text(kind) else what
    if kind.names:
        what = f"structured array with the fields {listed(kind.names)}"
    return f"{name} ({what})"


def _is_text(kind: np.dtype[Any]) -> bool:
    return kind.kind in "SU" or h5py.check_string_dtype(kind) is not None
