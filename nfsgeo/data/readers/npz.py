"""``.npz`` archives: gridded fields and point clouds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.numbers import as_real
from nfsgeo.data.readers.clouds import CloudFile, numbered
from nfsgeo.data.readers.gridded import ArrayFile, Field
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["CLOUDS", "GRIDS", "PARAMETER", "SPLIT"]

PARAMETER, SPLIT = "parameter_", "split_"  # how names of such arrays begin
CLOUD_NAMES = ("coords", "offsets", "u", "mask", "a", "t", "names", "static_names")
BOX = ("lower", "upper", "periodic", "facets", "inside", "sphere")
GRID_NAMES = ("u", "mask", *SPACE, "t", "a", *BOX, "about", PARAMETER, SPLIT)


def _members(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def _is_clouds(path: Path) -> bool:
    names = _members(path)
    return {"coords.npy", "u.npy"} <= names and "node_type.npy" not in names


def _clouds(path: Path) -> FieldFile:
    """Points, fields, times and a coefficient, on one mesh or one for each sample.

    ============  ==========================  ==========================================
    array         one mesh for all samples    a mesh for each of N samples
    ============  ==========================  ==========================================
    ``coords``    (points, axes)              (all points, axes), sample after sample
    ``offsets``   left out                    (N + 1), where each sample begins
    ``u``         (N, points, T, C)           (all points, T, C)
    ``mask``      like ``u``, optional        like ``u``, optional
    ``a``         (N, points, C_a), optional  (all points, C_a), optional
    ``t``         (T); dates become seconds   (T), may be left out where T is 1
    ============  ==========================  ==========================================

    Trailing axes of ``u`` and ``a`` of length one may be left out: components first,
    then time steps. ``names`` may name the components, and ``static_names`` those of
    ``a``. A value of ``u`` is missing
    where it is NaN, or ``mask`` true as in a masked array of numpy.
    """
    arrays = _load(path, CLOUD_NAMES)
    coords, ends = arrays["coords"], arrays.get("offsets")
    split = 1 if ends is None else 0  # the axis of the points
    if ends is not None and (
        ends[0] != 0 or ends[-1] != len(coords) or np.any(np.diff(ends) <= 0)
    ):
        raise ValueError("offsets do not run from 0 to the number of points")

    def by_sample(name: str, ndim: int) -> list[NDArray]:
        values = arrays[name]
        if values.ndim <= split or values.shape[split] != len(coords):
            raise ValueError(f"{name} of shape {values.shape} on {len(coords)} points")
        values = values.reshape(*values.shape, *[1] * (ndim + split - values.ndim))
        return list(values) if ends is None else np.split(values, ends[1:-1])

    fields = by_sample("u", 3)
    static = by_sample("a", 2) if "a" in arrays else []
    if static and len(static) != len(fields):
        raise ValueError(f"a of {len(static)} samples and u of {len(fields)}")
    width, wide = fields[0].shape[2], static[0].shape[1] if static else 0
    names = arrays.get("names", ["u"] if width == 1 else np.arange(width))
    return CloudFile(
        path,
        meshes=[coords] * len(fields) if ends is None else np.split(coords, ends[1:-1]),
        u=fields,
        a=static,
        times=arrays.get("t"),
        component_names=[str(name) for name in names],
        static_names=[str(n) for n in arrays.get("static_names", numbered("a", wide))],
    )


def _is_grid(path: Path) -> bool:
    names = _members(path)
    return {"u.npy", "x.npy"} <= names and "coords.npy" not in names


def _grid(path: Path) -> FieldFile:
    """Fields, axes, times and a coefficient; what :func:`~nfsgeo.data.export` writes.

    ===================  =========================================================
    array                content
    ===================  =========================================================
    ``u``                (N, T, X[, Y[, Z]], C); NaN where a value is missing
    ``mask``             like ``u``, optional: true where a value is missing
    ``x``, ``y``, ``z``  coordinates of each axis
    ``t``                (T); dates become seconds; may be left out where T is 1
    ``a``                (N, X[, Y[, Z]], C_a), optional
    ``lower, upper``     (axes), optional: ends of the box, that of the axes if left
                         out; a periodic axis needs its upper end
    ``periodic``         (axes), optional: whether an axis is; none if left out
    ``sphere``           optional, true: the axes are longitude and latitude in degrees
    ``facets, inside``   boundaries of a region, optional: those of
                         :class:`~nfsgeo.geometry.Region`
    ``parameter_NAME``   (N), optional: a scalar of each sample
    ``split_PART``       (n), optional: samples of train, valid and test
    ``about``            JSON text, optional: equation, component_names,
                         static_names, static_role, provenance, known (components
                         and parameters that are known ahead)
    ===================  =========================================================
    """
    arrays = _load(path, GRID_NAMES)
    u, a = arrays["u"], arrays.get("a")
    axes = [arrays[name] for name in SPACE if name in arrays]
    about: dict[str, Any] = json.loads(str(arrays.get("about", "{}")))
    order = SPACE[: len(axes)]
    names = about.get("component_names") or numbered("u", u.shape[-1])
    static = []
    if a is not None:
        given = about.get("static_names") or numbered("a", a.shape[-1])
        static = [Field(a, f"n{order}c", given)]
    lower = arrays.get("lower", [np.min(axis) for axis in axes])
    upper = arrays.get("upper", [np.max(axis) for axis in axes])
    periodic = arrays.get("periodic", [False] * len(axes))
    if np.any(periodic) and "upper" not in arrays:
        raise ValueError("a periodic axis, and no `upper` that tells its period")
    file = ArrayFile(
        path,
        fields=[Field(u, f"nt{order}c", names)],
        axes=axes,
        times=arrays.get("t"),
        domain=Domain.from_dict(
            {k: v for k, v in arrays.items() if k in BOX}
            | {"lower": lower, "upper": upper, "periodic": periodic}
        ),
        static=static,
        static_role=about.get("static_role", "coefficient") if static else None,
        equation=about.get("equation", ""),
        parameters=_named(arrays, PARAMETER),
        provenance=about.get("provenance"),
        split=_named(arrays, SPLIT),
    )
    file.know(about.get("known", []))
    return file


def _load(path: Path, known: tuple[str, ...]) -> dict[str, NDArray]:
    """The arrays of an archive, once none of them would go unread."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    starts = tuple(name for name in known if name.endswith("_"))
    for name in arrays:
        if name not in known and not name.startswith(starts):
            raise UserError(
                f"{path} with an array {name!r}",
                f"no arrays but {', '.join(known)}",
                "rename it or leave it out",
            )
    mask = arrays.pop("mask", None)
    if mask is not None:
        u = arrays["u"]
        if mask.dtype != bool or mask.shape != u.shape:
            raise UserError(
                f"{path} with a mask of type {mask.dtype} and shape {mask.shape}",
                f"bool and {u.shape}, like u, true where a value is missing",
                "repair it or leave it out",
            )
        arrays["u"] = as_real(np.ma.masked_array(u, mask), f"u of {path}", gaps=True)
    return arrays


def _named(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {
        name.removeprefix(start): values
        for name, values in arrays.items()
        if name.startswith(start)
    }


CLOUDS = Reader(
    "point clouds (.npz)",
    _is_clouds,
    _clouds,
    "point clouds (.npz): arrays coords, u and optionally mask, offsets, a, t, names, "
    "static_names",
)
GRIDS = Reader(
    "gridded fields (.npz)",
    _is_grid,
    _grid,
    "gridded fields (.npz): arrays u, x and optionally mask, y, z, t, a, periodic",
)
