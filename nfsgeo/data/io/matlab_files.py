"""Files of MATLAB 5 and 7.3: arrays and structs of numbers, and what else they hold."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat, whosmat
from scipy.sparse import issparse
from xarray import Variable

from nfsgeo.data.conventions import listed
from nfsgeo.data.lazy import Key, hdf5_arrays
from nfsgeo.data.other_files import check_size
from nfsgeo.errors import UserError

__all__ = [
    "BLOCK_BYTES",
    "Reversed",
    "first_bytes",
    "headers_of",
    "holds_numbers",
    "is_matlab",
]
__all__ += ["is_matlab_5", "no_numbers", "struct_arrays"]

Header = tuple[tuple[int, ...], np.dtype[Any]]
NUMBERS = ("double", "single", "int", "uint", "logical")  # how such classes begin
BLOCK_BYTES = 2**28  # of MATLAB 7.3, read at once
COMPRESSED = 15  # type of an element of MATLAB 5
TAG = 8  # bytes
REFERENCES = "#"  # how groups of MATLAB 7.3 begin that hold the cells of cell arrays
OTHERS = {  # what holds no numbers, and how numbers are made of it in MATLAB
    "cell": ("a cell array", "u = cat(3, {0}{{:}})"),
    "struct": ("an array of structs", "u = cat(3, {0}.FIELD)"),
    "sparse": ("a sparse matrix", "u = full({0})"),
    "char": ("text", ""),
    "empty": ("an empty array", ""),
    "": ("an object", ""),
}


def is_matlab(path: Path) -> bool:
    """Return whether a file is one of MATLAB 5 or 7.3."""
    return first_bytes(path).startswith(b"MATLAB ")


def is_matlab_5(path: Path) -> bool:
    """Return whether a file is one of MATLAB 5, which has no HDF5 in it."""
    return first_bytes(path).startswith(b"MATLAB 5")


def first_bytes(path: Path) -> bytes:
    """The first 16 bytes of a file, which tell its format."""
    with path.open("rb") as stream:
        return stream.read(16)


def headers_of(path: Path) -> dict[str, Header]:
    """Shape and type of each array of numbers of MATLAB 5 that is in no struct."""
    _content_bytes(path)
    numbers = [header for header in whosmat(path) if header[2].startswith(NUMBERS)]
    check_size(path, sum(8 * math.prod(shape) for _, shape, _ in numbers))
    return {n: (s, np.dtype(k.replace("logical", "bool"))) for n, s, k in numbers}


def struct_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of numbers in structs of MATLAB 5, by names such as ``data.u``.

    They are read, since their shapes cannot be told without, and must not be changed.
    """
    members = _members(path).items()
    return {name: v for name, v in members if _class_of(v) in NUMBERS}


def _members(path: Path) -> dict[str, Any]:
    """The fields of all structs in a file of MATLAB 5, and those of structs in them."""
    about = path.stat()
    return _read_members(path, about.st_ino, about.st_size, about.st_mtime_ns)


@lru_cache(1)  # an opening asks for them several times
def _read_members(path: Path, *version: int) -> dict[str, Any]:
    names = [name for name, _, kind in whosmat(path) if kind == "struct"]
    if not names:
        return {}
    check_size(path, _content_bytes(path))
    loaded = loadmat(path, variable_names=names)
    return dict(item for name in names for item in _fields(name, loaded[name]))


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = _class_of(value)
    if kind == "struct" and value.size == 1:
        for field in value.dtype.names:
            yield from _fields(f"{name}.{field}", value[field].item())
    else:
        if kind in NUMBERS:
            value.flags.writeable = False
        yield name, value


def _class_of(value: Any) -> str:
    """The class in MATLAB of what SciPy has read, "double" for all numbers."""
    if issparse(value):
        return "sparse"
    if type(value) is not np.ndarray:
        return ""
    if value.dtype.names:
        return "struct"
    if not value.size:
        return "empty"
    return {"O": "cell", "U": "char"}.get(value.dtype.kind, "double")


def _content_bytes(path: Path) -> int:
    """Bytes of a file of MATLAB 5, unpacked.

    Raises:
        ValueError: It ends within one of its arrays.
    """
    size, total = path.stat().st_size, 0
    with path.open("rb") as stream:
        order: Literal["little", "big"] = "little"
        if (head := stream.read(128))[126:] == b"MI":
            order = "big"
        end = len(head)
        while end < size and len(tag := stream.read(TAG)) == TAG:
            num = int.from_bytes(tag[4:], order)
            end += TAG + num
            if int.from_bytes(tag[:4], order) == COMPRESSED:
                start = zlib.decompressobj().decompress(stream.read(256), TAG)
                num = int.from_bytes(start[4:], order)
            total += num
            stream.seek(end)
    if end != size or size < 128:
        raise ValueError("it ends too early")
    return total


def _class_in_hdf5(item: Any) -> str:
    """The class of an array of MATLAB 7.3; "double" if the file does not tell it."""
    if "MATLAB_sparse" in item.parent.attrs:
        return "sparse"
    if "MATLAB_empty" in item.attrs:
        return "empty"
    told = bytes(item.attrs.get("MATLAB_class", b"double")).decode()
    references = item.dtype.kind == "O" and told != "cell"  # of fields of structs
    return "struct" if references else told


def holds_numbers(name: str, item: Any) -> bool:
    """Return whether an array of MATLAB 7.3 is one of numbers, and no part of another.

    Args:
        name: Its path.
        item: The data set of HDF5.
    """
    told = _class_in_hdf5(item)
    return told.startswith(NUMBERS) and not name.startswith(REFERENCES)


def _classes(path: Path) -> dict[str, str]:
    """The class of each variable, and of each field of a struct, by its name."""
    if is_matlab_5(path):
        told = {name: kind for name, _, kind in whosmat(path) if kind != "struct"}
        return told | {name: _class_of(value) for name, value in _members(path).items()}
    classes = dict[str, str]()
    with h5py.File(path, "r") as file:
        for name, item in hdf5_arrays(file).items():
            if name.startswith(REFERENCES):
                continue
            kind = _class_in_hdf5(item)
            whole = kind in ("sparse", "struct")  # of which this is a part
            key = name.rpartition("/")[0] if whole else name
            classes[key.replace("/", ".")] = kind
    return classes


def no_numbers(path: Path, wanted: str = "") -> UserError | None:
    """The error that tells what a file holds instead of arrays of numbers.

    Args:
        path: A file of MATLAB.
        wanted: The name of a variable, or of a field of a struct; all if empty.

    Returns:
        The error, or None if there is no such variable, or one of numbers.
    """
    others = {n: c for n, c in _classes(path).items() if not c.startswith(NUMBERS)}
    if wanted:
        others = {n: c for n, c in others.items() if f"{wanted}.".startswith(f"{n}.")}
        if not others:
            return None
    about = {name: OTHERS.get(kind, OTHERS[""]) for name, kind in others.items()}
    given = listed([f"{name} ({what})" for name, (what, _) in about.items()])
    first, (_, make) = next(iter(about.items()), ("", OTHERS[""]))
    todo = f"make one in MATLAB, as by {make.format(first)}" if make else "name others"
    expected = "arrays of numbers, or structs with fields of numbers"
    return UserError(f"{path} with {given or 'no variables'}", expected, todo)


class Reversed:
    """Reads from an array of MATLAB 7.3, which stores its axes in reverse.

    A sample, along the first axis, is spread over the whole array. So samples are read
    in blocks, of which the last one is kept.
    """

    def __init__(self, stored: Variable, step: int) -> None:
        self.stored, self.step = stored, max(1, step)
        self._block, self._values = -1, np.empty(0)

    def __call__(self, key: Key) -> NDArray[Any]:
        first, *rest = key
        if isinstance(first, slice):
            return self.stored[key[::-1]].values.T
        block = int(first) // self.step
        if block != self._block:
            part = slice(block * self.step, (block + 1) * self.step)
            self._values = self.stored[..., part].values.T
            self._block = block
        return np.asarray(self._values[(int(first) - block * self.step, *rest)])

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_block": -1, "_values": np.empty(0)}
