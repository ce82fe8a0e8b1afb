"""Points at which to predict, from a file or an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import nfsgeo.data
from nfsgeo.data.checks import as_real, not_infinite, reading
from nfsgeo.data.conventions import (
    SPACE,
    STATIONS,
    Doubles,
    axis_unit,
    bare_name,
    field_name,
    length_of,
)
from nfsgeo.data.flat_axes import HEIGHTS, has_extent
from nfsgeo.data.io.frames import values_of
from nfsgeo.data.io.meshes import is_mesh, points_and_arrays
from nfsgeo.data.io.table_heads import SPACES, first_lines, is_number
from nfsgeo.data.io.table_wide import point_table
from nfsgeo.data.other_files import check_source
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["QueryPoints", "query_points_of", "read_points"]


def read_points(path: Path, domain: Domain) -> Doubles:
    """Read the coordinates of query points ``[M, d]``.

    Points that are up to one period outside along a periodic axis are brought back.

    Args:
        path: An ``.npy`` file, an ``.npz`` file (its only array, or ``pos``), a
            ``.csv`` or ``.tsv`` file (one column per axis, in any order if the first
            line names them, and perhaps one of names of the points), a mesh, or another
            file of data of one sample.
        domain: The domain that holds them.

    Raises:
        UserError: The file cannot be read, or a point is not finite or lies outside the
            domain.
    """
    return np.asarray(query_points_of(path, domain).pos)


class QueryPoints(NamedTuple):
    """Points at which to predict.

    Attributes:
        pos: Coordinates ``[M, d]``.
        names: Their names, none where a file has none.
        static: Static inputs at the points by name, each ``[M]``, NaN where unknown.
        units: Units of the axes by name, as far as a file tells them.
        array: Name of the array of the coordinates in an archive.
    """

    pos: Any
    names: list[str]
    static: Mapping[str, Any]
    units: Mapping[str, str] = MappingProxyType({})
    array: str = ""


def query_points_of(
    source: Path | str | Doubles | Tensor,
    domain: Domain,
    static: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
) -> QueryPoints:
    """Read query points with their names and static inputs.

    Args:
        source: A file as for :func:`read_points`, or an array or tensor ``[M, d]``.
        domain: The domain that holds them.
        static: Names of the static inputs that a table or an archive may have.
        units: Units of the axes of the domain by name, as far as they are known.

    Raises:
        UserError: Points cannot be read, have other units or lie outside the domain, or
            a static input cannot be used.
    """
    table = partial(_table, dim=domain.dim)
    readers: dict[str, Callable[[Path, Sequence[str]], QueryPoints]]
    readers = {".npy": _numpy, ".npz": _numpy, ".csv": table, ".tsv": table}
    memory = not isinstance(source, str | PathLike)
    what = "query_pos" if memory else f"{source}"
    rows = f"an array of points, one row of {domain.dim} coordinates for each"
    todo = "correct it" if memory else "correct the file"
    with reading(what, rows, todo):
        if not isinstance(source, str | PathLike):
            content = QueryPoints(source, [], {})
        elif (path := Path(source)).suffix in readers and path.is_file():
            content = readers[path.suffix](path, static)
        elif path.exists():
            content = _other(path, domain, static)
        else:
            expected = "an existing file: .npy, .npz, .csv, or of a format of data"
            raise UserError(what, expected, "check the name")
        given = f"array {content.array} of {what}" if content.array else what
        points = as_real(content.pos, given).astype(np.float64)
        if points.ndim == 2 and len(points) and points.shape[1] > domain.dim:
            points = points[:, has_extent(points)]  # of a plane mesh in space
        if points.ndim != 2 or points.shape[1] != domain.dim or not len(points):
            raise UserError(f"{given} of shape {(*np.shape(content.pos),)}", rows, todo)
        values = {}
        for name, column in content.static.items():
            called = f"static input {name} of {what}"
            values[name] = not_infinite(as_real(column, called, gaps=True), called)
            if (shape := values[name].shape) != (len(points),):
                expected = f"{(len(points),)}, one value for each point"
                came = f"{what} with the static input {name} of shape {shape}"
                raise UserError(came, expected, todo)
    _check_units(what, content.units, units or {})
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise UserError(
            f"{given} with {len(wrong)} of {len(points)} points not finite, the first "
            f"is number {wrong[0]} at {points[wrong[0]].tolist()}",
            "finite coordinates",
            "correct them, or leave these points out",
        )
    points = domain.wrap_near(torch.from_numpy(points)).numpy()
    inside = ((points >= domain.lower) & (points <= domain.upper)).all(axis=1)
    if not inside.all():
        first = int(np.argmin(inside))
        raise UserError(
            f"{given} with point {first} at {points[first].tolist()}",
            f"points in the domain, {domain.lower} to {domain.upper}",
            "move or leave out the points outside",
        )
    domain.check_region(torch.from_numpy(points), f"{what} with ")
    return QueryPoints(points, content.names, values)


def _check_units(what: str, found: Mapping[str, str], units: Mapping[str, str]) -> None:
    """Raise a UserError if axes have another unit of length than the domain."""
    for axis, unit in found.items():
        one, other = length_of(unit), length_of(units.get(axis, ""))
        if one and other and one != other:
            given = f"{what} with {axis} in {unit}"
            todo = "convert the coordinates, or correct the unit in the file"
            raise UserError(given, f"{axis} in {units[axis]}, as in training", todo)


def _numpy(path: Path, static: Sequence[str]) -> QueryPoints:
    check_source(path)
    arrays = np.load(path, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        return QueryPoints(arrays, [], {})
    with arrays:
        names = arrays.files
        name = names[0] if len(names) == 1 else "pos"
        values = {key: _array(arrays, key, path) for key in names if key in static}
        expected = f"pos and perhaps {', '.join(static)}" if static else "pos"
        if name not in names:
            given = f"{path} with {'arrays ' * bool(names)}{', '.join(names) or 'none'}"
            todo = "call the array of points pos"
            raise UserError(given, f"the array {expected}", todo)
        pos = _array(arrays, name, path)
        for odd in sorted({*names} - {name, *values}):
            if arrays[odd].shape == pos.shape[:1]:  # a value for each point
                known = " and ".join(["pos", *static])
                given = f"{path} with the array {odd}, which is none of {known}"
                raise UserError(given, f"the array {expected}", "rename or remove it")
        return QueryPoints(pos, [], values, array=name)


def _array(arrays: Mapping[str, Any], name: str, path: Path) -> Any:
    """Return an array of an archive, which has to be one of numbers."""
    with reading(f"array {name} of {path}", "an array of numbers", "write it again"):
        return arrays[name]


def _other(path: Path, domain: Domain, static: Sequence[str]) -> QueryPoints:
    """The points of a mesh or of another file of data, with ``static`` inputs."""
    if path.is_file() and is_mesh(path):
        points, arrays = points_and_arrays(path)
        called = {_name(name, static): name for name in arrays}
        values = {n: arrays[called[n]] for n in static if n in called}
        return QueryPoints(points, [], values)
    with nfsgeo.data.open(path, domain=domain) as fields:
        if fields.num_samples != 1:
            given = f"{path} with {fields.num_samples} samples"
            raise UserError(given, "one sample, whose points are meant", "split it")
        steady = [*fields.component_names] * (len(fields.times) == 1)
        there = [name for name in static if name in (*fields.static_names, *steady)]
        values = {name: fields.read_values([name], 0)[:, 0, 0] for name in there}
        units = {axis: fields.units.get(axis, "") for axis in SPACE}
        return QueryPoints(fields.coordinates(0), fields.stations(0), values, units)


def _name(name: str, static: Sequence[str]) -> str:
    """The name of a static input that a column has with a unit, or else its own."""
    bare, _ = field_name(name)
    return bare if name not in static and bare in static else name


def _table(path: Path, static: Sequence[str], dim: int) -> QueryPoints:
    """Columns of coordinates, of names and of ``static`` inputs."""
    names, separator, *_ = first_lines(path)
    if names and all(name and is_number(name) for name in names):
        one = None if separator == SPACES else separator
        pos = np.loadtxt(path, delimiter=one, ndmin=2, encoding="utf-8-sig")
        return QueryPoints(pos, [], {})
    places, others = point_table(path)
    others = others.rename(columns={n: _name(n, static) for n in others})
    marked = {f"a_{name}": name for name in static}  # as nfsgeo's tables have them
    others = others.rename(columns={m: n for m, n in marked.items() if n not in others})
    values = {n: values_of(path, others.pop(n)) for n in static if n in others}
    heights = [n for n in HEIGHTS if n in static and n not in values]
    if heights and len(places.columns) == dim + 1 == 3:
        values[heights[-1]] = places.pop(places.columns[-1]).to_numpy(np.float64)
    for name in others:
        numeric = others[name].map(is_number).all()
        if numeric and bare_name(name) not in STATIONS:
            todo = f"rename {name} if it is {' or '.join(static)}" * bool(static)
            raise UserError(
                f"{path} with columns {', '.join(others)} beside the coordinates",
                " or ".join(["names of the points", *static]),
                f"{todo}, or remove it" if todo else f"remove {name}",
            )
    names = [*others.iloc[:, 0]] if len(others.columns) else []
    units = {a: axis_unit(n) for a, n in zip(SPACE, places, strict=False)}
    return QueryPoints(places.to_numpy(np.float64), names, values, units)
