"""Gridded fields in ``.npz`` archives."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.fields import FieldFile, reading
from nfsgeo.data.readers.gridded import SPACE, ArrayFile, Field
from nfsgeo.data.readers.npz import known
from nfsgeo.geometry import Domain

__all__ = ["NAME", "PARAMETER", "SPLIT", "read", "recognise"]

NAME = "gridded fields (.npz)"
PARAMETER, SPLIT = "parameter_", "split_"  # how names of such arrays begin
BOX = ("lower", "upper", "periodic")
NAMES = ("u", *SPACE, "t", "a", *BOX, "about", PARAMETER, SPLIT)


def recognise(path: Path) -> bool:
    """An archive with arrays ``u`` and ``x`` and no ``coords``."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except Exception:  # a damaged file is not recognised, whatever breaks in it
        return False
    return {"u.npy", "x.npy"} <= names and "coords.npy" not in names


def read(path: Path) -> FieldFile:
    """Fields, axes, times and a coefficient; what :func:`~nfsgeo.data.export` writes.

    ===================  =========================================================
    array                content
    ===================  =========================================================
    ``u``                (N, T, X[, Y[, Z]], C)
    ``x``, ``y``, ``z``  coordinates of each axis
    ``t``                (T); dates become seconds; may be left out where T is 1
    ``a``                (N, X[, Y[, Z]], C_a), optional
    ``lower, upper``     (axes), optional: ends of the box, that of the axes if left
                         out; a periodic axis needs its upper end
    ``periodic``         (axes), optional: whether an axis is; none if left out
    ``parameter_NAME``   (N), optional: a scalar of each sample
    ``split_PART``       (n), optional: samples of train, valid and test
    ``about``            JSON text, optional: equation, component_names,
                         static_names, static_role, provenance
    ===================  =========================================================
    """
    with reading(path, f"{NAME}: arrays u, x and optionally y, z, t, a, periodic"):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        known(path, arrays, NAMES)
        u, a = arrays["u"], arrays.get("a")
        axes = [arrays[name] for name in SPACE if name in arrays]
        about: dict[str, Any] = json.loads(str(arrays.get("about", "{}")))
        order = SPACE[: len(axes)]
        names = about.get("component_names") or _numbered("u", u.shape[-1])
        static = []
        if a is not None:
            given = about.get("static_names") or _numbered("a", a.shape[-1])
            static = [Field(a, f"n{order}c", given)]
        return ArrayFile(
            path,
            read,
            fields=[Field(u, f"nt{order}c", names)],
            axes=axes,
            times=arrays.get("t"),
            domain=_domain(arrays, axes),
            static=static,
            static_role=about.get("static_role", "coefficient") if static else None,
            equation=about.get("equation", ""),
            parameters=_named(arrays, PARAMETER),
            provenance=about.get("provenance"),
            split=_named(arrays, SPLIT),
        )


def _domain(arrays: dict[str, Any], axes: list[Any]) -> Domain:
    lower = arrays.get("lower", [np.min(axis) for axis in axes])
    upper = arrays.get("upper", [np.max(axis) for axis in axes])
    periodic = arrays.get("periodic", [False] * len(axes))
    if np.any(periodic) and "upper" not in arrays:
        raise ValueError("a periodic axis, and no `upper` that tells its period")
    return Domain(
        tuple(map(float, lower)), tuple(map(float, upper)), tuple(map(bool, periodic))
    )


def _numbered(name: str, num: int) -> list[str]:
    return [name] if num == 1 else [f"{name}_{i}" for i in range(num)]


def _named(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {
        name.removeprefix(start): values
        for name, values in arrays.items()
        if name.startswith(start)
    }
