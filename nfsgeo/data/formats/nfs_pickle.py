"""The NFS authors' data sets, ``dataset_sr128.pkl``, without running what they hold.

A pickle is a program. This one may build dictionaries, numbers, strings and numpy
arrays of numbers; any other name in it is refused before it is looked up, and the
arrays are made from their bytes by the functions below, not by numpy's own hooks.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build, on_unit_box
from nfsgeo.data.fields import INITIAL, STATIC, Fields
from nfsgeo.data.formats.format import Format, left_out, unknown_set


def _nfs_pickle(path: Path) -> Fields:
    """``u`` (samples, x[, y], time steps), ``a`` (samples, x[, y]), on the unit torus.

    With ``x`` of shape (points, axes) or (x, y, axes) they are a point cloud. ``a`` is
    a static input where there is one time step, else the initial condition.
    """
    with path.open("rb") as stream:
        found = _Restricted(stream).load()
    arrays = {key: found[key].values for key in ("u", "a", "x") if key in found}
    u, a, points = arrays["u"], arrays["a"], arrays.get("x")
    space, grid = "p" if points is not None else "xyz"[: a.ndim - 1], u.shape[1:-1]
    axes = {"a": f"n{space}", "u": f"n{space}t"}
    left_out(path, [str(key) for key in found if key not in arrays])
    role, times = (STATIC, [0.0]) if u.shape[-1] == 1 else (INITIAL, None)
    if points is not None:
        flat = points.reshape(-1, points.shape[-1])
        if grid not in (points.shape[:-1], (len(flat),)):
            raise ValueError(f"u {u.shape} does not fit x {points.shape}")
        u, a = u.reshape(len(u), len(flat), -1), a.reshape(len(u), len(flat))
    made = [Array(u, axes["u"], ["u"]), Array(a, axes["a"], ["a"], role)]
    if points is not None:
        return build(path, made, points=flat, times=times)
    if not re.match(r"dataset_sr\d+\.pkl", path.name):
        raise unknown_set(path, {"u": u.shape, "a": a.shape}, axes, "u=u, a=a")
    return on_unit_box(path, made, "", times)


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
    """Knows the names above and no other."""

    def find_class(self, module: str, name: str) -> Any:
        return _ALLOWED[module, name]


NFS_PICKLE = Format(
    "NFS authors' data (.pkl)",
    # PROTO, then (from protocol 4) FRAME, then an empty dictionary.
    lambda look: bool(re.match(rb"\x80[\2-\5](\x95.{8})?}", look.head, re.S)),
    _nfs_pickle,
    "NFS authors' data (.pkl): a dictionary of numpy arrays, no other objects",
)
