"""Arrays of any names and axes, in any container, as a user describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xarray import Variable

from nfsgeo.data.conventions import FIELD, SPACE, STATIC, listed, role_of
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import arrays_of, unit_of
from nfsgeo.data.io.cf_times import times_of
from nfsgeo.data.io.format import Format
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.matlab_files import is_matlab, no_numbers
from nfsgeo.data.io.odd_arrays import about_odd_arrays, describe, odd_arrays
from nfsgeo.data.io.roles import Columns, mark_longitude
from nfsgeo.data.lazy import flattened
from nfsgeo.errors import UserError, option

__all__ = ["ARRAYS", "fit_arrays"]

LETTERS, COMPONENT, COORDINATE = "ntpxyz", "c", "d"
DIMS = {"n": "sample", "t": "time", "p": "point"}
PLACES = ("points", *SPACE)
WEIGHTS = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
ONE_MORE = "t-coordinate"
KINDS = (FIELD, STATIC)  # also what ``columns`` calls them
# Letters of the axes of other roles, where none are given.
USUAL = {"points": "pd", "time": "t", "x": "x", "y": "y", "z": "z"}


class _Part(NamedTuple):
    """Values along letters, or ends of equispaced coordinates, and their role."""

    role: str
    name: str
    values: Any
    path: str = ""  # name with those of groups or structs that the array is in

    @property
    def axes(self) -> str:
        coded = isinstance(self.values, Variable)
        return "".join(map(str, self.values.dims)) if coded else ""


def _read(path: Path, columns: Columns | None = None) -> Fields:
    """Read arrays whose names and axes ``--columns`` tells.

    All others are left out, see :func:`nfsgeo.data.open`. A static array along ``n``
    alone, or a number, is an input that has one value in a sample. ``points`` are of
    axes ``pd`` unless others are given; an equispaced axis of a grid is
    ``x=FIRST:LAST``. Where coordinates have several axes of a grid, its nodes are
    points, unless the coordinates are those of an outer product. Further axes of
    length one are dropped.
    """
    stored = arrays_of(path, numbers=True)
    if not columns:
        given = f"{path} with the arrays {_listed(stored)}"
        if odd := [describe(*item) for item in odd_arrays(path).items()]:
            given += f", besides {listed(odd)}, which are no arrays of numbers"
        last = {name.rpartition(".")[2] for name in stored}
        if len(stored) > 1 and last <= WEIGHTS:
            given += ", which are weights of a model"
            raise UserError(given, "a file of fields", "name the file of the data")
        _check_groups(path, stored)
        expected = "to be told the fields, their coordinates, the domain and the times"
        raise UserError(given, expected, _say(_likely(stored)))
    lists = {role: [v] if isinstance(v, str) else v for role, v in columns.items()}
    grid = _grid_of(lists.get(FIELD, ()))
    named = [(role, name) for role in lists for name in lists[role]]
    parts = [_part(path, stored, role, name, grid) for role, name in named]
    parts = _placed(path, [_within_steps(part, parts) for part in parts])
    _check_axes(path, parts)
    sizes = _sizes(path, parts)
    variables, parameters = dict[str, Any](), dict[str, Any]()
    other, units = dict[str, Variable](), dict[str, str]()
    short = [part.name for part in parts if part.role in KINDS]
    for role, name, values, array in parts:
        if role not in KINDS:
            if not isinstance(values, Variable):
                values = Variable(role, np.linspace(values[0], values[1], sizes[role]))
            other[role] = values
            continue
        name = array.replace("/", ".") if short.count(name) > 1 else name
        name = f"{role}_{name}" if name in USUAL else name  # which a coordinate has
        dims = tuple(DIMS.get(str(letter), letter) for letter in values.dims)
        names = [name]
        if COMPONENT in dims:
            names = [f"{name}_{i}" for i in range(values.sizes[COMPONENT])]
        units |= dict.fromkeys(names, unit_of(values.attrs))
        if role == STATIC and {*dims} <= {"sample", COMPONENT}:
            # One number of a file is that of all of its samples.
            numbers = values.set_dims({"n": sizes.get("n", 1)} | dict(values.sizes))
            numbers = numbers.transpose(..., "n").values.reshape(len(names), -1)
            parameters |= dict(zip(names, numbers, strict=True))
        else:
            attrs = {"role": role, "components": names}
            variables[f"{role}={name}"] = dims, values, attrs
    space = {axis: other[axis] for axis in SPACE if axis in other}
    if "points" in other:
        points = other["points"].transpose("n", "p", COORDINATE, missing_dims="ignore")
        space = {a: points[..., i] for i, a in enumerate(SPACE[: points.shape[-1]])}
    if "p" in sizes:
        along = ("sample", "point")
        space = {a: Variable(along[2 - v.ndim :], v, v.attrs) for a, v in space.items()}
    time: Any = (None,)
    if "time" in other:
        time = times_of(path, other["time"])
    coordinates = {**space, "time": ("time", *time)}
    fields = to_fields(path, variables, coordinates, parameters=parameters, units=units)
    fields = fields.with_known(parameters)
    return mark_longitude(fields, "".join(p.name for p in parts if p.role == "x"))


def fit_arrays(path: Path, columns: Columns) -> bool:
    """Return whether a file has the arrays of ``columns``, with a letter for each axis.

    Coordinates and times need not fit; a message says what is wrong with them.
    """
    named = [text for text in np.ravel(columns.get(FIELD, [])) if ":" in text]
    try:
        stored = arrays_of(path, numbers=True) if named else {}
    except ValueError:  # another object than a dictionary of arrays
        return False
    with suppress(UserError):  # of an array that is not there, or has other axes
        return bool([_part(path, stored, FIELD, text) for text in named])
    return False


def _check_groups(path: Path, stored: Mapping[str, Variable]) -> None:
    """Raise a UserError if several groups of HDF5 have arrays of the same names."""
    groups = dict[str, dict[str, Variable]]()
    for name, values in stored.items():
        group, _, bare = name.rpartition("/")
        groups.setdefault(group, {})[bare] = values
    first = next(iter(groups.values()), {})
    alike = all({*arrays} == {*first} for arrays in groups.values())
    if len(groups) < 2 or not alike or any("/" in group for group in groups):
        return
    given = f"{path} with the groups {listed([*groups])}, each with {_listed(first)}"
    save = "numpy.savez(f'groups/{k}.npz', **{n: v[()] for n, v in g.items()})"
    todo = "write a file for each, in Python: os.mkdir('groups'); "
    todo += f"[{save} for k, g in h5py.File({str(path)!r}).items()]; "
    say = _likely(first) or "field=ARRAY:pt,points=ARRAY"
    columns = dict(pair.split("=") for pair in say.split(","))
    todo += f"nfsgeo.open('groups', series='samples', columns={columns})"
    todo += ".write('groups.nc')"
    raise UserError(given, "arrays along an axis of samples, or a file for each", todo)


def _grid_of(texts: Sequence[str]) -> str:
    """The letters of the grid of the first field, in its order."""
    letters = texts[0].rpartition(":")[2] if len(texts) else ""
    return "".join(letter for letter in letters if letter in SPACE)


def _part(
    path: Path, stored: Mapping[str, Variable], role: str, text: str, grid: str = ""
) -> _Part:
    """Parse ``ROLE=NAME:AXES``, ``ROLE=NAME`` or ``ROLE=FIRST:LAST``.

    Coordinates of as many axes as the ``grid`` of the fields have its letters.
    """
    if role not in (*KINDS, *USUAL):
        expected = f"one of {', '.join((*KINDS, *USUAL))} before the =, for arrays"
        todo = "change it; arrays without a role are left out"
        raise UserError(f"columns with {role}={text}", expected, todo)
    name, colon, axes = text.rpartition(":")
    if colon and role in SPACE:
        with suppress(ValueError):
            return _Part(role, role, (float(name), float(axes)))
    if not colon:
        name, axes = text, USUAL.get(role, "")
    matlab = is_matlab(path)
    if name not in stored and matlab:
        name = name.replace("/", ".")  # as in HDF5
    if name not in stored:
        if matlab and (error := no_numbers(path, name)):
            raise error
        if error := about_odd_arrays(path, name):
            raise error
        given = f"no array {name!r} in {path}"
        raise UserError(given, f"one of {_listed(stored)}", "change the name")
    wide = [num for num in stored[name].shape if num > 1]
    usual = grid + COORDINATE * (role == "points")
    if not colon and role in PLACES and len(grid) > 1:
        axes = usual if len(wide) == len(usual) else axes
    values, letters = stored[name], LETTERS + "cd"[role == "points"]
    for dim in reversed(values.dims):  # MATLAB has no arrays of one axis
        if values.ndim > len(axes) and values.sizes[dim] == 1:
            values = values.isel({dim: 0})
    number = role == STATIC and not values.ndim and axes in ("", "n")
    axes = "" if number else axes
    fits = {*axes} <= {*letters} and len({*axes}) == len(axes) >= (not number)
    if not fits or values.ndim != len(axes):
        given = f"{role}={text} of shape {list(stored[name].shape)}"
        expected = f"{role}=NAME:AXES with a letter for each axis, of "
        raise UserError(given, expected + ", ".join(letters), _say())
    labelled = Variable([*axes], values, values.attrs)
    return _Part(role, name.rpartition("." if matlab else "/")[2], labelled, name)


def _within_steps(part: _Part, parts: Sequence[_Part]) -> _Part:
    """Times without the last one of PDEBench, which has one more than time steps."""
    steps = {p.values.sizes["t"] for p in parts if p.role in KINDS and "t" in p.axes}
    if part.name != ONE_MORE or steps != {part.values.size - 1}:
        return part
    return part._replace(values=part.values[:-1])


def _placed(path: Path, parts: list[_Part]) -> list[_Part]:
    """The parts along points, if coordinates have several axes of a grid, or along the
    axes of the grid of which they are an outer product, as numpy's meshgrid makes them.
    """
    at = [part for part in parts if part.role in PLACES and part.axes]
    grid = next((part.axes for part in parts if part.role == FIELD), "")
    grid = "".join(letter for letter in grid if letter in SPACE)
    several = any(len({*part.axes} & {*grid}) > 1 for part in at)
    if not several or any({*part.axes} - {*grid, "n", COORDINATE} for part in at):
        return parts
    sizes = _sizes(path, parts)
    axes = _axes_of(at, grid)
    dims = {letter: sizes[letter] for letter in grid}
    placed = []
    for part in parts:
        values = part.values
        if part.role in SPACE and part.axes and axes:
            (letter,) = (a for a in grid if axes[a] == part.role)
            others = {a: 0 for a in grid if a != letter}
            values = values.isel(others, missing_dims="ignore")
        if axes and part.axes:
            values = values.copy(deep=False)
            values.dims = [axes.get(str(dim), dim) for dim in values.dims]
        elif {*part.axes} & {*grid}:
            ahead = {d: n for d, n in values.sizes.items() if d not in dims}
            values = flattened(values, ahead, dims, "p")
        placed.append(part._replace(values=values))
    return placed


def _axes_of(at: Sequence[_Part], grid: str) -> dict[str, str] | None:
    """The axis of space that each letter of a grid is, if coordinates rise along one
    letter and are the same along all others; None if not.
    """
    axes = dict[str, str]()
    for part in at:
        values = Variable([*part.axes], part.values.values)
        moving = [a for a in part.axes if not (values == values.isel({a: 0})).all()]
        line = values.isel({a: 0 for a in part.axes if a not in moving}).values
        rises = line.ndim == 1 and (np.diff(line) > 0).all()
        if part.role not in SPACE or not rises or moving[0] not in grid:
            return None
        axes[moving[0]] = part.role
    return axes if len(axes) == len(grid) == len(at) else None


def _check_axes(path: Path, parts: Sequence[_Part]) -> None:
    """Check that users tell the points of the fields, and their times."""
    axes = {axis for part in parts if part.role in KINDS for axis in part.axes}
    fields = [part for part in parts if part.role == FIELD]
    timed = [part for part in fields if "t" in part.axes]
    cloud, grid = "p" in axes, [axis for axis in SPACE if axis in axes]
    mesh = sorted(part.role for part in parts if part.role in PLACES)
    allowed = [["points"], ["x"], ["x", "y"], ["x", "y", "z"]] if cloud else [grid]
    fine = cloud != bool(grid) and mesh in allowed and timed in ([], fields)
    ends = [part for part in parts if part.role in SPACE and not part.axes]
    own = {"n", "p", COORDINATE}
    places = [part for part in parts if part.role in PLACES]
    fine &= all({*p.axes} <= (own if cloud else {p.role}) for p in places)
    if not (fine and fields) or (cloud and ends):
        described = [
            f"{part.role}={part.name}:{part.axes}".rstrip(":") for part in parts
        ]
        raise UserError(
            f"{path} with {', '.join(described)}",
            "fields along p, points of a cloud, and points=NAME or x=NAME,y=NAME; or "
            "along x, y, z of a grid, and x=NAME or x=FIRST:LAST; all along t, or none",
            "tell axes and coordinates, and static=NAME:AXES of what never changes",
        )


def _sizes(path: Path, parts: Sequence[_Part]) -> dict[str, int]:
    """Return the size of each axis by its letter, in which all arrays agree."""
    sizes, owners = dict[str, int](), dict[str, str]()
    for part in sorted(parts, key=lambda part: part.role in KINDS):
        own = dict(zip(part.axes, part.values.shape, strict=True)) if part.axes else {}
        shared = sizes.keys() - {COMPONENT}
        for axis in (a for a in own if a in shared and own[a] != sizes[a]):
            todo = "correct the letters of its axes, or the arrays"
            for order in permutations(own):
                pairs = zip(order, own.values(), strict=True)
                if all(a not in shared or sizes[a] == num for a, num in pairs):
                    todo = f"try {part.role}={part.name}:{''.join(order)}"
                    break
            dim = f"conflicting sizes for dimension {DIMS.get(axis, axis)!r}"
            given = f"{path} with {dim}: {axis} of {part.name} has {own[axis]}"
            given += f" values, of {owners[axis]} {sizes[axis]}"
            raise UserError(given, "one size of each axis", todo)
        sizes, owners = sizes | own, dict.fromkeys(own, part.name) | owners
    return sizes


def _likely(stored: Mapping[str, Variable]) -> str:
    """Return columns for a cloud whose sizes leave nothing else, or else ""."""
    shapes = {k: [n for n in v.shape if n > 1] for k, v in stored.items()}
    if likely := _likely_grid(shapes):
        return likely
    field = max(shapes, key=lambda name: len(shapes[name]), default="")
    shape = shapes.pop(field, [])
    points = [k for k, s in shapes.items() if len(s) == 2 and s[1] <= 3]
    times = [k for k, s in shapes.items() if len(s) == 1]
    if not len(points) == len(times) == 1:
        return ""
    known = {shapes[points[0]][0]: "p", shapes[times[0]][0]: "t"}
    rest = iter("nc")
    letters = "".join(known.get(n) or next(rest, "n") for n in shape)
    if len({*letters}) < len(letters) or not {"p", "t"} <= {*letters}:
        return ""
    return f"field={field}:{letters},points={points[0]},time={times[0]}"


def _likely_grid(shapes: Mapping[str, list[int]]) -> str:
    """Return columns for a field at coordinates of several axes, or else ""."""
    axes = {role_of(n): n for n, shape in shapes.items() if len(shape) > 1}
    at = {axis: axes[axis] for axis in SPACE if axis in axes}
    others = [n for n in shapes if n not in at.values()]
    field = max(others, key=lambda name: len(shapes[name]), default="")
    times = [n for n in others if len(shapes[n]) == 1]
    if {"x", "y"} - {*at} or len({(*shapes[n],) for n in at.values()}) > 1:
        return ""
    shape, mesh = shapes.get(field, []), shapes[at["x"]]
    letters = dict(enumerate("zyx"[-len(mesh) :] if len(mesh) < 4 else ""))
    starts = [i for i in range(len(shape)) if shape[i : i + len(mesh)] == mesh]
    if len(starts) != 1 or not letters or len(times) > 1:
        return ""
    known, rest = {shapes[n][0]: "t" for n in times}, iter("nc")
    behind = starts[0] + len(mesh)
    found = [known.get(n) or next(rest, "n") for n in shape[: starts[0]]]
    found += letters.values()
    found += [known.get(n) or next(rest, "n") for n in shape[behind:]]
    if len({*found}) < len(found) or (times and "t" not in found):
        return ""
    where = [f"{axis}={name}" for axis, name in at.items()]
    where += [f"time={name}" for name in times]
    return ",".join([f"field={field}:{''.join(found)}", *where])


def _listed(stored: Mapping[str, Variable]) -> str:
    return listed([f"{name} {list(values.shape)}" for name, values in stored.items()])


def _say(likely: str = "") -> str:
    answer = option("columns", "field=ARRAY:npt,points=ARRAY,time=ARRAY")
    first = f"{option('columns', likely)}, or else " if likely else ""
    return (
        f"say it: {first}{answer}, with a letter for each axis: n sample, "
        "t time step, p point of a cloud, c component; on a grid x, y, z in "
        "place of p, and x=FIRST:LAST or x=ARRAY and so on in place of points"
    )


ARRAYS = Format(
    "arrays of any names (.npz, .npy, .mat, .h5, .pt, .pkl)",
    lambda probe: bool(probe.shapes),
    _read,
    "arrays of numbers",
    "axes",
)
