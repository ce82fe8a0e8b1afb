"""From arrays whose axes have letters to :class:`~nfsgeo.data.fields.Fields`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import ArrayLike, NDArray
from xarray import Variable

from nfsgeo.data.fields import FIELD, FORCING, KNOWN, PARAMETER, Fields
from nfsgeo.data.lazy import stacked
from nfsgeo.data.numbers import as_real, check_distinct
from nfsgeo.data.times import EPOCH, as_times, check_no_dates, unit_of_times
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "Array",
    "build",
    "cell_centres",
    "cell_variables",
    "even_axis",
    "nodes",
    "numbered",
]

Doubles = NDArray[np.float64]

# The dimension that each letter of an axis is for; other letters run over components.
DIMS = {
    "n": "sample",
    "t": "time",
    "p": "point",
    "o": "obs",
    "x": "x",
    "y": "y",
    "z": "z",
}
SPACE = ("x", "y", "z")
RESERVED = ("", *DIMS.values(), "part", "row_size", "region")


@dataclass(frozen=True)
class Array:
    """Components of a field in one array.

    Attributes:
        values: An array, or a variable of xarray that is read lazily; a list of them,
            one for each sample, whose axes are those after the sample's.
        axes: A letter for each axis: ``n`` sample, ``t`` time, ``x``, ``y``, ``z`` of a
            grid, ``p`` point; any other runs over components. What the field does not
            depend on is left out.
        names: Of its components; ``forcing_NAME`` is the forcing ``NAME``.
        role: One of :data:`~nfsgeo.data.fields.ROLES`.
    """

    values: Any
    axes: str
    names: Sequence[str]
    role: str = FIELD


def build(
    path: Path,
    arrays: Sequence[Array],
    *,
    axes: Sequence[ArrayLike] | None = None,
    points: Any = None,
    times: Any = None,
    domain: Domain | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    cells: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    equation: str = "",
    provenance: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    split: Mapping[str, NDArray[np.int64]] | None = None,
    known: Sequence[str] = (),
) -> Fields:
    """Fields of arrays.

    Args:
        path: Where they come from.
        arrays: Fields and inputs.
        axes: Coordinates of each axis of a grid.
        points: Points ``[n, d]`` of all samples, a list of those of each, a lazy
            variable ``[N, n, d]``, or variables by the name of the axis.
        times: Time of each time step, numbers or dates; None where it is not known.
        domain: The box that holds the points; drawn around them when None.
        parameters: Scalars or small arrays of each sample, ``[N, ...]``.
        cells: Cells by type, ``[cells, nodes]``, of all samples or a list of those of
            each.
        equation: Name of the equation.
        provenance: How the data were made.
        units: Units of fields, axes and ``time`` by name.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.
        known: Names of components and parameters that are known ahead.

    Raises:
        UserError: A name or a size contradicts another.
    """
    found: dict[str, Variable] = {}
    rows, num_samples = None, 0
    if axes is not None:
        for name, axis in zip("xyz", axes, strict=False):
            found[name] = Variable(name, as_real(axis, f"axis {name} of {path}"))
    elif isinstance(points, Mapping):
        found |= points
    elif isinstance(points, Variable):
        for i, name in enumerate("xyz"[: points.shape[-1]]):
            found[name] = Variable(("sample", "point"), points[..., i])
    else:
        several = isinstance(points, (list, tuple))
        points = list(points) if several else [points]
        num_samples = len(points) if several else 0
        checked = [_checked(each, path, i, points[0]) for i, each in enumerate(points)]
        alone = all(np.array_equal(each, checked[0]) for each in checked)
        lazy = any(isinstance(a.values, list) and _is_lazy(a.values[0]) for a in arrays)
        rows = (
            None
            if alone and not (lazy and len(points) > 1)
            else list(map(len, checked))
        )
        whole = checked[0] if rows is None else np.concatenate(checked)
        for i, name in enumerate("xyz"[: whole.shape[1]]):
            found[name] = Variable("point" if rows is None else "obs", whole[:, i])
    if rows is not None:
        found["row_size"] = Variable(
            "sample", np.array(rows), {"sample_dimension": "obs", "role": "rows"}
        )
    names = [name for array in arrays for name in array.names]
    bare = {name: name.removeprefix(FORCING) for name in names}
    twice = {b for b in bare.values() if list(bare.values()).count(b) > 1}
    for array in arrays:
        values, letters = _joined(path, array, rows, num_samples)
        variable = Variable(*_dims(path, array, letters, values))
        apart = [dim for dim in variable.dims if dim not in DIMS.values()]
        variable = variable.transpose(
            *(dim for dim in variable.dims if dim not in apart), *apart
        )
        shape = variable.shape[len(variable.dims) - len(apart) :]
        if len(array.names) != int(np.prod(shape)):
            raise UserError(
                f"{path} with {len(array.names)} name{'s' * (len(array.names) != 1)} "
                f"({', '.join(array.names)}) for {array.role} of shape {values.shape}",
                f"{int(np.prod(shape))} names, one for each component",
                "give as many names, or move the components to the last axis",
            )
        for index, name in zip(np.ndindex(*shape), array.names, strict=True):
            role, kept = array.role, name
            if role == FIELD and name.startswith(FORCING):
                role, kept = KNOWN, name if bare[name] in twice else bare[name]
            _check_name(path, kept, found)
            component = variable[(..., *index)] if shape else variable
            unit = (units or {}).get(kept)
            about = {"role": role} | ({"units": unit} if unit else {})
            found[kept] = Variable(component.dims, component, about)
    for name, values in (parameters or {}).items():
        numbers = as_real(values, f"parameter {name} of {path}")
        _check_name(path, name, found)
        dims = ["sample", *(f"{name}_{i}" for i in range(1, numbers.ndim))]
        found[name] = Variable(dims, numbers, {"role": PARAMETER})
    found |= cell_variables(cells)
    dataset = xarray.Dataset(
        {n: v for n, v in found.items() if n not in SPACE},
        {n: v for n, v in found.items() if n in SPACE},
        {"equation": equation, "provenance": json.dumps(dict(provenance or {}))},
    )
    if times is not None:
        unit = unit_of_times(times) or (units or {}).get("time", "")
        about = {"axis": "T"} | ({"units": unit} if unit else {})
        when = np.atleast_1d(as_times(times, f"times of {path}"))
        if unit != EPOCH:
            check_no_dates(when, f"{path} with times", "give them as dates")
        if when.ndim != 1:
            raise UserError(
                f"{path} with times of shape {when.shape}",
                "one axis, that of the time steps",
                "flatten them",
            )
        dataset = dataset.assign_coords(time=("time", when, about))
    for axis in "xyz":
        if axis in dataset.coords and (unit := (units or {}).get(axis)):
            dataset[axis].attrs["units"] = unit
    fields = Fields(dataset, path)
    if split:
        fields = fields.with_split(split)
    if domain is not None:
        fields = fields.with_domain(domain)
    return fields.with_known(known) if known else fields


def numbered(name: str, num: int) -> list[str]:
    """Names of so many components: ``u``, or ``u_0``, ``u_1``, ..."""
    return [name] if num == 1 else [f"{name}_{i}" for i in range(num)]


def nodes(num: int, *, periodic: bool) -> Doubles:
    """Equispaced nodes of [0, 1]; a periodic axis leaves its end point out."""
    return np.arange(num) / num if periodic else np.linspace(0, 1, num)


def cell_centres(num: int) -> Doubles:
    """Centres of ``num`` equal cells of [0, 1]."""
    return (np.arange(num) + 0.5) / num


def even_axis(values: Any, *, centred: bool) -> tuple[Doubles, float, float]:
    """An equispaced axis freed of float32 rounding, and the ends of its cells.

    Args:
        values: Coordinates as stored, increasing by one step.
        centred: Whether they are the centres of cells; else the first is an end of
            the box and the last lies one step before the other (periodic nodes).

    Returns:
        The axis, the lower and the upper end of the box.

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


def _checked(points: Any, path: Path, sample: int, first: Any) -> Doubles:
    found = as_real(points, f"points of sample {sample} of {path}").astype(np.float64)
    dims = (1, 2, 3) if not sample else (np.shape(first)[-1],)
    if found.ndim != 2 or found.shape[1] not in dims or not len(found):
        raise UserError(
            f"sample {sample} of {path} with points of shape {found.shape}",
            f"(points, {' or '.join(map(str, dims))})",
            "reorder its axes",
        )
    if not np.isfinite(found).all():
        raise UserError(f"sample {sample} of {path}", "finite points", "repair it")
    return found


def _is_lazy(values: Any) -> bool:
    return isinstance(values, Variable)


def _joined(
    path: Path, array: Array, rows: list[int] | None, num_samples: int
) -> tuple[Any, str]:
    """The values of all samples in one, and the letters of their axes."""
    values, letters = array.values, array.axes
    gaps = array.role == FIELD
    if not isinstance(values, list):
        if not _is_lazy(values):
            values = as_real(values, f"{', '.join(array.names)} of {path}", gaps=gaps)
        return values, letters.replace(
            "p", "o"
        ) if rows and "n" not in letters else letters
    what = f"{', '.join(array.names)} of sample"
    if num_samples and len(values) != num_samples:
        raise UserError(
            f"{path} with {', '.join(array.names)} of {len(values)} samples",
            f"{num_samples}, as many as of points and fields",
            "give one array for each sample",
        )
    if not _is_lazy(values[0]):
        values = [as_real(v, f"{what} {i}", gaps=gaps) for i, v in enumerate(values)]
    axis = letters.find("p")
    for sample, each in enumerate(values):
        shape = [*values[0].shape]
        shape[axis] = rows[sample] if rows else shape[axis]
        if [*each.shape] != shape:
            raise UserError(
                f"{what} {sample} of {path} with shape {each.shape}",
                f"{tuple(shape)}, with {shape[axis]} points",
                "reorder its axes",
            )
    if rows is None:
        return np.stack(values), "n" + letters
    letters = letters.replace("p", "o")
    if not _is_lazy(values[0]):
        return np.concatenate(values, axis), letters
    dims = [DIMS.get(letter, letter) for letter in letters]
    return stacked([Variable(dims, each) for each in values], "obs"), letters


def _dims(path: Path, array: Array, letters: str, values: Any) -> tuple[list[str], Any]:
    """Dimensions and values for a variable."""
    if len(letters) != values.ndim:
        raise UserError(
            f"{path} with {', '.join(array.names)} of shape {tuple(values.shape)}",
            f"axes ({', '.join(letters)})",
            "restore the format's order of axes",
        )
    dims = [DIMS.get(letter, f"component_{letter}") for letter in letters]
    return dims, values


def _check_name(path: Path, name: str, there: Mapping[str, Any]) -> None:
    check_distinct(path, [*(n for n in there if n == name), name])
    if (
        name in RESERVED
        or "/" in name
        or not name.isprintable()
        or name != name.strip()
    ):
        raise UserError(
            f"{path} with a field named {name!r}",
            f"a printable name other than {', '.join(RESERVED)}, without '/'",
            "rename it",
        )


def cell_variables(cells: Any) -> dict[str, Variable]:
    """Cells of a mesh, or of the mesh of each sample, as variables."""
    several = list(cells) if isinstance(cells, (list, tuple)) else []
    each = [cells] if isinstance(cells, Mapping) else several
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
