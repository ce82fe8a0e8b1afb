"""Arrays of a pickled dictionary, without running what the pickle holds.

A pickle is a program. This one may build dictionaries, numbers, strings and numpy
arrays of numbers; any other name in it is refused before it is looked up, and the
arrays are made from their bytes by the functions below, not by numpy's own hooks.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError

__all__ = ["arrays_of_pickle"]


def arrays_of_pickle(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of numbers in a pickled dictionary, by name."""
    with path.open("rb") as stream:
        try:
            content = _Restricted(stream).load()
        except KeyError as error:
            given = f"{path} with objects of {'.'.join(map(str, *error.args))}"
            todo = "write the arrays alone, by numpy.savez('NAME.npz', u=..., x=...)"
            expected = "a dictionary of arrays of numpy, and numbers"
            raise UserError(given, expected, todo) from None
    return {k: v.values for k, v in content.items() if isinstance(v, _Array)}


class _Array:
    """Stands for an array while the pickle is read."""

    values: NDArray[Any]

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self.values = _from_bytes(raw, dtype, shape, "F" if fortran else "C").values


class _DType:
    """Stands for an array's type: booleans, integers and floats only."""

    def __init__(self, name: str, *flags: Any) -> None:
        if name[:1] not in "biuf" or len(name) > 3:
            raise pickle.UnpicklingError(f"arrays of type {name!r}")
        self.name, self.order = name, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1] if state[1] in ("<", ">") else "="


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    result, flat = _Array(), np.frombuffer(raw, np.dtype(dtype.order + dtype.name))
    result.values = flat.reshape(shape, order=order)
    return result


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,  # how Python 3 writes bytes in protocol 2
}
for _package in ("numpy.core", "numpy._core"):
    _ALLOWED[f"{_package}.multiarray", "_reconstruct"] = _Array
    _ALLOWED[f"{_package}.numeric", "_frombuffer"] = _from_bytes


# The unpickler in C takes gigabytes when a number in a damaged file is large.
class _Restricted(pickle._Unpickler):
    """An unpickler of the types above, which refuses all others."""

    def find_class(self, module: str, name: str) -> Any:
        return _ALLOWED[module, name]
