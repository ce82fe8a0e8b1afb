"""Arrays of any names and axes, of numpy, MATLAB or HDF5, that somebody describes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.numbers import check_distinct
from nfsgeo.data.readers import mat
from nfsgeo.data.readers.cf import ABOUT, EAST
from nfsgeo.data.readers.columns import LONGITUDE, Columns, bare_name
from nfsgeo.data.readers.netcdf import fields_of
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError

if TYPE_CHECKING:
    import xarray

__all__ = ["ARRAYS"]

# The dimension that each letter of an axis is for; two more letters are for none.
DIMENSIONS = {"n": "sample", "t": "time", "p": "point", "x": "x", "y": "y", "z": "z"}
COMPONENT, COORDINATE = "c", "d"
FIELDS = ("field", "static")
# Letters of the axes of other roles, where none are given.
USUAL = {"points": "pd", "time": "t", "x": "x", "y": "y", "z": "z"}
SHOWN = 8  # arrays, in a message
NUMPY = b"\x93NUMPY"
MATLAB = b"MATLAB 7.3"  # HDF5 with axes in reverse


@dataclass(frozen=True)
class Part:
    """An array, or equispaced coordinates, and what it is.

    Attributes:
        role: ``field``, ``static``, ``points``, ``time``, ``x``, ``y`` or ``z``.
        name: Of the array.
        axes: A letter for each axis, but for further ones of length one.
        shape: Their lengths.
        ends: First and last coordinate, where there is no array.
    """

    role: str
    name: str
    axes: str
    shape: tuple[int, ...] = ()
    ends: tuple[float, float] | None = None


def _are_arrays(path: Path) -> bool:
    return bool(_shapes(path))


def _arrays(path: Path, columns: Columns | None = None) -> FieldFile:
    """Arrays that ``columns`` tells apart; all others are left out.

    ``field=NAME:AXES`` and ``static=NAME:AXES`` have a letter for each axis of the
    array: ``n`` sample, ``t`` time step, ``p`` point of a cloud, ``x``, ``y``, ``z`` of
    a grid, ``c`` component. A static array along ``n`` alone is a parameter.
    ``points=NAME`` are the coordinates of a cloud, of axes ``pd`` unless others are
    given, or ``x=NAME,y=NAME`` one array for each axis; on a grid ``x=NAME`` or,
    where it is equispaced, ``x=FIRST:LAST``. ``time=NAME`` are the times. Further axes
    of length one are dropped.

    Args:
        path: The file.
        columns: Arrays by what they are.

    Raises:
        UserError: Too little is told, or a size contradicts another.
    """
    import xarray

    shapes = _shapes(path)
    if not columns:
        raise UserError(
            f"{path} with the arrays {_listed(shapes)}",
            "a file that tells which of them are fields",
            _example(path),
        )
    parts = [
        _part(path, shapes, role, name)
        for role, names in columns.items()
        for name in ([names] if isinstance(names, str) else names)
    ]
    _check_space(path, parts)
    if any("p" in part.axes for part in parts if part.role in FIELDS):
        parts = [
            replace(part, axes="p") if part.axes == part.role else part
            for part in parts
        ]
    sizes = _sizes(path, parts)
    with ExitStack() as stack:
        read = _read(path, [p.name for p in parts if p.ends is None], stack)
        found = [(p.role, *each) for p in parts for each in _variables(p, read, sizes)]
        check_distinct(path, [name for _, name, _ in found])
        static = [name for role, name, _ in found if role == "static"]
        dataset = xarray.Dataset(
            {name: variable for _, name, variable in found},
            attrs={ABOUT: json.dumps({"static": static})},
        )
        roles = {role: role for role in SPACE if role in dataset.variables}
        roles |= {role: role * (role in dataset.dims) for role in ("sample", "time")}
        file = fields_of(path, dataset, roles)
        dataset.set_close(stack.pop_all().close)
    return file


def _part(
    path: Path, shapes: Mapping[str, tuple[int, ...]], role: str, text: str
) -> Part:
    """What is told as ``ROLE=NAME:AXES``, ``ROLE=NAME`` or ``ROLE=FIRST:LAST``."""
    if role not in (*FIELDS, *USUAL):
        raise UserError(
            f"columns with {role}={text}",
            f"one of {', '.join((*FIELDS, *USUAL))} before the =, for arrays",
            "change it; arrays without a role are left out",
        )
    name, colon, axes = text.rpartition(":")
    if colon and role in SPACE:
        try:
            return Part(role, "", role, ends=(float(name), float(axes)))
        except ValueError:
            pass
    if not colon:
        name, axes = text, USUAL.get(role, "")
    if name not in shapes:
        given = f"no array {name!r} in {path}"
        raise UserError(given, f"one of {_listed(shapes)}", "change the name")
    letters = [*DIMENSIONS, COORDINATE if role == "points" else COMPONENT]
    known = set(axes) <= set(letters) and len(set(axes)) == len(axes) > 0
    kept = _kept(shapes[name], len(axes))
    if not known or len(kept) != len(axes):
        raise UserError(
            f"{role}={text} of shape {list(shapes[name])}",
            f"{role}=NAME:AXES with a letter for each axis, of {', '.join(letters)}",
            _example(path),
        )
    return Part(role, name, axes, tuple(shapes[name][axis] for axis in kept))


def _kept(shape: Sequence[int], num: int) -> list[int]:
    """The first axes of length one, and all others: ``num`` where there are as many."""
    kept = list(range(len(shape)))
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1 and len(kept) > num:
            kept.remove(axis)
    return kept


def _check_space(path: Path, parts: Sequence[Part]) -> None:
    """Makes sure that there are fields, all on a cloud or a grid, and where it is."""
    fields = "".join(part.axes for part in parts if part.role in FIELDS)
    cloud, grid = "p" in fields, [axis for axis in SPACE if axis in fields]
    if cloud == bool(grid) or "field" not in [part.role for part in parts]:
        raise UserError(
            f"{path} with fields of axes {', '.join(fields) or 'none'}",
            "fields along p, the points of a cloud, or along x, y, z of a grid",
            _example(path),
        )
    always = [part for part in parts if part.role == "field" and "t" not in part.axes]
    if always and "t" in fields:
        name, axes = always[0].name, always[0].axes
        raise UserError(
            f"field={name}:{axes} beside arrays along t",
            "t among the axes of every field that is predicted",
            f"say static={name}:{axes} if it never changes",
        )
    given = sorted(part.role for part in parts if part.role in ("points", *SPACE))
    wanted = [["points"], ["x"], ["x", "y"], ["x", "y", "z"]] if cloud else [grid]
    if given not in wanted or (cloud and any(part.ends for part in parts)):
        raise UserError(
            f"{path} with fields on a {'cloud' if cloud else 'grid'} and "
            + (f"coordinates {', '.join(given)}" if given else "no coordinates"),
            "points=NAME, or x=NAME,y=NAME and so on"
            if cloud
            else " and ".join(f"{axis}=NAME or {axis}=FIRST:LAST" for axis in grid),
            "tell which arrays they are, once",
        )


def _sizes(path: Path, parts: Sequence[Part]) -> dict[str, int]:
    """Length of the axes of each letter, the same in all arrays."""
    found: dict[str, tuple[int, str]] = {}
    for part in parts:
        for letter, size in zip(part.axes, part.shape, strict=False):
            other, name = found.setdefault(letter, (size, part.name))
            if size != other and letter in DIMENSIONS:
                raise UserError(
                    f"{path} with axis {letter} of length {size} in {part.name} and "
                    f"{other} in {name}",
                    "one length for each letter",
                    "change the letters, or what is in the file",
                )
    return {letter: size for letter, (size, _) in found.items()}


def _variables(
    part: Part, arrays: Mapping[str, xarray.Variable], sizes: Mapping[str, int]
) -> list[tuple[str, xarray.Variable]]:
    """Name and values of each component of an array."""
    import xarray

    if part.ends is not None:
        values = np.linspace(*part.ends, sizes[part.role])
        return [(part.role, xarray.Variable([part.role], values))]
    array, name = arrays[part.name], part.name.rsplit("/", 1)[-1]
    kept = _kept(array.shape, len(part.axes))
    array = array.isel({d: 0 for i, d in enumerate(array.dims) if i not in kept})
    array = xarray.Variable(list(part.axes), array)
    apart = next((a for a in part.axes if a not in DIMENSIONS), None)
    num = 1 if apart is None else array.sizes[apart]
    if part.role in FIELDS:
        names = [name] if apart is None else [f"{name}_{i}" for i in range(num)]
    else:
        names = [*SPACE[:num]] if part.role == "points" else [part.role]
    each = [array if apart is None else array.isel({apart: i}) for i in range(num)]
    for variable in each:
        variable.dims = [DIMENSIONS[str(letter)] for letter in variable.dims]
    if part.role == "x" and bare_name(name) in LONGITUDE:
        each[0].attrs["units"] = EAST[0]
    return list(zip(names, each, strict=True))


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of each array of numbers in the file."""
    found: dict[str, tuple[int, ...]] = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.shape:
            found[name] = item.shape

    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            file.visititems(add)
        reverse = _start(path, MATLAB)
        return {k: v[::-1] for k, v in found.items()} if reverse else found
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    if name.endswith(".npy"):
                        found[name.removesuffix(".npy")] = _header(member)
        return {name: shape for name, shape in found.items() if shape}
    if _start(path, NUMPY):
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False).shape}
    return mat.shapes(path)


def _header(member: Any) -> tuple[int, ...]:
    """Shape of an array of numbers or dates in an archive; of anything else none."""
    version = np.lib.format.read_magic(member)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    shape, _, dtype = ((), False, np.dtype("V")) if read is None else read(member)
    return shape if dtype.kind in "biufcM" else ()


def _start(path: Path, with_: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(with_)) == with_


def _read(
    path: Path, names: Sequence[str], stack: ExitStack
) -> dict[str, xarray.Variable]:
    """The arrays; those of HDF5 are read when their values are asked for."""
    import xarray

    if h5py.is_hdf5(path):
        found = {}
        for name in names:
            group, _, last = name.rpartition("/")
            dataset = xarray.open_dataset(
                path,
                engine="h5netcdf",
                group=group or None,
                phony_dims="access",
                decode_times=False,
                cache=False,
            )
            variable = stack.enter_context(dataset)[last].variable
            found[name] = variable.T if _start(path, MATLAB) else variable
        return found
    arrays: Any
    if _start(path, NUMPY):
        arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    elif zipfile.is_zipfile(path):
        arrays = stack.enter_context(np.load(path, allow_pickle=False))
    else:
        arrays, _ = mat.load(path, *names)
    each = {name: np.asarray(arrays[name]) for name in names}
    return {
        name: xarray.Variable([f"axis_{i}" for i in range(array.ndim)], array)
        for name, array in each.items()
    }


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    some = [f"{name} {list(shape)}" for name, shape in list(shapes.items())[:SHOWN]]
    return ", ".join(some) + ", ..." * (len(shapes) > SHOWN)


def _example(path: Path) -> str:
    return (
        f"say it: nfsgeo convert {path} --out NAME.h5 --columns "
        "field=ARRAY:npt,points=ARRAY,time=ARRAY, with a letter for each axis: n "
        "sample, t time step, p point of a cloud, or x, y, z of a grid, c component"
    )


ARRAYS = Reader(
    "arrays of any names (.npz, .npy, .mat, .h5)",
    _are_arrays,
    _arrays,
    "arrays of numbers",
    ("columns",),
    ("xarray", "h5netcdf"),
)
