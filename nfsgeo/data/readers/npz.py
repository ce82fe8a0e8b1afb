"""Point clouds in ``.npz`` archives."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.clouds import CloudFile
from nfsgeo.errors import UserError

__all__ = ["NAME", "known", "read", "recognise"]

NAME = "point clouds (.npz)"
NAMES = ("coords", "offsets", "u", "a", "t", "names")


def recognise(path: Path) -> bool:
    """An archive with arrays ``coords`` and ``u``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"coords.npy", "u.npy"} <= set(archive.namelist())
    except Exception:  # a damaged file is not recognised, whatever breaks in it
        return False


def read(path: Path) -> FieldFile:
    """Points, fields, times and a coefficient, on one mesh or one for each sample.

    ============  ==========================  ==========================================
    array         one mesh for all samples    a mesh for each of N samples
    ============  ==========================  ==========================================
    ``coords``    (points, axes)              (all points, axes), sample after sample
    ``offsets``   left out                    (N + 1), where each sample begins
    ``u``         (N, points, T, C)           (all points, T, C)
    ``a``         (N, points, C_a), optional  (all points, C_a), optional
    ``t``         (T); dates become seconds   (T), may be left out where T is 1
    ============  ==========================  ==========================================

    Trailing axes of ``u`` and ``a`` of length one may be left out: components first,
    then records. ``names`` may name the components.
    """
    with reading(path, f"{NAME}: arrays coords, u and optionally offsets, a, t, names"):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        coords, u = arrays["coords"], arrays["u"]
        if "offsets" in arrays:
            ends = arrays["offsets"]
            if ends[0] != 0 or ends[-1] != len(coords) or np.any(np.diff(ends) <= 0):
                raise ValueError("offsets do not run from 0 to the number of points")
            cuts = ends[1:-1]
            _fits(u, len(coords), 0, "u")
            meshes, fields = np.split(coords, cuts), np.split(_filled(u, 3), cuts)
            static = np.split(_filled(arrays["a"], 2), cuts) if "a" in arrays else []
            if "a" in arrays:
                _fits(arrays["a"], len(coords), 0, "a")
        else:
            _fits(u, len(coords), 1, "u")
            fields = list(_filled(u, 4))
            meshes = [coords] * len(fields)
            static = list(_filled(arrays["a"], 3)) if "a" in arrays else []
            if "a" in arrays and arrays["a"].shape[:2] != u.shape[:2]:
                raise ValueError(f"a {arrays['a'].shape} does not fit u {u.shape}")
        known(path, arrays, NAMES)
        width = fields[0].shape[2]
        names = arrays.get("names", ["u"] if width == 1 else np.arange(width))
        wide = static[0].shape[1] if static else 0
        return CloudFile(
            path,
            read,
            meshes=meshes,
            u=fields,
            a=static,
            times=arrays.get("t"),
            component_names=[str(name) for name in names],
            static_names=["a"] if wide == 1 else [f"a_{i}" for i in range(wide)],
        )


def known(path: Path, arrays: Iterable[str], names: tuple[str, ...]) -> None:
    """Makes sure that no array of a file goes unread, such as a mask.

    Args:
        path: The file.
        arrays: Names of its arrays.
        names: Those that are read, or how they begin, with a ``_`` at the end.

    Raises:
        UserError: There is another.
    """
    starts = tuple(name for name in names if name.endswith("_"))
    other = [name for name in arrays if name not in names]
    other = [name for name in other if not name.startswith(starts)]
    if other:
        raise UserError(
            f"{path} with an array {other[0]!r}",
            f"no arrays but {', '.join(names)}",
            "rename it or leave it out",
        )


def _fits(values: NDArray, num: int, axis: int, name: str) -> None:
    if values.ndim <= axis or values.shape[axis] != num:
        raise ValueError(f"{name} of shape {values.shape}, not {num} on axis {axis}")


def _filled(values: NDArray, ndim: int) -> NDArray:
    """With the axes that were left out at the end."""
    return values.reshape(*values.shape, *[1] * (ndim - values.ndim))
