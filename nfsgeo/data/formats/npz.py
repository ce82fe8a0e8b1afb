"""``.npz`` archives of numpy: gridded fields and point clouds, read and written."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.checks import as_real
from nfsgeo.data.disk import check_room, growing
from nfsgeo.data.fields import INITIAL, SPACE, STATIC, Fields
from nfsgeo.data.formats.arrays import read_arrays
from nfsgeo.data.formats.columns import KINDS, Columns
from nfsgeo.data.formats.format import Format, Look
from nfsgeo.data.formats.kinds import with_kinds
from nfsgeo.data.times import dates
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress

__all__ = ["NPZ"]

PARAMETER, SPLIT = "parameter_", "split_"  # how names of such arrays begin
BOX = ("lower", "upper", "periodic", "facets", "inside", "sphere")
COMMON = {"u", "mask", "t", "a", *BOX, "about"}
CLOUD, GRID = COMMON | {"coords", "offsets", "names", "static_names"}, COMMON | {*SPACE}


def _read(path: Path, columns: Columns | None = None) -> Fields:
    """Fields on a grid of the axes ``x[, y[, z]]``, or at the points ``coords``.

    Fields ``u`` are (N, T, X[, Y[, Z]], C) on a grid and (N, points, T, C) at points,
    or, where ``offsets`` (N + 1) tells where the mesh of each sample begins, (all
    points, T, C); static inputs ``a`` are the same without T. These, times or dates
    ``t``, trailing axes of length one of clouds, and all that follows may be left out.
    ``mask`` is true where ``u`` is missing, besides NaN. ``names`` and ``static_names``
    are those of a cloud. ``lower``, ``upper``, ``periodic``, ``sphere``, ``facets`` and
    ``inside`` are a :class:`~nfsgeo.geometry.Domain`, ``parameter_NAME`` are numbers of
    the samples, ``split_PART`` the samples of a part. ``about`` is JSON: equation,
    provenance, component_names, static_names, initial, known, units.
    """
    if set(columns or {}) - set(KINDS):
        return read_arrays(path, columns)
    with np.load(path, allow_pickle=False) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    cloud = "coords" in arrays
    for name in arrays.keys() - (CLOUD if cloud else GRID):
        if not name.startswith((PARAMETER, SPLIT)):
            raise ValueError(f"array {name!r}, which is none of the format")
    u, a, mask = arrays["u"], arrays.get("a"), arrays.get("mask")
    if mask is not None:
        if mask.dtype != bool or mask.shape != u.shape:
            raise ValueError(f"mask of {mask.dtype} and {mask.shape}, u of {u.shape}")
        u = as_real(np.ma.masked_array(u, mask), f"u of {path}", gaps=True)
    about = json.loads(str(arrays.get("about", "{}")))
    axes = [arrays[name] for name in SPACE if name in arrays]
    order, points = SPACE[: len(axes)], None
    if cloud:
        points, u, a = _cloud(arrays, u, a)
    letters = "ptc" if cloud else f"t{order}c"
    ahead = "" if isinstance(u, list) else "n"
    width, wide = (0 if v is None else np.shape(v[0])[-1] for v in (u, a))
    plain = np.arange(width) if cloud and width > 1 else numbered("u", width)
    names = arrays.get("names", about.get("component_names") or plain)
    inputs = about.get("static_names") or numbered("a", wide)
    inputs = arrays.get("static_names", inputs)
    role = INITIAL if about.get("static_role") == INITIAL else STATIC
    parts = [Array(u, ahead + letters, list(map(str, names)))]
    if a is not None:
        letters = letters.replace("t", "")
        parts.append(Array(a, ahead + letters, list(map(str, inputs)), role))
    provenance = about.get("provenance") or {}
    units = provenance.pop("units", {}) | about.get("units", {})
    fields = build(
        path,
        parts,
        axes=None if cloud else axes,
        points=points,
        times=arrays.get("t"),
        domain=_domain(arrays, axes),
        parameters=_named(arrays, PARAMETER),
        equation=about.get("equation", ""),
        provenance=provenance,
        units=units,
        split=_named(arrays, SPLIT),
        known=about.get("known", []),
    )
    for name in about.get("initial", []):
        fields.dataset[name].attrs["role"] = INITIAL
    ask = "component_names" not in about
    return with_kinds(fields, columns, "variable", ask=ask, only=True)


def _cloud(arrays: Any, u: Any, a: Any) -> tuple[Any, Any, Any]:
    """The mesh, and fields and inputs of all samples, or of each on one of its own."""
    coords, ends = arrays["coords"], arrays.get("offsets")
    if ends is not None and [ends[0], ends[-1]] != [0, len(coords)]:
        raise ValueError("offsets do not run from 0 to the number of points")
    split = 1 if ends is None else 0  # the axis of the points
    found: list[Any] = []
    for name, values, ndim in (("u", u, 3 + split), ("a", a, 2 + split)):
        if values is not None:
            if values.ndim <= split or values.shape[split] != len(coords):
                raise ValueError(f"{name} of {values.shape} on {len(coords)} points")
            values = values.reshape(*values.shape, *[1] * (ndim - values.ndim))
            values = values if ends is None else np.split(values, ends[1:-1])
        found.append(values)
    return coords if ends is None else np.split(coords, ends[1:-1]), *found


def _domain(arrays: Any, axes: list[NDArray[Any]]) -> Domain | None:
    """The box, its ends those of the axes where one of them is not told."""
    box: dict[str, Any] = {name: arrays[name] for name in BOX if name in arrays}
    if not box:
        return None
    if np.any(box.setdefault("periodic", [False] * len(axes))) and "upper" not in box:
        raise ValueError("a periodic axis, and no `upper` that tells its period")
    for name, end in (("lower", np.min), ("upper", np.max)):
        box.setdefault(name, [end(axis) for axis in axes])
    return Domain.from_dict(box)


def _named(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    each = arrays.items()
    return {n.removeprefix(start): values for n, values in each if n.startswith(start)}


def _write(fields: Fields, out: Path, progress: Progress) -> None:
    """The arrays that are read, not compressed. Cells of a mesh are left out."""
    total, grid = fields.num_samples, fields.shape
    names = [*fields.component_names, *fields.forcing_names]
    initial = fields._named(INITIAL)
    inputs = [*fields.static_names, *initial]
    arrays: dict[str, Any] = {"t": dates(fields.times, fields.time_unit)}
    one = len(set(fields.sample_mesh)) == 1
    if fields.axes is not None and grid is not None:
        arrays |= dict(zip(SPACE, fields.axes, strict=False))
        ahead, shape = (total, *grid), (total, len(fields.times), *grid, len(names))
    else:
        points = [fields.coordinates(sample) for sample in range(1 if one else total)]
        sizes = [len(each) for each in points]
        arrays |= {"coords": np.concatenate(points), "names": np.array(names)}
        arrays |= {"static_names": np.array(inputs)} if inputs else {}
        arrays |= {} if one else {"offsets": np.cumsum([0, *sizes])}
        ahead = (total, sizes[0]) if one else (sum(sizes),)
        shape = (*ahead, len(fields.times), len(names))
    arrays |= fields.domain.to_dict() if fields.domain_is_known else {}
    arrays |= {PARAMETER + name: values for name, values in fields.parameters.items()}
    arrays |= {SPLIT + name: values for name, values in fields.split.items()}
    about = {"equation": fields.equation, "provenance": fields.provenance}
    about |= {"component_names": names, "static_names": inputs, "initial": initial}
    about |= {"known": [*fields.forcing_names, *fields.scalar_names]}
    arrays["about"] = np.array(json.dumps(about | {"units": fields.units}))
    kind, other = fields._dtype(names), fields._dtype(inputs)
    check_room(out, kind.itemsize * int(np.prod(shape)))

    def values() -> Iterable[NDArray[Any]]:
        for sample in range(total):
            found = fields._read(names, sample, slice(None), None)
            yield found if grid is None else found.swapaxes(0, 1)
            progress("writing samples", sample + 1, total)

    with growing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))
        with archive.open("u.npy", "w", force_zip64=True) as member:
            _stream(member, kind, shape, values())
        if inputs:
            static = (fields._read(inputs, n, slice(0, 1), None) for n in range(total))
            with archive.open("a.npy", "w", force_zip64=True) as member:
                _stream(member, other, (*ahead, len(inputs)), static)


def _stream(member: IO[bytes], kind: Any, shape: Any, parts: Iterable[Any]) -> None:
    """An ``.npy`` without holding it in memory."""
    little = kind.newbyteorder("<")
    header = {"descr": little.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(member, header)
    for part in parts:
        member.write(np.ascontiguousarray(part, little).data)


def _is_npz(look: Look) -> bool:
    there = look.zipped
    return "u" in there and bool({"coords", "x"} & there) and "node_type" not in there


NPZ = Format(
    "grids and point clouds of numpy (.npz)",
    _is_npz,
    _read,
    "grids (.npz): arrays u, x[, y[, z]], t, a, mask, periodic, ...; or point clouds: "
    "arrays u, coords, t, a, mask, offsets, names, static_names, ...",
    ("columns",),
    _write,
    (".npz",),
)
