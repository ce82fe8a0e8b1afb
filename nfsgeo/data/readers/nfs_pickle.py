"""The NFS authors' data sets, ``dataset_sr128.pkl``, without running what they hold.

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

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers.clouds import CloudFile
from nfsgeo.data.readers.gridded import ArrayFile, Field, nodes
from nfsgeo.data.readers.reader import Reader
from nfsgeo.geometry import Domain

__all__ = ["NFS_PICKLE"]

NAME = "NFS authors' data (.pkl)"
EXPECTED = f"{NAME}: a dictionary of numpy arrays, no other objects"


def _is_pickle(path: Path) -> bool:
    """A pickle of protocol 2 or later; what is in it is checked on reading."""
    with path.open("rb") as stream:
        head = stream.read(16)
    # PROTO, then (from protocol 4) FRAME, then an empty dictionary.
    start = head[11:12] if head[2:3] == b"\x95" else head[2:3]
    return head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5" and start == b"}"


def _nfs_pickle(path: Path) -> FieldFile:
    """``u`` (samples, x[, y], time steps) and ``a`` (samples, x[, y]).

    Without ``x`` the points are a grid on the unit torus; with ``x`` of shape
    (points, axes) or (x, y, axes) they are a point cloud. ``a`` is the coefficient
    where there is one time step, else the initial condition. The file tells no times.
    """
    with path.open("rb") as stream:
        found = _Restricted(stream).load()
    arrays = {key: _array(found[key]) for key in ("u", "a", "x") if key in found}
    u, a = arrays["u"], arrays["a"]
    times = [0.0] if u.shape[-1] == 1 else None
    role = "coefficient" if u.shape[-1] == 1 else "initial condition"
    if "x" in arrays:
        x = arrays["x"]
        points = x.reshape(-1, x.shape[-1])
        if u.shape[1:-1] != x.shape[:-1] and u.shape[1:-1] != (len(points),):
            raise ValueError(f"u {u.shape} does not fit x {x.shape}")
        flat = u.reshape(len(u), len(points), u.shape[-1], 1)
        return CloudFile(
            path,
            meshes=[points] * len(u),
            u=list(flat),
            times=times,
            component_names=["u"],
            a=list(a.reshape(len(u), len(points), 1)),
            static_names=["a"],
            static_role=role,
        )
    grid = u.shape[1:-1]
    letters = "xyz"[: len(grid)]
    return ArrayFile(
        path,
        fields=[Field(u, f"n{letters}t", ["u"])],
        static=[Field(a, f"n{letters}", ["a"])],
        static_role=role,
        axes=[nodes(size, periodic=True) for size in grid],
        times=times,
        domain=Domain.unit(len(grid)),
    )


class _Array:
    """Stands for an array while the pickle is read."""

    values: NDArray[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self.values = _from_bytes(raw, dtype, shape, "F" if fortran else "C").values


class _DType:
    """Stands for an array's type: booleans, integers and floats only."""

    def __init__(self, name: str, *flags: Any) -> None:
        if not isinstance(name, str) or name[:1] not in "biuf" or len(name) > 3:
            raise pickle.UnpicklingError(f"arrays of type {name!r}")
        self.name, self.order = name, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1] if state[1] in ("<", ">") else "="


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: str) -> _Array:
    if isinstance(raw, str):
        raw = raw.encode("latin1")
    if not isinstance(dtype, _DType) or order not in ("C", "F"):
        raise pickle.UnpicklingError("an array of an unknown kind")
    result = _Array()
    flat = np.frombuffer(raw, np.dtype(dtype.order + dtype.name))
    result.values = flat.reshape(shape, order="C" if order == "C" else "F")
    return result


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


def _array(value: Any) -> NDArray[Any]:
    if not isinstance(value, _Array):
        raise pickle.UnpicklingError(f"{type(value).__name__} in place of an array")
    return value.values


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    # How Python 3 writes bytes in protocol 2.
    ("_codecs", "encode"): _encode,
}
for _package in ("numpy.core", "numpy._core"):
    _ALLOWED[f"{_package}.multiarray", "_reconstruct"] = _reconstruct
    _ALLOWED[f"{_package}.numeric", "_frombuffer"] = _from_bytes


# The unpickler in C takes gigabytes when a number in a damaged file is large.
class _Restricted(pickle._Unpickler):
    """Knows the names above and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it asks for objects from elsewhere")


NFS_PICKLE = Reader(NAME, _is_pickle, _nfs_pickle, EXPECTED)
