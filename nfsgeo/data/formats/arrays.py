"""Arrays of any names and axes, in any container, that somebody describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Variable

from nfsgeo.data.build import Array, build
from nfsgeo.data.fields import FIELD, SPACE, STATIC, Fields
from nfsgeo.data.formats.columns import Columns, listed, mark_longitude
from nfsgeo.data.formats.containers import arrays_of
from nfsgeo.data.formats.format import Format
from nfsgeo.errors import UserError

__all__ = ["ARRAYS", "read_arrays"]

LETTERS, COMPONENT, COORDINATE = "ntpxyz", "c", "d"
KINDS = (FIELD, STATIC)  # also what ``columns`` calls them
# Letters of the axes of other roles, where none are given.
USUAL = {"points": "pd", "time": "t", "x": "x", "y": "y", "z": "z"}
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Part:
    """An array that has a role, and a letter for each of its axes that is kept; or the
    first and last of equispaced coordinates.
    """

    role: str
    name: str
    axes: str
    shape: tuple[int, ...] = ()
    ends: tuple[float, float] | None = None

    @property
    def last_name(self) -> str:
        return self.name.rsplit("/", 1)[-1]


def read_arrays(path: Path, columns: Columns | None = None) -> Fields:
    """Arrays that ``columns`` tells apart; all others are left out.

    ``field=NAME:AXES`` and ``static=NAME:AXES`` have a letter for each axis of the
    array: ``n`` sample, ``t`` time step, ``p`` point of a cloud, ``x``, ``y``, ``z`` of
    a grid, ``c`` component. A static array along ``n`` alone is a parameter.
    ``points=NAME`` are the coordinates of a cloud, of axes ``pd`` unless others are
    given, or ``x=NAME,y=NAME`` one array for each axis; on a grid ``x=NAME`` or,
    where it is equispaced, ``x=FIRST:LAST``. ``time=NAME`` are the times. Further axes
    of length one are dropped.
    """
    found = arrays_of(path)
    there = {name: each.shape for name, each in found.items()}
    if not columns:
        given = f"{path} with the arrays {_listed(there)}"
        wanted = "to be told the fields, their coordinates, the domain and the times"
        raise UserError(given, wanted, _say(path))
    parts = [
        _part(path, there, role, name)
        for role, names in columns.items()
        for name in ([names] if isinstance(names, str) else names)
    ]
    cloud = _is_cloud(path, parts)
    sizes: dict[str, int] = {}
    for part in parts:
        sizes |= zip(part.axes, part.shape, strict=False)
    arrays, parameters = list[Array](), dict[str, Any]()
    other: dict[str, Any] = {}
    for part in parts:
        if part.ends is not None:
            other[part.role] = np.linspace(*part.ends, sizes[part.role])
            continue
        values, kept = found[part.name], _kept(there[part.name], len(part.axes))
        values = values.isel({d: 0 for i, d in enumerate(values.dims) if i not in kept})
        values = Variable(list(part.axes), values)
        names = [part.last_name]
        if names[0] in USUAL:  # a coordinate has the name
            names = [f"{part.role}_{names[0]}"]
        if COMPONENT in part.axes:
            names = [f"{names[0]}_{i}" for i in range(values.sizes[COMPONENT])]
        if part.role not in KINDS:
            other[part.role] = values if part.role == "points" else values.values
        elif part.role == STATIC and set(part.axes) <= {"n", COMPONENT}:
            each = values.transpose(..., "n").values.reshape(len(names), -1)
            parameters |= dict(zip(names, each, strict=True))
        else:
            arrays.append(Array(values, part.axes, names, part.role))
    times = other.pop("time", None)
    mesh: dict[str, Any] = {"axes": [other[axis] for axis in SPACE if axis in other]}
    if "points" in other:
        points = other["points"].transpose("n", "p", COORDINATE, missing_dims="ignore")
        dims = ["sample", "point"][3 - points.ndim :]
        places = zip(SPACE, range(points.shape[-1]), strict=False)
        mesh = {"points": {axis: Variable(dims, points[..., i]) for axis, i in places}}
    elif cloud:
        mesh = {"points": {a: Variable("point", other[a]) for a in SPACE if a in other}}
    fields = build(path, arrays, times=times, parameters=parameters, **mesh)
    return mark_longitude(fields, "".join(p.last_name for p in parts if p.role == "x"))


def _part(path: Path, there: Shapes, role: str, text: str) -> _Part:
    """What is told as ``ROLE=NAME:AXES``, ``ROLE=NAME`` or ``ROLE=FIRST:LAST``."""
    if role not in (*KINDS, *USUAL):
        expected = f"one of {', '.join((*KINDS, *USUAL))} before the =, for arrays"
        todo = "change it; arrays without a role are left out"
        raise UserError(f"columns with {role}={text}", expected, todo)
    name, colon, axes = text.rpartition(":")
    if colon and role in SPACE:
        with suppress(ValueError):
            return _Part(role, "", role, ends=(float(name), float(axes)))
    if not colon:
        name, axes = text, USUAL.get(role, "")
    if name not in there:
        given = f"no array {name!r} in {path}"
        raise UserError(given, f"one of {_listed(there)}", "change the name")
    letters = LETTERS + (COORDINATE if role == "points" else COMPONENT)
    kept = _kept(there[name], len(axes))
    known = set(axes) <= set(letters) and len(set(axes)) == len(axes) > 0
    if not known or len(kept) != len(axes):
        given = f"{role}={text} of shape {list(there[name])}"
        told = f"{role}=NAME:AXES with a letter for each axis, of {', '.join(letters)}"
        raise UserError(given, told, _say(path))
    return _Part(role, name, axes, tuple(there[name][axis] for axis in kept))


def _kept(shape: Sequence[int], num: int) -> list[int]:
    """The first axes of length one, and all others: ``num`` where there are as many."""
    kept = list(range(len(shape)))
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1 and len(kept) > num:
            kept.remove(axis)
    return kept


def _is_cloud(path: Path, parts: Sequence[_Part]) -> bool:
    """Whether fields are at points; makes sure that it is told where, and when."""
    given = [part for part in parts if part.role in KINDS]
    axes = {axis for part in given for axis in part.axes}
    timed = [part for part in given if part.role == FIELD and "t" in part.axes]
    fields = [part for part in given if part.role == FIELD]
    cloud, grid = "p" in axes, [axis for axis in SPACE if axis in axes]
    mesh = sorted(part.role for part in parts if part.role in ("points", *SPACE))
    wanted = [["points"], ["x"], ["x", "y"], ["x", "y", "z"]] if cloud else [grid]
    fine = cloud != bool(grid) and mesh in wanted and timed in ([], fields)
    if not (fine and fields) or (cloud and any(part.ends for part in parts)):
        told = [f"{part.role}={part.name}:{part.axes}".rstrip(":") for part in parts]
        raise UserError(
            f"{path} with {', '.join(told)}",
            "fields along p, points of a cloud, and points=NAME or x=NAME,y=NAME; or "
            "along x, y, z of a grid, and x=NAME or x=FIRST:LAST; all along t, or none",
            "tell axes and coordinates, and static=NAME:AXES of what never changes",
        )
    return cloud


def _listed(there: Shapes) -> str:
    return listed([f"{name} {list(shape)}" for name, shape in there.items()])


def _say(path: Path) -> str:
    return (
        f"say it: nfsgeo convert {path} --out NAME.nc --columns "
        "field=ARRAY:npt,points=ARRAY,time=ARRAY, with a letter for each axis: n "
        "sample, t time step, p point of a cloud, c component; on a grid x, y, z in "
        "place of p, and x=FIRST:LAST or x=ARRAY and so on in place of points"
    )


ARRAYS = Format(
    "arrays of any names (.npz, .npy, .mat, .h5, .pt, .pkl)",
    lambda look: bool(look.shapes),
    read_arrays,
    "arrays of numbers",
    ("columns",),
    "axes",
)
