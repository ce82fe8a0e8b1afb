"""From arrays whose axes have letters to :class:`~nfsgeo.data.fields.Fields`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import ArrayLike
from xarray import Variable

from nfsgeo.data.checks import as_real, finite
from nfsgeo.data.conventions import (
    FIELD,
    FORCING,
    KNOWN,
    NODE_TYPE,
    PARAMETER,
    SPACE,
    STATIC,
    STATION,
    Doubles,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import spread, stacked
from nfsgeo.data.times import time_variable
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["Array", "build", "cell_variables", "even_axis", "nodes", "numbered"]
__all__ += ["whole_numbers"]

# The dimension that each letter of an axis is for; other letters run over components.
DIMS = {"n": "sample", "t": "time", "p": "point", "o": "obs"} | {
    axis: axis for axis in SPACE
}
RESERVED = ("", *DIMS.values(), "part", "row_size", "region")


@dataclass(frozen=True)
class Array:
    """Components of a field in one array, or variable of xarray that is read lazily; or
    in a list of them, one for each sample, whose axes are those after the sample's.

    The letters of ``axes`` are ``n`` sample, ``t`` time, ``x``, ``y``, ``z`` of a grid,
    ``p`` point; any other runs over components. What the field does not depend on is
    left out.
    """

    values: Any
    axes: str
    names: Sequence[str]  # of its components; forcing_NAME is NAME, known ahead
    role: str = FIELD  # one of ROLES
    attrs: Mapping[str, Any] = field(default_factory=dict)  # further ones, as of CF


def build(
    path: Path,
    arrays: Sequence[Array],
    *,
    axes: Sequence[ArrayLike] | None = None,
    points: Any = None,
    stations: ArrayLike | None = None,
    times: Any = None,
    domain: Domain | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    cells: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    equation: str = "",
    provenance: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    split: Mapping[str, ArrayLike] | None = None,
) -> Fields:
    """Makes fields of arrays, on a grid or at points.

    Args:
        path: What messages call the data.
        arrays: Fields and inputs.
        axes: Coordinates along each axis of a grid, or None at points.
        points: Points ``[n, d]`` of all samples, a list of those of each, or variables
            by the name of the axis.
        stations: Names of the points, of one sample after the other.
        times: Time of each time step, numbers or dates; None where it is not known.
        domain: The box that holds the points; drawn around them when None.
        parameters: Scalars or small arrays of each sample, ``[N, ...]``.
        cells: Cells by type, ``[cells, nodes]``, of all samples or a list of those of
            each.
        equation: Name of the equation.
        provenance: How the data were made.
        units: Units of fields, axes and ``time`` by name.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.

    Raises:
        UserError: A name or a size contradicts another.
    """
    units = dict(units or {})
    found = _space(path, axes, points)
    rows = found["row_size"].values.tolist() if "row_size" in found else None
    names = [name.removeprefix(FORCING) for array in arrays for name in array.names]
    for array in arrays:
        variable = _variable(path, array, rows)
        apart = [dim for dim in variable.dims if dim not in DIMS.values()]
        variable = variable.transpose(..., *apart)
        shape = variable.shape[variable.ndim - len(apart) :]
        if len(array.names) != prod(shape):
            listed = f"{len(array.names)} names ({', '.join(array.names)})"
            given = f"{path} with {listed} for {array.role} of shape {variable.shape}"
            todo = "give as many names, or move the components to the last axis"
            raise UserError(given, f"{prod(shape)} names, one for each component", todo)
        for index, name in zip(np.ndindex(*shape), array.names, strict=True):
            role, bare = array.role, name.removeprefix(FORCING)
            if role == FIELD and bare != name:
                role, name = KNOWN, name if names.count(bare) > 1 else bare
            _check_name(path, name, found)
            component = variable[(..., *index)] if shape else variable
            about = {"role": role, **array.attrs}
            whole = Variable(component.dims, component, about)
            found[name] = whole_numbers(name, whole) if role == STATIC else whole
    for name, values in (parameters or {}).items():
        table = as_real(values, f"parameter {name} of {path}")
        _check_name(path, name, found)
        dims = ["sample", *(f"{name}_{i}" for i in range(1, table.ndim))]
        found[name] = Variable(dims, table, {"role": PARAMETER})
    if stations is not None:
        along, num = [*found["x"].sizes.items()][-1]
        found[STATION] = Variable(along, np.asarray(stations, str).reshape(-1)[:num])
    if times is not None:
        found["time"] = time_variable(times, f"times of {path}", units.get("time"))
    for name, unit in units.items():
        if unit and name in found:
            found[name].attrs.setdefault("units", unit)
    about = {"equation": equation, "provenance": json.dumps(dict(provenance or {}))}
    _check_cells(path, cells, rows or [found["x"].sizes.get("point", 0)])
    dataset = xarray.Dataset({**found, **cell_variables(cells)}, attrs=about)
    fields = Fields(dataset.set_coords({"time", STATION, *SPACE} & found.keys()), path)
    if split:
        fields = fields.with_split(split)
    if domain is not None:
        fields = fields.with_domain(domain)
    return fields


def whole_numbers(name: str, values: Variable) -> Variable:
    """A static input as it is stored: marks of booleans and node types as integers."""
    if values.dtype.kind == "b":
        return values.astype(np.int8, keep_attrs=True)
    if name == NODE_TYPE and values.dtype.kind in "uf":
        read = values.values
        if np.isfinite(read).all() and (read == np.round(read)).all():
            return values.copy(data=read.astype(np.int32))
    return values


def numbered(name: str, num: int) -> list[str]:
    """Names of so many components: ``u``, or ``u_0``, ``u_1``, ..."""
    return [name] if num == 1 else [f"{name}_{i}" for i in range(num)]


def nodes(num: int, *, periodic: bool) -> Doubles:
    """Equispaced nodes of [0, 1]; a periodic axis leaves its end point out."""
    return np.arange(num) / num if periodic else np.linspace(0, 1, num)


def even_axis(values: Any, *, centred: bool) -> tuple[Doubles, float, float]:
    """An equispaced axis freed of float32 rounding, and the ends of its box.

    Coordinates are ``centred`` in cells, or else the first is an end of the box and the
    last lies one step before the other (periodic nodes).

    Raises:
        ValueError: The coordinates are not equispaced.
    """
    stored = np.asarray(values, dtype=np.float64)
    if stored.ndim != 1 or len(stored) < 2:
        raise ValueError(f"an axis of shape {stored.shape}")
    step = (stored[-1] - stored[0]) / (len(stored) - 1)
    if step <= 0 or not np.allclose(np.diff(stored), step, rtol=1e-2, atol=0):
        raise ValueError("coordinates that do not increase by equal steps")
    lower = stored[0] - (step / 2 if centred else 0)
    length = step * len(stored)
    digits = 6 - int(np.floor(np.log10(length)))
    lower, upper = round(lower, digits), round(lower + length, digits)
    shift = 0.5 if centred else 0.0
    axis = lower + (np.arange(len(stored)) + shift) * ((upper - lower) / len(stored))
    return axis, float(lower), float(upper)


def _space(path: Path, axes: Any, points: Any) -> dict[str, Variable]:
    """Coordinates, and how many points samples have that differ in them."""
    if axes is not None:
        named = zip(SPACE, axes, strict=False)
        return {n: Variable(n, as_real(v, f"axis {n} of {path}")) for n, v in named}
    if isinstance(points, Mapping):
        return dict(points)
    checked: list[Doubles] = []
    several = points if isinstance(points, (list, tuple)) else [points]
    for sample, each in enumerate(several):
        what = f"points of sample {sample} of {path}"
        place: Doubles = finite(as_real(each, what).astype(np.float64), what)
        dims = (checked[0].shape[1],) if sample else (1, 2, 3)
        if place.ndim != 2 or place.shape[1] not in dims or not len(place):
            expected = f"(points, {' or '.join(map(str, dims))})"
            raise UserError(f"{what} of shape {place.shape}", expected, "reorder axes")
        checked.append(place)
    if all(np.array_equal(each, checked[0]) for each in checked):
        columns = zip(SPACE, checked[0].T, strict=False)
        return {n: Variable("point", v) for n, v in columns}
    columns = zip(SPACE, np.concatenate(checked).T, strict=False)
    found = {n: Variable("obs", v) for n, v in columns}
    about = {"sample_dimension": "obs", "role": "rows"}
    found["row_size"] = Variable("sample", [*map(len, checked)], about)
    return found


def _variable(path: Path, array: Array, rows: list[int] | None) -> Variable:
    """The values of all samples in one."""
    dims = [DIMS.get(letter, f"component_{letter}") for letter in array.axes]
    if rows and "n" not in array.axes:
        dims = ["obs" if dim == "point" else dim for dim in dims]
    several, parts = isinstance(array.values, list), []
    for values in array.values if several else [array.values]:
        if not isinstance(values, Variable):
            what = f"{', '.join(array.names)} of {path}"
            values = as_real(values, what, gaps=array.role == FIELD)
        parts.append(Variable(dims, values))
    if not several:
        return parts[0]
    if rows and (sizes := [part.sizes.get("obs") for part in parts]) != rows:
        given = f"{path} with {', '.join(array.names)} at {sizes} points of samples"
        raise UserError(given, f"{rows}, as many as there are", "reorder the axes")
    along = "obs" if rows else "sample"
    if not isinstance(array.values[0], Variable):
        return Variable.concat(parts, along)
    if not rows:
        parts = [spread(each, {along: 1, **each.sizes}) for each in parts]
    return stacked(parts, along)


def _check_name(path: Path, name: str, there: Mapping[str, Any]) -> None:
    fine = name.isprintable() and name == name.strip() and "/" not in name
    if name in there or name in RESERVED or not fine:
        expected = f"names that differ, other than {', '.join(RESERVED)}, without '/'"
        raise UserError(f"{path} with a field named {name!r}", expected, "rename it")


def _check_cells(path: Path, cells: Any, sizes: Sequence[int]) -> None:
    """Makes sure that cells join points that there are."""
    each = [cells] if isinstance(cells, Mapping) else [*cells]
    for sample in range(max(len(sizes), len(each)) if each else 0):
        size = sizes[sample % len(sizes)]
        for kind, nodes in each[sample % len(each)].items():
            numbers = np.asarray(nodes)
            fine = numbers.ndim == 2 and numbers.dtype.kind in "iu"
            if fine and numbers.size:
                fine = numbers.min() >= 0 and numbers.max() < size
            if not fine:
                given = f"{path} with {kind} cells of shape {numbers.shape} and type "
                given += f"{numbers.dtype} in sample {sample}"
                wanted = f"[cells, nodes], whole numbers from 0 to {size - 1}"
                raise UserError(given, wanted, "number the points of a sample from 0")


def cell_variables(cells: Any) -> dict[str, Variable]:
    """Cells of a mesh, or of the mesh of each sample, as variables."""
    each = [cells] if isinstance(cells, Mapping) else [*cells]
    alone = len(each) == 1 or all(
        part.keys() == each[0].keys()
        and all(np.array_equal(part[kind], each[0][kind]) for kind in part)
        for part in each
    )
    found = {}
    for kind in dict.fromkeys(kind for part in each for kind in part):
        dims, about = (f"cell_{kind}", f"corner_{kind}"), {"role": "cells"}
        if alone:
            found[f"cells_{kind}"] = Variable(dims, np.asarray(each[0][kind]), about)
            continue
        parts = [np.asarray(p[kind]) for p in each if kind in p]
        found[f"cells_{kind}"] = Variable(dims, np.concatenate(parts), about)
        sizes = [len(part.get(kind, ())) for part in each]
        rows = {"sample_dimension": dims[0], "role": "rows"}
        found[f"row_size_{kind}"] = Variable("sample", sizes, rows)
    return found
