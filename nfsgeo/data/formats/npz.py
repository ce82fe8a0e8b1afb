"""``.npz`` archives of numpy: gridded fields and point clouds, read and written."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.checks import as_real
from nfsgeo.data.disk import check_room, growing
from nfsgeo.data.fields import FIELD, SPACE, STATIC, Fields
from nfsgeo.data.formats.format import Format
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress

ABOUT = "nfsgeo/about"  # no name of a field has a slash
PARAMETER, SPLIT = "parameter_", "split_"  # how names of such arrays begin
BOX = ("lower", "upper", "periodic", "facets", "inside", "sphere")
NAMES = {"u", "mask", "t", "a", "names", "static_names", *BOX}


def _read(path: Path) -> Fields:
    """Fields on a grid of the axes ``x[, y[, z]]``, or at the points ``coords``.

    Fields ``u`` are (N, T, X[, Y[, Z]], C) on a grid and (N, points, T, C) at points,
    or, where ``offsets`` (N + 1) tells where the mesh of each sample begins, (all
    points, T, C); static inputs ``a`` are the same without T. These, times or dates
    ``t``, trailing axes of length one of clouds, and all that follows may be left out.
    ``mask`` is true where ``u`` is none, besides NaN. ``names`` and ``static_names``
    are those of components. ``lower``, ``upper``, ``periodic``, ``sphere``, ``facets``
    and ``inside`` are a :class:`~nfsgeo.geometry.Domain`, ``parameter_NAME`` numbers of
    the samples, ``split_PART`` the samples of a part.
    """
    with np.load(path, allow_pickle=False) as archive:
        arrays: dict[str, Any] = dict(archive.items())
    if ABOUT in arrays:
        return _written(path, arrays)
    named: dict[str, dict[str, Any]] = {PARAMETER: {}, SPLIT: {}}
    cloud = "coords" in arrays
    for name in arrays.keys() - NAMES - ({"coords", "offsets"} if cloud else {*SPACE}):
        start = next((each for each in named if name.startswith(each)), None)
        if start is None:
            raise ValueError(f"array {name!r}, which is none of the format")
        named[start][name.removeprefix(start)] = arrays[name]
    u, a, mask = arrays["u"], arrays.get("a"), arrays.get("mask")
    if mask is not None:
        if mask.dtype != bool or mask.shape != u.shape:
            raise ValueError(f"mask of {mask.dtype} and {mask.shape}, u of {u.shape}")
        u = as_real(np.ma.masked_array(u, mask), f"u of {path}", gaps=True)
    axes = [arrays[name] for name in SPACE if name in arrays]
    letters, mesh = f"nt{SPACE[: len(axes)]}c", dict[str, Any](axes=axes)
    if cloud:
        points, ends = arrays["coords"], arrays.get("offsets")
        if ends is not None and [ends[0], ends[-1]] != [0, len(points)]:
            raise ValueError("offsets do not run from 0 to the number of points")
        letters = "nptc" if ends is None else "ptc"
        u, a = _on(points, u, letters, ends), _on(points, a, letters[:-2] + "c", ends)
        mesh = {"points": points if ends is None else np.split(points, ends[1:-1])}
    fields = [("u", "names", u, letters, FIELD)]
    fields += [("a", "static_names", a, letters.replace("t", ""), STATIC)]
    parts = []
    for letter, key, values, order, role in fields:
        if values is not None:
            names = arrays.get(key, numbered(letter, np.shape(values[0])[-1]))
            parts.append(Array(values, order, list(map(str, names)), role))
    return build(
        path,
        parts,
        **mesh,
        times=arrays.get("t"),
        domain=_domain(arrays, axes),
        parameters=named[PARAMETER],
        split=named[SPLIT],
    )


def _on(points: Any, values: Any, letters: str, ends: Any) -> Any:
    """Values with trailing axes of length one; those of each mesh, if they have own."""
    if values is None:
        return None
    axis = letters.index("p")
    if values.ndim <= axis or values.shape[axis] != len(points):
        raise ValueError(f"values of {values.shape} on {len(points)} points")
    values = values.reshape(*values.shape, *[1] * (len(letters) - values.ndim))
    return values if ends is None else np.split(values, ends[1:-1])


def _domain(arrays: Any, axes: Any) -> Domain | None:
    """The box, its ends those of the axes where one of them is not told."""
    box: dict[str, Any] = {name: arrays[name] for name in BOX if name in arrays}
    if not box:
        return None
    if np.any(box.setdefault("periodic", [False] * len(axes))) and "upper" not in box:
        raise ValueError("a periodic axis, and no `upper` that tells its period")
    for name, end in (("lower", np.min), ("upper", np.max)):
        box.setdefault(name, [end(axis) for axis in axes])
    return Domain.from_dict(box)


def _written(path: Path, arrays: dict[str, Any]) -> Fields:
    about = json.loads(str(arrays[ABOUT]))
    each = {**about["coords"], **about["data_vars"]}
    found = {name: (v["dims"], arrays[name], v["attrs"]) for name, v in each.items()}
    dataset = xarray.Dataset(found, attrs=about["attrs"])
    return Fields(dataset.set_coords([*about["coords"]]), path)


def _write(fields: Fields, out: Path, progress: Progress) -> None:
    """Each variable of the data set, and JSON of their dimensions and attributes."""
    dataset = fields.dataset
    check_room(out, dataset.nbytes)
    about = json.dumps(dataset.to_dict(data=False))
    with growing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        each = {str(name): v.values for name, v in dataset.variables.items()}
        for name, values in (each | {ABOUT: np.array(about)}).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    progress("writing samples", fields.num_samples, fields.num_samples)


NPZ = Format(
    "grids and point clouds of numpy (.npz)",
    lambda look: (
        ABOUT in look.zipped
        or ("u" in look.zipped and not look.zipped.isdisjoint({"coords", "x"}))
    ),
    _read,
    "grids (.npz): arrays u, x[, y[, z]], t, a, mask, periodic, ...; or point clouds: "
    "arrays u, coords, t, a, mask, offsets, names, static_names, ...",
    write=_write,
    endings=(".npz",),
)
