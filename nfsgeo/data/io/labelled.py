"""The gate: arrays with labelled axes, in xarray's own form, become fields.

Every reader makes variables and coordinates, ``{name: (dims, values, attributes)}``,
and passes them here. Values are arrays, or variables of xarray that are read lazily, or
a list with one of them for each sample, whose dimensions are those after ``sample``.

The dimensions of a variable are ``sample``, ``time``, ``x``, ``y``, ``z`` of a grid and
``point``, as far as it depends on them; along further ones lie its components. Its
attribute ``role`` is one of :data:`~nfsgeo.data.conventions.ROLES`, by default a field,
which is known ahead where its name begins with ``forcing_``. The attribute
``components`` has the names of components, by default ``NAME_0``, ``NAME_1`` and so on.

===============  =======================================================================
coordinate       content
===============  =======================================================================
``x, y, z``      coordinates along the axes of a grid, or of points, along ``point`` or
                 ``(sample, point)``, or along ``obs`` with ``row_size``
``points``       instead of them, coordinates of points ``(point, axis)``
``time``         numbers or dates
``station``      names of the points, of one sample after the other
===============  =======================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import ArrayLike, NDArray
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
    TIME_ZONE,
    Doubles,
    field_name,
)
from nfsgeo.data.fields import Fields
from nfsgeo.data.lazy import stacked
from nfsgeo.data.times import time_variable
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "cell_variables",
    "even_axis",
    "field_names",
    "nodes",
    "numbered",
    "to_fields",
]
__all__ += ["check_cell_types", "num_nodes", "plain_name", "whole_numbers"]

# Nodes of a linear cell by its type; see :func:`num_nodes`.
CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4}
CORNERS |= {"pyramid": 5, "wedge": 6, "hexahedron": 8}
PLACES = {*SPACE, "point", "obs"}
DIMS = {"sample", "time", *PLACES}
RESERVED = ("", "sample", "time", "point", "obs", *SPACE, "part", "row_size", "region")
Label = tuple[tuple[str, ...], Any, dict[str, Any]]


def to_fields(
    path: Path,
    variables: Mapping[str, Any],
    coordinates: Mapping[str, Any],
    *,
    domain: Domain | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    split: Mapping[str, ArrayLike] | None = None,
    cells: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    units: Mapping[str, str] | None = None,
    equation: str = "",
    provenance: Mapping[str, Any] | None = None,
) -> Fields:
    """Makes fields of labelled arrays, on a grid or at points.

    Args:
        path: Name of the data in messages.
        variables: Fields and inputs by name, as above.
        coordinates: Coordinates by name, ignored where their values are None.
        domain: The box that holds the points; drawn around them when None.
        parameters: Scalars or small arrays of each sample, ``[N, ...]``.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.
        cells: Cells by type, ``[cells, nodes]``, of all samples or a list of those of
            each.
        units: Units of fields, axes and ``time`` by name, besides those in attributes.
        equation: Name of the equation.
        provenance: How the data were made.

    Raises:
        UserError: A name or a size contradicts another.
    """
    labels = {name: _label(entry) for name, entry in coordinates.items()}
    made = _coordinates(path, labels)
    rows = made["row_size"].values.tolist() if "row_size" in made else None
    components = list[tuple[str, Variable]]()
    for key, entry in variables.items():
        components += _components(path, key, _label(entry), rows)
    bare = [name.removeprefix(FORCING) for name, _ in components]
    for name, variable in components:
        short = name.removeprefix(FORCING)
        if variable.attrs["role"] == FIELD and short != name:
            variable.attrs["role"] = KNOWN
            name = name if bare.count(short) > 1 else short
        _check_name(path, name, made)
        if variable.dtype.kind == "c":
            as_real(np.zeros(1, variable.dtype), f"{path} with {name}")
        static = variable.attrs["role"] == STATIC
        made[name] = whole_numbers(name, variable) if static else variable
    for name, values in (parameters or {}).items():
        table = as_real(values, f"parameter {name} of {path}")
        _check_name(path, name, made)
        dims = ["sample", *(f"{name}_{i}" for i in range(1, table.ndim))]
        made[name] = Variable(dims, table, {"role": PARAMETER})
    for name, unit in (units or {}).items():
        if unit and name in made:
            made[name].attrs.setdefault("units", unit)
    about = {"equation": equation, "provenance": json.dumps(dict(provenance or {}))}
    sizes = rows or [made["x"].sizes.get("point", 0)]
    made |= cell_variables(_cells_of_samples(path, cells, sizes))
    dataset = xarray.Dataset(made, attrs=about)
    fields = Fields(dataset.set_coords({"time", STATION, *SPACE} & made.keys()), path)
    fields = fields.with_split(split) if split else fields
    return fields if domain is None else fields.with_domain(domain)


def _label(entry: Any) -> Label:
    """Dimensions, values and attributes of an entry."""
    if isinstance(entry, Variable):
        return tuple(map(str, entry.dims)), entry, dict(entry.attrs)
    dims, values, *attrs = entry
    return (dims,) if isinstance(dims, str) else (*dims,), values, dict(*attrs)


def _coordinates(path: Path, labels: Mapping[str, Label]) -> dict[str, Variable]:
    """Coordinates, and the number of points of each sample where they are ragged."""
    labels = {name: label for name, label in labels.items() if label[1] is not None}
    coordinates: dict[str, Variable] = {}
    if "points" in labels:
        _, values, _ = labels["points"]
        coordinates |= _points(path, values if isinstance(values, list) else [values])
    for name in (name for name in ("row_size", *SPACE) if name in labels):
        dims, values, attrs = labels[name]
        if not isinstance(values, Variable):
            values = as_real(values, f"axis {name} of {path}")
        coordinates[name] = Variable(dims, values, attrs)
    if STATION in labels:
        along, num = [*coordinates["x"].sizes.items()][-1]
        names = np.asarray(labels[STATION][1], str).reshape(-1)
        coordinates[STATION] = Variable(along, names[:num])
    if "time" in labels:
        _, values, attrs = labels["time"]
        unit = attrs.get("units")
        when = time_variable(values, f"times of {path}", unit)
        when.attrs |= {TIME_ZONE: attrs[TIME_ZONE]} if attrs.get(TIME_ZONE) else {}
        coordinates["time"] = when
    return coordinates


def _points(path: Path, meshes: Sequence[Any]) -> dict[str, Variable]:
    """Coordinates of points ``[n, d]``, which all samples share or each has its own."""
    checked: list[Doubles] = []
    for sample, mesh in enumerate(meshes):
        what = f"points of sample {sample} of {path}"
        pos: Doubles = finite(as_real(mesh, what).astype(np.float64), what)
        widths = (checked[0].shape[1],) if sample else (1, 2, 3)
        if pos.ndim != 2 or pos.shape[1] not in widths or not len(pos):
            expected = f"(points, {' or '.join(map(str, widths))})"
            raise UserError(f"{what} of shape {pos.shape}", expected, "reorder axes")
        checked.append(pos)
    shared = all(np.array_equal(pos, checked[0]) for pos in checked)
    whole = checked[0] if shared else np.concatenate(checked)
    columns = zip(SPACE, whole.T, strict=False)
    along = "point" if shared else "obs"
    coordinates = {axis: Variable(along, column) for axis, column in columns}
    if not shared:
        attrs = {"sample_dimension": "obs", "role": "rows"}
        coordinates["row_size"] = Variable("sample", [*map(len, checked)], attrs)
    return coordinates


def _components(
    path: Path, key: str, label: Label, rows: list[int] | None
) -> Iterator[tuple[str, Variable]]:
    """The components of an array by name, each with its role."""
    dims, values, attrs = label
    attrs = {"role": FIELD, **attrs}
    if rows and "sample" not in dims:
        dims = tuple("obs" if dim == "point" else dim for dim in dims)
    per_sample = isinstance(values, list) and len(values) > 0
    per_sample = per_sample and np.ndim(values[0]) == len(dims)
    parts = []
    for part in values if per_sample else [values]:
        if not isinstance(part, Variable):
            part = as_real(part, f"{key} of {path}", gaps=attrs["role"] == FIELD)
        parts.append(Variable(dims, part))
    whole = parts[0]
    if per_sample:
        if rows and (sizes := [part.sizes.get("obs") for part in parts]) != rows:
            given = f"{path} with {key} at {sizes} points of samples"
            raise UserError(given, f"{rows}, as many as there are", "reorder the axes")
        lazy, along = isinstance(values[0], Variable), "obs" if rows else "sample"
        whole = stacked(parts, along) if lazy else Variable.concat(parts, along)
    apart = [dim for dim in whole.dims if dim not in DIMS]
    whole = whole.transpose(..., *apart)
    shape = whole.shape[whole.ndim - len(apart) :]
    names = [*(attrs.pop("components", None) or numbered(key, prod(shape)))]
    if len(names) != prod(shape):
        listed = f"{len(names)} names ({', '.join(names)})"
        given = f"{path} with {listed} for {attrs['role']}"
        given += f" of {prod(shape)} component" + "s" * (prod(shape) != 1)
        todo = "give as many names, or move the components to the last axis"
        raise UserError(given, "one name for each component", todo)
    for index, name in zip(np.ndindex(*shape), names, strict=True):
        component = whole[(..., *index)] if shape else whole
        yield name, Variable(component.dims, component, dict(attrs))


def whole_numbers(name: str, values: Variable) -> Variable:
    """Store booleans and node types among static inputs as integers.

    Raises:
        UserError: A node type is no whole number.
    """
    if values.dtype.kind == "b":
        return values.astype(np.int8, keep_attrs=True)
    if name == NODE_TYPE and values.dtype.kind in "uf":
        read = values.values
        wrong = read[~np.isfinite(read) | (read != np.round(read))]
        if wrong.size:
            given = f"{name} with {wrong.size} of {read.size} values such as {wrong[0]}"
            todo = "correct them, or give the input another name"
            raise UserError(given, "whole numbers, which are types of points", todo)
        return values.copy(data=read.astype(np.int32))
    return values


def numbered(name: str, num: int) -> list[str]:
    """Names of ``num`` components: ``u``, or ``u_0``, ``u_1``, ..."""
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


def plain_name(name: str) -> str:
    """A name that a field may have, for one that a program has given it.

    Spaces around it are left out, ``/`` and what cannot be printed becomes ``.``, and
    what has a meaning of its own, such as ``x`` and ``time``, ends with ``_field``.
    """
    fine = (c if c.isprintable() and c != "/" else "." for c in name.strip())
    plain = "".join(fine)
    return f"{plain}_field".lstrip("_") if plain in RESERVED else plain


def field_names(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The name of the field and the unit of each column, see :func:`field_name`.

    A unit stays in the name where that tells columns apart, such as ``T [K]`` and
    ``T [°C]``, or where the name without it has a meaning of its own. ``F / m`` beside
    a column ``m`` or ``m [kg]`` is a ratio.
    """
    told = {name: field_name(name) for name in names}
    others = {*names, *(short for short, _ in told.values())}
    ratios = {n for n, (_, unit) in told.items() if "/" in n and unit in others}
    told |= {name: (name, "") for name in ratios}
    taken = [*RESERVED, *(short for short, _ in told.values())]
    whole = {n for n in names if taken.count(told[n][0]) > 1 and "/" not in n}
    return told | {name: (name, "") for name in whole if told[name][1]}


def num_nodes(kind: str) -> int | None:
    """Number of nodes of a cell of a type, with which names end unless it is linear.

    None where the name does not tell it.
    """
    digits = kind[len(kind.rstrip("0123456789")) :]
    return int(digits) if digits else CORNERS.get(kind)


def check_cell_types(cells: Iterable[Mapping[str, Any]]) -> None:
    """Raise a UserError if a type of cells is not known."""
    for kind in dict.fromkeys(kind for part in cells for kind in part):
        linear = CORNERS.get(str(kind).rstrip("0123456789"))
        if linear is None or (num_nodes(kind) or 0) < linear:
            names = ", ".join(CORNERS)
            expected = f"{names}, or one of them and its number of nodes, such as "
            expected += "triangle6"
            raise UserError(f"cells of type {kind!r}", expected, "correct the type")


def _check_name(path: Path, name: str, taken: Mapping[str, Any]) -> None:
    fine = name.isprintable() and name == name.strip() and "/" not in name
    if name in taken or name in RESERVED or not fine:
        others = ", ".join(filter(None, RESERVED))
        expected = f"names that differ, other than {others}, without '/'"
        raise UserError(f"{path} with a field named {name!r}", expected, "rename it")


def _cells_of_samples(
    path: Path, cells: Any, sizes: Sequence[int]
) -> list[dict[str, NDArray[Any]]]:
    """Cells of each sample, or of all in one, which have to join existing points."""
    several = [cells] if isinstance(cells, Mapping) else [*cells]
    checked = list[dict[str, NDArray[Any]]]()
    for sample, by_kind in enumerate(several):
        size = sizes[sample] if len(sizes) == len(several) else min(sizes)
        checked.append({})
        for kind, values in by_kind.items():
            corners = as_real(values, f"{kind} cells of {path}")
            fine = corners.ndim == 2 and corners.dtype.kind in "iu"
            if not corners.size:
                continue
            nodes = num_nodes(kind) or corners.shape[-1]
            if fine and corners.shape[1] != nodes:
                given = f"{path} with {kind} cells of shape {corners.shape}"
                expected = f"[cells, {nodes}], the nodes of each"
                raise UserError(
                    given, expected, "transpose them, or correct their type"
                )
            if not fine or corners.min() < 0 or corners.max() >= size:
                shape = f"{corners.shape} and type {corners.dtype}"
                expected = f"[cells, nodes], whole numbers from 0 to {size - 1}"
                raise UserError(
                    f"{path} with {kind} cells of shape {shape} in sample {sample}",
                    expected,
                    "number the points of a sample from 0",
                )
            checked[-1][kind] = corners
    return checked


def cell_variables(cells: Sequence[Mapping[str, Any]]) -> dict[str, Variable]:
    """Cells of a mesh, or of the mesh of each sample, as variables."""
    alone = all(
        part.keys() == cells[0].keys()
        and all(np.array_equal(part[kind], cells[0][kind]) for kind in part)
        for part in cells
    )
    variables = {}
    for kind in dict.fromkeys(kind for part in cells for kind in part):
        dims, parts = (f"cell_{kind}", f"corner_{kind}"), cells[:1] if alone else cells
        corners = np.concatenate([part[kind] for part in parts if kind in part])
        variables[f"cells_{kind}"] = Variable(dims, corners, {"role": "cells"})
        if not alone:
            sizes = [len(part.get(kind, ())) for part in cells]
            rows = {"sample_dimension": dims[0], "role": "rows"}
            variables[f"row_size_{kind}"] = Variable("sample", sizes, rows)
    return variables
